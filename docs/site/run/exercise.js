// An exercise's text: what of it is judged, and where its lines stand, as flashladder/classroom/exercise.py and taking.py
// have it. An exercise to write has lines first to last of the stage's source between two marks; of one to mend the
// whole source is judged.
import { changes } from "./diff.js";

const MARK = /^\s*\/\/ ?(>>>|<<<) ?(?:write:|end of) ?(\w+)/;

// The text with a blank for each comment; its lines keep their numbers.
export function withoutComments(text) {
  const piece = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\\n]|\\.)*"?|(?<!\w)'(?:[^'\\\n]|\\.)*'?/g;
  return text.replace(piece, (found) => (found[0] === "/" ? " " + found.replace(/[^\n]/g, "") : found));
}

const joined = (text) => text.split(/\s+/).filter(Boolean).join(" ");
const bare = (text) => joined(withoutComments(text));
const bareLines = (text) => withoutComments(text).split("\n").map(joined);

// By line (from 1) of a text, that of the same line in another text; undefined where it has none.
function sameLines(before, after) {
  const found = [];
  let from = 0, to = 0;
  const keep = (end) => {
    while (from < end) found[++from] = ++to;
  };
  for (const [at, removed, added] of changes(before, after)) {
    keep(at);
    from += removed.length;
    to += added.length;
  }
  keep(before.length);
  return found;
}

function betweenMarks(exercise, lines) {
  const find = (sign) => lines.flatMap((line, at) => {
    const mark = MARK.exec(line);
    return mark?.[1] === sign && mark[2] === exercise.name ? [at] : [];
  });
  const [opened, closed] = [find(">>>"), find("<<<")];
  const { opening, closing } = exercise;
  if (!opened.length && !closed.length) {
    throw new Error(`the lines \`${opening}\` and \`${closing}\` are missing: put them back, around your answer.`);
  }
  if (!opened.length || !closed.length) {
    throw new Error(`the line \`${opened.length ? closing : opening}\` is missing: put it back, at your answer's ` +
      `${opened.length ? "end" : "beginning"}.`);
  }
  if (opened.length > 1 || closed.length > 1) {
    const [, second] = opened.length > 1 ? opened : closed;
    throw new Error(`line ${second + 1} has a mark of ${exercise.name} a second time: keep one of the two.`);
  }
  if (closed[0] < opened[0]) throw new Error(`the marks of ${exercise.name} are in the wrong order.`);
  return [opened[0] + 1, closed[0]];
}

// What is judged of a text: {source, line, isStub, remarks}. source: a whole kernel.cu; line(number): words for a line
// of it, those of the text. Throws where a mark is damaged.
export function taken(stage, exercise, text) {
  if (exercise.kind === "mend") {
    const isStub = bare(text) === bare(exercise.start);
    return { source: text, line: (number) => `line ${number}`, isStub, remarks: [] };
  }
  const lines = text.split("\n"), shipped = stage.source.split("\n");
  const [begin, end] = betweenMarks(exercise, lines);
  const answer = lines.slice(begin, end), { first, last } = exercise;
  const source = [...shipped.slice(0, first - 1), ...answer, ...shipped.slice(last)].join("\n");
  const places = sameLines(shipped, lines);
  const line = (number) => {
    if (number >= first && number < first + answer.length) return `line ${number - first + 1 + begin}`;
    const own = number < first ? number : number - answer.length + (last - first + 1);
    return places[own] ? `line ${places[own]}` : `kernel.cu:${own}`;
  };
  const known = new Set(bareLines(stage.source));
  const outside = bareLines(text).flatMap((one, at) =>
    one && !known.has(one) && (at < begin - 1 || at > end) ? [at + 1] : []);
  const shown = outside.slice(0, 5).join(", ") + (outside.length > 5 ? ", ..." : "");
  const remark = `What stands outside of the marks is not judged, the shipped source is: you changed line ${shown}.`;
  const written = bare(answer.join("\n"));
  return { source, line, isStub: !written || written === bare(exercise.stub), remarks: outside.length ? [remark] : [] };
}
