// Which lines of two texts differ.

// [[at, removed, added], ...]: from line `at` (from 0) of `before` on, these lines give way to those.
export function changes(before, after) {
  let head = 0, tail = 0;
  const most = Math.min(before.length, after.length);
  while (head < most && before[head] === after[head]) ++head;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) ++tail;
  const a = before.slice(head, before.length - tail), b = after.slice(head, after.length - tail);
  const common = longest(a, b), found = [];
  let i = 0, j = 0;
  for (const [x, y] of [...common, [a.length, b.length]]) {
    if (i < x || j < y) found.push([head + i, a.slice(i, x), b.slice(j, y)]);
    i = x + 1;
    j = y + 1;
  }
  return found;
}

// The longest common subsequence, as pairs of places.
function longest(a, b) {
  const width = b.length + 1, length = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; --i) {
    for (let j = b.length - 1; j >= 0; --j) {
      const at = i * width + j;
      length[at] = a[i] === b[j] ? length[at + width + 1] + 1 : Math.max(length[at + width], length[at + 1]);
    }
  }
  const found = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const at = i * width + j;
    if (a[i] === b[j]) found.push([i++, j++]);
    else if (length[at + width] >= length[at + 1]) ++i;
    else ++j;
  }
  return found;
}

// The other text, from one and changes(). Throws where they are of another text.
export function applied(before, found) {
  const lines = [...before];
  for (const [at, removed, added] of [...found].reverse()) {
    if (removed.some((line, number) => line !== lines[at + number])) throw new Error(`line ${at + 1} is another one`);
    lines.splice(at, removed.length, ...added);
  }
  return lines;
}

// Lines (from 1) of each text that the other one does not have.
export function differing(a, b) {
  const left = new Set(), right = new Set();
  let shift = 0;
  for (const [at, removed, added] of changes(a, b)) {
    removed.forEach((_, number) => left.add(at + number + 1));
    added.forEach((_, number) => right.add(at + shift + number + 1));
    shift += added.length - removed.length;
  }
  return [left, right];
}

// Where a line (from 1) of the text before the changes stands after them.
export function moved(line, found) {
  return found.reduce(
    (now, [at, removed, added]) => (at < line - 1 ? now + added.length - Math.min(removed.length, line - 1 - at) : now),
    line,
  );
}
