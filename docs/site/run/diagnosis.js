// Why an output is wrong, as flashladder/classroom/diagnosis.py finds it: attention is computed with one common mistake
// after another, and where the output fits one of them within the bound, that mistake is named. Where it fits none, the
// rows and columns that are wrong are.
import { lastSeen, outputValues, places, ratios, scoresOf, valuesOf } from "./attention.js";

const LOG2_E = 1.4426950408889634, CHUNK = 8; // elements of O in 16 bytes
const MOST_ROWS = 4096, MOST_RANGES = 3;

// Attention with nothing done in another way; a mistake replaces some of it.
const PLAIN = {
  scale: (scale) => scale,
  power: Math.exp, // of a score less the row's maximum
  divided: true,
  backwards: false, // the last tile of K and V comes first
  weight: () => 1, // (tile, tiles): how often a tile counts
  rescalesO: () => true, // whether O shrinks in the step-th tile that is visited
  rescalesSum: () => true,
  sees: lastSeen, // (problem, row): the last key
  padded: false, // the last tile is whole: keys and values of 0 fill it
  head: (p, h) => Math.floor(h / (p.Hq / p.Hkv)),
  batch: (b) => b,
  tensors: "QKV", // which stand in for Q, K and V
  turned: "", // the tensor whose chunks lie XORed with their row modulo 8
  exchangedRows: false, // rows 0 to 7 of P for rows 8 to 15, and the other way round
  exchangedColumns: false,
};

const ofOrder = (backwards) =>
  [
    { words: "O is not rescaled when a row's maximum grows", rescalesO: () => false },
    {
      words: "O is not rescaled in the second tile that is visited: the first tile's part stays too large",
      rescalesO: (step) => step !== 1,
    },
    { words: "row_sum is not rescaled when a row's maximum grows", rescalesSum: () => false },
    { words: "row_sum is not rescaled in the second tile that is visited", rescalesSum: (step) => step !== 1 },
    { words: "rows 8 to 15 of each 16 rows of P are exchanged with rows 0 to 7", exchangedRows: true },
    {
      words: "neither O nor row_sum is rescaled when a row's maximum grows",
      rescalesO: () => false,
      rescalesSum: () => false,
    },
  ].map((one) => ({ ...one, backwards }));

const EVERY = 1 << 30;

export const MISTAKES = [
  { words: "the scores are not scaled", scale: () => 1 },
  { words: "the scale is applied twice", scale: (scale) => scale * scale },
  { words: "the sign of the scale is lost", scale: Math.abs },
  { words: "log2(e) is left out: 2^x stands where e^x is meant", power: (x) => 2 ** x },
  { words: "log2(e) is applied, and then e^x taken instead of 2^x", power: (x) => Math.exp(LOG2_E * x) },
  { words: "O is not divided by row_sum", divided: false },
  { words: "the last tile of K and V is left out", weight: (tile, tiles) => Number(tile !== tiles - 1) },
  { words: "the last tile of K and V counts twice", weight: (tile, tiles) => 1 + (tile === tiles - 1) },
  { words: "the first tile of K and V is left out", weight: (tile) => Number(tile !== 0) },
  { words: "the first tile of K and V counts twice", weight: (tile) => 1 + (tile === 0) },
  ...ofOrder(false),
  ...ofOrder(true),
  { words: "each row sees one key more than it may", sees: (p, row) => lastSeen(p, row) + 1, padded: true },
  { words: "each row sees one key fewer than it may", sees: (p, row) => lastSeen(p, row) - 1 },
  {
    words: "the causal mask begins at the other corner: row i sees keys 0 to i, whatever the lengths",
    sees: (p, row) => Math.min(row, p.Nkv - 1),
  },
  { words: "nothing is masked beyond the diagonal", sees: (p) => p.Nkv - 1 },
  {
    words: "columns beyond the last key are not masked: the rest of the last tile counts as keys of 0",
    sees: (p, row) => (lastSeen(p, row) < p.Nkv - 1 ? lastSeen(p, row) : EVERY),
    padded: true,
  },
  {
    words: "columns beyond the last key are masked by the diagonal alone, which lies beyond them",
    sees: (p, row) => row + p.Nkv - (p.causal ? p.Nq : 0),
    padded: true,
  },
  { words: "K and V are exchanged", tensors: "QVK" },
  { words: "K is read in the place of V", tensors: "QKK" },
  { words: "V is read in the place of K", tensors: "QVV" },
  {
    words: "heads of Q go to the wrong heads of K and V: head h takes h % Hkv",
    head: (p, h) => h % p.Hkv,
  },
  {
    words: "heads of Q go to the wrong heads of K and V: head h takes head h, as if there were no groups",
    head: (p, h) => Math.min(h, p.Hkv - 1),
  },
  { words: "all heads take K and V of head 0", head: () => 0 },
  { words: "all batches take Q, K and V of batch 0", batch: () => 0 },
  { words: "columns 8 to 15 of each 16 columns of P are exchanged with columns 0 to 7", exchangedColumns: true },
  ...[..."QKV"].map((turned) => ({
    words: `the 16-byte chunks of ${turned}'s rows are swizzled on one side alone, in writing or in reading`,
    turned,
  })),
];

// Of a tensor whose chunks lie at the place of their number XOR the row modulo 8; count: elements of a chunk.
function turnedTensor(values, rows, d, count) {
  if (d < 8 * count) return values; // such a row has no place for all
  return values.map((_, at) => {
    const x = at % d, chunk = Math.floor(x / count) ^ (Math.floor(at / d) % rows % 8);
    return values[at - x + chunk * count + (x % count)];
  });
}

// What a kernel with one mistake computes, row by row, so that the first row that does not fit ends it.
class Computed {
  constructor(p, tensors, mistake, tile) {
    Object.assign(this, { p, tile, mistake: { ...PLAIN, ...mistake } });
    const { turned, tensors: names, padded } = this.mistake, d = p.d_head;
    const rows = { Q: p.Nq, K: p.Nkv, V: p.Nkv };
    [this.Q, this.K, this.V] = [...names].map((name) =>
      name === turned ? turnedTensor(tensors[name], rows[name], d, p.dtype === "e4m3" ? 16 : 8) : tensors[name]);
    this.keys = padded ? Math.ceil(p.Nkv / tile) * tile : p.Nkv;
  }

  // By step: the tile, its weights, and by how much what came before shrinks.
  #weights(b, h, row, k) {
    const { p, mistake, tile, keys } = this, d = p.d_head;
    const at = ((mistake.batch(b) * p.Hq + h) * p.Nq + row) * d;
    const scores = scoresOf(this.Q.subarray(at, at + d), k, d, p.Nkv), last = mistake.sees(p, row);
    const scale = mistake.scale(Math.fround(p.scale)), tiles = Math.ceil(keys / tile), steps = [];
    let highest = -Infinity;
    for (let step = 0; step < tiles; ++step) {
      const number = mistake.backwards ? tiles - 1 - step : step, first = number * tile;
      const some = new Float64Array(Math.min(tile, keys - first));
      let now = highest;
      for (let i = 0; i < some.length; ++i) {
        some[i] = first + i <= last ? scale * (first + i < p.Nkv ? scores[first + i] : 0) : -Infinity;
        if (some[i] > now) now = some[i];
      }
      const top = Number.isFinite(now) ? now : 0, counts = mistake.weight(number, tiles);
      const shrink = mistake.power(Number.isFinite(highest) ? highest - top : -Infinity);
      for (let i = 0; i < some.length; ++i) some[i] = mistake.power(some[i] - top) * counts;
      steps.push({ first, some, shrink });
      highest = now;
    }
    return steps;
  }

  // {out, magnitude} of one row of O.
  row(b, h, row) {
    const { p, mistake } = this, d = p.d_head, source = mistake.batch(b);
    const begin = (source * p.Hkv + mistake.head(p, h)) * p.Nkv * d;
    const k = this.K.subarray(begin, begin + p.Nkv * d), v = this.V.subarray(begin, begin + p.Nkv * d);
    const own = this.#weights(b, h, row, k);
    const used = mistake.exchangedRows && p.Nq % 16 === 0 ? this.#weights(b, h, row ^ 8, k) : own;
    const out = new Float64Array(d), magnitude = new Float64Array(d);
    let total = 0;
    own.forEach(({ first, some, shrink }, step) => {
      const kept = mistake.rescalesO(step) ? shrink : 1, weights = used[step].some;
      const turn = mistake.exchangedColumns && some.length % 16 === 0 ? 8 : 0;
      for (let x = 0; x < d; ++x) {
        out[x] *= kept;
        magnitude[x] *= kept;
      }
      for (let i = 0; i < some.length && first + i < p.Nkv; ++i) {
        const weight = weights[i ^ turn];
        if (!weight) continue;
        for (let x = 0, from = (first + i) * d; x < d; ++x, ++from) {
          out[x] += weight * v[from];
          magnitude[x] += weight * Math.abs(v[from]);
        }
      }
      total = total * (mistake.rescalesSum(step) ? shrink : 1) + some.reduce((sum, one) => sum + one, 0);
    });
    const divisor = mistake.divided ? (total > 0 ? total : 1) : 1;
    return { out: out.map((one) => one / divisor), magnitude: magnitude.map((one) => one / divisor) };
  }
}

function fits(numbers, tensors, mistake, tile) {
  const { p, values, expected, bounds } = numbers, d = p.d_head, unit = bounds.element * bounds.unit_roundoff;
  const computed = new Computed(p, tensors, mistake, tile);
  for (let b = 0, at = 0; b < p.B; ++b) {
    for (let h = 0; h < p.Hq; ++h) {
      for (let row = 0; row < p.Nq; ++row, at += d) {
        const { out, magnitude } = computed.row(b, h, row);
        for (let x = 0; x < d; ++x) {
          const bound = unit * magnitude[x] + expected.fine[at + x] + bounds.half_smallest_output;
          if (!(Math.abs(values[at + x] - out[x]) <= bound)) return false;
        }
      }
    }
  }
  return true;
}

// ---- right numbers in wrong places ----

const near = ({ values, expected }, at, other) => Math.abs(values[at] - expected.out[other]) <= expected.bound[other];

function alike(numbers, at, other, count) {
  for (let x = 0; x < count; ++x) if (!near(numbers, at + x, other + x)) return false;
  return true;
}

// The places, of `count` elements each, in which an element is wrong.
const pieces = (wrong, count) =>
  Array.from({ length: wrong.length / count }, (_, piece) => piece).filter((piece) =>
    wrong.subarray(piece * count, (piece + 1) * count).includes(1));

// Where each wrong piece holds what belongs to another one among its `family`: [[piece, other], ...] or null.
function exchanged(numbers, wrong, count, family) {
  const found = [];
  for (const piece of pieces(wrong, count)) {
    const first = piece - (piece % family);
    let other = first;
    while (other < first + family && !alike(numbers, piece * count, other * count, count)) ++other;
    if (other === first + family) return null;
    found.push([piece, other]);
  }
  return found;
}

function heads(numbers, wrong) {
  const { p } = numbers, found = exchanged(numbers, wrong, p.Nq * p.d_head, p.B * p.Hq);
  if (!found) return "";
  const words = (head) => `batch ${Math.floor(head / p.Hq)}, head ${head % p.Hq}`;
  const [[one, other]] = found;
  return `heads are in each other's place: O of ${words(one)} holds what belongs to ${words(other)}`;
}

function rows(numbers, wrong) {
  const { p } = numbers;
  const found = exchanged(numbers, wrong, p.d_head, p.Nq)?.map((pair) => pair.map((one) => one % p.Nq));
  if (!found) return "";
  const [[row, other]] = found, first = `row ${row} of O holds the numbers of row ${other}`;
  if (found.every(([one, another]) => (one ^ 8) === another)) {
    return "rows 8 to 15 of each 16 rows are exchanged with rows 0 to 7";
  }
  const steps = new Set(found.map(([one, another]) => another - one));
  if (steps.size === 1) return `rows are moved by ${other - row}: ${first}`;
  return `rows are in each other's place: ${first}`;
}

function chunks(numbers, wrong) {
  const { p } = numbers, count = p.d_head / CHUNK, found = exchanged(numbers, wrong, CHUNK, count);
  if (!found) return "";
  const [[piece, other]] = found, row = (one) => Math.floor(one / count) % p.Nq;
  const first = `chunk ${piece % count} of row ${row(piece)} of O holds the numbers of chunk ${other % count}`;
  if (found.every(([one, another]) => ((one % count) ^ (row(one) % 8)) === another % count)) {
    return `the 16-byte chunks of O's rows are swizzled on one side alone, in writing or in reading: ${first}`;
  }
  return `the 16-byte chunks of a row are in each other's place: ${first}`;
}

// ---- where ----

function ranges(numbers) {
  const spans = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    if (spans.length && number === spans.at(-1)[1] + 1) spans.at(-1)[1] = number;
    else spans.push([number, number]);
  }
  const said = spans.slice(0, MOST_RANGES).map(([first, last]) => (last > first ? `${first} to ${last}` : `${first}`));
  return said.join(", ") + (spans.length > MOST_RANGES ? ` and ${spans.length - MOST_RANGES} more` : "");
}

// "all rows", "rows 128 to 149 (query tile 1)", "rows whose number modulo 16 is 8 to 15", "rows 3, 5 to 7"
function setWords(numbers, count, name, tile, tileName) {
  if (numbers.size === count) return `all ${name}s`;
  for (const modulus of [2, 4, 8, 16, 32, 64]) {
    const rests = new Set([...numbers].map((number) => number % modulus));
    const all = Array.from({ length: count }, (_, number) => number).filter((number) => rests.has(number % modulus));
    if (count >= 2 * modulus && all.length === numbers.size) {
      return `${name}s whose number modulo ${modulus} is ${ranges(rests)}`;
    }
  }
  const text = `${name}${numbers.size > 1 ? "s" : ""} ${ranges(numbers)}`;
  const tiles = new Set(tile ? [...numbers].map((number) => Math.floor(number / tile)) : []);
  if (!tiles.size || tiles.size >= Math.ceil(count / tile)) return text;
  return `${text} (${tileName}${tiles.size > 1 ? "s" : ""} ${ranges(tiles)})`;
}

function where({ p, values }, wrong, tile) {
  const headsWrong = new Set(), rowsWrong = new Set(), columns = new Set(), d = p.d_head;
  let missing = 0, count = 0;
  wrong.forEach((isWrong, at) => {
    if (!isWrong) return;
    headsWrong.add(Math.floor(at / d / p.Nq));
    rowsWrong.add(Math.floor(at / d) % p.Nq);
    columns.add(at % d);
    count += 1;
    missing += !Number.isFinite(values[at]);
  });
  const pairs = [...headsWrong].map((head) => `(${Math.floor(head / p.Hq)}, ${head % p.Hq})`);
  const some = `batch and head ${pairs.slice(0, 3).join(", ")}${pairs.length > 3 ? ", ..." : ""}`;
  const parts = [pairs.length === p.B * p.Hq ? "all heads" : some];
  parts.push(setWords(rowsWrong, p.Nq, "row", tile, "query tile"), setWords(columns, d, "column", 0, ""));
  const share = missing === count ? "all of it" : `${missing} elements`;
  return `wrong: ${parts.join("; ")}${missing ? `; ${share} not finite, or never written` : ""}`;
}

// Of a wrong output a sentence; "" of a right one. inputs, bits: as drawn() and fromMemory() give them; Br, Bc: the
// kernel's tile.
export function diagnosed(p, inputs, bits, expected, { bounds, Br, Bc }) {
  const values = outputValues(p, bits), numbers = { p, values, expected, bounds };
  const wrong = Uint8Array.from(ratios(values, expected), (one) => one > 1);
  if (!wrong.includes(1)) return "";
  if (values.every(Number.isFinite) && places(p, "O") / p.d_head <= MOST_ROWS) {
    const tensors = valuesOf(p, inputs);
    const common = MISTAKES.find((mistake) => fits(numbers, tensors, mistake, Bc))?.words;
    const words = common ?? (heads(numbers, wrong) || rows(numbers, wrong) || chunks(numbers, wrong));
    if (words) return `these are the numbers of a kernel in which ${words}`;
  }
  return where(numbers, wrong, Br);
}
