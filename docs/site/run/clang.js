// From a kernel's source to PTX, in a worker (a module) that stays alive between compilations: clang as WebAssembly
// writes LLVM IR, and ir_to_ptx (common/compiler) makes PTX of it.
//
// Told {clang, backEnd, headers} first: two compiled WebAssembly modules, and the texts of headers by folder and name.
// Then any number of times {stage, source, instances}, as compiler.js has them. Answers each: {ready}, {ptx},
// {words, diagnostics}, or {error} where it does not work at all.
import createClang from "./clang/Compiler.js";
import { clangCommand } from "./clang_command.mjs";
import createBackEnd from "./ir_to_ptx.js";

const FOLDERS = ["/compiler", "/include"]; // of headers: what stands in place of CUDA's, the project's
const OUTPUT = "/out.ll";
const decoder = new TextDecoder();
let clang, backEnd, headers;
let said = [];

const from = (wasm) => (imports, receive) => {
  WebAssembly.instantiate(wasm, imports).then((instance) => receive(instance, wasm));
  return {};
};

async function begin(told) {
  ({ headers } = told);
  [clang, backEnd] = await Promise.all([
    createClang({
      instantiateWasm: from(told.clang),
      getPreloadedPackage: (_, bytes) => new ArrayBuffer(bytes), // headers of another platform: never looked at
      stdout: () => {},
      stderr: (code) => said.push(code),
    }),
    createBackEnd({ instantiateWasm: from(told.backEnd) }),
  ]);
  for (const folder of FOLDERS) put(folder, headers[folder]);
  return { ready: true };
}

function put(folder, files) {
  clang.FS.mkdirTree(folder);
  for (const [name, text] of Object.entries(files)) clang.FS.writeFile(`${folder}/${name}`, text);
}

// nvcc also takes the pragma before what is no loop; for clang that is an error.
const UNROLLS_NOTHING = /^[ \t]*#pragma unroll.*$(?!\s*(?:\/\/.*\s*)*(?:for|while|do)\b)/gm;

// The kernel, with the instances that its launcher would ask for.
function write({ stage, source, instances }) {
  const declared = Object.values(instances).filter((name) => name.includes("<"));
  const lines = ['#include "kernel.cu"', ...declared.map((name) => `template __global__ void ${name};`), ""];
  const kernel = source.replaceAll(UNROLLS_NOTHING, "");
  put("/stage", { ...headers[`/stages/${stage}`], "kernel.cu": kernel, "instances.cu": lines.join("\n") });
  // Else the launcher asks for the others, too.
  const common = Object.values(instances).every((name) => name.includes("<__nv_bfloat16, 128"));
  return common ? ["-DFLASH_ONLY_BF16_128"] : [];
}

// clang's errors, each with its line of kernel.cu: of an error in a header the line there that uses it, 0 if none does.
function diagnostics(words) {
  const split = words.split(/^(?=\S+:\d+:\d+: (?:fatal )?error: )/m);
  const parts = split.filter((part) => / error: /.test(part.split("\n")[0]));
  return parts.map((part) => {
    const [, file, line, message] = /^(\S+?):(\d+):\d+: (?:fatal )?error: (.*)/.exec(part) ?? [];
    const used = /^kernel\.cu:(\d+):\d+: note: in instantiation/m.exec(part);
    return { line: Number((file === "kernel.cu" ? line : used?.[1]) ?? 0), message };
  });
}

function refused(words) {
  const shown = words.replaceAll(/\/(?:stage|include|compiler)\//g, "").trim();
  return { words: shown, diagnostics: diagnostics(shown) };
}

// What the back end does not know: "kernel.cu:12: ..." begins with the line of the source.
function unsupported(words) {
  const shown = words.replaceAll(/\/(?:stage|include|compiler)\//g, "");
  const line = Number(/kernel\.cu:(\d+)/.exec(shown)?.[1] ?? 0);
  return { words: shown, diagnostics: [{ line, message: `the page's compiler does not know this: ${shown}` }] };
}

function toPtx(ir) {
  const bytes = ir.length + 1, at = backEnd._malloc(bytes);
  backEnd.HEAPU8.set(ir, at);
  backEnd.HEAPU8[at + ir.length] = 0;
  const text = backEnd.UTF8ToString(backEnd._ir_to_ptx(at));
  backEnd._free(at);
  return text;
}

// In the name of a kernel whose template has a structure, nvcc writes the zeros at its end and clang leaves them out.
const clangsName = (symbol) => symbol.replace(/(?<=Xtl\w*?)(L[a-z]0E)+(?=EE)/, "");

function compile(wanted) {
  said = [];
  const options = write(wanted);
  const command = clangCommand({ source: "/stage/instances.cu", output: OUTPUT, includes: FOLDERS, options });
  if (clang.ccall("run_command", "number", ["string"], [command])) {
    return refused(decoder.decode(Uint8Array.from(said)));
  }
  let text = toPtx(clang.FS.readFile(OUTPUT));
  if (backEnd._ir_to_ptx_refused()) return unsupported(text);
  for (const symbol of Object.keys(wanted.instances)) {
    text = text.replace(`.entry ${clangsName(symbol)}(`, `.entry ${symbol}(`);
  }
  const missing = Object.keys(wanted.instances).filter((symbol) => !text.includes(`.entry ${symbol}(`));
  if (missing.length) {
    const name = wanted.instances[missing[0]].split("(")[0];
    const words = `after compiling, the kernel ${name} is not there: is its name or its template changed?`;
    return { words, diagnostics: [] };
  }
  // Files by their names alone, as in the PTX that is shipped.
  return { ptx: text.replaceAll(/^(\s*\.file\s+\d+\s+)"(?:[^"]*\/)?([^"/]*)"/gm, '$1"$2"') };
}

// One after the other: the first is awaited before the next is looked at.
let last = Promise.resolve();
self.onmessage = ({ data }) => {
  last = last.then(async () => {
    try {
      self.postMessage(data.clang ? await begin(data) : compile(data));
    } catch (error) {
      self.postMessage({ error: String(error) });
    }
  });
};
