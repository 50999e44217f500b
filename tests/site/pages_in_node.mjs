// node pages_in_node.mjs SCRIPTS < INPUT.json: what the page's scripts say of texts, links and runs. SCRIPTS: a copy of them
// that node takes as modules. INPUT: [[file, function, ...arguments], ...]; prints the list of what they return, of one
// that throws {error}.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const found = [];
for (const [file, name, ...given] of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const module = await import(pathToFileURL(`${process.argv[2]}/${file}`));
  try {
    const value = await module[name](...given);
    found.push(Array.isArray(value) ? value.map((one) => (one instanceof Set ? [...one] : one)) : value);
  } catch (error) {
    found.push({ error: error.message });
  }
}
process.stdout.write(JSON.stringify(found));
