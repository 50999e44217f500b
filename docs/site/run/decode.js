// Problems of the decode stages, as core/decode_problem.py and running/decoding.py have them: a few query rows of each
// sequence against its cache of keys and values, which may lie in pages.
import { compared, each, inMemory, places, POISON, reference, toBits, valuesOf } from "./attention.js";
import { Normal } from "./normal.js";
import { comparedSums, logSumExp } from "./sums.js";

// Q, K and V of the problem's type, (B, heads, rows, d), with a NaN where a sequence has no key; lengths and table.
export function drawn({ problem: p, seed, block_table: table }, { generators }) {
  const normal = new Normal(generators[seed]), next = () => toBits[p.dtype](normal.next()), d = p.d_head;
  const found = { Q: new Uint16Array(places(p, "Q")), lengths: Int32Array.from(p.lengths) };
  each(p, "Q", (at) => (found.Q[at] = next()));
  for (const name of "KV") {
    const bits = (found[name] = new Uint16Array(places(p, name)).fill(POISON));
    p.lengths.forEach((length, b) => {
      for (let h = 0; h < p.Hkv; ++h) {
        const first = (b * p.Hkv + h) * p.Nkv * d;
        for (let at = first; at < first + length * d; ++at) bits[at] = next();
      }
    });
  }
  if (table) found.block_table = Int32Array.from(table);
  return found;
}

// K or V in pages, as it lies in memory. strides: elements from a page, a head and a row to the next.
function inPages({ Hkv, Nkv, d_head: d, lengths, page_size: size }, strides, bits, table) {
  const across = table.length / lengths.length; // pages of a sequence
  const pages = lengths.reduce((sum, length) => sum + Math.ceil(length / size), 0) + 1;
  const memory = new Uint16Array(pages * strides[0]).fill(POISON);
  lengths.forEach((length, b) => {
    for (let h = 0; h < Hkv; ++h) {
      for (let n = 0; n < length; ++n) {
        const page = table[b * across + Math.floor(n / size)], from = ((b * Hkv + h) * Nkv + n) * d;
        memory.set(bits.subarray(from, from + d), page * strides[0] + h * strides[1] + (n % size) * strides[2]);
      }
    }
  });
  return memory;
}

export function placed(p, name, strides, bits, { block_table: table }) {
  return table && "KV".includes(name) ? inPages(p, strides, bits, table) : inMemory(p, name, strides, bits);
}

// A sequence as a problem of attention, causal and as long as it is: [problem, values].
function sequence(p, inputs, b) {
  const alone = { ...p, B: 1, Nkv: p.lengths[b], causal: true }, size = places(alone, "Q");
  const own = { Q: inputs.Q.subarray(b * size, (b + 1) * size) };
  for (const name of "KV") {
    const kept = alone.Nkv * p.d_head, bits = (own[name] = new Uint16Array(p.Hkv * kept));
    for (let h = 0; h < p.Hkv; ++h) {
      const first = (b * p.Hkv + h) * p.Nkv * p.d_head;
      bits.set(inputs[name].subarray(first, first + kept), h * kept);
    }
  }
  return [alone, valuesOf(alone, own)];
}

// What O and the sums are compared with.
export function expected(p, inputs, bounds) {
  const found = {}, sums = {}, count = places(p, "O"), rows = p.B * p.Hq * p.Nq;
  for (const name of ["out", "magnitude", "fine"]) found[name] = new Float64Array(count);
  found.bound = new Float64Array(count).fill(bounds.half_smallest_output);
  Object.assign(sums, { values: new Float64Array(rows).fill(-Infinity), bound: new Float64Array(rows).fill(1) });
  for (let b = 0; b < p.B; ++b) {
    if (!p.lengths[b]) continue;
    const [alone, values] = sequence(p, inputs, b);
    for (const [name, part] of Object.entries(reference(alone, values, bounds))) {
      found[name].set(part, (b * count) / p.B);
    }
    for (const [name, part] of Object.entries(logSumExp(alone, values, bounds))) sums[name].set(part, (b * rows) / p.B);
  }
  return { O: found, sums };
}

// {passed, message} of O's bits, (B, Hq, Nq, d), and of the sums.
export function judged(p, wanted, { O, log_sum_exp: sums }, bounds) {
  const comparison = compared(p, "O", O, wanted.O, bounds);
  if (!comparison.passed) return comparison;
  const more = comparedSums(p, sums, wanted.sums);
  return { passed: more.passed, message: more.passed ? "" : `${comparison.message}; ${more.message}` };
}
