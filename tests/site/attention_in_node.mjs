// node attention_in_node.mjs SCRIPTS < TASKS.json: which inputs the page draws, and what it says of outputs. TASKS:
// [{problem, kind, generator, bounds, tile, outputs}], outputs: in base64. Prints a list of {inputs, said}.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(`${process.argv[2]}/${name}`));
const [{ compared, drawn, reference, valuesOf }, { diagnosed }] = await Promise.all(["attention.js", "diagnosis.js"].map(load));
const coded = (bits) => Buffer.from(bits.buffer).toString("base64");

const found = JSON.parse(fs.readFileSync(0, "utf8")).map(({ problem, kind, generator, bounds, tile, outputs }) => {
  const inputs = drawn(problem, kind, generator), expected = reference(problem, valuesOf(problem, inputs), bounds);
  const said = outputs.map((text) => {
    const bytes = Buffer.from(text, "base64"), bits = new Uint16Array(Uint8Array.from(bytes).buffer);
    const diagnosis = diagnosed(problem, inputs, bits, expected, { bounds, ...tile });
    return { ...compared(problem, "O", bits, expected, bounds), diagnosis };
  });
  return { inputs: Object.fromEntries(Object.entries(inputs).map(([name, bits]) => [name, coded(bits)])), said };
});
process.stdout.write(JSON.stringify(found));
