// The warps of the first block, step by step: a strip of what each did in which step, and where it then is.
import { byLaunch, count, element, excerpt, node } from "./dom.js";
import { kindsOf } from "./model.js";
import { order } from "./order.js";

const WORDS = { product: "products", arithmetic: "arithmetic", copy: "loads, stores and copies" };
const CELL = 18, LEFT = 58, TOP = 22;

const sum = (ran, names) => names.reduce((all, name) => all + (ran[name] ?? 0), 0);
const total = (ran) => sum(ran, Object.keys(ran));

// Where a warp stands at the end of a step; ended: it is the last one.
function placeOf(launch, { stop, come, needed }, ended) {
  if (!stop) return { words: launch.error ? "went on until the run failed" : "has done all that it has to do", line: 0 };
  const [, , , file, line] = launch.ops.find(([op]) => op === stop[1]);
  const what = stop[0] === "sync" ? `barrier ${stop[2]}` : `mbarrier ${stop[2]}, phase ${stop[3]}`;
  let rest = come < needed ? `${come} of ${needed} have come` : "all have come";
  if (ended) rest = "the run failed before it went on";
  return { words: `at ${launch.files[file]}:${line}, ${what}: ${rest}`, file: launch.files[file], line };
}

function done(ran, kinds) {
  if (!ran) return "waited";
  const parts = Object.entries(kinds).map(([kind, names]) => [sum(ran, names), WORDS[kind]]).filter(([all]) => all);
  const named = parts.map(([all, words]) => `${count(all)} ${words}`).join(", ");
  return `${count(total(ran))} instructions${named ? `: ${named}` : ""}`;
}

// Rows are warps, columns steps; a cell has a band for each kind of instruction that the warp executed in it.
function strip(steps, kinds, at, chosen) {
  const warps = steps[0].length;
  const width = LEFT + steps.length * CELL + 2, height = TOP + warps * CELL + 2;
  const label = `${warps} warps by ${steps.length} steps; step ${at + 1} is marked`;
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  svg.classList.add("strip");
  for (let warp = 0; warp < warps; ++warp) {
    const y = TOP + warp * CELL, name = warp === chosen ? "tick chosen" : "tick";
    svg.append(element("text", { x: LEFT - 6, y: y + 13, class: name, "text-anchor": "end" }, `warp ${warp}`));
    steps.forEach((step, column) => {
      const { ran } = step[warp];
      const x = LEFT + column * CELL;
      if (!ran) {
        const ended = !step[warp].stop;
        if (!ended) svg.append(element("line", { x1: x + 2, y1: y + 9, x2: x + CELL - 2, y2: y + 9, class: "waits" }));
        return;
      }
      svg.append(element("rect", { x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2, class: "ran" }));
      Object.entries(kinds).forEach(([kind, names], band) => {
        if (!sum(ran, names)) return;
        svg.append(element("rect", { x: x + 2, y: y + 2 + band * 5, width: CELL - 4, height: 4, class: kind }));
      });
    });
  }
  steps.forEach((_, column) => {
    if (column % 5 && column !== at) return;
    const place = { x: LEFT + (column + 0.5) * CELL, y: TOP - 8, class: "tick", "text-anchor": "middle" };
    if (column === at || Math.abs(column - at) > 1) svg.append(element("text", place, column + 1));
  });
  const mark = { x: LEFT + at * CELL, y: TOP - 2, width: CELL, height: warps * CELL + 3, class: "now" };
  svg.append(element("rect", mark));
  return svg;
}

function legend() {
  const parts = Object.entries(WORDS).map(([kind, words]) => node("span", {}, node("i", { class: kind }), ` ${words}`));
  return node("p", { class: "note legend" }, ...parts, node("span", {}, node("i", { class: "waits" }), " waits"));
}

function viewer(launch, sources) {
  const steps = order(launch);
  if (!steps.length) return [];
  const warps = steps[0].length, kinds = kindsOf(launch);
  const menu = node("select", { id: "run-warp" }, node("option", { value: "all" }, "every warp"));
  for (let warp = 0; warp < warps; ++warp) menu.append(node("option", { value: warp }, `warp ${warp}`));
  const back = node("button", { type: "button", id: "run-back" }, "Back");
  const next = node("button", { type: "button", id: "run-next", class: "first" }, "Next");
  const slider = node("input", { type: "range", id: "run-step", min: 1, max: steps.length, value: 1 });
  slider.setAttribute("aria-label", "step");
  const said = node("p", { class: "where", role: "status" });
  const picture = node("div", { class: "scroll", tabindex: "0" });
  const table = node("tbody");
  const code = node("div");
  let at = 0;

  const chosen = () => (menu.value === "all" ? -1 : Number(menu.value));
  // The next step from `from` in a direction in which the chosen warp, or any, does something; -1: there is none.
  const moving = (from, by) => {
    for (let step = from + by; step >= 0 && step < steps.length; step += by) {
      if (chosen() < 0 || steps[step][chosen()].ran) return step;
    }
    return -1;
  };
  const where = (one) => placeOf(launch, one, at + 1 === steps.length);
  const draw = () => {
    slider.value = at + 1;
    back.disabled = moving(at, -1) < 0;
    next.disabled = moving(at, 1) < 0;
    said.textContent = `Step ${at + 1} of ${steps.length}`;
    picture.replaceChildren(strip(steps, kinds, at, chosen()));
    picture.scrollLeft = LEFT + at * CELL - picture.clientWidth / 2;
    table.replaceChildren(...steps[at].map((one, warp) => {
      const name = node("button", { type: "button", class: "plain" }, `warp ${warp}`);
      name.addEventListener("click", () => choose(warp));
      const cells = [one.stop || one.ran ? done(one.ran, kinds) : "", where(one).words].map((text) => node("td", {}, text));
      return node("tr", warp === chosen() ? { class: "chosen" } : {}, node("th", { scope: "row" }, name), ...cells);
    }));
    const moved = steps[at].findIndex((one) => one.ran);
    const shown = chosen() < 0 ? moved : chosen();
    const { file, line } = where(steps[at][shown]);
    code.replaceChildren();
    if (line && sources[file]) code.append(node("p", { class: "note" }, `Warp ${shown} is here:`), excerpt(sources[file], line));
  };
  const go = (step) => {
    at = step;
    draw();
  };
  const choose = (warp) => {
    menu.value = warp;
    draw();
  };
  back.addEventListener("click", () => go(moving(at, -1)));
  next.addEventListener("click", () => go(moving(at, 1)));
  slider.addEventListener("input", () => go(Number(slider.value) - 1));
  menu.addEventListener("change", draw);
  const heads = ["warp", "did in this step", "and is now"].map((text) => node("th", { scope: "col" }, text));
  const rows = node("table", { class: "warps" }, node("thead", {}, node("tr", {}, ...heads)), table);
  const controls = node("div", { class: "stepping" }, node("label", { for: "run-warp" }, "Step with"), menu, back, next, slider, said);
  draw();
  return [controls, legend(), picture, node("div", { class: "scroll", tabindex: "0" }, rows), code];
}

// The part of the page about a run's trace; nothing where there is none, or too much for one.
export function stepping(trace, sources) {
  const launches = (trace?.launches ?? []).filter((one) => one.traced.length && !one.traced[0].cut);
  if (!launches.length) return [];
  return [
    node("h2", {}, "The warps, step by step"),
    node(
      "p",
      { class: "note" },
      "The first block. In a step each warp runs to its next barrier or wait for others, if what it waited for has come. ",
      "This is an order that the kernel allows, without any clock: steps take differently long. ",
      "The model above gives them clocks.",
    ),
    ...byLaunch("run-launch", launches, (launch) => viewer(launch, sources)),
  ];
}
