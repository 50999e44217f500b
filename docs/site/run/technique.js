// Is a stage's idea really used? As flashladder/ladder/technique.py asks it: expectations over the counters of runs.
import { count } from "./dom.js";

const OPERATIONS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => Math.floor(a / b),
  "%": (a, b) => a - b * Math.floor(a / b),
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  min: Math.min,
  max: Math.max,
  not: (a) => !a,
  and: (...all) => all.every(Boolean),
  or: (...all) => all.some(Boolean),
};
const COUNTED = ["instructions", "shared", "global", "bulk", "tensor_copies", "mbarriers"]; // what a report lacks is 0

// tree: a number, a name, or [operation, ...trees] (core/expression.py, tree()).
export function evaluate(tree, names) {
  if (typeof tree === "number") return tree;
  if (typeof tree === "string") {
    if (tree in names) return names[tree];
    if (COUNTED.includes(tree.split(".")[0])) return 0;
    throw new Error(`there is no '${tree}'`);
  }
  const [name, ...parts] = tree;
  return Number(OPERATIONS[name](...parts.map((part) => evaluate(part, names))));
}

// The counters of a report's launches together, by the names of expressions; of a run that left a trace what it shows.
export function counters({ launches, overlap = {} }) {
  const sums = { launches: launches.length };
  for (const [name, number] of Object.entries(overlap)) sums[`order.${name}`] = number;
  const add = (name, number) => (sums[name] = (sums[name] ?? 0) + (number ?? 0));
  for (const launch of launches) {
    add("instructions.total", launch.instructions.total);
    for (const [name, number] of Object.entries(launch.instructions.by_class)) add(`instructions.${name}`, number);
    for (const space of ["shared", "global", "bulk", "tensor_copies"]) {
      for (const [kind, counts] of Object.entries(launch[space] ?? {})) {
        for (const [name, number] of Object.entries(counts)) add(`${space}.${kind}.${name}`, number);
      }
    }
    for (const [name, number] of Object.entries(launch.mbarriers ?? {})) add(`mbarriers.${name}`, number);
    for (const name of ["barriers", "divergent_branches"]) add(name, launch[name]);
    const { order } = launch, most = sums["order.ldmatrix_in_a_row"] ?? 0;
    add("order.tensor_during_copies", order.tensor_during_copies);
    sums["order.ldmatrix_in_a_row"] = Math.max(most, order.ldmatrix_in_a_row);
    sums["order.first_block"] = order.first_block;
    sums["order.last_block"] = order.last_block;
  }
  return sums;
}

const told = ({ failure }, left, right) => failure.replace("{left}", count(left)).replace("{right}", count(right));

// One sentence for each expectation that a run does not meet, or that no run shows. runs: [{counted: {names, asked},
// report}], asked: which of the expectations hold for the run.
export function failures(expected, runs) {
  const failed = new Map(), unseen = new Map(), shown = new Set();
  for (const { counted, report } of runs) {
    const names = { ...counted.names, ...counters(report) };
    for (const one of counted.asked.map((at) => expected[at])) {
      const left = evaluate(one.left, names), right = evaluate(one.right, names);
      if (!OPERATIONS[one.relation](left, right)) {
        if (!failed.has(one.name)) failed.set(one.name, told(one, left, right));
      } else if (left || right || !one.compares) shown.add(one.name);
      else unseen.set(one.name, one);
    }
  }
  const nothing = [...unseen.values()].filter(({ name }) => !shown.has(name) && !failed.has(name));
  return [...failed.values(), ...nothing.map(({ unshown }) => unshown)];
}
