// One run of a kernel, away from the page's own thread: the page stays alive, and ends a run by ending this worker.
//
// wasm is the compiled simulator, so that each run begins with an instance and a device of its own. Told {ptx, request,
// wasm} it answers {result, seconds}, the result as common/browser/run.h has it; told {ptx, one, stage, wasm} what
// case.js makes of it; or {error}.
"use strict";
importScripts("simulator.js");

// files: by name, for the simulator to read; written: what it has left in those called outputs, by name.
async function simulate({ ptx, request, wasm, files = {}, outputs = [] }) {
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
  for (const [name, { buffer }] of Object.entries(files)) simulator.FS.writeFile(name, new Uint8Array(buffer));
  const begin = performance.now();
  const text = simulator.UTF8ToString(simulator._browser_run(put(ptx), put(request)));
  const seconds = (performance.now() - begin) / 1000;
  const written = Object.fromEntries(outputs.map((name) => [name, simulator.FS.readFile(name).slice().buffer]));
  return { result: JSON.parse(text), said, seconds, written };
}

self.onmessage = async ({ data }) => {
  try {
    if (data.one) {
      const { runCase } = await import("./case.js");
      self.postMessage(await runCase(data, (run) => simulate({ ...run, wasm: data.wasm })));
    } else {
      const { result, said, seconds } = await simulate(data);
      self.postMessage({ result, said, seconds });
    }
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
