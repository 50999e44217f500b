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

export async function fetched(name) {
  const answer = await fetch(new URL(name, here));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

export const fetchCatalogue = async () => (await fetched("catalogue.json")).json();

// What is packed; a server may have unpacked it on the way.
export function gunzipped(bytes) {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return new Response(bytes);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

async function unpacked(id) {
  return gunzipped(new Uint8Array(await (await fetched(`kernels/${id}.json.gz`)).arrayBuffer())).json();
}

// The bytes of a large file, which the browser keeps under the name of its version. at(bytes): what has arrived so far.
export async function fetchedWithProgress(name, version, at) {
  const url = new URL(name, here);
  const kept = await globalThis.caches?.open(version).catch(() => null); // none where the page is not trusted
  const found = await kept?.match(url);
  if (found) return new Uint8Array(await found.arrayBuffer());
  const reader = (await fetched(name)).body.getReader();
  const pieces = [];
  let bytes = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    pieces.push(piece.value);
    bytes += piece.value.length;
    at(bytes);
  }
  const whole = new Uint8Array(await new Blob(pieces).arrayBuffer());
  await kept?.put(url, new Response(whole)).catch(() => {}); // no room: it is fetched again
  return whole;
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
