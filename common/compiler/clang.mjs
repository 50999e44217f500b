// clang as WebAssembly (PyPI's fortitudo) in node: CUDA device code to LLVM IR. What a page does in a worker.
//
//     node --stack-size=8000 clang.mjs FOLDER-OF-THE-COMPILER OUT.ll KERNEL.cu INCLUDE-FOLDER... [-OPTION...]
import fs from 'fs';
import os from 'os';
import path from 'path';
import {pathToFileURL} from 'url';

const [folder, output, source, ...rest] = process.argv.slice(2);
const options = rest.filter(word => word.startsWith('-'));
const includes = rest.filter(word => !word.startsWith('-'));
const began = performance.now();
// node takes a module's kind from its name.
const place_of_module = fs.mkdtempSync(path.join(os.tmpdir(), 'clang-'));
const module_file = path.join(place_of_module, 'Compiler.mjs');
fs.copyFileSync(path.join(folder, 'Compiler.js'), module_file);
const {default: create} = await import(pathToFileURL(module_file));
fs.rmSync(place_of_module, {recursive: true});
const told = [];
const module = await create({
    wasmBinary: fs.readFileSync(path.join(folder, 'Compiler.wasm')),
    getPreloadedPackage: (name, bytes) => new ArrayBuffer(bytes),  // the headers of another platform
    stdout: () => {},
    stderr: code => told.push(code),
});
const place = file => {
    module.FS.mkdirTree(path.dirname(file));
    module.FS.writeFile(file, fs.readFileSync(file));
};
for (const one of includes)
    for (const name of fs.readdirSync(one)) place(path.join(one, name));
for (const name of fs.readdirSync(path.dirname(source))) {
    const file = path.join(path.dirname(source), name);
    if (/\.(cu|cuh|h)$/.test(name)) place(file);
}
const ready = performance.now();
const lines = options.includes('-g0') ? '' : '-debug-info-kind=line-tables-only';
const command = ['clang -cc1 -triple nvptx64-nvidia-cuda -fcuda-is-device -x cuda -target-cpu sm_90a',
    `-target-feature +ptx87 -O2 -std=c++20 -emit-llvm ${lines} -nostdsysteminc -nobuiltininc -include cuda_runtime.h`,
    '-mllvm -inline-threshold=2475',  // as LLVM has it for GPUs: a call would take arrays out of registers
    ...includes.map(one => `-internal-isystem ${one}`), ...options.filter(one => one !== '-g0'), source,
    '-o /out.ll'].join(' ');
const status = module.ccall('run_command', 'number', ['string'], [command]);
process.stderr.write(new TextDecoder().decode(Uint8Array.from(told)));
if (status) process.exit(1);
fs.writeFileSync(output, module.FS.readFile('/out.ll'));
console.log(`ready ${Math.round(ready - began)} ms, compiled ${Math.round(performance.now() - ready)} ms`);
