// What one warp's access asks of the 32 banks of shared memory: as flashladder/simulator/accesses.py has it.
const LANES = 32;

// Lanes that share a wavefront at best: all for up to 4 bytes, 16 for 8, 8 for 16; the 8 rows of each matrix.
export function groups(access) {
  const size = access.matrices ? 8 : Math.min(LANES, (LANES * 4) / Math.max(access.bytes, 4));
  const found = [];
  for (let first = 0; first < LANES; first += size) {
    const lanes = [];
    for (let lane = first; lane < first + size; ++lane) if (access.addresses[lane] !== null) lanes.push(lane);
    if (lanes.length) found.push(lanes);
  }
  return found;
}

// The banks of 4 bytes that a lane's bytes lie in.
export function banks(access, lane) {
  const first = Math.floor(access.addresses[lane] / 4) % 32;
  return Array.from({ length: Math.max(1, Math.floor(access.bytes / 4)) }, (_, i) => (first + i) % 32);
}

// By lane, which wavefront of its group serves it, from 0: lanes that want the same word share one.
export function passes(access) {
  const unit = Math.max(access.bytes, 4);
  const served = new Map();
  for (const group of groups(access)) {
    const words = new Map();
    for (const lane of group) {
      const word = Math.floor(access.addresses[lane] / unit);
      const bank = word % (128 / unit);
      const queue = words.get(bank) ?? [];
      words.set(bank, queue);
      if (!queue.includes(word)) queue.push(word);
      served.set(lane, queue.indexOf(word));
    }
  }
  return served;
}
