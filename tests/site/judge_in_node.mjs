// node judge_in_node.mjs FOLDER ANSWERS: what the page says of answers. FOLDER: the page's scripts and what they load, as
// modules; ANSWERS: a JSON file of [{key, stage, exercise, text}], stage: the file of exercises/ID.json, exercise: a
// name, or "" of a whole source, or null of one that is only compiled. Prints a line of JSON for each: {key, isStub,
// remarks, findings}, or {key, words}: of the compiler, where it refuses.
import { createRequire } from "module";
import fs from "fs";
import path from "path";
import { pathToFileURL } from "url";

const [folder, answers] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(folder, name)));
const [{ judge, summary }, { taken }, { Prepared, runCase }] = await Promise.all(["judge.js", "exercise.js", "case.js"].map(load));

// Emscripten's scripts take node for its older kind of modules.
Object.assign(globalThis, { __dirname: folder, __filename: path.join(folder, "script.js") });
globalThis.require = createRequire(import.meta.url);

// The page's compiler, which takes this thread for a worker.
const waiting = [];
globalThis.self = { postMessage: (data) => waiting.shift()(data) };
globalThis.location = { href: pathToFileURL(folder).href };
await load("clang.js");
const ask = (data) =>
  new Promise((resolve, reject) => {
    waiting.push((answer) => (answer.error ? reject(new Error(answer.error)) : resolve(answer)));
    self.onmessage({ data });
  });
const wasm = (name) => WebAssembly.compile(fs.readFileSync(path.join(folder, name)));
const headers = JSON.parse(fs.readFileSync(path.join(folder, "headers.json")));
await ask({ clang: await wasm("clang/Compiler.wasm"), backEnd: await wasm("ir_to_ptx.wasm"), headers });

const text = fs.readFileSync(path.join(folder, "simulator.js"), "utf8");
const createSimulator = new Function(`${text}\nreturn createSimulator;`)();
const simulator = await wasm("simulator.wasm");

async function simulate({ ptx, request, files, outputs }) {
  const said = [];
  const one = await createSimulator({
    instantiateWasm: (imports, receive) => {
      WebAssembly.instantiate(simulator, imports).then((instance) => receive(instance, simulator));
      return {};
    },
    print: (line) => said.push(line),
    printErr: (line) => said.push(line),
  });
  // It listens to node's errors, which would keep each instance, with its memory, to the end.
  for (const event of ["uncaughtException", "unhandledRejection"]) process.removeAllListeners(event);
  const put = (string) => {
    const bytes = one.lengthBytesUTF8(string) + 1, at = one._malloc(bytes);
    one.stringToUTF8(string, at, bytes);
    return at;
  };
  for (const [name, { buffer }] of Object.entries(files)) one.FS.writeFile(name, new Uint8Array(buffer));
  const result = JSON.parse(one.UTF8ToString(one._browser_run(put(ptx), put(request))));
  const written = Object.fromEntries(outputs.map((name) => [name, one.FS.readFile(name).slice().buffer]));
  return { result, said, written };
}

// Stages' files by name, and what their cases have before a kernel runs: drawn once for all answers.
const stages = new Map(), prepared = new Map();
const once = (map, key, make) => map.get(key) ?? map.set(key, make()).get(key);

for (const { key, stage: file, exercise: name, text } of JSON.parse(fs.readFileSync(answers))) {
  const stage = once(stages, file, () => JSON.parse(fs.readFileSync(path.join(folder, "exercises", `${file}.json`))));
  const compile = (source, instances) => ask({ stage: stage.id, source, instances });
  if (name === null) {
    const { words = "" } = await compile(text, stage.instances);
    console.log(JSON.stringify({ key, words }));
    continue;
  }
  const exercise = stage.exercises.find((one) => one.name === name) ?? { kind: "mend", start: "" };
  const { source, line, isStub, remarks } = taken(stage, exercise, text);
  const started = (ptx, one) =>
    runCase({ ptx, one, stage, prepared: once(prepared, one, () => new Prepared(one, stage)) }, simulate);
  // A case runs when it is waited for.
  const run = (ptx, cases) => ({
    results: cases.map((one) => ({ then: (resolve, reject) => started(ptx, one).then(resolve, reject) })),
    end: () => {},
  });
  const findings = isStub ? [] : await judge(stage, source, line, { compile, run, say: () => {} });
  console.log(JSON.stringify({ key, isStub, remarks, findings, summary: isStub ? "" : summary(findings) }));
}
process.exit(0);
