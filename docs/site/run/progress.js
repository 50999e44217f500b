// What a reader has written and solved, kept by the browser: {texts, solved, hints, last}, the first three by exercise,
// "swizzle/tile_offset". Where the browser keeps nothing, it lasts as long as the page.
const NAME = "flashladder-exercises";
const EMPTY = { texts: {}, solved: {}, hints: {}, last: "" };

export class Progress {
  isKept = true;
  #found = structuredClone(EMPTY);

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(NAME) ?? "{}");
      for (const [name, empty] of Object.entries(EMPTY)) {
        if (typeof kept?.[name] === typeof empty && kept[name]) this.#found[name] = kept[name];
      }
    } catch {
      this.isKept = false;
    }
  }

  get last() {
    return this.#found.last;
  }

  set last(place) {
    this.#found.last = place;
    this.#keep();
  }

  text(name) {
    const found = this.#found.texts[name];
    return typeof found === "string" ? found : undefined;
  }

  // undefined: the exercise is as it is handed out.
  write(name, text) {
    if (text === undefined) delete this.#found.texts[name];
    else this.#found.texts[name] = text;
    this.#keep();
  }

  isSolved(name) {
    return Boolean(this.#found.solved[name]);
  }

  solve(name) {
    this.#found.solved[name] = true;
    this.#keep();
  }

  hints(name) {
    return Number(this.#found.hints[name] ?? 0);
  }

  hint(name, shown) {
    this.#found.hints[name] = shown;
    this.#keep();
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

  #keep() {
    try {
      localStorage.setItem(NAME, JSON.stringify(this.#found));
    } catch {
      this.isKept = false;
    }
  }
}
