// What a run is shown as, tab by tab; a run is as verdict.js has it, with the sources that it ran.
import { count, excerpt, node } from "./dom.js";
import { bankGrid } from "./pictures.js";
import { hazardsOf, launchesOf, lineOf } from "./verdict.js";

const SECONDS = "seconds here say nothing about a GPU, wavefronts, sectors and instructions do.";

function hazard(one, sources) {
  const kind = one.kind.replaceAll("_", " ");
  const where = one.line ? `${one.file}:${one.line}, block (${one.block.join(", ")}), warp ${one.warp}` : "";
  const times = one.count > 1 ? `, seen ${count(one.count)} times` : "";
  const item = node(
    "li",
    {},
    node("p", {}, node("strong", {}, one.isNote ? `note: ${kind}` : kind), where ? ` at ${where}${times}` : times),
    node("p", {}, one.message),
  );
  if (one.line && sources[one.file]) item.append(excerpt(sources[one.file], one.line));
  return item;
}

function row(name, ...cells) {
  const line = node("tr", {}, node("th", { scope: "row" }, name));
  for (const cell of cells) line.append(node("td", { class: "number" }, cell === null ? "" : count(cell)));
  return line;
}

function table(heads, rows) {
  const head = node("tr", {}, ...heads.map((text) => node("th", { scope: "col" }, text)));
  const whole = node("table", { class: "counters" }, node("thead", {}, head), node("tbody", {}, ...rows));
  return node("div", { class: "scroll", tabindex: "0" }, whole);
}

// Sums and details of one launch; nothing is counted where it failed.
function counters(launch) {
  const parts = [node("h2", {}, launch.kernel)];
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

// Why it was refused, failed or is wrong, and what it counted. verdict: of verdict.js.
export function verdictTab(run, verdict) {
  const found = hazardsOf(run);
  const parts = [node("p", {}, node("strong", {}, `${run.name}: `), verdict.head)];
  if (run.said) {
    const { diagnostics, words } = run.said;
    for (const { line, message } of diagnostics.filter(({ line }) => line)) {
      parts.push(node("p", {}, `Line ${line}: ${message}`), excerpt(run.sources["kernel.cu"], line));
    }
    const all = node("details", {}, node("summary", {}, "All that the compiler said"), node("pre", { tabindex: "0" }, words));
    all.open = !diagnostics.length;
    return [...parts, all];
  }
  parts.push(node("p", {}, `${run.problem}: ${run.result.message}.`));
  if (found.length) parts.push(node("ul", { class: "hazards" }, ...found.map((one) => hazard(one, run.sources))));
  else if (launchesOf(run).length) parts.push(node("p", {}, "The simulator found no hazard."));
  parts.push(...launchesOf(run).flatMap(counters));
  parts.push(node("p", { class: "note" }, `Simulated here, in ${run.seconds.toFixed(1)} s; ${SECONDS}`));
  return parts;
}

// By line of kernel.cu, what it cost; the code of headers at the lines that call it.
export function costsByLine(run) {
  const lines = new Map();
  for (const one of launchesOf(run).flatMap((launch) => launch.lines)) {
    const line = lineOf(one);
    if (!line) continue;
    const sum = lines.get(line) ?? { instructions: 0, wavefronts: 0, conflicts: 0, sectors: 0 };
    sum.instructions += one.instructions;
    sum.wavefronts += one.shared_wavefronts;
    sum.conflicts += Math.max(0, one.shared_wavefronts - one.shared_ideal);
    sum.sectors += one.global_sectors;
    lines.set(line, sum);
  }
  return lines;
}

// The lines that were executed, with what each cost; onLine(line) where one is chosen.
export function linesTab(run, onLine) {
  const source = run.sources["kernel.cu"].split("\n"), costs = costsByLine(run);
  if (!costs.size) return [node("p", {}, "The run did not come to its end: nothing is counted.")];
  const rows = [...costs.keys()].sort((a, b) => a - b).map((line) => {
    const { instructions, wavefronts, conflicts, sectors } = costs.get(line);
    const cells = [instructions, wavefronts, conflicts, sectors].map((number) =>
      node("td", { class: "number" }, number ? count(number) : ""));
    const place = node("button", { type: "button", class: "plain" }, String(line));
    place.addEventListener("click", () => onLine(line));
    return node("tr", {}, node("th", { scope: "row" }, place), ...cells, node("td", { class: "code" }, source[line - 1] ?? ""));
  });
  const names = ["line", "instructions", "wavefronts", "bank conflicts", "sectors", "kernel.cu"];
  const head = node("tr", {}, ...names.map((text) => node("th", { scope: "col" }, text)));
  const table = node("table", { class: "costs" }, node("thead", {}, head), node("tbody", {}, ...rows));
  const words = "Of all warps together. Code of a header counts where the kernel calls it; a line that cost nothing is left out.";
  return [node("p", { class: "note" }, words), node("div", { class: "scroll source", tabindex: "0" }, table)];
}

// By line of kernel.cu, the accesses to shared memory that a report has the addresses of, those with most conflicts first.
export function accessesByLine(run) {
  const lines = new Map();
  for (const one of launchesOf(run).flatMap((launch) => launch.accesses ?? [])) {
    const line = lineOf(one);
    if (one.space === "shared" && line) lines.set(line, [...(lines.get(line) ?? []), one]);
  }
  for (const found of lines.values()) found.sort((a, b) => b.wavefronts - b.ideal - (a.wavefronts - a.ideal));
  return lines;
}

// The accesses of a line as pictures, one at a time; where it has none, which lines have some.
export function banksTab(run, chosen, onLine) {
  const lines = accessesByLine(run);
  if (!lines.size) return [node("p", {}, "No access to shared memory was executed by warp 0 of block 0.")];
  const conflicts = (one) => one.wavefronts - one.ideal;
  const worst = [...lines].reduce((most, one) => (conflicts(one[1][0]) > conflicts(most[1][0]) ? one : most))[0];
  const line = lines.has(chosen) ? chosen : worst, found = lines.get(line);
  const picture = node("div", { class: "picture", tabindex: "0" }), where = node("p", { class: "where", role: "status" });
  const step = (words, by) => {
    const button = node("button", { type: "button" }, words);
    button.addEventListener("click", () => draw(at + by));
    return button;
  };
  const back = step("Back", -1), next = step("Next", 1);
  let at = 0;
  const draw = (number) => {
    at = number;
    back.disabled = at === 0;
    next.disabled = at + 1 === found.length;
    const access = found[at], extra = conflicts(access);
    const words = extra > 0 ? `${extra} of them bank conflicts` : "no bank conflict";
    where.textContent = `Line ${line}, ${access.kind} ${at + 1} of ${found.length}: ${access.wavefronts} wavefronts, ${words}`;
    picture.replaceChildren(bankGrid(access));
  };
  draw(0);
  const others = [...lines.keys()].sort((a, b) => a - b).flatMap((one) => {
    const button = node("button", { type: "button", class: "plain" }, String(one));
    button.addEventListener("click", () => onLine(one));
    return [" ", button];
  });
  const controls = node("div", { class: "stepping" }, ...(found.length > 1 ? [back, next] : []), where);
  return [
    node("p", { class: "note" }, "Click a line in the source that reads or writes shared memory:", ...others, "."),
    controls,
    excerpt(run.sources["kernel.cu"], line),
    picture,
    node(
      "p",
      { class: "note" },
      "The first execution of each instruction by warp 0 of block 0. ",
      "A number is the wavefront that serves the lane; a heavy border: it waits.",
    ),
  ];
}
