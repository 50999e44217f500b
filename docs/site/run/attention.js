// The judge's numbers: the tensors of a problem, attention in float64, and the comparison of a kernel's output with it,
// as flashladder/classroom/cases.py and running/verify.py have them. Tensors are arrays of (B, heads, rows, d_head) in
// that order, whatever the problem's layout. A problem is a Problem's fields of Python.
import { Normal } from "./normal.js";

export const POISON = 0xffff; // a NaN of either type: outputs hold it before a run
const GROWTH = { fp16: 16.5, bf16: 80 }; // of within_margin's largest score, as a power of 2
const LONE = [3, 44, 81, 126]; // rows, each among another 8 of its warp's 32

// Heads and rows; a gradient's tensor has the shape of what it is the gradient of.
const shapes = (p, name) => ("QO".includes(name.at(-1)) ? [p.Hq, p.Nq] : [p.Hkv, p.Nkv]);
export const places = (p, name) => {
  const [heads, rows] = shapes(p, name);
  return p.B * heads * rows * p.d_head;
};

// ---- types of 16 and of 8 bits ----

const word = new Uint32Array(1), real = new Float32Array(word.buffer);

function nearestEven(value) {
  const below = Math.floor(value), rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2) ? below + 1 : below;
}

function toHalf(value) {
  real[0] = value;
  const sign = (word[0] >>> 16) & 0x8000, size = Math.abs(value);
  if (Number.isNaN(value)) return sign | 0x7e00;
  const exponent = Math.max(Math.floor(Math.log2(size || 2 ** -24)), -14);
  const bits = (exponent + 14) * 1024 + nearestEven(size * 2 ** (10 - exponent)); // the leading one is part of the sum
  return sign | Math.min(bits, 0x7c00);
}

function toBfloat(value) {
  real[0] = value;
  return ((word[0] + 0x7fff + ((word[0] >>> 16) & 1)) >>> 16) & 0xffff;
}

function fromHalf(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * (1 + fraction / 1024) * 2 ** (exponent - 15) : sign * fraction * 2 ** -24;
}

function fromBfloat(bits) {
  word[0] = bits << 16;
  return real[0];
}

// Has no infinity: what is above 448 becomes 448.
function toE4m3(value) {
  const size = Math.abs(value), exponent = Math.max(Math.floor(Math.log2(size || 1)), -6);
  const eighths = nearestEven(size * 2 ** (3 - exponent)); // 16 is the next power of two
  const code = eighths < 8 ? eighths : (exponent + 7) * 8 + eighths - 8;
  return Math.min(code, 0x7e) | (value < 0 || Object.is(value, -0) ? 0x80 : 0);
}

function fromE4m3(bits) {
  const exponent = (bits >> 3) & 15, fraction = bits & 7, sign = bits & 0x80 ? -1 : 1;
  if ((bits & 0x7f) === 0x7f) return NaN;
  return sign * (exponent ? (8 + fraction) * 2 ** (exponent - 10) : fraction * 2 ** -9);
}

const E4M3_LARGEST = 448;
export const isScaled = ({ dtype }) => dtype === "e4m3";
export const toBits = { bf16: toBfloat, fp16: toHalf, e4m3: toE4m3 };
export const fromBits = { bf16: fromBfloat, fp16: fromHalf, e4m3: fromE4m3 };
const valuesOfBits = (bits, dtype) => Float64Array.from(bits).map(fromBits[dtype]); // in one step it is much slower
// An output's numbers: of e4m3 the kernels make bf16.
export const outputValues = (p, bits) => valuesOfBits(bits, isScaled(p) ? "bf16" : p.dtype);

// ---- inputs ----

// Visits the elements of a tensor as they lie in memory, (B, rows, heads, d) of the layout bnhd: visit(place, head, row,
// x).
export function each(p, name, visit) {
  const [heads, rows] = shapes(p, name), turned = p.layout === "bnhd";
  for (let b = 0; b < p.B; ++b) {
    for (let outer = 0; outer < (turned ? rows : heads); ++outer) {
      for (let inner = 0; inner < (turned ? heads : rows); ++inner) {
        const head = turned ? inner : outer, row = turned ? outer : inner;
        const first = ((b * heads + head) * rows + row) * p.d_head;
        for (let x = 0; x < p.d_head; ++x) visit(first + x, head, row, x);
      }
    }
  }
}

const KINDS = {
  normal: () => {},
  negative: (p, name, at, row, put) => name !== "V" && put((name === "Q" ? 8 : -8) * Math.abs(at)),
  half_negative: (p, name, at, row, put) =>
    name !== "V" && put((name === "K" || row % 16 < 8 ? -8 : 8) * Math.abs(at)),
  lone_last: (p, name, at, row, put, x) => lone(p, name, row, put, x, Math.max(0, p.Nkv - 3)),
  lone_first: (p, name, at, row, put, x) => lone(p, name, row, put, x, Math.min(3, p.Nkv - 1)),
  // The first or the last 64 keys have by far the largest score of every row.
  largest_first: (p, name, at, row, put, x) => largest(name, put, x, row < 64),
  largest_last: (p, name, at, row, put, x) => largest(name, put, x, row >= p.Nkv - 64),
  // The first key's score is above all others, which are 0, by so much that only a kernel with a margin keeps its bet.
  within_margin: (p, name, at, row, put, x) => withinMargin(p, name, row, put, x),
};
KINDS.random = KINDS.normal;
export const INPUTS = Object.keys(KINDS);

function lone(p, name, row, put, x, key) {
  if (name === "V") return;
  put(x ? 0 : name === "Q" ? (LONE.includes(row) ? 8 : 0) : row === key ? 40 : 0);
}

function largest(name, put, x, isLarge) {
  if (name === "Q" && !x) put(8);
  if (name === "K" && !x) put(isLarge ? 200 : 0);
}

function withinMargin(p, name, row, put, x) {
  if (name === "V") return;
  const growth = GROWTH[p.dtype] / (8 * p.scale * Math.LOG2E);
  put(x ? 0 : name === "Q" ? 8 : row ? 0 : growth);
}

// Q, K and V as the bits of the problem's type. generator: Normal's; kind: of inputs.draw() or of technique.INPUTS.
export function drawn(p, kind, generator) {
  const normal = new Normal(generator), found = {}, change = KINDS[kind];
  for (const name of "QKV") {
    const values = new Float32Array(places(p, name));
    each(p, name, (at) => (values[at] = normal.next()));
    each(p, name, (at, head, row, x) => change(p, name, values[at], row, (value) => (values[at] = value), x));
    if (isScaled(p)) Object.assign(found, scaled(p, name, values));
    else found[name] = Uint16Array.from(values, toBits[p.dtype]);
  }
  return found;
}

// Each head divided by its scale, which is as large as it need be, or 2 or 3 times that: another head's is wrong.
function scaled(p, name, values) {
  const [heads, rows] = shapes(p, name), size = rows * p.d_head, bits = new Uint8Array(values.length);
  const scales = Float32Array.from({ length: p.B * heads }, (_, head) => {
    const largest = values.subarray(head * size, (head + 1) * size).reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    return largest ? (((head % 3) + 1) * largest) / E4M3_LARGEST : 1;
  });
  values.forEach((value, at) => (bits[at] = toE4m3(value / scales[Math.floor(at / size)])));
  return { [name]: bits, [`${name}_scales`]: scales };
}

function eachRow(p, name, strides, visit) {
  const [heads, rows] = shapes(p, name);
  let at = 0;
  for (let b = 0; b < p.B; ++b) {
    for (let h = 0; h < heads; ++h) {
      for (let n = 0; n < rows; ++n, at += p.d_head) visit(at, b * strides[0] + h * strides[1] + n * strides[2]);
    }
  }
}

// A tensor as it lies in memory, and back. strides: elements from a batch, a head and a row to the next. Where no element
// lies, there is a NaN.
export function inMemory(p, name, strides, bits) {
  const memory = new bits.constructor(p.B * strides[0]).fill(POISON);
  eachRow(p, name, strides, (at, place) => memory.set(bits.subarray(at, at + p.d_head), place));
  return memory;
}

export function fromMemory(p, name, strides, memory) {
  const bits = new Uint16Array(places(p, name));
  eachRow(p, name, strides, (at, place) => bits.set(memory.subarray(place, place + p.d_head), at));
  return bits;
}

export function valuesOf(p, inputs) {
  const named = [..."QKV"].map((name) => {
    const values = valuesOfBits(inputs[name], p.dtype), scales = inputs[`${name}_scales`];
    const size = shapes(p, name)[1] * p.d_head; // of a head
    return [name, scales ? values.map((value, at) => value * scales[Math.floor(at / size)]) : values];
  });
  return Object.fromEntries(named);
}

// ---- the reference ----

// The last key that a row sees.
export const lastSeen = (p, row) => (p.causal ? row + p.Nkv - p.Nq : p.Nkv - 1);

// The scores of a row with all keys, before they are scaled.
export function scoresOf(q, k, d, keys) {
  const found = new Float64Array(keys);
  for (let key = 0; key < keys; ++key) {
    let sum = 0;
    for (let x = 0, at = key * d; x < d; ++x, ++at) sum += q[x] * k[at];
    found[key] = sum;
  }
  return found;
}

// What a score of e4m3 may be off by before it is scaled, since the tensor cores cut: as running/verify.py has it.
export function scoreError(q, k, first, { score_unit: unit, score_group: group }) {
  let score = 0, error = 0;
  for (let from = 0; from < q.length; from += group) {
    let mostQ = 0, mostK = 0, sum = 0;
    for (let x = from; x < from + group; ++x) {
      mostQ = Math.max(mostQ, Math.abs(q[x]));
      mostK = Math.max(mostK, Math.abs(k[first + x]));
      sum += q[x] * k[first + x];
    }
    const before = Math.abs(score);
    score += sum;
    error += Math.max(mostQ * mostK, before, Math.abs(score));
  }
  return unit * error;
}

// What rounding may move a weight by beyond u times itself, because P is below the type's normal numbers.
export function fineError(weight, bounds) {
  return Math.max(0, Math.min(weight, bounds.half_smallest / bounds.weight) - bounds.unit_roundoff * weight);
}

// Attention, what an element may be off by, and softmax(S)|V|. bounds: of the type, as common/host/bounds.h has them.
export function reference(p, { Q, K, V }, bounds) {
  const d = p.d_head, count = places(p, "O"), scale = Math.fround(p.scale);
  const out = new Float64Array(count), magnitude = new Float64Array(count), fine = new Float64Array(count);
  for (let head = 0, at = 0; head < p.B * p.Hq; ++head) {
    const first = (Math.floor(head / p.Hq) * p.Hkv + Math.floor((head % p.Hq) / (p.Hq / p.Hkv))) * p.Nkv * d;
    const k = K.subarray(first, first + p.Nkv * d), v = V.subarray(first, first + p.Nkv * d);
    for (let row = 0; row < p.Nq; ++row, at += d) {
      const q = Q.subarray(at, at + d), scores = scoresOf(q, k, d, p.Nkv);
      const keys = Math.max(0, Math.min(p.Nkv, lastSeen(p, row) + 1));
      let largest = -Infinity, total = 0, moves = 0;
      for (let key = 0; key < keys; ++key) largest = Math.max(largest, (scores[key] *= scale));
      for (let key = 0; key < keys; ++key) total += scores[key] = Math.exp(scores[key] - largest);
      for (let key = 0; key < keys; ++key) {
        const weight = scores[key] / total;
        let moved = fineError(scores[key], bounds) / total;
        if (isScaled(p)) moved += weight * Math.abs(scale) * scoreError(q, k, key * d, bounds);
        moves += moved;
        for (let x = 0, from = key * d; x < d; ++x, ++from) {
          out[at + x] += weight * v[from];
          magnitude[at + x] += weight * Math.abs(v[from]);
          if (moved) fine[at + x] += moved * Math.abs(v[from]);
        }
      }
      for (let x = at; isScaled(p) && x < at + d; ++x) {
        fine[x] += moves * magnitude[x]; // the sum of the weights is off, too
        magnitude[x] += Math.abs(out[x]);
      }
    }
  }
  const unit = bounds.element * bounds.unit_roundoff;
  const bound = magnitude.map((size, at) => unit * size + fine[at] + bounds.half_smallest_output);
  return { out, magnitude, fine, bound };
}

// Above 1 an element is wrong.
export function ratios(values, { out, bound }) {
  return values.map((value, at) => (Number.isFinite(value) ? Math.abs(value - out[at]) / bound[at] : Infinity));
}

// ---- the comparison ----

// A number as Python's format "g" has it, ties to even; of 2 digits or more.
export function general(value, digits) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const exact = value.toExponential(60), last = exact.indexOf(".") + digits - 1; // the last digit that is kept
  const staysEven = /^50*e/.test(exact.slice(last + 1)) && Number(exact[last]) % 2 === 0;
  const rounded = staysEven ? exact.slice(0, last + 1) + exact.slice(exact.indexOf("e")) : value.toExponential(digits - 1);
  const [mantissa, exponent] = rounded.split("e").map(Number);
  if (value && (exponent < -4 || exponent >= digits)) {
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  return Object.is(value, -0) ? "-0" : String(Number(rounded));
}

function indexOf(p, name, at) {
  const [heads, rows] = shapes(p, name), d = p.d_head, row = Math.floor(at / d), head = Math.floor(row / rows);
  return [Math.floor(head / heads), head % heads, row % rows, at % d];
}

const norm = (values) => Math.sqrt(values.reduce((sum, one) => sum + one * one, 0));
const argmax = (values) => values.reduce((best, one, at) => (one > values[best] ? at : best), 0);

// {passed, message}: whether an output is within its bounds, with the first and the worst element where it is not.
// expected: as of reference(), perhaps with a room that the norm of the whole error has besides.
export function compared(p, name, bits, expected, bounds) {
  const { out, fine, bound } = expected;
  const values = outputValues(p, bits), ratio = ratios(values, expected);
  const distance = norm(values.map((value, at) => value - out[at])), whole = norm(out);
  const frobenius = whole ? distance / whole : distance, worst = argmax(ratio);
  const room = bounds.room * norm(fine) + bounds.half_smallest_output * Math.sqrt(values.length);
  if (ratio[worst] <= 1 && distance <= bounds.frobenius * whole + room + (expected.room ?? 0)) {
    const error = frobenius.toExponential(1).replace(/(?<=e.)(?=\d$)/, "0");
    return { passed: true, message: `relative error ${error}, worst element ${ratio[worst].toFixed(2)}` };
  }
  const element = (at) =>
    `${name}[${indexOf(p, name, at).join(", ")}] = ${general(values[at], 6)}, reference ${general(out[at], 6)}, ` +
    `off by ${general(Math.abs(values[at] - out[at]), 3)} (bound ${general(bound[at], 3)})`;
  const parts = [`relative Frobenius error ${general(frobenius, 3)} (limit ${general(bounds.frobenius, 6)})`];
  const wrong = ratio.reduce((sum, one) => sum + (one > 1), 0);
  if (wrong) {
    parts.push(`${wrong} of ${ratio.length} elements beyond their bound`);
    parts.push(`first ${element(ratio.findIndex((one) => one > 1))}`, `worst ${element(worst)}`);
  }
  const unwritten = bits.reduce((sum, one) => sum + (one === POISON), 0);
  if (unwritten) parts.push(`${unwritten} elements were never written`);
  return { passed: false, message: parts.join("; ") };
}
