// The table of all recorded throughputs: menus that filter its rows, and titles that sort them. No library, no network.
document.addEventListener("DOMContentLoaded", () => {
  const table = document.querySelector(".results-table");
  const filter = document.querySelector(".results-filter");
  if (!table || !filter) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const menus = [...filter.querySelectorAll("select")];
  const count = filter.querySelector(".results-count");

  const places = Object.fromEntries([...table.tHead.rows[0].cells].map((cell, at) => [cell.dataset.column, at]));

  // What is chosen stands in the address behind #, so that a view can be sent to somebody.
  const remembered = new URLSearchParams(location.hash.slice(1));
  for (const menu of menus) {
    const value = remembered.get(menu.dataset.column);
    if (value !== null && [...menu.options].some((option) => option.value === value)) menu.value = value;
  }

  function show() {
    let shown = 0;
    for (const row of rows) {
      row.hidden = menus.some((menu) => menu.value && row.dataset[menu.dataset.column] !== menu.value);
      if (!row.hidden) shown += 1;
    }
    // A column in which all rows say the same is left out.
    for (const row of [table.tHead.rows[0], ...rows]) {
      for (const menu of menus) row.cells[places[menu.dataset.column]].hidden = menu.value !== "";
    }
    count.textContent = shown ? `${shown} of ${rows.length} rows` : "Nothing was recorded for this choice.";
  }

  function remember() {
    const chosen = new URLSearchParams(menus.map((menu) => [menu.dataset.column, menu.value]));
    history.replaceState(null, "", `#${chosen}`);
  }

  function sortBy(head) {
    const column = head.cellIndex;
    const number = head.dataset.number === "1";
    const down = head.getAttribute("aria-sort") === "ascending" || (number && !head.hasAttribute("aria-sort"));
    const text = (row) => row.cells[column].textContent;
    rows.sort((a, b) => {
      const order = number ? parseFloat(text(a)) - parseFloat(text(b)) : text(a).localeCompare(text(b), "en");
      return down ? -order : order;
    });
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  }

  for (const menu of menus) menu.addEventListener("change", () => { show(); remember(); });
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sortBy(head));
    head.replaceChildren(button);
  }
  filter.hidden = false;
  show();
});
