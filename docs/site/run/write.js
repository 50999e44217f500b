// The page in which exercises are written: which one, its task and hints, the reader's text, what is said of it.
import { findCompiler } from "./compiler.js";
import { node } from "./dom.js";
import { Editor } from "./editor.js";
import { taken } from "./exercise.js";
import { judge, summary } from "./judge.js";
import { fetched, fetchPacked, inWorker, simulatorModule } from "./kernels.js";
import { keepForOffline } from "./offline_page.js";
import { Progress } from "./progress.js";

const AT_ONCE = Math.max(1, Math.min(4, (navigator.hardwareConcurrency ?? 2) - 1)); // runs
const NO_COMPILER =
  "This page was built without a compiler, so nothing is judged: `make page` in the project serves it with one.";
const ABOUT =
  "Some lines of a kernel are left out, or there is a mistake in it. Choose a stage and an exercise, write the lines " +
  "and press Check: this page compiles the kernel, runs it and tells you what is wrong.";
const CHECKS = { builds: "Compiles", hazards: "Hazards", correct: "Result", technique: "Technique" };

const isEmbedded = document.documentElement.classList.contains("embedded"); // in a lesson, below its cell

const part = (name) => document.querySelector(`#write-${name}`);
const told = part("told"), status = part("status"), progress = new Progress();
const files = new Map(); // of stages, by id
let index, compiler, editor, stage, exercise, stop;

const points = (count) => `${count} point${count === 1 ? "" : "s"}`;
const nameOf = ({ slug }, { name }) => `${slug}/${name}`;
const own = () => nameOf(stage, exercise);

// Words with `code` in them.
const withCode = (text) => text.split("`").map((piece, at) => (at % 2 ? node("code", {}, piece) : piece));

// All of them in order, by the names under which progress is kept.
function everyExercise() {
  const of = (one) => one.exercises.map((each) => ({ ...each, name: nameOf(one, each), place: `${one.id}/${each.name}` }));
  return index.stages.flatMap(of);
}

// ---- the list ----

function row(one) {
  const buttons = one.exercises.map((each) => {
    const isSolved = progress.isSolved(nameOf(one, each)), isBegun = progress.text(nameOf(one, each)) !== undefined;
    const state = isSolved ? "solved" : isBegun ? "begun" : "";
    const facts = [points(each.points), each.optional && "optional", state].filter(Boolean).join(", ");
    const link = { href: `#${one.id}/${each.name}`, class: `exercise ${state}` };
    return node("li", {}, node("a", link, each.title, node("small", {}, facts)));
  });
  const solved = one.exercises.filter((each) => progress.isSolved(nameOf(one, each))).length;
  const facts = node("small", {}, `${solved} of ${one.exercises.length} solved`);
  const head = node("summary", {}, node("h2", {}, `${one.id} ${one.title}`), " ", facts);
  const stage = node("details", {}, head, node("ul", { class: "exercises" }, ...buttons));
  stage.open = one.id === (progress.last.split("/")[0] || index.stages[0].id);
  return stage;
}

function list() {
  const all = everyExercise();
  const sum = (some) => some.reduce((total, one) => total + one.points, 0);
  const solved = all.filter(({ name }) => progress.isSolved(name));
  const forget = node("button", { type: "button", id: "write-forget" }, "Forget all of it");
  forget.disabled = progress.isEmpty;
  forget.addEventListener("click", () => {
    if (!confirm("Forget what you have written and solved in this page?")) return;
    progress.forget();
    list();
  });
  const kept = progress.isKept ? "" : " This browser keeps nothing: it is lost when you leave the page.";
  const state = `${solved.length} of ${all.length} exercises solved, ${sum(solved)} of ${sum(all)} points.${kept}`;
  const head = node("div", { class: "buttons" }, node("span", { id: "write-sum" }, state));
  const last = all.length && progress.last;
  if (last) head.append(node("a", { href: `#${last}`, id: "write-last" }, "Go on where you were"));
  head.append(forget);
  const elsewhere = index.elsewhere.map((text) => node("p", { class: "note" }, ...withCode(text)));
  part("list").replaceChildren(node("p", {}, ABOUT), head, ...index.stages.map(row), ...elsewhere);
  part("bench").hidden = true;
  part("list").hidden = false;
}

// ---- an exercise ----

async function stageFile(id) {
  if (!files.has(id)) files.set(id, await fetchPacked(`exercises/${id}.json.gz`));
  return files.get(id);
}

async function open(place) {
  stop?.abort(new Error("Cancelled."));
  const [id, name] = place.split("/");
  if (!index.stages.some((one) => one.id === id && one.exercises.some((each) => each.name === name))) {
    list();
    return;
  }
  told.textContent = "Loading …";
  stage = await stageFile(id);
  exercise = stage.exercises.find((one) => one.name === name);
  progress.last = place;
  part("where").textContent = `${stage.id} ${stage.title}`;
  part("task").replaceChildren(...withCode(exercise.task));
  part("list").hidden = true;
  part("bench").hidden = false;
  told.textContent = status.textContent = "";
  part("verdict").replaceChildren();
  editor.open(progress.text(own()) ?? exercise.start);
  editor.label = `${exercise.title}: the kernel of stage ${stage.id}`;
  editor.mark(new Map());
  drawHints();
  drawState();
  // The lesson has a main part, too.
  if (isEmbedded) document.querySelector("[role=main]")?.setAttribute("aria-label", exercise.title);
  const gap = editor.text.split("\n").findIndex((line) => line.trim() === exercise.opening);
  editor.goTo(Math.max(1, gap + 1));
  window.scrollTo({ top: 0 });
}

function drawState() {
  const solved = progress.isSolved(own()) ? node("span", { class: "solved" }, "solved") : "";
  part("title").replaceChildren(`${exercise.title} `, node("small", {}, points(exercise.points)), " ", solved);
  part("undo").disabled = !editor.canUndo;
  part("afresh").disabled = editor.text === exercise.start;
}

function drawHints() {
  const shown = progress.hints(own()), { hints } = exercise;
  const items = hints.slice(0, shown).map((text) => node("li", {}, ...withCode(text)));
  part("hints").replaceChildren(...items);
  part("hint").textContent = `Hint ${Math.min(shown + 1, hints.length)} of ${hints.length}`;
  part("hint").disabled = shown >= hints.length;
}

function edited(text) {
  progress.write(own(), text === exercise.start ? undefined : text);
  part("verdict").replaceChildren();
  status.textContent = "";
  editor.mark(new Map());
  drawState();
}

// ---- the verdict ----

function marks(findings) {
  const found = new Map();
  for (const { check, words } of findings.filter(({ passed }) => !passed)) {
    for (const [, line] of words.join("\n").matchAll(/\bline (\d+)/g)) {
      found.set(Number(line), { kinds: ["fault"], sign: "!", title: CHECKS[check] });
    }
  }
  return found;
}

// Its words, in which lines of the source can be gone to.
function linked(text) {
  return text.split(/(\bline \d+)/).map((piece, at) => {
    if (at % 2 === 0) return piece;
    const button = node("button", { type: "button", class: "plain" }, piece);
    button.addEventListener("click", () => editor.goTo(Number(piece.slice(5)), { focus: true }));
    return button;
  });
}

// The way to the next exercise that is not solved.
function following() {
  const all = everyExercise();
  const at = all.findIndex(({ name }) => name === own());
  const next = [...all.slice(at + 1), ...all.slice(0, at)].find(({ name }) => !progress.isSolved(name));
  return node("p", {}, next ? node("a", { href: `#${next.place}` }, `Next: ${next.title}`) : "All exercises are solved.");
}

function show(findings, remarks) {
  const failed = findings.filter(({ passed }) => !passed), right = !failed.length, words = summary(findings);
  const sentence = words[0].toUpperCase() + words.slice(1);
  const parts = [node("p", {}, node("strong", {}, right ? "Right. Solved." : `${sentence}.`))];
  for (const { check, words } of right ? findings : failed) {
    const [first, ...others] = words.length || check !== "builds" ? words : [];
    if (first === undefined) continue;
    const rest = others.map((text) => node("p", {}, ...linked(text)));
    const more = node("details", {}, node("summary", {}, `and ${rest.length} more`));
    if (right && rest.length) more.append(...rest.splice(0));
    const shown = [node("h3", {}, CHECKS[check]), node("p", {}, ...linked(first)), ...rest];
    parts.push(node("div", { class: "finding" }, ...shown, ...(more.childElementCount > 1 ? [more] : [])));
  }
  if (right && !isEmbedded) parts.push(following());
  parts.push(...remarks.map((text) => node("p", { class: "note" }, text)));
  part("verdict").replaceChildren(node("div", { class: `verdict ${right ? "right" : "wrong"}` }, ...parts));
  editor.mark(marks(findings));
}

function say(sentence, mark = "failed") {
  part("verdict").replaceChildren(node("div", { class: `verdict ${mark}` }, node("p", {}, ...withCode(sentence))));
}

// ---- check ----

// Some runs at a time, in the order of the cases; the first that is waited for comes first.
function runner(signal) {
  return (ptx, cases) => {
    const ending = new AbortController();
    signal.addEventListener("abort", () => ending.abort(signal.reason), { once: true });
    const slots = Array.from({ length: AT_ONCE }, () => Promise.resolve());
    const results = cases.map((one, at) => {
      const run = slots[at % AT_ONCE].then(() => {
        ending.signal.throwIfAborted();
        const { cases: _, exercises: __, ...facts } = stage;
        return inWorker({ ptx, one, stage: facts }, ending.signal);
      });
      slots[at % AT_ONCE] = run.catch(() => {});
      run.catch(() => {}); // where nobody waits for it any more
      return run;
    });
    return { results, end: () => ending.abort(new Error("not needed any more")) };
  };
}

function busy(running) {
  part("check").disabled = running;
  part("cancel").hidden = part("progress").hidden = !running;
}

async function check() {
  if (part("check").disabled) return;
  const judged = exercise, of = stage, text = editor.text, name = own();
  let source, line, isStub, remarks;
  try {
    ({ source, line, isStub, remarks } = taken(stage, exercise, text));
  } catch (error) {
    say(error.message[0].toUpperCase() + error.message.slice(1));
    return;
  }
  if (isStub) {
    const isMend = judged.kind === "mend";
    say(isMend ? "Not mended yet: the mistake is still there." : "Not written yet: the stub still stands there.", "");
    return;
  }
  if (!compiler) {
    say(NO_COMPILER);
    return;
  }
  busy(true);
  part("verdict").replaceChildren();
  editor.mark(new Map());
  stop = new AbortController();
  const { signal } = stop, tell = (words) => (status.textContent = words);
  const compile = (source, instances) => compiler.compile({ stage: of.id, source, instances }, { signal, tell });
  try {
    tell("Fetching the simulator …");
    await simulatorModule();
    tell("Compiling …");
    const findings = await judge(of, source, line, { compile, run: runner(signal), say: tell });
    signal.throwIfAborted();
    tell("");
    if (findings.every(({ passed }) => passed)) progress.solve(name);
    if (exercise === judged && editor.text === text) show(findings, remarks);
    drawState();
  } catch (error) {
    if (exercise === judged) tell(error.message);
  }
  busy(false);
  document.documentElement.dataset.writeCount = Number(document.documentElement.dataset.writeCount ?? 0) + 1;
}

// ---- the page ----

// The lesson gives the frame the height of what is in it.
function tellHeight() {
  const page = document.querySelector("#write-page");
  const tell = () => parent.postMessage({ height: Math.ceil(page.getBoundingClientRect().bottom) }, "*");
  new ResizeObserver(tell).observe(page);
}

function listen() {
  part("check").addEventListener("click", check);
  part("cancel").addEventListener("click", () => stop.abort(new Error("Cancelled.")));
  part("back").addEventListener("click", () => (location.hash = ""));
  part("hint").addEventListener("click", () => {
    progress.hint(own(), progress.hints(own()) + 1);
    drawHints();
  });
  part("undo").addEventListener("click", () => editor.undo());
  part("afresh").addEventListener("click", () => editor.replace(exercise.start));
  const go = () =>
    open(location.hash.slice(1)).catch((error) => {
      told.textContent = `The exercise cannot be fetched: ${error.message}.`;
    });
  window.addEventListener("hashchange", go);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !part("bench").hidden) check();
  });
  return go;
}

async function begin() {
  if (isEmbedded) tellHeight();
  if (!("DecompressionStream" in window) || !("WebAssembly" in window)) {
    told.textContent =
      "This browser is too old: it needs WebAssembly and DecompressionStream, as those from 2023 on have.";
    return;
  }
  try {
    index = await (await fetched("exercises/index.json")).json();
  } catch (error) {
    told.textContent =
      `The exercises cannot be fetched (${error.message}). A page from a folder may fetch nothing: ` +
      "`python3 -m http.server` there serves it.";
    return;
  }
  compiler = findCompiler(index);
  editor = new Editor({ onChange: edited, onLine: () => {} });
  const head = node("div", { class: "head" }, node("button", { type: "button", id: "write-undo" }, "Undo"),
    node("button", { type: "button", id: "write-afresh" }, "Start afresh"));
  part("compiler").replaceChildren(...withCode(compiler ? `Ctrl+Enter checks it; ${compiler.about}.` : NO_COMPILER));
  part("source").append(head, editor.element);
  told.textContent = "";
  await listen()();
  keepForOffline("writeKept");
  document.documentElement.dataset.writeReady = "1";
}

begin();
