// node parts_in_node.mjs SCRIPTS < TASKS.json: as attention_in_node.mjs, of whole runs of any kind. TASKS: [{kind, one,
// stage, outputs}], kind: the script; one: of a stage file's cases; stage: its generators, bounds and tile; outputs:
// [{name: base64}]. Prints a list of {memory, said}; memory: the inputs as they lie there.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const coded = (bits) => Buffer.from(bits.buffer).toString("base64");
const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "base64")).buffer;

const found = [];
for (const { kind, one, stage, outputs } of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const { drawn, expected, placed, judged } = await import(pathToFileURL(`${process.argv[2]}/${kind}.js`));
  const { problem: p, strides } = one, inputs = drawn(one, stage), memory = {};
  for (const [name, bits] of Object.entries(inputs)) {
    memory[name] = coded(name in strides ? placed(p, name, strides[name], bits, inputs) : bits);
  }
  const bounds = stage.bounds[p.dtype], wanted = expected(p, inputs, bounds);
  const said = outputs.map((some) => {
    const numbers = Object.entries(some).map(([name, text]) => {
      return [name, name in strides ? new Uint16Array(bytesOf(text)) : new Float32Array(bytesOf(text))];
    });
    return judged(p, wanted, Object.fromEntries(numbers), bounds, { inputs, tile: stage.tile });
  });
  found.push({ memory, said });
}
process.stdout.write(JSON.stringify(found));
