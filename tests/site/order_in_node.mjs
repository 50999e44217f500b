// node order_in_node.mjs TRACE.json: the steps that the page makes of each launch of a trace (docs/site/run/order.js).
import fs from "node:fs";

const source = new URL("../../docs/site/run/order.js", import.meta.url);
// As a module, whatever the folder around it says.
const { order } = await import(`data:text/javascript,${encodeURIComponent(fs.readFileSync(source, "utf8"))}`);
const trace = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
fs.writeSync(1, JSON.stringify(trace.launches.map(order)));
