// Judges an answer as flashladder/classroom/judge.py does, and in its words: does it compile, is the result right at
// several sizes, does anything race, is the stage's technique used.
import { count } from "./dom.js";
import { failures } from "./technique.js";
import { hazardsOf } from "./verdict.js";

const MOST = 3; // things of a kind that are told
const PLACE = /\b(\w+\.(?:cu|cpp)):(\d+)/g;

// A message of the simulator, with the reader's own lines.
const told = (message, line) =>
  message.replaceAll(PLACE, (all, file, number) => (file === "kernel.cu" ? line(Number(number)) : all));

// Without the list of lanes and bytes at the end.
const inShort = (message) => message.replace(/ \[[^[\]]*(\[[^\]]*\][^[\]]*)*\]$/, "");

function some(texts) {
  const more = texts.length - MOST;
  return texts.slice(0, MOST).join("; ") + (more > 0 ? `; and at ${more} more` : "");
}

function compilerWords({ words, diagnostics }, line) {
  const texts = diagnostics.map((one) => (one.line ? `${line(one.line)}: ` : "") + one.message);
  const found = [...new Set(texts)], more = found.length - MOST;
  if (!found.length) return words.trim().split("\n").slice(-MOST).map((text) => text.trim());
  const shown = found.slice(0, MOST);
  if (more > 0) shown.push(`and ${more} more, which may follow from these`);
  if (shown[0].startsWith("kernel.cu:")) {
    shown.push("no error is in your own lines: does each brace, parenthesis and semicolon in them have its place?");
  }
  return shown;
}

// The line of kernel.cu that an entry of a report belongs to.
const placeOf = (file, line, calls) => [{ file, line }, ...calls].find((one) => one.file === "kernel.cu")?.line ?? 0;

// The lines with the most wavefronts and sectors beyond what the same bytes need, one of each.
function waste(launches, line) {
  const sums = new Map();
  for (const one of launches.flatMap(({ lines }) => lines)) {
    const key = `${one.file} ${one.line}`;
    const sum = sums.get(key) ?? { file: one.file, line: one.line, calls: [], shared: 0, global: 0 };
    sum.calls.push(...(one.inlined ?? []));
    sum.shared += one.shared_ideal === null ? NaN : one.shared_wavefronts - one.shared_ideal;
    sum.global += one.global_sectors - one.global_ideal;
    sums.set(key, sum);
  }
  const placed = [...sums.values()].map((one) => ({ ...one, at: placeOf(one.file, one.line, one.calls) }));
  const own = placed.filter(({ at }) => at);
  const words = [];
  for (const [what, name] of [["wavefronts of shared memory", "shared"], ["sectors of global memory", "global"]]) {
    const [worst] = own.filter((one) => one[name] > 0).sort((a, b) => b[name] - a[name] || a.line - b.line);
    if (worst) words.push(`most ${what} are wasted at ${line(worst.at)}: ${count(worst[name])} too many`);
  }
  return words;
}

// The runs of one library: what was wrong, and what raced.
class Runs {
  right = [];
  faults = [];
  also = [];
  hazards = new Map();
  counted = [];

  constructor(stage, line) {
    this.stage = stage;
    this.line = line;
  }

  get clean() {
    return !this.faults.length && !this.hazards.size;
  }

  // false: this was the last, since a result says little of a kernel that races.
  goOn(one, { result, said, comparison }) {
    this.#note(result);
    if (result.status !== "ran") {
      const hazard = /^warpsim: (.+)\n {4}(.+)$/m.exec(said.join("\n"));
      const text = hazard ? `${hazard[1]}: ${hazard[2]}` : result.message;
      this.faults.push(`stopped at ${one.says}: ${told(text, this.line)}`);
      return false;
    }
    if (comparison.passed) this.right.push(one.says);
    else if (this.faults.length) this.also.push(one.says);
    else {
      const { message, diagnosis } = comparison;
      this.faults.push(`wrong at ${one.says}: ${message}`, ...(diagnosis ? [diagnosis] : []));
    }
    if (one.counted) this.counted.push({ counted: one.counted, report: result.report });
    return !this.hazards.size;
  }

  #note(result) {
    for (const hazard of hazardsOf({ result })) {
      const message = inShort(hazard.message), places = [...new Set(message.match(PLACE) ?? [])].sort().join();
      const key = `${hazard.kind} ${places}`, kind = `${hazard.kind.replaceAll("_", " ")}: `;
      if (this.hazards.has(key)) continue;
      const text = kind + told(message.startsWith(kind) ? message.slice(kind.length) : message, this.line);
      const why = `The numbers are right all the same, but the code is wrong: ${this.stage.repaired[hazard.kind]}`;
      this.hazards.set(key, hazard.isNote ? `${text}. ${why}` : text);
    }
  }

  // Hazards come first: a kernel that races is often wrong on account of it.
  findings() {
    const hazards = [...this.hazards.values()].slice(0, MOST), more = this.hazards.size - MOST;
    if (more > 0) hazards.push(`and ${more} more`);
    const correct = [...this.faults];
    if (this.also.length) correct.push(`wrong also at ${some(this.also)}`);
    if (this.right.length) correct.push(`right at ${some(this.right)}`);
    return [
      { check: "hazards", passed: !this.hazards.size, words: hazards },
      { check: "correct", passed: !this.faults.length, words: correct },
    ];
  }

  technique() {
    const failed = failures(this.stage.expected, this.counted);
    if (!failed.length) return { check: "technique", passed: true, words: this.stage.expected.map(({ says }) => says) };
    const words = failed.map((text) => `right, but ${text}`);
    return { check: "technique", passed: false, words: [...words, ...waste(this.counted[0].report.launches, this.line)] };
  }
}

// The findings: [{check: "builds", "hazards", "correct" or "technique", passed, words}]. Checks behind one that failed
// may be missing. stage: of exercises/ID.json.gz; source: a whole kernel; line(number): words for a line of it.
// compile(source, instances) -> {ptx} or {words, diagnostics}; run(ptx, cases) -> promises of {result, said,
// comparison}, one for each case, and an end() for those that nobody waits for any more.
export async function judge(stage, source, line, { compile, run, say }) {
  const runs = new Runs(stage, line);
  const groups = [stage.cases.filter(({ alone }) => alone), stage.cases.filter(({ alone }) => !alone)];
  let found = [];
  for (const [number, cases] of groups.entries()) {
    if (!cases.length) continue;
    const launched = cases.flatMap(({ request }) => [...request.matchAll(/^launch (\w+) /gm)]);
    const instances = Object.fromEntries(launched.map(([, symbol]) => [symbol, stage.instances[symbol]]));
    const built = await compile(source, instances);
    if (!built.ptx) return [{ check: "builds", passed: false, words: compilerWords(built, line) }];
    say(`Compiled; running it at ${cases.length} ${number ? "more sizes" : "sizes"} …`);
    const running = run(built.ptx, cases);
    try {
      for (const [at, one] of cases.entries()) if (!runs.goOn(one, await running.results[at])) break;
    } finally {
      running.end();
    }
    found = runs.findings();
    if (!runs.clean || !runs.technique().passed) break;
  }
  if (runs.clean) found.push(runs.technique()); // what the counters of a wrong kernel say is beside the point
  return [{ check: "builds", passed: true, words: [] }, ...found];
}

// A few words, such as "right, but without the technique".
export function summary(findings) {
  const failed = new Set(findings.filter(({ passed }) => !passed).map(({ check }) => check));
  if (failed.has("builds")) return "does not compile";
  if (failed.has("correct")) return failed.has("hazards") ? "wrong, and with a hazard" : "wrong";
  if (failed.has("hazards")) return "right numbers, but with a hazard";
  return failed.size ? "right, but without the technique" : "right";
}
