// The drawing of a timeline: a row for each warp, and for the units that they share.
import { count, element } from "./dom.js";
import { BACKGROUND } from "./timeline.js";

const UNITS = [["tensor", "tensor cores"], ["special", "exponentials"], ["memory", "L2 path"]];
const LEFT = 82, TOP = 6, AXIS = 34, BAR = 16, LANE = 7, GAP = 8, UNIT = 16;
const CHARACTER = 5.6; // pixels
const SHORTER = { "online softmax": "softmax" };
const THINNEST = 0.5; // pixels; what is thinner is left out next to another bar

export const clocksOf = (number) => count(Math.round(number));

// Places of the warps that do more than to begin and end; of one scheduler, or (-1) of all.
export function workingWarps(timeline, scheduler) {
  const worked = new Array(timeline.warps).fill(0);
  for (const { warp, end } of timeline.spans) worked[warp] = Math.max(worked[warp], end);
  const mine = (warp) => scheduler < 0 || warp % timeline.schedulers === scheduler;
  return worked.flatMap((end, warp) => (mine(warp) && end > 0.1 * timeline.end ? [warp] : []));
}

// Rows of the picture from top to bottom: {warp, y, lanes: {kind: [y, height]}} of a warp. Two lanes stand below its own
// bar, where any of the warps has something going on there.
function layout(timeline, warps) {
  const there = BACKGROUND.filter((kind) => timeline.spans.some((span) => span.kind === kind && warps.includes(span.warp)));
  const height = BAR + there.length * LANE + GAP;
  return warps.map((warp, place) => {
    const y = TOP + place * height, lanes = {};
    for (const kind of ["product", "arithmetic", "copy", "wait"]) lanes[kind] = [y, BAR];
    there.forEach((kind, lane) => (lanes[kind] = [y + BAR + 1 + lane * LANE, LANE - 2]));
    return { warp, y, height, lanes };
  });
}

// How busy a unit is, from 0 to 1, in each of `bins` parts of the window; on average over the schedulers shown.
function shares(timeline, unit, scheduler, from, to, bins) {
  const numbers = unit === "memory" ? [0] : scheduler >= 0 ? [scheduler] : [...Array(timeline.schedulers).keys()];
  const found = new Array(bins).fill(0), step = (to - from) / bins;
  for (const number of numbers) {
    for (const [first, last] of timeline.busy.get(`${unit} ${number}`) ?? []) {
      const begin = Math.max(first, from), end = Math.min(last, to);
      for (let bin = Math.floor((begin - from) / step); bin < bins && begin < end && from + bin * step < end; ++bin) {
        const left = from + bin * step;
        found[bin] += Math.max(0, Math.min(end, left + step) - Math.max(begin, left)) / step / numbers.length;
      }
    }
  }
  return found;
}

// Steps of 1, 2 or 5 times a power of ten, at most `most` of them.
function ticks(from, to, most) {
  const least = (to - from) / most, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least);
  const found = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) found.push(tick);
  return found;
}

// The picture of a window, in clocks: {svg, at, mark}. at(x, y): the span at a place of the svg, in pixels, or undefined;
// mark(span): puts a border around it.
export function drawTimeline(timeline, { scheduler, from, to, width }) {
  const warps = workingWarps(timeline, scheduler), rows = layout(timeline, warps);
  const units = UNITS.filter(([unit]) => timeline.busy.has(`${unit} ${unit === "memory" ? 0 : Math.max(scheduler, 0)}`));
  const below = TOP + rows.reduce((sum, row) => sum + row.height, 0);
  const bottom = below + units.length * (UNIT + GAP);
  const wide = Math.max(width - LEFT - 8, 80), height = bottom + AXIS;
  const x = (clock) => LEFT + ((clock - from) / (to - from)) * wide;
  const words = `A model's timeline of ${warps.length} warps, clocks ${clocksOf(from)} to ${clocksOf(to)}. `;
  const keys = "Arrow keys go from bar to bar.";
  const svg = element("svg", { width: LEFT + wide + 8, height, role: "application", tabindex: 0, "aria-label": words + keys });
  svg.classList.add("timeline");
  const text = (content, attributes) => svg.append(element("text", attributes, content));

  for (const tick of ticks(from, to, Math.max(2, wide / 90))) {
    svg.append(element("line", { x1: x(tick), x2: x(tick), y1: TOP, y2: bottom, class: "rule" }));
    const anchor = x(tick) > LEFT + wide - 20 ? "end" : "middle";
    text(clocksOf(tick), { x: x(tick), y: bottom + 13, class: "tick", "text-anchor": anchor });
  }
  text("clocks of a multiprocessor, by the model", { x: LEFT + wide / 2, y: bottom + 28, class: "tick", "text-anchor": "middle" });
  const shown = new Map(); // spans by warp that lie in the window
  for (const row of rows) {
    text(`warp ${row.warp}`, { x: LEFT - 8, y: row.y + 12, class: "tick", "text-anchor": "end" });
    const own = timeline.spans.filter((span) => span.warp === row.warp && span.end > from && span.start < to);
    shown.set(row, own);
    const right = {}; // by lane: where the last bar that was drawn ends
    for (const span of own) {
      const [y, tall] = row.lanes[span.kind];
      const x1 = Math.max(x(span.start), LEFT), x2 = Math.min(x(span.end), LEFT + wide);
      if (x2 < (right[y] ?? 0) + THINNEST && span.kind !== "bytes") continue;
      right[y] = x2;
      svg.append(element("rect", { x: x1, y, width: Math.max(x2 - x1, THINNEST), height: tall, class: span.kind }));
      const choices = [span.kind === "wait" ? `wait: ${span.label}` : span.label, SHORTER[span.label] ?? span.label];
      const label = choices.find((one) => one && (one.length + 1) * CHARACTER < x2 - x1);
      if (label && tall === BAR) {
        text(label, { x: (x1 + x2) / 2, y: y + 12, class: `label ${span.kind}`, "text-anchor": "middle" });
      }
    }
  }
  svg.append(element("line", { x1: 0, x2: LEFT + wide, y1: below - GAP / 2, y2: below - GAP / 2, class: "rule" }));
  units.forEach(([unit, name], place) => {
    const base = below + place * (UNIT + GAP) + UNIT, bins = Math.max(1, Math.floor(wide / 3));
    const step = wide / bins;
    const line = shares(timeline, unit, scheduler, from, to, bins).map((share, bin) => {
      const high = base - UNIT * Math.min(share, 1);
      return `L${LEFT + bin * step} ${high}L${LEFT + (bin + 1) * step} ${high}`;
    });
    svg.append(element("path", { d: `M${LEFT} ${base}${line.join("")}L${LEFT + wide} ${base}Z`, class: `unit ${unit}` }));
    svg.append(element("line", { x1: LEFT, x2: LEFT + wide, y1: base, y2: base, class: "rule" }));
    text(name, { x: LEFT - 8, y: base - 4, class: "tick", "text-anchor": "end" });
  });
  const border = element("rect", { class: "now", visibility: "hidden" });
  svg.append(border);

  const at = (left, top) => {
    const row = rows.find((one) => top >= one.y && top < one.y + one.height);
    if (!row) return undefined;
    // Of the lane below the pointer, or else of the nearest one; the bar itself, or one that is 3 pixels away.
    const away = (span) => {
      const [y, tall] = row.lanes[span.kind];
      const beside = Math.max(x(span.start) - left, left - x(span.end), 0);
      return beside <= 3 ? beside + 4 * Math.max(y - top, top - y - tall, 0) : Infinity;
    };
    const near = shown.get(row).reduce((best, span) => (away(span) < away(best ?? span) || !best ? span : best), undefined);
    return near && away(near) < Infinity ? near : undefined;
  };
  const mark = (span) => {
    const row = rows.find((one) => one.warp === span?.warp);
    border.setAttribute("visibility", row ? "visible" : "hidden");
    if (!row) return;
    const [y, tall] = row.lanes[span.kind];
    const x1 = Math.max(x(span.start), LEFT), x2 = Math.min(x(span.end), LEFT + wide);
    for (const [name, value] of Object.entries({ x: x1 - 1, y: y - 1, width: Math.max(x2 - x1, 0) + 2, height: tall + 2 })) {
      border.setAttribute(name, value);
    }
  };
  return { svg, at, mark };
}
