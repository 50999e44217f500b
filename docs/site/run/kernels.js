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
async function gunzipped(stream) {
  const reader = stream.getReader(), first = await reader.read();
  const whole = new ReadableStream({
    start: (out) => (first.done ? out.close() : out.enqueue(first.value)),
    pull: async (out) => {
      const { done, value } = await reader.read();
      if (done) out.close();
      else out.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const isPacked = first.value?.[0] === 0x1f && first.value[1] === 0x8b;
  return isPacked ? whole.pipeThrough(new DecompressionStream("gzip")) : whole;
}

// Compiled while it arrives, whatever type the server says that it has.
const compiled = (stream) =>
  WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));

export const fetchModule = async (name) => compiled((await fetched(name)).body);

export async function fetchPacked(name) {
  return new Response(await gunzipped((await fetched(name)).body)).json();
}

// A large module that is packed, which the browser keeps under the name of its version. at(bytes): what has arrived.
export async function fetchLargeModule(name, version, at) {
  const url = new URL(name, here);
  const kept = await globalThis.caches?.open(version).catch(() => null); // none where the page is not trusted
  const found = await kept?.match(url);
  if (found) return compiled(await gunzipped(found.body));
  let bytes = 0;
  const counted = new TransformStream({
    transform: (piece, out) => {
      at((bytes += piece.length));
      out.enqueue(piece);
    },
  });
  const [used, copied] = (await fetched(name)).body.pipeThrough(counted).tee();
  if (kept) kept.put(url, new Response(copied)).catch(() => {}); // no room: it is fetched again
  else copied.cancel();
  return compiled(await gunzipped(used));
}

const files = new Map();

export function kernelFile(id) {
  if (!files.has(id)) files.set(id, fetchPacked(`kernels/${id}.json.gz`));
  return files.get(id);
}

let simulator;

// Fetches and compiles the simulator, once.
export function simulatorModule() {
  simulator ??= fetchModule("simulator.wasm").catch((error) => {
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
export const runOnce = (ptx, request, signal) => inWorker({ ptx, request }, signal);

// What worker.js answers.
export async function inWorker(told, signal) {
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
    worker.postMessage({ ...told, wasm });
  });
}
