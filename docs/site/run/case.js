// One of the problems that an answer is judged by: its inputs are drawn, the kernel runs, what it wrote is compared.
import { compared, drawn, fromMemory, inMemory, places, POISON, reference, valuesOf } from "./attention.js";
import { diagnosed } from "./diagnosis.js";
import { overlap } from "./overlap.js";

// A hazard is noted, and the kernel goes on.
const SETTINGS = {
  WARPSIM_THREADS: 1,
  WARPSIM_MAX_MEMORY: "32M",
  WARPSIM_REPORT: "report.json",
  WARPSIM_HAZARDS: "warn",
  WARPSIM_TIMEOUT_S: 120,
};
const TRACING = { WARPSIM_TRACE: "trace.json", WARPSIM_TRACE_BLOCKS: 1 };

const stridesOf = (request, name) => new RegExp(`^tensor ${name} (.*)$`, "m").exec(request)[1].split(" ").map(Number);

// {result, said, comparison, diagnosis}, the last two where the run came to its end. one: of stage.cases, stage: its
// file; simulate({ptx, request, files}) -> {result, said, written}: files by name, written: that of O.
export async function runCase({ ptx, one, stage }, simulate) {
  const { problem, request } = one, bounds = stage.bounds[problem.dtype];
  const inputs = drawn(problem, one.inputs, stage.generators[one.seed]), files = {};
  for (const [name, bits] of Object.entries(inputs)) {
    files[name] = name.length === 1 ? inMemory(problem, name, stridesOf(request, name), bits) : bits; // of e4m3 scales
  }
  const strides = stridesOf(request, "O");
  const poisoned = new Uint16Array(places(problem, "O")).fill(POISON);
  files.O = inMemory(problem, "O", strides, poisoned);
  const wanted = Object.entries({ ...SETTINGS, ...(one.counted?.traced ? TRACING : {}) });
  const settings = wanted.map(([name, value]) => `${name} ${value}\n`).join("");
  const { result, said, written } = await simulate({ ptx, request: request + settings, files });
  if (result.trace) {
    result.report.overlap = overlap(result.trace);
    delete result.trace; // it is large, and the worker is to send it
  }
  if (result.status !== "ran") return { result, said };
  const bits = fromMemory(problem, "O", strides, written);
  const expected = reference(problem, valuesOf(problem, inputs), bounds);
  const comparison = compared(problem, bits, expected, bounds);
  const diagnosis = comparison.passed ? "" : diagnosed(problem, inputs, bits, expected, { bounds, ...stage.tile });
  return { result, said, comparison, diagnosis };
}
