// Pictures of a report, as SVG in the page's own colours.
import { banks, groups, passes } from "./accesses.js";
import { element } from "./dom.js";

// Lanes by banks: a cell is a bank that serves a lane, its number the wavefront of the lane's group that does. From the
// second on the lane waits, because another one wanted another word of the bank: those cells have a heavy border.
export function bankGrid(access) {
  const cell = 14, left = 34, top = 26, right = 96;
  const width = left + 32 * cell + right, height = top + 32 * cell + 30;
  const served = passes(access);
  const extra = access.wavefronts - access.ideal;
  const words =
    `Lanes of warp ${access.warp} by banks: ${access.wavefronts} wavefronts where ${access.ideal} would do, ` +
    (extra > 0 ? `${extra} of them bank conflicts.` : "no bank conflict.");
  const viewBox = `0 0 ${width} ${height}`;
  const svg = element("svg", { viewBox, role: "img", "aria-label": words, class: "bank-grid" });
  for (let at = 0; at <= 32; at += 4) {
    const x = left + at * cell, y = top + at * cell;
    svg.append(element("line", { x1: x, y1: top, x2: x, y2: top + 32 * cell, class: "rule" }));
    svg.append(element("line", { x1: left, y1: y, x2: left + 32 * cell, y2: y, class: "rule" }));
    if (at === 32) continue;
    svg.append(element("text", { x: x + cell / 2, y: top - 6, class: "tick", "text-anchor": "middle" }, at));
    svg.append(element("text", { x: left - 6, y: y + cell - 4, class: "tick", "text-anchor": "end" }, at));
  }
  const middle = { x: left + 16 * cell, y: height - 10, class: "tick", "text-anchor": "middle" };
  svg.append(element("text", middle, "bank (4 bytes wide)"));
  svg.append(element("text", { x: 2, y: 12, class: "tick" }, "lane"));
  for (const group of groups(access)) {
    const most = 1 + Math.max(...group.map((lane) => served.get(lane)));
    for (const lane of group) {
      const turn = served.get(lane);
      for (const bank of banks(access, lane)) {
        const x = left + bank * cell, y = top + lane * cell;
        const kind = turn > 0 ? "cell waits" : "cell";
        svg.append(element("rect", { x: x + 1, y: y + 1, width: cell - 2, height: cell - 2, class: kind }));
        const place = { x: x + cell / 2, y: y + cell - 4, class: kind + " number", "text-anchor": "middle" };
        svg.append(element("text", place, turn + 1));
      }
    }
    const y1 = top + group[0] * cell + 2, y2 = top + (group[group.length - 1] + 1) * cell - 2;
    const x = left + 32 * cell + 6;
    svg.append(element("line", { x1: x, y1, x2: x, y2, class: "bracket" }));
    const label = most > 1 ? `${most} wavefronts` : "1 wavefront";
    svg.append(element("text", { x: x + 6, y: (y1 + y2) / 2 + 4, class: most > 1 ? "tick waits" : "tick" }, label));
  }
  return svg;
}
