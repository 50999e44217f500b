// The timeline's model (docs/timeline.md): from a launch's trace to when its warps do what, in clocks of one
// multiprocessor. Nothing here is measured.
//
// The same as simulator/steps.py and replay.py of the Python package, which say what each step means, and to the last
// bit: tests/site/test_page_timeline.py compares them. The numbers are those of clocks.toml, from the catalogue.

const PRODUCT = ["tensor"];
const ARITHMETIC = ["fp16", "fp32", "fp64", "special_function", "shuffle", "vote"];
const COPY = ["load_global", "store_global", "load_shared", "store_shared", "load_generic", "store_generic", "stmatrix",
  "atomic", "async_copy", "bulk_copy", "tensor_copy", "texture", "surface"];
const LOADS = new Set(["load_global", "load_generic", "texture"]);
const QUEUES = { async_copy: "cp.async", bulk_copy: "bulk", warpgroup: "wgmma" };
const BITS = { bf16: 16, f16: 16, tf32: 32, f64: 64, e4m3: 8, e5m2: 8, s8: 8, u8: 8, s4: 4, u4: 4, b1: 1 };
const SECTOR = 32; // bytes
const FEWEST = 6; // instructions of a stretch; fewer become part of what stands before it
const PRODUCTS = 16 * 8 * 16; // of mma.sync.m16n8k16
const UNITS = ["issue", "tensor", "special", "alu", "shared"];
const ALU = new Set(["integer", "predicate", "conversion"]); // and maxima of fp32
const OF_SCHEDULER = new Set(["issue", "tensor", "special", "alu"]);
const QUANTUM = 48; // clocks, about, before another warp has its turn
const WARPGROUP = 4;

function shapeOf(text) {
  const found = /\.m(\d+)n(\d+)k(\d+)\./.exec(text);
  if (!found) throw new Error(`the model does not know the instruction ${text}`);
  return found.slice(1).map(Number);
}

function products(text) {
  const [m, n, k] = shapeOf(text);
  const word = text.split(".").slice(0, -1).findLast((one) => one in BITS);
  return (m * n * k * (BITS[word] ?? 16)) / 16;
}

// The classes of instructions of each kind in a launch. What ldmatrix brings goes into the next mma.sync, so the two are
// one stretch. wgmma finds its tiles itself, and ldmatrix beside it is a load.
export function kindsOf(launch) {
  const feeds = launch.ops.some(([, , text]) => text.startsWith("mma."));
  const [product, copy] = feeds ? [[...PRODUCT, "ldmatrix"], COPY] : [PRODUCT, [...COPY, "ldmatrix"]];
  return { product, arithmetic: ARITHMETIC, copy };
}

// ---- what each instruction asks of which unit ----

// What a run of instructions of one kind asks for.
class Work {
  constructor(kind) {
    Object.assign(this, { kind, issue: 0, tensor: 0, special: 0, alu: 0, shared: 0 });
    Object.assign(this, { pace: 0, latency: 0, bytes: 0, count: 0, fp32: 0 });
    this.lines = new Map();
  }

  add(op, cost, clocks) {
    this.count += 1;
    this.issue += clocks.issue;
    this.#line(op.file, op.line, op.calls, 1);
    if (ALU.has(op.cls) || (op.cls === "fp32" && /^(max|min)\./.test(op.text))) this.alu += clocks.alu;
    else if (op.cls === "fp32") this.fp32 += 1;
    if (cost) this.shared += cost.wavefronts * clocks.shared_wavefront;
    if (op.cls === "tensor") {
      const share = products(op.text) / PRODUCTS;
      this.tensor += share * clocks.mma_sync;
      this.pace += share * clocks.mma_pace;
      this.latency = clocks.shared_latency;
    } else if (op.cls === "ldmatrix") {
      this.latency = clocks.shared_latency;
      this.pace += clocks.issue;
    } else if (op.cls === "special_function") {
      this.special += clocks.special;
      this.pace += clocks.arithmetic_pace;
    } else if (op.cls === "shuffle" || op.cls === "vote") {
      this.pace += clocks.shuffle;
    } else {
      this.pace += this.kind === "product" ? clocks.issue : clocks.arithmetic_pace;
      if (op.cls === "load_shared") this.latency = clocks.shared_latency;
    }
    if (cost && (LOADS.has(op.cls) || op.text.startsWith("atom."))) this.bytes += cost.sectors * SECTOR;
  }

  join(other) {
    for (const name of [...UNITS, "fp32", "pace", "bytes", "count"]) this[name] += other[name];
    this.latency = Math.max(this.latency, other.latency);
    for (const { file, line, calls, times } of other.lines.values()) this.#line(file, line, calls, times);
  }

  #line(file, line, calls, times) {
    const key = `${line} ${file} ${calls}`;
    const found = this.lines.get(key);
    if (found) found.times += times;
    else this.lines.set(key, { file, line, calls, times });
  }

  *steps() {
    if (!this.count) return;
    const { file, line, calls } = [...this.lines.values()].reduce((most, one) => (one.times > most.times ? one : most));
    const units = UNITS.filter((unit) => this[unit]).map((unit) => [unit, this[unit]]);
    const place = { file, line, calls, text: `${this.count} instructions` };
    yield { does: "stretch", kind: this.kind, units, pace: this.pace, latency: this.latency, fp32: this.fp32, place };
    if (this.bytes) yield { does: "load", bytes: this.bytes, place };
  }
}

// Neighbours of one kind in one, and short stretches in what stands before them.
function merged(parts) {
  const found = [];
  for (const part of parts) {
    const before = found.at(-1);
    if (!(part instanceof Work)) found.push(part);
    else if (part.count && before instanceof Work && (before.kind === part.kind || part.count < FEWEST)) before.join(part);
    else if (part.count) found.push(part);
  }
  return found;
}

// What an instruction of a piece starts, closes or waits for besides.
function background(op, cost) {
  const { text, place, cls } = op, queue = QUEUES[cls];
  if (queue && text.includes(".commit_group")) return { does: "commit", queue };
  if (queue && text.includes(".wait_group")) return { does: "waitGroups", queue, most: op.imm, place };
  if (cls === "async_copy") {
    if (text.startsWith("cp.async.wait_all")) return { does: "waitGroups", queue, most: 0, place };
    return cost?.sectors ? { does: "async", bytes: cost.sectors * SECTOR, place } : null;
  }
  const copies = cls === "bulk_copy" || cls === "tensor_copy";
  const store = copies && text.includes(".shared::cta") && text.includes(".bulk_group");
  return store && cost?.bytes ? { does: "store", bytes: cost.bytes, place } : null;
}

// What the assembler leaves of a piece: no moves between registers, which get one name, and of two maxima of integers
// one, of three numbers.
function* instructionsOf([first, last], ops) {
  let before = null;
  for (let index = first; index <= last; ++index) {
    const op = ops.get(index);
    if (!op || op.text.startsWith("mov.")) continue;
    if (before?.text === "max.s32" && op.text === "max.s32" && op.line === before.line) {
      before = null;
      continue;
    }
    before = op;
    yield [index, op];
  }
}

function worksOf(piece, ops, kinds, clocks) {
  const costOf = new Map(piece[2].map(([op, wavefronts, sectors, bytes]) => [op, { wavefronts, sectors, bytes }]));
  const parts = [];
  let work = new Work("");
  for (const [index, op] of instructionsOf(piece, ops)) {
    const kind = kinds.get(op.cls) ?? "", cost = costOf.get(index);
    if (kind && work.kind && kind !== work.kind) {
      parts.push(work);
      work = new Work(kind);
    }
    work.kind ||= kind;
    work.add(op, cost, clocks);
    const step = background(op, cost);
    if (step) {
      parts.push(work, step);
      work = new Work(work.kind);
    }
  }
  return merged([...parts, work]);
}

// A step for an event that is none of a piece; null where nothing has to be waited for.
function stepOf([kind, number, which, phase, , bytes], ops, clocks) {
  const { place, cls, text } = ops.get(number);
  if (kind === "warpgroup") {
    return { does: "together", clocks: cls === "tensor" ? shapeOf(text)[1] * clocks.wgmma_column : 0, place };
  }
  if (kind === "arrive" || kind === "sync") {
    return { does: "barrier", key: `barrier ${which} ${phase}`, waits: kind === "sync", which, phase, place };
  }
  const key = `mbarrier ${which} ${phase}`;
  if (kind === "wait") return phase >= 0 ? { does: "waitPhase", key, which, phase, place } : null;
  if (kind === "copy") return { does: "copy", key, which, phase, bytes, place };
  return { does: "arrival", key, copies: kind === "arrive_copies", place };
}

// A warp's steps, from its events.
function programOf(events, pieces, ops, clocks) {
  const found = [];
  let carried = new Work("arithmetic"); // not yet a stretch: what follows may belong to it
  for (const event of events) {
    for (const part of event[0] === "run" ? pieces[event[1]] : [stepOf(event, ops, clocks)]) {
      if (!(part instanceof Work)) {
        if (part === null) continue;
        found.push(...carried.steps(), part);
        carried = new Work(carried.kind);
      } else if (part.kind === carried.kind || !part.kind || part.count < FEWEST || !carried.count) {
        if (!carried.count) carried = new Work(part.kind || carried.kind);
        carried.join(part);
      } else {
        found.push(...carried.steps());
        carried = new Work(part.kind);
        carried.join(part);
      }
    }
  }
  found.push(...carried.steps());
  return found;
}

// ---- when the warps do their steps ----

// The warp that comes first, and of those that come at the same time the one with the lowest number.
class Queue {
  #heap = [];

  get size() {
    return this.#heap.length;
  }

  static #before([at, number], [other, its]) {
    return at < other || (at === other && number < its);
  }

  push(entry) {
    const heap = this.#heap;
    let place = heap.push(entry) - 1;
    for (let above; place && Queue.#before(entry, heap[(above = (place - 1) >> 1)]); place = above) heap[place] = heap[above];
    heap[place] = entry;
  }

  pop() {
    const heap = this.#heap, first = heap[0], entry = heap.pop();
    if (!heap.length) return first;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below + 1 < heap.length && Queue.#before(heap[below + 1], heap[below])) ++below;
      if (below >= heap.length || !Queue.#before(heap[below], entry)) break;
      heap[place] = heap[below];
      place = below;
    }
    heap[place] = entry;
    return first;
  }
}

const listOf = (map, key) => map.get(key) ?? map.set(key, []).get(key);
const latest = (times, otherwise) => times.reduce((most, one) => Math.max(most, one), otherwise);

class Machine {
  constructor(programs, clocks) {
    this.programs = programs;
    this.clocks = clocks;
    this.spans = [];
    this.busy = new Map(); // by unit and its number: [[from, to], ...]
    this.ends = programs.map(() => 0);
    this.free = new Map();
    this.flying = []; // wgmma under way: {end}
    // What units take beside products of the tensor core, over what they take without them.
    const { issue, special, alu } = clocks;
    this.slower = { issue: clocks.issue_beside / issue, special: clocks.special_beside / special, alu: clocks.alu_beside / alu };
    // at: the next step; open, groups: by queue, {end} of what no group has yet, and of groups not yet waited for; copied:
    // when all cp.async so far have come; left: quanta of the stretch under way; since: when a wait for groups began;
    // together: steps with the warpgroup so far.
    this.states = programs.map(() =>
      ({ at: 0, open: new Map(), groups: new Map(), copied: 0, left: 0, began: 0, since: null, together: 0 }));
    this.needed = new Map(); // by key: arrivals that are still to come
    this.latest = new Map(); // when the last of those so far comes
    this.waiting = new Map();
    this.warpgroups = new Map();
    this.queue = new Queue();
    for (const { does, key } of programs.flat()) {
      if (does === "barrier" || does === "arrival" || does === "copy") this.needed.set(key, (this.needed.get(key) ?? 0) + 1);
    }
    for (const { does, key } of programs.flat()) {
      if (does === "waitPhase" && !this.needed.has(key)) throw new Error(`nothing completes ${key}`);
    }
  }

  run() {
    this.programs.forEach((_, number) => this.queue.push([0, number]));
    while (this.queue.size) {
      const [now, number] = this.queue.pop();
      const state = this.states[number], step = this.programs[number][state.at];
      if (step) this[step.does](number, state, step, now);
      else this.ends[number] = now;
    }
    const stuck = this.states.findIndex((state, number) => state.at < this.programs[number].length);
    if (stuck >= 0) throw new Error(`warp ${stuck} waits for ever`);
    return { spans: this.spans, busy: this.busy, end: latest(this.ends, 0) };
  }

  // Takes the unit from the time on that it is free; the time at which it is again.
  book(unit, number, now, clocks) {
    if (clocks <= 0) return now;
    const where = `${unit} ${OF_SCHEDULER.has(unit) ? number % this.clocks.schedulers : 0}`;
    const start = Math.max(now, this.free.get(where) ?? 0), end = start + clocks;
    this.free.set(where, end);
    const bars = listOf(this.busy, where);
    if (bars.length && bars.at(-1)[1] === start) bars.at(-1)[1] = end;
    else bars.push([start, end]);
    return end;
  }

  span(warp, kind, start, end, place, step = null) {
    if (end > start) this.spans.push({ warp, kind, start, end, place, step });
  }

  goOn(number, now) {
    this.states[number].at += 1;
    this.queue.push([now, number]);
  }

  stretch(number, state, step, now) {
    const alone = latest(step.units.map(([, clocks]) => clocks), Math.max(step.pace, 0));
    const quanta = Math.max(1, Math.ceil(alone / QUANTUM));
    if (!state.left) Object.assign(state, { left: quanta, began: now });
    const core = `tensor ${number % this.clocks.schedulers}`;
    const beside = (this.free.get(core) ?? 0) > now && !step.units.some(([unit]) => unit === "tensor");
    const ends = step.units.map(([unit, clocks]) =>
      this.book(unit, number, now, (clocks * (beside ? this.slower[unit] ?? 1 : 1)) / quanta));
    if (beside) this.slowProducts(core, now, (step.fp32 * this.clocks.fp32_takes) / quanta);
    const end = latest(ends, Math.max(now + step.pace / quanta, now));
    state.left -= 1;
    if (state.left) {
      this.queue.push([end, number]);
      return;
    }
    this.span(number, step.kind, state.began, end + step.latency, step.place);
    this.goOn(number, end + step.latency);
  }

  // Has a tensor core come later to the end of all that it has to do. A product that is under way ends when the last of
  // the four schedulers' cores does, so each moves it by a quarter.
  slowProducts(core, now, clocks) {
    if (!clocks) return;
    this.free.set(core, this.free.get(core) + clocks);
    for (const product of this.flying) if (product.end > now) product.end += clocks / this.clocks.schedulers;
  }

  fetched(number, bytes, now, latency) {
    return this.book("memory", number, now, bytes * this.clocks.memory_byte) + latency;
  }

  async(number, state, step, now) {
    const end = this.fetched(number, step.bytes, now, this.clocks.memory_latency);
    this.span(number, "bytes", now, end, step.place);
    listOf(state.open, "cp.async").push({ end });
    state.copied = Math.max(state.copied, end);
    this.goOn(number, now);
  }

  load(number, state, step, now) {
    const end = this.fetched(number, step.bytes, now, this.clocks.memory_latency);
    this.span(number, "wait", now, end, step.place, step);
    this.goOn(number, end);
  }

  store(number, state, step, now) {
    const end = this.fetched(number, step.bytes, now, this.clocks.tma_latency);
    this.span(number, "bytes", now, end, step.place);
    listOf(state.open, "bulk").push({ end });
    this.goOn(number, now);
  }

  commit(number, state, { queue }, now) {
    listOf(state.groups, queue).push(listOf(state.open, queue));
    state.open.delete(queue);
    this.goOn(number, now);
  }

  waitGroups(number, state, step, now) {
    const groups = listOf(state.groups, step.queue);
    const waitedFor = groups.slice(0, Math.max(groups.length - step.most, 0));
    const done = latest(waitedFor.flat().map(({ end }) => end), 0);
    if (done > now) {
      state.since ??= now;
      this.queue.push([done, number]); // what is under way may be slowed until then: look again
      return;
    }
    groups.splice(0, waitedFor.length);
    let end = now;
    if (state.since !== null) {
      end += step.queue === "wgmma" ? this.clocks.wgmma_latency : 0;
      this.span(number, "wait", state.since, end, step.place, step);
      state.since = null;
    }
    this.goOn(number, end);
  }

  // One of the things that the key needs comes at that time; the last one lets those go on that wait.
  comes(key, when) {
    this.needed.set(key, this.needed.get(key) - 1);
    this.latest.set(key, Math.max(this.latest.get(key) ?? 0, when));
    if (this.needed.get(key)) return;
    const released = listOf(this.waiting, key);
    this.waiting.delete(key);
    for (const [number, since] of released) this.released(number, since);
  }

  released(number, since) {
    const step = this.programs[number][this.states[number].at];
    const end = Math.max(since, this.latest.get(step.key)) + this.clocks.barrier;
    this.span(number, "wait", since, end, step.place, step);
    this.goOn(number, end);
  }

  barrier(number, state, step, now) {
    if (step.waits) listOf(this.waiting, step.key).push([number, now]);
    this.comes(step.key, now);
    if (!step.waits) this.goOn(number, now);
  }

  arrival(number, state, step, now) {
    this.comes(step.key, step.copies ? Math.max(now, state.copied) : now);
    this.goOn(number, now);
  }

  copy(number, state, step, now) {
    const end = this.fetched(number, step.bytes, now, this.clocks.tma_latency);
    this.span(number, "bytes", now, end, step.place, step);
    this.comes(step.key, end);
    this.goOn(number, now);
  }

  waitPhase(number, state, step, now) {
    if (this.needed.get(step.key)) listOf(this.waiting, step.key).push([number, now]);
    else if (this.latest.get(step.key) <= now) this.goOn(number, now);
    else this.released(number, now);
  }

  together(number, state, step, now) {
    const key = `${Math.floor(number / WARPGROUP)} ${state.together}`;
    state.together += 1;
    const here = listOf(this.warpgroups, key);
    here.push([number, now]);
    if (here.length < WARPGROUP) return;
    const start = latest(here.map(([, since]) => since), 0);
    const end = latest(here.map(([member]) => this.book("tensor", member, start, step.clocks)), 0), product = { end };
    if (step.clocks) this.flying = [...this.flying.filter((one) => one.end > start), product];
    for (const [member] of here) {
      if (step.clocks) {
        listOf(this.states[member].open, "wgmma").push(product);
        this.span(member, "wgmma", end - step.clocks, end, step.place);
      }
      this.goOn(member, start);
    }
    this.warpgroups.delete(key);
  }
}

// What the warps of a launch's first traced block do when, alone on a multiprocessor from clock 0 on: {spans, busy, end}.
// A span: {warp, kind, start, end, place, step}; step: what a wait waits for, else null. clocks: {name: number}.
// Throws where the trace has no end or an instruction that the model does not know.
export function replay(launch, clocks) {
  const ops = new Map();
  for (const [op, cls, text, at, line, imm, ways = []] of launch.ops) {
    const file = launch.files[at];
    const calls = ways.map(([other, from]) => [launch.files[other], from]); // of a header's code, the innermost first
    ops.set(op, { cls, text, file, line, calls, imm, place: { file, line, calls, text } });
  }
  const block = launch.traced[0];
  const kinds = new Map(Object.entries(kindsOf(launch)).flatMap(([kind, names]) => names.map((name) => [name, kind])));
  const pieces = block.pieces.map((piece) => worksOf(piece, ops, kinds, clocks));
  return new Machine(block.warps.map((events) => programOf(events, pieces, ops, clocks)), clocks).run();
}
