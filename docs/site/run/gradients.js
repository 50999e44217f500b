// Problems of the stages that compute gradients, and what they may be off by, as running/gradients.py has it and says
// why.
import { compared, drawn as drawnForward, each, fromBits, lastSeen, places, reference, scoresOf, toBits } from "./attention.js";
import { inMemory, valuesOf } from "./attention.js";
import { Normal } from "./normal.js";
import { logSumExp } from "./sums.js";

const OUTPUTS = ["dQ", "dK", "dV"];

// Q, K, V and dO of the problem's type, and what a forward stage would make of them.
export function drawn({ problem: p, seed }, { generators, bounds }) {
  const found = drawnForward(p, "normal", generators[seed]), normal = new Normal(generators.dO);
  found.dO = new Uint16Array(places(p, "dO"));
  each(p, "dO", (at) => (found.dO[at] = toBits[p.dtype](normal.next())));
  const values = valuesOf(p, found), own = bounds[p.dtype];
  found.O = Uint16Array.from(reference(p, values, own).out, toBits[p.dtype]);
  found.log_sum_exp = Float32Array.from(logSumExp(p, values, own).values);
  return found;
}

export const placed = (p, name, strides, bits) => inMemory(p, name, strides, bits);

// The sums of a gradient's elements: the value, its magnitude, what subnormal numbers and what D's errors make of it.
const sumsOf = (p, name) =>
  Object.fromEntries(["out", "magnitude", "fine", "squares"].map((one) => [one, new Float64Array(places(p, name))]));

// What rounding may move a number by beyond u times itself, because it is below the type's normal ones.
const fineOf = (size, { half_smallest: half, unit_roundoff: unit }) => Math.max(0, Math.min(size, half) - unit * size);

// A row of one head: its weights, and what dO and O say of it; null where it sees no key.
function rowOf(q, k, v, dO, { keys, d, scale }) {
  const scores = scoresOf(q, k, d, keys).map((one) => one * scale);
  const top = scores.reduce((a, b) => Math.max(a, b), -Infinity), P = scores.map((one) => Math.exp(one - top));
  const total = P.reduce((sum, one) => sum + one, 0), O = new Float64Array(d);
  for (let key = 0; key < keys; ++key) {
    P[key] /= total;
    for (let x = 0, at = key * d; x < d; ++x, ++at) O[x] += P[key] * v[at];
  }
  const products = O.map((one, x) => one * dO[x]), sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
  const spread = Math.sqrt(sum(products.map((one) => one * one)));
  return { P, dP: scoresOf(dO, v, d, keys), D: sum(products), moved: sum(products.map(Math.abs)), spread };
}

// Adds what one row gives to dQ, which is the row's own, and to dK and dV of its keys. At: where they begin.
function addRow({ P, dP, D, moved, spread }, { q, k, dO }, { dQ, dK, dV }, { row, first, d, scale, bounds }) {
  const size = Math.abs(scale), along = new Float64Array(d);
  for (let key = 0; key < P.length; ++key) {
    const weight = P[key], difference = dP[key] - D, dS = weight * difference, steep = Math.abs(dS);
    const weightFine = fineOf(weight, bounds), fine = fineOf(steep, bounds) + weightFine * Math.abs(difference);
    const push = (steep + weight * moved) * size, square = (size * weight * spread) ** 2;
    for (let x = 0, from = key * d, at = first + key * d; x < d; ++x, ++from, ++at) {
      const keyX = k[from], queryX = q[x], size_k = Math.abs(keyX), size_q = Math.abs(queryX), size_o = Math.abs(dO[x]);
      along[x] += weight * keyX;
      dQ.out[row + x] += scale * dS * keyX;
      dQ.magnitude[row + x] += size * steep * size_k;
      dQ.fine[row + x] += size * fine * size_k;
      dK.out[at] += scale * dS * queryX;
      dK.magnitude[at] += push * size_q;
      dK.fine[at] += size * fine * size_q;
      dK.squares[at] += square * queryX * queryX;
      dV.out[at] += weight * dO[x];
      dV.magnitude[at] += weight * size_o;
      dV.fine[at] += weightFine * size_o;
    }
  }
  for (let x = 0; x < d; ++x) {
    dQ.magnitude[row + x] += size * moved * Math.abs(along[x]);
    dQ.squares[row + x] = (size * spread * along[x]) ** 2;
  }
}

// By name what compared() takes. values: of Q, K, V and dO, in float64.
export function gradients(p, { Q, K, V, dO }, bounds) {
  const found = Object.fromEntries(OUTPUTS.map((name) => [name, sumsOf(p, name)]));
  const d = p.d_head, scale = Math.fround(p.scale);
  for (let head = 0, row = 0; head < p.B * p.Hq; ++head) {
    const first = (Math.floor(head / p.Hq) * p.Hkv + Math.floor((head % p.Hq) / (p.Hq / p.Hkv))) * p.Nkv * d;
    for (let n = 0; n < p.Nq; ++n, row += d) {
      const keys = Math.max(0, Math.min(p.Nkv, lastSeen(p, n) + 1));
      if (!keys) continue;
      const [q, own] = [Q, dO].map((all) => all.subarray(row, row + d));
      const [k, v] = [K, V].map((all) => all.subarray(first, first + keys * d));
      const of = rowOf(q, k, v, own, { keys, d, scale });
      addRow(of, { q, k, dO: own }, found, { row, first, d, scale, bounds });
    }
  }
  const unit = bounds.unit_roundoff;
  for (const one of Object.values(found)) {
    const { magnitude, fine, squares } = one;
    one.bound = magnitude.map((size, at) => bounds.element * unit * size + fine[at] + bounds.half_smallest_output);
    one.room = unit * Math.sqrt(squares.reduce((sum, square) => sum + square, 0));
  }
  return found;
}

// What the outputs are compared with, by name.
export function expected(p, inputs, bounds) {
  return gradients(p, { ...valuesOf(p, inputs), dO: Float64Array.from(inputs.dO, fromBits[p.dtype]) }, bounds);
}

// {passed, message} of the gradients' bits, (B, heads, rows, d).
export function judged(p, wanted, outputs, bounds) {
  for (const name of OUTPUTS) {
    const { passed, message } = compared(p, name, outputs[name], wanted[name], bounds);
    if (!passed) return { passed, message: `${name}: ${message}` };
  }
  return { passed: true, message: "" };
}
