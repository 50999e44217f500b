// node run_in_node.js FOLDER KERNEL.ptx REQUEST: the run of common/browser/run.h by FOLDER/simulator.wasm.
const fs = require("fs");
const path = require("path");

const [folder, ptx, request] = process.argv.slice(2);
const create = require(path.join(folder, "simulator.js"));
const wasmBinary = fs.readFileSync(path.join(folder, "simulator.wasm"));

create({ wasmBinary }).then((simulator) => {
  const put = (file) => {
    const text = fs.readFileSync(file, "utf8");
    const bytes = simulator.lengthBytesUTF8(text) + 1;
    const at = simulator._malloc(bytes);
    simulator.stringToUTF8(text, at, bytes);
    return at;
  };
  fs.writeSync(1, simulator.UTF8ToString(simulator._browser_run(put(ptx), put(request))));
});
