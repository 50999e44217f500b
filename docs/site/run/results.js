// Shows the result of a run (common/browser/run.h) in the page.
import { count, excerpt, node } from "./dom.js";
import { bankGrid } from "./pictures.js";
import { stepping } from "./steps.js";
import { clocksPart } from "./timeline_view.js";

const VERDICTS = { right: "Right", wrong: "Wrong", failed: "Failed", refused: "Refused" };

function verdict(result, problem, seconds) {
  const word = VERDICTS[result.status];
  return node(
    "div",
    { class: `verdict ${result.status}` },
    node("p", {}, node("strong", {}, `${word}: `), `${problem}: ${result.message}.`),
    node("p", { class: "note" }, `Simulated here, in ${seconds.toFixed(1)} s.`),
  );
}

function hazard(one, sources, isNote) {
  const kind = one.kind.replaceAll("_", " ");
  const where = one.line ? `${one.file}:${one.line}, block (${one.block.join(", ")}), warp ${one.warp}` : "";
  const times = one.count > 1 ? `, seen ${count(one.count)} times` : "";
  const item = node(
    "li",
    {},
    node("p", {}, node("strong", {}, isNote ? `note: ${kind}` : kind), where ? ` at ${where}${times}` : times),
    node("p", {}, one.message),
  );
  if (one.line && sources[one.file]) item.append(excerpt(sources[one.file], one.line));
  return item;
}

function hazards(launches, sources) {
  const found = launches.flatMap((one) => [
    ...one.hazards.map((each) => hazard(each, sources, false)),
    ...one.notes.map((each) => hazard(each, sources, true)),
  ]);
  const told = found.length ? node("ul", { class: "hazards" }, ...found) : node("p", {}, "The simulator found none.");
  return [node("h2", {}, "Hazards"), told];
}

function row(name, ...cells) {
  const line = node("tr", {}, node("th", { scope: "row" }, name));
  for (const cell of cells) line.append(node("td", { class: "number" }, cell === null ? "" : count(cell)));
  return line;
}

function table(heads, rows) {
  const head = node("tr", {}, ...heads.map((text) => node("th", { scope: "col" }, text)));
  const whole = node("table", { class: "counters" }, node("thead", {}, head), node("tbody", {}, ...rows));
  return node("div", { class: "scroll" }, whole);
}

// Sums and details of one launch; nothing is counted where it failed.
function counters(launch) {
  const parts = [node("h3", {}, launch.kernel)];
  const sizes = `Grid (${launch.grid.join(", ")}), block (${launch.block.join(", ")})`;
  const ofBlock = `${count(launch.shared_bytes)} bytes of shared memory`;
  parts.push(node("p", { class: "note" }, `${sizes}, ${ofBlock}.`));
  if (launch.error) return [...parts, node("p", {}, "The launch ended early: nothing is counted.")];
  const shared = Object.entries(launch.shared).filter(([, one]) => one.wavefronts);
  const memory = Object.entries(launch.global).filter(([, one]) => one.sectors);
  if (shared.length) {
    const rows = shared.map(([name, one]) =>
      row(name, one.wavefronts, one.ideal, one.ideal === null ? null : one.wavefronts - one.ideal));
    parts.push(table(["Shared memory", "wavefronts", "ideal", "bank conflicts"], rows));
  }
  if (memory.length) {
    const rows = memory.map(([name, one]) => row(name, one.sectors, one.ideal, one.bytes));
    parts.push(table(["Global memory", "sectors", "ideal", "bytes"], rows));
  }
  const copies = Object.entries(launch.tensor_copies);
  if (copies.length) {
    const rows = copies.map(([name, one]) => row(name, one.copies, one.sectors, one.bytes));
    parts.push(table(["Tensor copies (TMA)", "copies", "sectors", "bytes"], rows));
  }
  const classes = Object.entries(launch.instructions.by_class).sort((a, b) => b[1] - a[1]);
  const sums = [
    row("all", launch.instructions.total),
    ...classes.map(([name, number]) => row(name.replaceAll("_", " "), number)),
    row("barriers met", launch.barriers),
    row("divergent branches", launch.divergent_branches),
  ];
  const title = `${count(launch.instructions.total)} warp instructions, by kind`;
  const rest = node("details", {}, node("summary", {}, title));
  rest.append(table(["Warp instructions", "executed"], sums));
  parts.push(rest);
  return parts;
}

// A menu of the accesses to shared memory of one warp, and the picture of the one chosen; at first one with conflicts.
function bankPictures(launches, sources) {
  const found = launches.flatMap((one) => one.accesses ?? []).filter((one) => one.space === "shared");
  if (!found.length) return [];
  const menu = node("select", { id: "run-access" });
  found.forEach((one, at) => {
    const extra = one.wavefronts - one.ideal;
    const conflicts = extra > 0 ? `, ${extra} bank conflicts` : "";
    const name = `${one.file}:${one.line} ${one.kind}, ${one.wavefronts} wavefronts${conflicts}`;
    menu.append(node("option", { value: at }, name));
  });
  const extra = (at) => found[at].wavefronts - found[at].ideal;
  menu.value = found.reduce((best, _, at) => (extra(at) > extra(best) ? at : best), 0);
  const picture = node("div", { class: "picture" });
  const show = () => {
    const one = found[menu.value];
    picture.replaceChildren(bankGrid(one));
    if (sources[one.file]) picture.append(excerpt(sources[one.file], one.line));
  };
  menu.addEventListener("change", show);
  show();
  return [
    node("h2", {}, "Banks of shared memory"),
    node(
      "p",
      { class: "note" },
      "The first execution of each instruction by warp 0 of block 0. ",
      "A number is the wavefront that serves the lane; a heavy border: it waits.",
    ),
    node("p", {}, node("label", { for: "run-access" }, "Access "), menu),
    picture,
  ];
}

// The line of kernel.cu that an entry belongs to: its own, or of a header's code the innermost call there. 0: none.
function placeOf(one) {
  return [one, ...(one.inlined ?? [])].find((each) => each.file === "kernel.cu")?.line ?? 0;
}

// The kernel's source with what each line cost, the code of headers at the lines that call it.
function costs(launches, sources) {
  const lines = new Map();
  for (const launch of launches) {
    for (const one of launch.lines) {
      const line = placeOf(one);
      if (!line) continue;
      const sum = lines.get(line) ?? { instructions: 0, conflicts: 0, sectors: 0 };
      sum.instructions += one.instructions;
      sum.conflicts += Math.max(0, one.shared_wavefronts - one.shared_ideal);
      sum.sectors += one.global_sectors;
      lines.set(line, sum);
    }
  }
  const body = (sources["kernel.cu"] ?? "").split("\n").map((text, at) => {
    const sum = lines.get(at + 1);
    const cell = (number) => node("td", { class: "number" }, number ? count(number) : "");
    const numbers = sum ? [sum.instructions, sum.conflicts, sum.sectors] : [0, 0, 0];
    const line = node("td", { class: "number" }, String(at + 1));
    const cells = [line, ...numbers.map(cell), node("td", { class: "code" }, text)];
    return node("tr", sum ? { class: "ran" } : {}, ...cells);
  });
  const names = ["line", "instructions", "bank conflicts", "sectors", "kernel.cu"];
  const head = node("tr", {}, ...names.map((text) => node("th", { scope: "col" }, text)));
  const whole = node("table", { class: "costs" }, node("thead", {}, head), node("tbody", {}, ...body));
  const source = node("div", { class: "scroll source", tabindex: "0" }, whole);
  return node("details", {}, node("summary", {}, "The source, and what each line cost"), source);
}

// Puts it all into `place`, whatever was there before.
export function show(place, { result, seconds, problem, file, clocks }) {
  const { sources } = file;
  const launches = result.report?.launches ?? [];
  place.replaceChildren(verdict(result, problem, seconds));
  if (!launches.length) return;
  place.append(...hazards(launches, sources), ...stepping(result.trace, sources), ...clocksPart(result.trace, file, clocks));
  place.append(...bankPictures(launches, sources));
  place.append(node("h2", {}, "Counters"), ...launches.flatMap(counters), costs(launches, sources));
}
