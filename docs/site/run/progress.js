// What a reader has written and solved, kept by the browser: {texts, solved, hints, last}, the first three by exercise,
// "swizzle/tile_offset". Where the browser keeps nothing, it lasts as long as the page.
const NAME = "flashladder-exercises";
const EMPTY = { texts: {}, solved: {}, hints: {}, last: "" };

export class Progress {
  isKept = true;
  #found = structuredClone(EMPTY);

  constructor() {
    this.#read();
  }

  #read() {
    try {
      const kept = JSON.parse(localStorage.getItem(NAME) ?? "{}");
      for (const [name, empty] of Object.entries(EMPTY)) {
        const isOne = typeof kept?.[name] === typeof empty && kept[name];
        this.#found[name] = isOne ? kept[name] : structuredClone(empty);
      }
    } catch {
      this.isKept = false;
    }
  }

  get last() {
    return this.#found.last;
  }

  set last(place) {
    this.#change((found) => (found.last = place));
  }

  text(name) {
    const found = this.#found.texts[name];
    return typeof found === "string" ? found : undefined;
  }

  // undefined: the exercise is as it is handed out.
  write(name, text) {
    this.#change(({ texts }) => {
      if (text === undefined) delete texts[name];
      else texts[name] = text;
    });
  }

  isSolved(name) {
    return Boolean(this.#found.solved[name]);
  }

  solve(name) {
    this.#change(({ solved }) => (solved[name] = true));
  }

  hints(name) {
    return Number(this.#found.hints[name] ?? 0);
  }

  hint(name, shown) {
    this.#change(({ hints }) => (hints[name] = shown));
  }

  get isEmpty() {
    return ["texts", "solved", "hints"].every((one) => !Object.keys(this.#found[one]).length);
  }

  forget() {
    this.#found = structuredClone(EMPTY);
    try {
      localStorage.removeItem(NAME);
    } catch {
      this.isKept = false;
    }
  }

  // Another page, or another cell of a lesson, may have written since.
  #change(change) {
    if (this.isKept) this.#read();
    change(this.#found);
    try {
      localStorage.setItem(NAME, JSON.stringify(this.#found));
    } catch {
      this.isKept = false;
    }
  }
}
