// The logarithm of each row's sum of exp(score) in float64, and the comparison with what a kernel wrote, as
// running/verify.py has them.
import { fineError, general, isScaled, lastSeen, scoreError, scoresOf } from "./attention.js";

// What the logarithm of the sum of rounded weights may be off by. weights: exp(score - the row's largest score).
function roundedSumError(weights, bounds) {
  const sum = weights.reduce((all, one) => all + one, 0), total = Math.max(sum, 1);
  // The largest is a power of two, and exact.
  const others = (sum - weights.reduce((a, b) => Math.max(a, b), 0)) / total;
  let part = bounds.unit_roundoff * others + Math.min(others, bounds.sum_error_unit);
  for (const one of weights) part += fineError(one, bounds) / total;
  return part / (1 - part);
}

// {values, bound}, (B, Hq, Nq); -Infinity of a row that sees no key. bounds: of the type (page_exercises.bounds()).
export function logSumExp(p, { Q, K }, bounds) {
  const d = p.d_head, count = p.B * p.Hq * p.Nq, scale = Math.fround(p.scale), size = Math.abs;
  const values = new Float64Array(count).fill(-Infinity), bound = new Float64Array(count);
  const [sizesQ, sizesK] = [Q.map(size), K.map(size)];
  for (let at = 0; at < count; ++at) {
    const head = Math.floor(at / p.Nq), keys = Math.max(0, Math.min(p.Nkv, lastSeen(p, at % p.Nq) + 1));
    const first = (Math.floor(head / p.Hq) * p.Hkv + Math.floor((head % p.Hq) / (p.Hq / p.Hkv))) * p.Nkv * d;
    const of = (q, k) => scoresOf(q.subarray(at * d, at * d + d), k.subarray(first, first + keys * d), d, keys);
    const scores = of(Q, K).map((one) => one * scale), top = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const weights = scores.map((one) => Math.exp(one - top));
    if (keys) values[at] = Math.log(weights.reduce((sum, one) => sum + one, 0)) + top;
    const largest = of(sizesQ, sizesK).reduce((a, b) => Math.max(a, b), 0) * Math.abs(scale);
    bound[at] = bounds.log_sum_exp_unit * (d * largest + p.Nkv / 16 + 64);
    if (!isScaled(p) || !keys) continue;
    const q = Q.subarray(at * d, at * d + d);
    const errors = weights.map((_, key) => scoreError(q, K, first + key * d, bounds));
    bound[at] += Math.abs(scale) * errors.reduce((a, b) => Math.max(a, b), 0) + roundedSumError(weights, bounds);
  }
  return { values, bound };
}

// {passed, message} of what a kernel wrote, float32.
export function comparedSums(p, got, { values, bound }) {
  const ratio = bound.map((most, at) => {
    if (values[at] === -Infinity) return got[at] === -Infinity ? 0 : Infinity;
    return Number.isFinite(got[at]) ? Math.abs(got[at] - values[at]) / most : Infinity;
  });
  const first = ratio.findIndex((one) => one > 1);
  if (first < 0) return { passed: true, message: "" };
  const head = Math.floor(first / p.Nq), place = [Math.floor(head / p.Hq), head % p.Hq, first % p.Nq].join(", ");
  const wrong = ratio.reduce((sum, one) => sum + (one > 1), 0);
  const message =
    `${wrong} of ${ratio.length} rows' log-sum-exp beyond their bound; first log_sum_exp[${place}] = ` +
    `${general(got[first], 7)}, reference ${general(values[first], 7)} (bound ${general(bound[first], 3)})`;
  return { passed: false, message };
}
