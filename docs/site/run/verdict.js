// What came of a run, in words. A run is
//
//     {name, edited, problem, judged, result, seconds}    result as common/browser/run.h has it
//     {name, edited, problem, said: {words, diagnostics}} of a source that does not compile
//
// judged: of how many problems this is the last, all before it being right.
import { count } from "./dom.js";

// What the page asks of two kernels: fewer of what?
export const QUESTIONS = {
  passes: {
    asks: "reads shared memory in fewer passes",
    unit: "wavefronts",
    of: (launch) => launch.shared.load.wavefronts + launch.shared.ldmatrix.wavefronts,
  },
  sectors: {
    asks: "moves fewer sectors of global memory",
    unit: "sectors",
    of: (launch) =>
      launch.global.load.sectors + launch.global.store.sectors +
      Object.values(launch.tensor_copies).reduce((sum, one) => sum + one.sectors, 0),
  },
  instructions: {
    asks: "executes fewer instructions",
    unit: "warp instructions",
    of: (launch) => launch.instructions.total,
  },
};

const HAZARDS = {
  out_of_bounds: "an access out of bounds",
  misaligned: "a misaligned access",
  uninitialized_shared: "shared memory that no thread has written",
  uninitialized_variable: "a variable that nothing has written",
  shared_race: "a race",
  global_race: "a race in global memory",
  launch_race: "launches that nothing orders",
  noncoherent_read: "a read through a cache that does not see what this launch writes",
  async_pending: "a read of bytes that are still on their way",
  divergent_barrier: "a barrier that some threads do not reach",
  deadlock: "a deadlock",
  missing_lanes: "lanes that are missing",
  invalid_address: "an address that leads nowhere",
  trap: "a trap",
  assertion: "a failed assertion",
  budget: "a run without an end",
  illegal_instruction: "an illegal instruction",
  invalid_argument: "an argument that makes no sense",
  mbarrier: "a misused mbarrier",
  proxy_fence: "a missing fence",
  wgmma: "a misused wgmma",
  cluster: "a misused cluster",
  setmaxnreg: "a setmaxnreg that the compiler leaves out",
};

export const launchesOf = (run) => run.result?.report?.launches ?? [];

// All hazards, notes behind them.
export function hazardsOf(run) {
  const launches = launchesOf(run);
  const notes = launches.flatMap((one) => one.notes.map((note) => ({ ...note, isNote: true })));
  return [...launches.flatMap((one) => one.hazards), ...notes];
}

// The line of kernel.cu that an entry of a report belongs to: its own, or of a header's code the innermost call there.
// 0: none.
export function lineOf(one) {
  return [one, ...(one.inlined ?? [])].find((each) => each.file === "kernel.cu")?.line ?? 0;
}

// How much a run has of what a question is about; null where it has not come to its end.
export function amount(run, question) {
  const launches = launchesOf(run);
  if (!launches.length || launches.some((one) => one.error)) return null;
  return launches.reduce((sum, one) => sum + QUESTIONS[question].of(one), 0);
}

function times(more, fewer) {
  const factor = more / fewer, whole = Math.round(factor);
  if (factor < 1.05) return `${count(more - fewer)} fewer`;
  return `${Math.abs(factor - whole) < 0.05 ? whole : factor.toFixed(1)} times fewer`;
}

// "8 times fewer wavefronts than 04 Tensor cores (11,776 in place of 94,208)"; "" where there is nothing to compare.
export function compared(run, other, question) {
  const mine = amount(run, question), theirs = other ? amount(other, question) : null;
  const { unit } = QUESTIONS[question];
  if (mine === null) return "";
  if (theirs === null || run.problem !== other.problem) return `${count(mine)} ${unit}`;
  if (mine === theirs) return mine ? `as many ${unit} as ${other.name}: ${count(mine)}` : `no ${unit}, like ${other.name}`;
  if (mine > theirs) return `${count(mine)} ${unit}`;
  if (!mine) return `no ${unit} at all, where ${other.name} has ${count(theirs)}`;
  return `${times(theirs, mine)} ${unit} than ${other.name} (${count(mine)} in place of ${count(theirs)})`;
}

const at = (line) => (line ? ` at line ${line}` : "");

// {mark: "right", "wrong", "caught" or "failed"; head, line, detail}: "05 Swizzle" is followed by the head.
export function verdict(run, other, question) {
  if (run.said) {
    const [first] = run.said.diagnostics;
    const detail = first ? first.message : run.said.words;
    return { mark: "failed", head: `does not compile${first ? at(first.line) : ""}.`, line: first?.line ?? 0, detail };
  }
  const { status, message } = run.result;
  const hazard = hazardsOf(run).find((one) => status === "failed" || !one.isNote);
  if (hazard) {
    const line = lineOf(hazard), what = HAZARDS[hazard.kind] ?? hazard.kind.replaceAll("_", " ");
    const after = status === "failed" ? "" : ` It went on, and the result is ${status}: ${message}.`;
    return { mark: "caught", head: `caught: ${what}${at(line)}.`, line, detail: hazard.message + after };
  }
  const amounts = compared(run, other, question);
  if (status === "right") {
    const problems = run.judged > 1 ? ` on all ${run.judged} problems by which the stage is judged` : "";
    return { mark: "right", head: `right${problems}${amounts ? `, ${amounts}` : ""}.`, line: 0, detail: "" };
  }
  const words = { wrong: "wrong", failed: "failed", refused: "refused" }[status];
  return { mark: status === "wrong" ? "wrong" : "failed", head: `${words}.`, line: 0, detail: message };
}
