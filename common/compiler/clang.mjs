// clang as WebAssembly (PyPI's fortitudo) in node: CUDA device code to LLVM IR. For a page: docs/site/run/clang.js.
//
//     node --stack-size=8000 clang.mjs FOLDER-OF-THE-COMPILER OUT.ll KERNEL.cu INCLUDE-FOLDER... [-OPTION...]
import fs from 'fs';
import os from 'os';
import path from 'path';
import {pathToFileURL} from 'url';

import {clangCommand} from './clang_command.mjs';

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
const command = clangCommand({
    source, output: '/out.ll', includes, lines: !options.includes('-g0'),
    options: options.filter(one => one !== '-g0'),
});
const status = module.ccall('run_command', 'number', ['string'], [command]);
process.stderr.write(new TextDecoder().decode(Uint8Array.from(told)));
if (status) process.exit(1);
fs.writeFileSync(output, module.FS.readFile('/out.ll'));
console.log(`ready ${Math.round(ready - began)} ms, compiled ${Math.round(performance.now() - ready)} ms`);
