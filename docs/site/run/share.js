// What stands in the address behind #: kernels, problem, question and edits. Whoever opens it sees the same page; nothing
// of it is sent to a server.
//
//     #left=04&right=05&problem=...&question=passes&edits=...
//
// edits: the changes of each side's source (diff.js) as JSON, deflated, in base64 for addresses.
const SIDES = ["left", "right"];
const LONGEST = 100_000; // of edits in an address
const MOST = 1_000_000; // of edits as JSON

async function through(bytes, stream, most = Infinity) {
  const parts = [];
  let size = 0;
  for (const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    if ((size += value.length) > most) throw new Error("the edits are too long");
    parts.push(value);
  }
}

async function packed(value) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(value)), new CompressionStream("deflate-raw"));
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  if (text.length > LONGEST) throw new Error("the edits are too long");
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  const json = await through(bytes, new DecompressionStream("deflate-raw"), MOST);
  return JSON.parse(new TextDecoder().decode(json));
}

// Whether it is what changes() returns, for each side.
function areEdits(value) {
  const lines = (list) => Array.isArray(list) && list.every((line) => typeof line === "string" && !line.includes("\n"));
  const change = (one) =>
    Array.isArray(one) && one.length === 3 && Number.isInteger(one[0]) && one[0] >= 0 && lines(one[1]) && lines(one[2]);
  return SIDES.every((side) => Array.isArray(value?.[side]) && value[side].every(change));
}

// {left, right, problem, question, edits: {left, right}} -> the text behind #. What is "" or missing is left out.
export async function toFragment({ edits, ...state }) {
  const words = new URLSearchParams(Object.entries(state).filter(([, text]) => text));
  if (edits && SIDES.some((side) => edits[side].length)) words.set("edits", await packed(edits));
  return words.toString();
}

// The other way round; `edits` is missing where there are none. Throws where they cannot be read.
export async function fromFragment(text) {
  const { edits, ...state } = Object.fromEntries(new URLSearchParams(text));
  if (edits === undefined) return state;
  let value;
  try {
    value = await unpacked(edits);
  } catch (error) {
    throw new Error(`the address is not whole: ${error.message}`);
  }
  if (!areEdits(value)) throw new Error("the address holds no edits that the page knows");
  return { ...state, edits: value };
}
