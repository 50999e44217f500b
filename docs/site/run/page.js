// The page that runs a kernel: what is offered (catalogue.json), what is chosen, the run and its end.
import { show } from "./results.js";

const here = new URL(".", import.meta.url);
const form = document.querySelector("#run-form");
const kernels = document.querySelector("#run-kernel");
const problems = document.querySelector("#run-problem");
const goOn = document.querySelector("#run-go-on");
const start = document.querySelector("#run-start");
const cancel = document.querySelector("#run-cancel");
const progress = document.querySelector("#run-progress");
const told = document.querySelector("#run-status");
const place = document.querySelector("#run-results");

const WORDS = { variant: "changed: ", mistake: "mistake: " };
// Of the simulator, in every run here: one thread, the addresses of one execution, memory that a page can give, and what
// the warps of the first block did.
const SETTINGS = {
  WARPSIM_THREADS: 1,
  WARPSIM_ACCESSES: 1,
  WARPSIM_MAX_MEMORY: "32M",
  WARPSIM_REPORT: "report.json",
  WARPSIM_TRACE: "trace.json",
};

let catalogue, wasm, worker;

async function fetched(name) {
  const answer = await fetch(new URL(name, here));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

// A file of a kernel is packed; a server may have unpacked it on the way.
async function kernelFile(id) {
  const bytes = new Uint8Array(await (await fetched(`kernels/${id}.json.gz`)).arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return JSON.parse(new TextDecoder().decode(bytes));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).json();
}

function chosen() {
  return catalogue.kernels.find((one) => one.id === kernels.value);
}

function listProblems() {
  const one = chosen();
  const names = one.problems.map((text, at) => new Option(text, at));
  // A mistake is judged by several problems, one after the other, until one shows it.
  if (one.kind === "mistake" && names.length > 1) {
    names.unshift(new Option("one after the other, until one shows it", "all"));
  }
  problems.replaceChildren(...names);
}

function listKernels() {
  const stages = new Map();
  for (const one of catalogue.kernels) stages.set(one.stage, [...(stages.get(one.stage) ?? []), one]);
  for (const [, ones] of stages) {
    const group = document.createElement("optgroup");
    group.label = ones[0].title;
    for (const one of ones) {
      const name = one.kind === "stage" ? `${one.title}, as it is` : WORDS[one.kind] + one.title;
      group.append(new Option(name, one.id));
    }
    kernels.append(group);
  }
}

function requestText(request, one) {
  const hazards = goOn.checked ? "warn" : one.kind === "mistake" ? "strict" : "on";
  const lines = Object.entries({ ...SETTINGS, WARPSIM_HAZARDS: hazards }).map(([name, value]) => `${name} ${value}\n`);
  return `${request}seed 0\n${lines.join("")}`;
}

// One run in a worker of its own. Rejects where the worker fails or is ended.
function runOnce(ptx, request) {
  return new Promise((resolve, reject) => {
    worker = new Worker(new URL("worker.js", here));
    worker.reject = reject;
    worker.onmessage = ({ data }) => {
      worker.terminate();
      if (data.error) reject(new Error(data.error));
      else resolve(data);
    };
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ ptx, request, wasm });
  });
}

function busy(running) {
  start.disabled = running;
  cancel.disabled = !running;
  progress.hidden = !running;
}

async function run(event) {
  event.preventDefault();
  busy(true);
  place.replaceChildren();
  const one = chosen();
  try {
    told.textContent = "Fetching the simulator and the kernel …";
    wasm ??= await WebAssembly.compile(await (await fetched("simulator.wasm")).arrayBuffer());
    const file = await kernelFile(one.id);
    const wanted = problems.value === "all" ? file.requests.keys() : [Number(problems.value)];
    for (const at of wanted) {
      told.textContent = `Running ${one.problems[at]} …`;
      const { result, seconds } = await runOnce(file.ptx, requestText(file.requests[at], one));
      show(place, { result, seconds, problem: one.problems[at], file, clocks: catalogue.clocks });
      place.dataset.result = JSON.stringify(result);
      if (result.status !== "right") break;
    }
    told.textContent = "Done.";
  } catch (error) {
    told.textContent = error.message;
  }
  worker = undefined;
  busy(false);
}

function stop() {
  if (!worker) return;
  worker.terminate();
  worker.reject(new Error("Cancelled."));
}

// What is chosen stands in the address behind #, so that a run can be sent to somebody: #kernel=05-padding
function remembered() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("kernel");
  if (catalogue.kernels.some((one) => one.id === wanted)) kernels.value = wanted;
  else kernels.value = "05";
  listProblems();
}

async function begin() {
  if (!("DecompressionStream" in window) || !("WebAssembly" in window)) {
    told.textContent = "This browser is too old: it needs WebAssembly and DecompressionStream, as those from 2023 on have.";
    return;
  }
  try {
    catalogue = await (await fetched("catalogue.json")).json();
  } catch (error) {
    told.textContent =
      `The kernels cannot be fetched (${error.message}). A page from a folder may fetch nothing: ` +
      "`python3 -m http.server` there serves it.";
    return;
  }
  listKernels();
  remembered();
  kernels.addEventListener("change", () => {
    listProblems();
    history.replaceState(null, "", `#kernel=${kernels.value}`);
  });
  window.addEventListener("hashchange", remembered);
  form.addEventListener("submit", run);
  cancel.addEventListener("click", stop);
  form.hidden = false;
  told.textContent = "";
  document.documentElement.dataset.runReady = "1";
}

begin();
