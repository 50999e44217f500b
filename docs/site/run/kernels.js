// What `make browser` has made: the kernels that the page offers, and the simulator that runs them.
const here = new URL(".", import.meta.url);

// Of the simulator, in every run here: one thread, the addresses of one execution, memory that a page can give, and what
// the warps of the first block did.
const SETTINGS = {
  WARPSIM_THREADS: 1,
  WARPSIM_ACCESSES: 1,
  WARPSIM_MAX_MEMORY: "32M",
  WARPSIM_REPORT: "report.json",
  WARPSIM_TRACE: "trace.json",
};

async function fetched(name) {
  const answer = await fetch(new URL(name, here));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

export const fetchCatalogue = async () => (await fetched("catalogue.json")).json();

// A file of a kernel is packed; a server may have unpacked it on the way.
async function unpacked(id) {
  const bytes = new Uint8Array(await (await fetched(`kernels/${id}.json.gz`)).arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return JSON.parse(new TextDecoder().decode(bytes));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

const files = new Map();

export function kernelFile(id) {
  if (!files.has(id)) files.set(id, unpacked(id));
  return files.get(id);
}

let simulator;

// Fetches and compiles the simulator, once.
export function simulatorModule() {
  simulator ??= fetched("simulator.wasm")
    .then((answer) => answer.arrayBuffer())
    .then((bytes) => WebAssembly.compile(bytes))
    .catch((error) => {
      simulator = undefined;
      throw error;
    });
  return simulator;
}

// hazards: as WARPSIM_HAZARDS has them.
export function requestText(request, hazards) {
  const lines = Object.entries({ ...SETTINGS, WARPSIM_HAZARDS: hazards }).map(([name, value]) => `${name} ${value}\n`);
  return `${request}seed 0\n${lines.join("")}`;
}

// One run in a worker of its own: {result, seconds}. Rejects where the worker fails, or is ended by the signal.
export async function runOnce(ptx, request, signal) {
  const wasm = await simulatorModule();
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("worker.js", here));
    const end = (settle, value) => {
      worker.terminate();
      settle(value);
    };
    signal.addEventListener("abort", () => end(reject, signal.reason), { once: true });
    worker.onmessage = ({ data }) => (data.error ? end(reject, new Error(data.error)) : end(resolve, data));
    worker.onerror = (event) => end(reject, new Error(event.message));
    worker.postMessage({ ptx, request, wasm });
  });
}
