// What every page has: areas that scroll and switches of the menus are reached by keyboard, an address opens the folded
// part that it leads to, long tables are filtered by words, a lesson's pictures have the controls that they have in
// JupyterLab, and its tasks are written below their cells.
const AREAS = "pre, table.docutils, .cell_output > .output, .results-scroll, .toc-scroll, .sidebar-scroll";
const SWITCHES = { ".nav-overlay-icon": "Pages", ".toc-overlay-icon": "On this page", ".sidebar-tree label": "Pages below" };
const LONG_TABLE = 100; // rows

function reachAreas() {
  for (const area of document.querySelectorAll(AREAS)) {
    const scrolls = area.scrollWidth > area.clientWidth + 1 || area.scrollHeight > area.clientHeight + 1;
    if (scrolls) area.tabIndex = 0;
    else area.removeAttribute("tabindex");
  }
}

// The theme's menus are labels of boxes that no key reaches.
function reachSwitches() {
  for (const [which, name] of Object.entries(SWITCHES)) {
    for (const label of document.querySelectorAll(which)) {
      const icon = label.querySelector(".icon");
      icon.tabIndex = 0;
      icon.setAttribute("role", "button");
      icon.setAttribute("aria-label", name);
      icon.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        label.click();
      });
    }
  }
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const own = target.querySelector(":scope > details");
  for (let box = own ?? target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  target.scrollIntoView();
}

// A picture for each choice lies beside the page (flashladder/site/pictures.py).
function slider(box) {
  const picture = box.closest(".cell_output").querySelector("img");
  const choices = Object.entries(JSON.parse(box.dataset.choices));
  const places = choices.map(() => 0);
  const show = () => {
    picture.src = `${box.dataset.frames}-${places.join("-")}.png`;
    picture.closest("a").href = picture.src;
  };
  choices.forEach(([name, values], at) => {
    const label = document.createElement("label");
    const control = document.createElement("input");
    const chosen = document.createElement("output");
    const isSwitch = values.every((value) => typeof value === "boolean");
    Object.assign(control, isSwitch ? { type: "checkbox", checked: values[0] } : { type: "range", min: 0, value: 0 });
    if (!isSwitch) control.max = values.length - 1;
    const tell = () => (chosen.textContent = isSwitch ? "" : values[places[at]]);
    control.addEventListener("input", () => {
      places[at] = isSwitch ? values.indexOf(control.checked) : Number(control.value);
      tell();
      show();
    });
    tell();
    label.append(name, " ", control, " ", chosen);
    box.append(label);
  });
}

// A task of a lesson is written in place: the page of exercises in a frame, fetched when the reader asks for it. Without
// JavaScript the link leads to that page.
function writeHere(box) {
  const link = box.querySelector("a"), button = document.createElement("button");
  let frame;
  Object.assign(button, { type: "button", className: "button", textContent: "Write it here" });
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => {
    if (frame) frame.hidden = !frame.hidden;
    else box.after((frame = writingFrame(link)));
    button.setAttribute("aria-expanded", String(!frame.hidden));
  });
  link.classList.remove("button");
  link.textContent = "Write it on a page of its own";
  box.prepend(button);
}

function writingFrame(link) {
  const frame = document.createElement("iframe"), address = new URL(link.href);
  address.search = "embedded";
  Object.assign(frame, { className: "write-here", title: `Write it: ${link.dataset.task}`, src: address.href });
  window.addEventListener("message", ({ source, data }) => {
    if (source === frame.contentWindow && data?.height > 0) frame.style.height = `${data.height}px`;
  });
  return frame;
}

// Of a long table the rows in which all words stand that are asked for, at first by an address: ?rows=swizzle+racecheck
function filterRows(table) {
  const rows = [...table.querySelectorAll("tbody > tr")];
  if (rows.length < LONG_TABLE) return;
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const label = document.createElement("label");
  const asked = document.createElement("input");
  const count = document.createElement("output");
  label.className = "table-filter";
  table.classList.add("long");
  asked.type = "search";
  count.setAttribute("aria-live", "polite");
  const show = () => {
    const words = asked.value.toLowerCase().split(/\s+/);
    rows.forEach((row, at) => (row.hidden = !words.every((word) => texts[at].includes(word))));
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    reachAreas();
  };
  asked.addEventListener("input", show);
  asked.value = new URLSearchParams(location.search).get("rows") ?? "";
  label.append("Rows with these words ", asked, " ", count);
  (table.closest(".table-wrapper") ?? table).before(label);
  show();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".slider").forEach(slider);
  document.querySelectorAll("div.write-here").forEach(writeHere);
  document.querySelectorAll("table.docutils").forEach(filterRows);
  reachSwitches();
  reachAreas();
  openTarget();
});
document.addEventListener("toggle", reachAreas, true);
window.addEventListener("load", reachAreas);
window.addEventListener("resize", reachAreas);
window.addEventListener("hashchange", openTarget);
