// In which order the warps of a traced block can go on (common/simulator/README.md, Traces). A trace has no times and
// no order between warps but this: who waits goes on when all that it waits for has come.
//
// A step lets every warp run that may, each up to its next barrier or wait. What others do in a step counts from the
// next one on. Steps are no clocks: one may be ten instructions or a thousand.

const ARRIVALS = new Set(["arrive", "sync", "arrive_phase", "arrive_copies", "copy"]);
const OUTSIDE_PIECES = new Set(["arrive", "sync", "wait", "warpgroup"]); // their instructions are in no piece

// What is arrived at or waited for: a use of a barrier, or a phase of an mbarrier.
function key([kind, , which, phase]) {
  return `${kind === "arrive" || kind === "sync" ? "barrier" : "mbarrier"} ${which} ${phase}`;
}

// Whether a warp stops here until others have come. A phase before the first one is over from the start.
const stops = ([kind, , , phase]) => kind === "sync" || (kind === "wait" && phase >= 0);

// How often everything is arrived at in the whole trace: a wait that is in it did end.
function totals(warps) {
  const found = new Map();
  for (const event of warps.flat()) {
    if (ARRIVALS.has(event[0])) found.set(key(event), (found.get(key(event)) ?? 0) + 1);
  }
  return found;
}

// Instructions of an event by class.
function counted(block, classes, [kind, number]) {
  const [first, last] = kind === "run" ? block.pieces[number] : [number, number];
  const found = {};
  if (kind !== "run" && !OUTSIDE_PIECES.has(kind)) return found;
  for (let op = first; op <= last; ++op) {
    const name = classes.get(op);
    if (name !== undefined) found[name] = (found[name] ?? 0) + 1;
  }
  return found;
}

// The steps of a launch's first traced block: [[{ran, stop, come, needed}, ...by warp], ...]. ran: instructions by class
// that the warp executed in the step, null where it waited. stop: the event that it then waits at, null behind its last
// one; come and needed: how many arrivals and copies there have been, and how many it waits for.
export function order(launch) {
  const block = launch.traced[0];
  const classes = new Map(launch.ops.map(([op, name]) => [op, name]));
  const needed = totals(block.warps), arrived = new Map();
  const at = block.warps.map(() => 0); // each warp's next event
  const stop = block.warps.map(() => null);
  const steps = [];
  // In a launch that failed, nobody knows whether the last wait of a warp has ended.
  const last = (warp) => launch.error && at[warp] + 1 === block.warps[warp].length;
  const complete = (event) => (arrived.get(key(event)) ?? 0) === needed.get(key(event));
  const goesOn = (warp) => !stop[warp] || (complete(stop[warp]) && !last(warp));
  for (;;) {
    const free = block.warps.map((events, warp) => at[warp] < events.length && goesOn(warp));
    if (!free.includes(true)) break;
    const step = [];
    const arrivals = [];
    block.warps.forEach((events, warp) => {
      if (!free[warp]) {
        step.push({ ran: null, stop: stop[warp] });
        return;
      }
      const ran = {};
      if (stop[warp]) ++at[warp];
      stop[warp] = null;
      for (; at[warp] < events.length && !stop[warp]; ) {
        const event = events[at[warp]];
        for (const [name, number] of Object.entries(counted(block, classes, event))) ran[name] = (ran[name] ?? 0) + number;
        if (ARRIVALS.has(event[0])) arrivals.push(key(event));
        if (stops(event)) stop[warp] = event;
        else ++at[warp];
      }
      step.push({ ran, stop: stop[warp] });
    });
    for (const one of arrivals) arrived.set(one, (arrived.get(one) ?? 0) + 1);
    for (const one of step) {
      if (one.stop) Object.assign(one, { come: arrived.get(key(one.stop)) ?? 0, needed: needed.get(key(one.stop)) ?? 0 });
    }
    steps.push(step);
  }
  return steps;
}

// In words, why there are no steps of a trace.
export function untraced(trace) {
  const launches = trace?.launches ?? [];
  if (!launches.length) return "There is no trace of this run.";
  if (launches.some(({ traced }) => traced.length)) return "The first block does more than a picture can hold.";
  return "The blocks of this kernel form clusters, and the simulator traces no clusters: there is no timeline of it.";
}
