// What compiles an edited kernel. A compiler is
//
//     {name, about, compile({stage, source, instances}, {signal, tell}) -> Promise of {ptx} or {words, diagnostics}}
//
// stage: "04"; source: the text of kernel.cu; instances: by symbol, as C++ declares them, what will be launched.
// diagnostics: [{line, message}], line: of kernel.cu, 0 where an error has none; words: all that the compiler says.
// about: what a reader is told of it beforehand, and tell(words) of what takes long. Rejects where it does not work at
// all, and where the signal ends it.
import { fetched, fetchLargeModule, fetchModule } from "./kernels.js";

// nvcc behind the page (flashladder/site/page_server.py), which has put its key into it.
function local() {
  const key = document.querySelector('meta[name="flashladder-compiler"]')?.content;
  if (!key) return null;
  const compile = async ({ stage, source, instances }, { signal }) => {
    const headers = { "Content-Type": "application/json", "X-FlashLadder-Key": key };
    const body = JSON.stringify({ stage, source, symbols: Object.keys(instances) });
    let answer;
    try {
      answer = await fetch("compile", { method: "POST", headers, body, signal });
    } catch {
      signal.throwIfAborted();
      throw new Error("the compiler does not answer: does `make page` still run?");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  };
  return { name: "nvcc", about: "nvcc compiles it", compile };
}

const megabytes = (bytes) => Math.round(bytes / 1e6);

// clang in this page: a worker that is started by the first compilation, and anew after one that was ended.
class InPage {
  name = "clang";
  #modules;
  #worker;
  #turn = Promise.resolve();
  #tell = () => {};

  // bytes: of what is fetched once.
  constructor({ bytes, version }) {
    this.bytes = bytes;
    this.version = version;
    this.about =
      `clang ${version} compiles it in this page: ${megabytes(bytes)} MB, fetched when you first run an edited ` +
      "source, and kept by the browser";
  }

  // One compilation at a time: both sources may be edited.
  compile(wanted, { signal, tell }) {
    this.#tell = tell;
    const compiled = this.#turn.then(async () => {
      signal.throwIfAborted();
      const worker = await this.#ready();
      signal.throwIfAborted();
      this.#tell("Compiling …");
      return this.#ask(worker, wanted, signal);
    });
    this.#turn = compiled.catch(() => {});
    // Who cancels does not wait for what is fetched; that goes on, and is there the next time.
    const cancelled = new Promise((_, reject) => {
      const silenced = () => {
        this.#tell = () => {};
        reject(signal.reason);
      };
      signal.addEventListener("abort", silenced, { once: true });
    });
    return Promise.race([compiled, cancelled]);
  }

  async #ready() {
    if (this.#worker) return this.#worker;
    this.#modules ??= this.#load().catch((error) => {
      this.#modules = undefined;
      throw new Error(`the compiler cannot be fetched: ${error.message}`);
    });
    const modules = await this.#modules;
    this.#tell("Starting the compiler …");
    const worker = new Worker(new URL("clang.js", import.meta.url), { type: "module" });
    await this.#ask(worker, modules);
    this.#worker = worker;
    return worker;
  }

  async #load() {
    const at = (have) => this.#tell(`Fetching the compiler: ${megabytes(have)} of ${megabytes(this.bytes)} MB …`);
    const [clang, backEnd, headers] = await Promise.all([
      fetchLargeModule("clang/Compiler.wasm.gz", `clang-${this.version}`, at),
      fetchModule("ir_to_ptx.wasm"),
      fetched("headers.json").then((answer) => answer.json()),
    ]);
    return { clang, backEnd, headers };
  }

  // What the worker answers. It is ended where it fails, or by the signal.
  #ask(worker, told, signal) {
    return new Promise((resolve, reject) => {
      const end = (error) => {
        worker.terminate();
        this.#worker = undefined;
        reject(error);
      };
      const aborted = () => end(signal.reason);
      signal?.addEventListener("abort", aborted, { once: true });
      worker.onmessage = ({ data }) => {
        signal?.removeEventListener("abort", aborted);
        if (data.error) end(new Error(`the compiler failed: ${data.error}`));
        else resolve(data);
      };
      worker.onerror = ({ message }) =>
        end(new Error(`the compiler does not start: ${message ?? "its script cannot be fetched"}`));
      worker.postMessage(told);
    });
  }
}

// The first that there is; null on a page without any. catalogue: what `make browser` has made.
export const findCompiler = (catalogue) => local() ?? (catalogue.compiler ? new InPage(catalogue.compiler) : null);
