// The timeline of a launch's first traced block, in words of the source: what simulator/warps.py of the Python package
// says of the same trace, and what `make stage-NN timeline` draws.
import { count } from "./dom.js";
import { replay } from "./model.js";

// What a warp does, then what goes on in the background: kind, and what it is called.
export const NAMES = {
  product: "products (mma.sync)",
  arithmetic: "arithmetic (softmax, addresses)",
  copy: "loads, stores, asking for tiles",
  wait: "waiting",
  wgmma: "products on their way (wgmma)",
  bytes: "bytes on their way",
};
export const BACKGROUND = ["wgmma", "bytes"];
const GROUPS = { "cp.async": "groups of cp.async", wgmma: "groups of wgmma", bulk: "groups of bulk stores" };

// What a line is a part of: the innermost of the marks such as `// ---- load ----` and of the functions; of a header's
// code else what calls it. Empty where there is none.
function phaseOf(phases, { file, line, calls = [] }) {
  for (const [name, at] of [[file, line], ...calls]) {
    const found = partOf(phases, name, at);
    if (found) return found;
  }
  return "";
}

function partOf(phases, file, line) {
  const found = (phases[file] ?? []).filter(([, first, last]) => first <= line && line <= last);
  if (!found.length) return "";
  return found.reduce((least, one) => (one[2] - one[1] < least[2] - least[1] ? one : least))[0];
}

// What a line initialises.
function initialised(sources, { file, line }) {
  const text = sources[file]?.split("\n")[line - 1] ?? "";
  return [...text.matchAll(/mbarrier_init\(\s*&?\s*([^,]+?)\s*,/g)].map((found) => found[1]);
}

// The mbarriers of the kernel's pipelines, by address. In memory they follow one another as they are declared, each with
// its barriers `full` and then `empty`.
function inPipelines(launch, sources, ops) {
  const kernels = [...new Set([...ops.values()].map(({ file }) => file))].filter((file) => file.endsWith(".cu")).sort();
  const declared = kernels.flatMap((kernel) =>
    [...(sources[kernel] ?? "").matchAll(/^    Pipeline<[^>;]*> ([\w, ]+);/gm)].flatMap((found) =>
      found[1].split(",").map((name) => name.trim().replace(/_pipeline$/, ""))));
  const kinds = new Map();
  for (const [op, address] of launch.traced[0].mbarriers) {
    const calls = initialised(sources, ops.get(op));
    if (calls.length === 1 && /^(full|empty)\[\w+\]$/.test(calls[0])) kinds.set(address, calls[0].split("[")[0]);
  }
  const runs = [];
  for (const address of [...kinds.keys()].sort((a, b) => a - b)) {
    if (runs.at(-1)?.kind !== kinds.get(address)) runs.push({ kind: kinds.get(address), addresses: [] });
    runs.at(-1).addresses.push(address);
  }
  const names = new Map();
  if (runs.length !== 2 * declared.length) return names;
  runs.forEach(({ kind, addresses }, place) => addresses.forEach((address, number) =>
    names.set(address, `${declared[place >> 1]}_${kind}${addresses.length > 1 ? `[${number}]` : ""}`)));
  return names;
}

// By number: "K_full[0]" as the source calls it where it is initialised, else its address. Those of a struct Pipeline are
// called after the one that they belong to: of K_pipeline.
function mbarrierNames(launch, sources) {
  const ops = new Map(launch.ops.map(([op, , , file, line]) => [op, { file: launch.files[file], line }]));
  const { mbarriers } = launch.traced[0], pipelines = inPipelines(launch, sources, ops);
  return mbarriers.map(([op, address]) => {
    if (pipelines.has(address)) return pipelines.get(address);
    const { file, line } = ops.get(op);
    const calls = initialised(sources, ops.get(op));
    if (calls.length !== 1) return `at shared 0x${address.toString(16)}`;
    const same = mbarriers.filter(([other]) => ops.get(other).file === file && ops.get(other).line === line);
    const addresses = [...new Set(same.map(([, other]) => other))].sort((a, b) => a - b);
    const name = calls[0].replace(/\s*(\[.*|\+.*)$/, "").split(/\.|->/).at(-1);
    return addresses.length > 1 || calls[0].includes("[") ? `${name}[${addresses.indexOf(address)}]` : name;
  });
}

// The label and the words of a span.
function said({ kind, place, step }, names, phases) {
  const where = place.line ? `, ${place.file}:${place.line}` : "";
  const name = names[step?.which];
  switch (step?.does) {
    case "waitPhase":
      return [name, `waits for mbarrier ${name}, phase ${step.phase}${where}`];
    case "barrier":
      return [`barrier ${step.which}`, `waits at barrier ${step.which}, its use ${step.phase}${where}`];
    case "waitGroups": {
      const rest = step.most ? `at most ${step.most} of its ${GROUPS[step.queue]} are` : `none of its ${GROUPS[step.queue]} is`;
      return [step.queue, `waits until ${rest} left${where}`];
    }
    case "load":
      return ["load", `waits for what it loads from global memory${where}`];
    case "copy":
      return [name, `${count(step.bytes)} bytes on their way to mbarrier ${name}, phase ${step.phase}${where}`];
  }
  const phase = phaseOf(phases, place);
  return [phase, NAMES[kind] + (phase ? `: ${phase}` : "") + where];
}

// In order of their starts; those of a warp, kind and phase that follow one another at once are one.
function joined(spans) {
  const found = [], last = new Map(); // the last span of a warp and kind
  for (const one of [...spans].sort((a, b) => a.start - b.start || a.end - b.end)) {
    const key = `${one.warp} ${one.kind}`, before = last.get(key);
    const apart = one.kind === "wait" || one.kind === "bytes";
    if (before && !apart && before.label === one.label && one.start <= before.end + 1e-6) {
      before.end = Math.max(before.end, one.end);
      continue;
    }
    last.set(key, one);
    found.push(one);
  }
  return found;
}

// {warps, schedulers, spans, busy, end}: how many warps and schedulers; spans {warp, kind, start, end, label, words,
// place}, in clocks; busy: by unit and its number, [[from, to], ...]. phases: {file: [[name, first line, last], ...]}.
// Throws as replay() does.
export function timelineOf(launch, clocks, sources, phases) {
  const done = replay(launch, clocks), names = mbarrierNames(launch, sources);
  const spans = done.spans.map((span) => {
    const [label, words] = said(span, names, phases);
    return { warp: span.warp, kind: span.kind, start: span.start, end: span.end, label, words, place: span.place };
  });
  return { ...done, spans: joined(spans), warps: launch.traced[0].warps.length, schedulers: clocks.schedulers };
}
