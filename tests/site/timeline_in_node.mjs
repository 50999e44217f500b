// node timeline_in_node.mjs SCRIPTS INPUT.json: the timeline that the page makes of each launch of a trace
// (docs/site/run/timeline.js). SCRIPTS: a copy of the page's scripts that node takes as modules.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [scripts, file] = process.argv.slice(2);
const { timelineOf } = await import(pathToFileURL(`${scripts}/timeline.js`));
const { trace, clocks, sources, phases } = JSON.parse(fs.readFileSync(file, "utf8"));
const found = trace.launches.map((launch) => timelineOf(launch, clocks, sources, phases));
process.stdout.write(JSON.stringify(found.map((one) => ({ ...one, busy: [...one.busy] }))));
