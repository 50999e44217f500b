// What compiles an edited kernel. A compiler is
//
//     {name, compile({stage, source, instances}) -> Promise of {ptx} or {words, diagnostics: [{line, message}]}}
//
// stage: "04"; source: the text of kernel.cu; instances: by symbol, as C++ declares them, what will be launched. line is
// of kernel.cu, 0 where an error has none; words are all that the compiler says. Rejects where it does not work at all.

// nvcc behind the page (flashladder/site/page_server.py), which has put its key into it.
function local() {
  const key = document.querySelector('meta[name="flashladder-compiler"]')?.content;
  if (!key) return null;
  const compile = async ({ stage, source, instances }) => {
    const headers = { "Content-Type": "application/json", "X-FlashLadder-Key": key };
    const body = JSON.stringify({ stage, source, symbols: Object.keys(instances) });
    let answer;
    try {
      answer = await fetch("compile", { method: "POST", headers, body });
    } catch {
      throw new Error("the compiler does not answer: does `make page` still run?");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  };
  return { name: "nvcc", compile };
}

// The first that there is; null on a page without any.
export const findCompiler = () => local();
