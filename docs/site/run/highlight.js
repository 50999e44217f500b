// CUDA C++ as HTML, one string a line.
const WORDS =
  "alignas auto bool break case char class const constexpr continue default do double else enum extern false float for " +
  "if inline int int64_t long namespace nullptr operator return short signed sizeof static static_assert struct switch " +
  "template true typename uint2 uint4 uint16_t uint32_t uint64_t union unsigned using void volatile while " +
  "__align__ __device__ __global__ __grid_constant__ __launch_bounds__ __restrict__ __shared__ " +
  "threadIdx blockIdx blockDim gridDim";
const TOKENS = new RegExp(
  [
    String.raw`(?<comment>//[^\n]*|/\*[\s\S]*?(?:\*/|(?![\s\S])))`,
    String.raw`(?<text>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])+')`,
    String.raw`(?<hash>^[ \t]*#[ \t]*\w+)`,
    String.raw`(?<word>\b(?:${WORDS.replaceAll(" ", "|")})\b)`,
    String.raw`(?<digits>\b\d[\w.]*)`,
  ].join("|"),
  "gm",
);

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export function highlighted(source) {
  let html = "", end = 0;
  for (const found of source.matchAll(TOKENS)) {
    const kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    html += escaped(source.slice(end, found.index));
    html += found[0].split("\n").map((part) => `<i class="${kind}">${escaped(part)}</i>`).join("\n");
    end = found.index + found[0].length;
  }
  return (html + escaped(source.slice(end))).split("\n");
}
