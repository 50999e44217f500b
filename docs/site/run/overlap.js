// What a warp computes while its wgmma are under way, and how often it waits at a barrier, by the trace of a run: as
// flashladder/ladder/overlap.py counts it.

// Exponentials and the like that a warp executes while a wgmma of its own is in flight: asked for, not yet waited for.
function ofWarp(pieces, events, ops) {
  let found = 0, asked = false, inFlight = 0; // wgmma of no group yet; groups that no wait has covered
  for (const [kind, which] of events) {
    if (kind === "warpgroup") asked ||= ops.get(which).text.includes("wgmma");
    if (kind !== "run") continue;
    for (let number = pieces[which][0]; number <= pieces[which][1]; ++number) {
      const { cls, text, groups } = ops.get(number) ?? { text: "" };
      if (text.includes("wgmma.commit_group")) {
        inFlight += asked;
        asked = false;
      } else if (text.includes("wgmma.wait_group")) inFlight = Math.min(inFlight, groups);
      else if (cls === "special_function") found += asked || inFlight > 0;
    }
  }
  return found;
}

function specialDuringWgmma({ ops, traced }) {
  const known = new Map(ops.map(([number, cls, text, , , groups]) => [number, { cls, text, groups }]));
  const counts = traced.flatMap(({ pieces, warps }) => warps.map((events) => ofWarp(pieces, events, known)));
  return counts.reduce((sum, one) => sum + one, 0);
}

const barrierWaits = ({ traced }) =>
  traced.flatMap(({ warps }) => warps.flat()).filter(([kind]) => kind === "sync").length;

// By name, as expressions have them behind "order.".
export function overlap({ launches }) {
  const sum = (count) => launches.reduce((all, one) => all + count(one), 0);
  return { special_during_wgmma: sum(specialDuringWgmma), barrier_waits: sum(barrierWaits) };
}
