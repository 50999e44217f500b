// What several parts of the page are made of.
const SVG = "http://www.w3.org/2000/svg";

export function node(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

export function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export const count = (number) => number.toLocaleString("en");

// What `show` makes of a launch; of several, that of the one chosen in a menu.
export function byLaunch(id, launches, show) {
  const place = node("div"), menu = node("select", { id });
  launches.forEach((one, number) => menu.append(node("option", { value: number }, one.kernel)));
  const choose = () => place.replaceChildren(...show(launches[Number(menu.value)]));
  menu.addEventListener("change", choose);
  choose();
  return launches.length > 1 ? [node("p", {}, node("label", { for: id }, "Kernel "), menu), place] : [place];
}

// The lines around a place in a source file, with that line marked.
export function excerpt(text, line) {
  const lines = text.split("\n");
  const from = Math.max(0, line - 4), to = Math.min(lines.length, line + 3);
  const code = node("pre", { class: "excerpt", tabindex: "0" });
  for (let at = from; at < to; ++at) {
    const shown = `${String(at + 1).padStart(4)}  ${lines[at]}\n`;
    code.append(at + 1 === line ? node("mark", {}, shown) : shown);
  }
  return code;
}
