// The page that compares two kernels: what is chosen, the run and what comes of it.
import { findCompiler } from "./compiler.js";
import { applied, differing } from "./diff.js";
import { node } from "./dom.js";
import { fetchCatalogue, requestText, runOnce, simulatorModule } from "./kernels.js";
import { keepForOffline } from "./offline_page.js";
import { accessesByLine } from "./results.js";
import { fromFragment, toFragment } from "./share.js";
import { Side } from "./side.js";
import { Tabs } from "./tabs.js";
import { hazardsOf, lineOf, QUESTIONS, verdict } from "./verdict.js";

const FIRST = { left: "04", right: "05", question: "passes" };
const OWN = "each kernel's own"; // problem, where the two have none in common
const KEPT = 8; // runs
const READ_ONLY = [
  "This page was built without a compiler, so the sources are read-only: ",
  " in the project serves it with one.",
];

const part = (name) => document.querySelector(`#run-${name}`);
const form = part("form"), question = part("question"), problems = part("problem"), goOn = part("go-on");
const start = part("start"), cancel = part("cancel"), share = part("share"), told = part("status");
const runs = new Map(); // by what determines them
let compiler, sides, tabs, stop, remembering;

const asks = (name) => `Which of the two ${QUESTIONS[name].asks}?`;
const both = () => [sides.left, sides.right];
const other = (side) => (side === sides.left ? sides.right : sides.left);

// ---- what is chosen ----

function listProblems(wanted = problems.value) {
  const [left, right] = both().map(({ entry }) => entry.problems);
  const common = left.filter((one) => right.includes(one));
  problems.replaceChildren(...(common.length ? common : [OWN]).map((text) => new Option(text)));
  if (common.includes(wanted)) problems.value = wanted;
}

const problemOf = (side) => Math.max(0, side.entry.problems.indexOf(problems.value));

// "04 Tensor cores"; of two that are called the same, on which side.
function nameOf(side) {
  return side.title === other(side).title ? `${side.title} (${side.name})` : side.title;
}

function drawNames() {
  for (const side of both()) part(`show-${side.name}`).textContent = nameOf(side);
}

async function fragment() {
  const edits = Object.fromEntries(both().map((side) => [side.name, side.changes]));
  const problem = problems.value === OWN ? "" : problems.value;
  return toFragment({ left: sides.left.id, right: sides.right.id, problem, question: question.value, edits });
}

// The address follows what is chosen, a moment later.
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(async () => history.replaceState(null, "", `#${await fragment()}`), 300);
}

async function opened() {
  let state = {}, fault = "";
  try {
    state = await fromFragment(location.hash.slice(1));
  } catch (error) {
    fault = `The link cannot be opened whole: ${error.message}.`;
  }
  for (const side of both()) {
    if (!side.knows(state[side.name])) state[side.name] = side.entry?.id ?? FIRST[side.name];
  }
  await Promise.all(both().map((side) => side.open(state[side.name])));
  for (const side of both()) {
    try {
      const text = applied(side.shipped.split("\n"), state.edits?.[side.name] ?? []).join("\n");
      side.editor.replace(text);
    } catch (error) {
      fault = `The link's edits are of another version of ${side.entry.name}: ${error.message}.`;
    }
  }
  question.value = state.question in QUESTIONS ? state.question : FIRST.question;
  chosen(state.problem);
  told.textContent = fault;
}

// Other kernels: nothing is known of them yet, and they are shown from where they differ.
function chosen(problem) {
  listProblems(problem);
  const texts = both().map(({ editor }) => editor.text.split("\n"));
  const lines = differing(...texts);
  both().forEach(({ editor }, at) => {
    const code = [...lines[at]].find((line) => !/^\s*(\/\/|$)/.test(texts[at][line - 1]));
    editor.showFrom(Math.max(1, (code ?? 1) - 6));
  });
  refresh();
}

// ---- marks ----

function marksOf(side, lines) {
  const marks = new Map();
  const add = (line, kind, sign, title) => {
    const found = marks.get(line) ?? { kinds: [], sign: "", title: "" };
    marks.set(line, { kinds: [...found.kinds, kind], sign: sign || found.sign, title: title || found.title });
  };
  for (const line of lines) add(line, "differs");
  let shift = 0;
  for (const [at, removed, added] of side.changes) {
    const first = at + shift + 1;
    for (let line = first; line < first + Math.max(1, added.length); ++line) add(line, "edited", "", "edited");
    shift += added.length - removed.length;
  }
  if (!side.run) return marks;
  for (const [line, [worst]] of accessesByLine(side.run)) {
    const extra = worst.wavefronts - worst.ideal;
    if (extra > 0) add(line, "conflicts", "●", `shared memory: ${worst.wavefronts} wavefronts, ${worst.ideal} would do`);
    else add(line, "access", "○", "shared memory, without a bank conflict");
  }
  const { said } = side.run;
  const faults = said ? said.diagnostics.map(({ line }) => line) : hazardsOf(side.run).map(lineOf);
  for (const line of faults.filter(Boolean)) add(line, "fault", "!", said ? "does not compile" : "the simulator objects");
  return marks;
}

// Everything that follows from the texts and the runs.
function refresh() {
  part("asked").textContent = asks(question.value);
  const lines = differing(...both().map(({ editor }) => editor.text.split("\n")));
  both().forEach((side, at) => side.editor.mark(marksOf(side, lines[at])));
  drawNames();
  part("verdicts").replaceChildren(...both().filter(({ run }) => run).map(card));
  part("compilers").textContent = compilers();
  const shown = both().map((side) => [side.name, side.run && { run: side.run, verdict: verdictOf(side) }]);
  const fault = both().find(({ run }) => run && verdictOf({ run, name: "" }).mark !== "right") ?? sides.left;
  tabs.show(Object.fromEntries(shown), fault.name);
  remember();
}

function verdictOf(side) {
  const against = side.name ? other(side).run : null;
  return verdict(side.run, against, question.value);
}

function goTo(side, line) {
  show(side.name);
  side.editor.goTo(line, { focus: true });
  tabs.choose(side.name, line);
}

function card(side) {
  const { mark, head, line, detail } = verdictOf(side);
  const words = node("p", {}, node("strong", {}, `${side.run.name}: `), head);
  const parts = [words];
  // Where it was stands below, in the tab.
  if (detail) parts.push(node("p", { class: "note" }, detail.replace(/ \[kernel\.cu[^[\]]*\]/, "")));
  if (line) {
    const button = node("button", { type: "button", class: "plain" }, `Show line ${line}`);
    button.addEventListener("click", () => goTo(side, line));
    parts.push(button);
  }
  return node("div", { class: `verdict ${mark}`, "data-side": side.name }, ...parts);
}

// ---- a run ----

// The problem that is chosen; of a kernel that may be wrong, besides, those by which its stage is judged.
function problemsFor(side) {
  const { entry, edited } = side, first = problemOf(side);
  if (!edited && entry.kind !== "mistake") return [first];
  return [first, ...Array.from({ length: entry.judged }, (_, at) => at).filter((at) => at !== first)];
}

function hazardsFor(side) {
  if (goOn.checked) return "warn";
  return side.edited || side.entry.kind === "mistake" ? "strict" : "on";
}

// Where a side is edited, the page's compiler makes both: counters of two compilers' code differ by more than the edit.
const isCompiled = (side) => side.edited || (compiler?.name === "clang" && other(side).edited);

// {ptx, by} or what the compiler says.
async function ptxOf(side, places, signal) {
  const shipped = { ptx: side.file.ptx, by: "nvcc" };
  if (!isCompiled(side)) return shipped;
  if (!compiler) throw new Error(`${side.title} cannot be compiled here. ${READ_ONLY.join("`make page`")}`);
  const launched = places.flatMap((at) => [...side.file.requests[at].matchAll(/^launch (\w+) /gm)].map((found) => found[1]));
  const instances = Object.fromEntries(launched.map((symbol) => [symbol, side.file.instances[symbol]]));
  const tell = (words) => {
    told.textContent = words;
  };
  const wanted = { stage: side.entry.stage, source: side.editor.text, instances };
  const built = await compiler.compile(wanted, { signal, tell });
  signal.throwIfAborted();
  tell("Running …");
  return built.ptx || side.edited ? { ...built, by: compiler.name } : shipped;
}

// Whose code was counted, where a side is edited.
function compilers() {
  const shown = both().filter(({ run }) => run?.by);
  if (shown.length < 2 || !shown.some(({ edited }) => edited)) return "";
  const [left, right] = shown.map(({ run }) => run);
  if (left.by === right.by) return `${left.by} has compiled both, so that what is counted can be compared.`;
  return `Their counters come from two compilers: ${left.name}'s from ${left.by}, ${right.name}'s from ${right.by}.`;
}

async function runSide(side, signal) {
  const places = problemsFor(side), hazards = hazardsFor(side), source = side.editor.text;
  const key = JSON.stringify([side.id, places, hazards, source, isCompiled(side)]);
  const { file, entry, edited } = side;
  const facts = { name: nameOf(side), edited, file, changes: side.changes, sources: { ...file.sources, "kernel.cu": source } };
  if (!runs.has(key)) {
    const { ptx, by, ...said } = await ptxOf(side, places, signal);
    let found = { said, problem: entry.problems[places[0]] };
    for (const [number, at] of ptx ? places.entries() : []) {
      const { result, seconds } = await runOnce(ptx, requestText(file.requests[at], hazards), signal);
      const one = { result, seconds, problem: entry.problems[at], judged: 1, by };
      if (number && result.status === "right") found.judged += 1;
      else found = one;
      if (result.status !== "right") break;
    }
    runs.set(key, found);
    if (runs.size > KEPT) runs.delete(runs.keys().next().value);
  }
  // Edited while it ran: the run is of another text.
  if (side.editor.text === source && side.entry === entry) side.run = { ...runs.get(key), ...facts };
}

function busy(running) {
  start.disabled = running;
  cancel.hidden = !running;
  part("progress").hidden = !running;
}

async function run(event) {
  event?.preventDefault();
  if (start.disabled) return;
  busy(true);
  stop = new AbortController();
  told.textContent = "Fetching the simulator …";
  for (const side of both()) side.run = null;
  refresh();
  try {
    await simulatorModule();
    told.textContent = "Running …";
    const done = await Promise.allSettled(both().map((side) => runSide(side, stop.signal)));
    const failed = done.find(({ status }) => status === "rejected");
    told.textContent = failed ? failed.reason.message : "";
  } catch (error) {
    told.textContent = error.message;
  }
  busy(false);
  refresh();
  for (const side of both()) {
    const line = side.run && verdictOf(side).line;
    if (line) side.editor.reveal(line);
  }
  document.documentElement.dataset.runCount = Number(document.documentElement.dataset.runCount ?? 0) + 1;
}

// ---- the page ----

// On a narrow screen one source is shown at a time.
function show(name) {
  part("bench").dataset.shown = name;
  for (const side of both()) part(`show-${side.name}`).setAttribute("aria-pressed", String(side.name === name));
}

async function copyAddress() {
  clearTimeout(remembering);
  const address = new URL(`#${await fragment()}`, location.href);
  history.replaceState(null, "", address.hash);
  try {
    await navigator.clipboard.writeText(address.href);
    told.textContent = "The address is copied: it holds both kernels, the problem and the edits.";
  } catch {
    told.textContent = "The address of this page holds both kernels, the problem and the edits: copy it from there.";
  }
}

function listen() {
  form.addEventListener("submit", run);
  cancel.addEventListener("click", () => stop.abort(new Error("Cancelled.")));
  share.addEventListener("click", copyAddress);
  for (const menu of [problems, goOn]) {
    menu.addEventListener("change", () => {
      for (const side of both()) side.run = null;
      refresh();
    });
  }
  question.addEventListener("change", refresh);
  window.addEventListener("hashchange", () =>
    opened().catch((error) => {
      told.textContent = `The kernels cannot be fetched: ${error.message}.`;
    }));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event);
  });
}

async function begin() {
  if (!("DecompressionStream" in window) || !("WebAssembly" in window)) {
    told.textContent = "This browser is too old: it needs WebAssembly and DecompressionStream, as those from 2023 on have.";
    return;
  }
  try {
    const catalogue = await fetchCatalogue();
    compiler = findCompiler(catalogue);
    const make = (name) =>
      new Side(name, catalogue, {
        onChoice: (fault) => {
          told.textContent = fault;
          chosen();
        },
        onEdit: refresh,
        onLine: (line) => tabs.choose(name, line),
      });
    sides = { left: make("left"), right: make("right") };
    tabs = new Tabs(part("tabs"), catalogue.clocks, (name, line) => goTo(sides[name], line));
    question.replaceChildren(...Object.keys(QUESTIONS).map((name) => new Option(asks(name), name)));
    for (const side of both()) {
      part("sources").append(side.element);
      side.readOnly = !compiler;
      part(`show-${side.name}`).addEventListener("click", () => show(side.name));
    }
    // The key is kept by a cookie; the address is to be shared without it.
    const address = new URL(location.href);
    address.searchParams.delete("key");
    history.replaceState(null, "", address);
    const words = [`Edit a source and run it again (Ctrl+Enter): ${compiler?.about}.`];
    const [before, after] = READ_ONLY;
    part("compiler").append(...(compiler ? words : [before, node("code", {}, "make page"), after]));
    show("left");
    part("bench").hidden = false;
    form.after(told); // what takes long is told where it was started
    await opened();
  } catch (error) {
    told.textContent =
      `The kernels cannot be fetched (${error.message}). A page from a folder may fetch nothing: ` +
      "`python3 -m http.server` there serves it.";
    return;
  }
  listen();
  keepForOffline("runKept");
  part("page").sides = sides; // for who wants the numbers
  document.documentElement.dataset.runReady = "1";
}

begin();
