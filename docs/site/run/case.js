// One of the problems that an answer is judged by: its inputs are drawn, the kernel runs, what it wrote is compared.
import { fromMemory, inMemory, POISON } from "./attention.js";
import * as decode from "./decode.js";
import * as forward from "./forward.js";
import * as backward from "./gradients.js";
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

// The kinds of stages: drawn(one, stage) gives the inputs by name, placed(p, name, strides, bits, inputs) a tensor as it
// lies in memory, expected(p, inputs, bounds) what judged(p, expected, outputs, bounds, {inputs, tile}) compares with:
// {passed, message, diagnosis}.
const KINDS = { forward, decode, backward };

// Whether an output's memory is not as it was before the run where no element of it lies.
function writtenAround(p, name, strides, memory) {
  const elements = inMemory(p, name, strides, fromMemory(p, name, strides, memory));
  return memory.some((word, at) => word !== elements[at]);
}

// With an output's memory, whatever numbers are in it, as running/worker.py says it; "" where nothing is.
function whatIsWrong({ kind }, p, name, strides, memory) {
  if (kind === "forward") {
    const isUntouched = fromMemory(p, name, strides, memory).every((bits) => bits === POISON);
    return isUntouched ? "the launch reported success, but its kernel wrote nothing" : "";
  }
  return writtenAround(p, name, strides, memory) ? `wrote between or behind the rows of ${name}` : "";
}

// What a case has before any kernel runs: its inputs, the files that hold them, and, once it is asked for, what is
// expected. one: of stage.cases, stage: its file.
export class Prepared {
  #expected;

  constructor(one, stage) {
    const { problem: p, strides } = one, kind = KINDS[stage.kind], inputs = kind.drawn(one, stage), files = {};
    for (const [name, bits] of Object.entries(inputs)) {
      files[name] = name in strides ? kind.placed(p, name, strides[name], bits, inputs) : bits;
    }
    for (const name of stage.outputs) { // a float is two words
      const words = name in strides ? p.B * strides[name][0] : 2 * p.B * p.Hq * p.Nq;
      files[name] = new Uint16Array(words).fill(POISON);
    }
    Object.assign(this, { inputs, files });
    this.#expected = () => kind.expected(p, inputs, stage.bounds[p.dtype]);
  }

  get expected() {
    const found = this.#expected();
    this.#expected = () => found;
    return found;
  }
}

// {result, said, comparison}, the last where the run came to its end. prepared: kept by who runs a case several times.
// simulate({ptx, request, files, outputs}) -> {result, said, written}: files by name; outputs: which of them it writes,
// and written: what is in these afterwards.
export async function runCase({ ptx, one, stage, prepared = new Prepared(one, stage) }, simulate) {
  const { problem: p, strides } = one, { tile, bounds, outputs } = stage, { inputs, files } = prepared;
  const kind = KINDS[stage.kind];
  const wanted = Object.entries({ ...SETTINGS, ...(one.counted?.traced ? TRACING : {}) });
  const settings = wanted.map(([name, value]) => `${name} ${value}\n`).join("");
  const request = one.request + settings;
  const { result, said, written } = await simulate({ ptx, request, files, outputs });
  if (result.trace) {
    result.report.overlap = overlap(result.trace);
    delete result.trace; // it is large, and the worker is to send it
  }
  if (result.status !== "ran") return { result, said };
  const found = {};
  for (const name of outputs) {
    if (!(name in strides)) {
      found[name] = new Float32Array(written[name]);
      continue;
    }
    const memory = new Uint16Array(written[name]), message = whatIsWrong(stage, p, name, strides[name], memory);
    if (message) return { result: { ...result, status: "failed", message }, said };
    found[name] = fromMemory(p, name, strides[name], memory);
  }
  const comparison = kind.judged(p, prepared.expected, found, bounds[p.dtype], { inputs, tile });
  return { result, said, comparison };
}
