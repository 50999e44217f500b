// One run of a kernel, away from the page's own thread: the page stays alive, and ends a run by ending this worker.
//
// Told {ptx, request, wasm}: wasm is the compiled simulator, so that each run begins with an instance and a device of
// its own. Answers {result, seconds}, the result as common/browser/run.h has it, or {error}.
"use strict";
importScripts("simulator.js");

self.onmessage = async ({ data: { ptx, request, wasm } }) => {
  try {
    const said = [];
    const simulator = await createSimulator({
      instantiateWasm: (imports, receive) => {
        WebAssembly.instantiate(wasm, imports).then((instance) => receive(instance, wasm));
        return {};
      },
      print: (line) => said.push(line),
      printErr: (line) => said.push(line),
    });
    const put = (text) => {
      const bytes = simulator.lengthBytesUTF8(text) + 1;
      const at = simulator._malloc(bytes);
      simulator.stringToUTF8(text, at, bytes);
      return at;
    };
    const begin = performance.now();
    const text = simulator.UTF8ToString(simulator._browser_run(put(ptx), put(request)));
    const seconds = (performance.now() - begin) / 1000;
    self.postMessage({ result: JSON.parse(text), said, seconds });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
