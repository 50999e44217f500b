// A source with its line numbers: a textarea, below it the same text in colours and with marked lines.
import { node } from "./dom.js";
import { highlighted } from "./highlight.js";

const PAUSE = 700; // milliseconds; what is typed without one is undone at once

export class Editor {
  #text = node("textarea", { wrap: "off", spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  #shown = node("div", { class: "shown", "aria-hidden": "true" });
  #numbers = node("div", { class: "numbers", "aria-hidden": "true" });
  #past = []; // [text, caret], the present one last
  #future = [];
  #typed = 0;
  #marks = new Map(); // by line: {kinds, sign, title}

  // onChange(text) after each change by the reader; onLine(line) where the caret goes, and which number is clicked.
  constructor({ onChange, onLine }) {
    this.element = node("div", { class: "editor" }, this.#numbers, node("div", { class: "area" }, this.#shown, this.#text));
    this.onChange = onChange;
    const text = this.#text;
    text.addEventListener("scroll", () => this.#follow());
    text.addEventListener("input", () => this.#edited());
    text.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["click", "keyup"]) text.addEventListener(name, () => onLine(this.line));
    this.#numbers.addEventListener("click", ({ target }) => {
      const line = [...this.#numbers.children].indexOf(target.closest(".number")) + 1;
      if (!line) return;
      this.goTo(line);
      onLine(line);
    });
    new ResizeObserver(() => this.#follow()).observe(this.element);
  }

  get text() {
    return this.#text.value;
  }

  // The line of the caret.
  get line() {
    return this.text.slice(0, this.#text.selectionStart).split("\n").length;
  }

  get canUndo() {
    return this.#past.length > 1;
  }

  set readOnly(value) {
    this.#text.readOnly = value;
  }

  set label(words) {
    this.#text.setAttribute("aria-label", words);
  }

  // Another text, from which there is no way back.
  open(text) {
    this.#past = [[text, 0]];
    this.#future = [];
    this.#put(text, 0);
  }

  // Another text, which can be undone.
  replace(text) {
    if (text === this.text) return;
    this.#past.push([text, this.#text.selectionStart]);
    this.#future = [];
    this.#typed = 0;
    this.#put(text, this.#text.selectionStart);
    this.onChange(text);
  }

  undo() {
    if (!this.canUndo) return;
    this.#future.push(this.#past.pop());
    this.#put(...this.#past.at(-1));
    this.#typed = 0;
    this.onChange(this.text);
  }

  redo() {
    if (!this.#future.length) return;
    this.#past.push(this.#future.pop());
    this.#put(...this.#past.at(-1));
    this.#typed = 0;
    this.onChange(this.text);
  }

  // marks: by line {kinds: [...], sign, title}: classes, a sign beside the number, words about it.
  mark(marks) {
    this.#marks = marks;
    [...this.#shown.children].forEach((line, at) => {
      line.className = ["line", ...(marks.get(at + 1)?.kinds ?? [])].join(" ");
    });
    [...this.#numbers.children].forEach((number, at) => {
      const { kinds = [], sign = "", title = "" } = marks.get(at + 1) ?? {};
      number.className = ["number", ...kinds].join(" ");
      number.dataset.sign = sign;
      number.title = title;
    });
  }

  // Shows the line, a few below the top; the caret goes to its beginning.
  goTo(line, { focus = false } = {}) {
    const lines = this.text.split("\n"), before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.#text.setSelectionRange(before, before);
    if (focus) this.#text.focus({ preventScroll: true });
    this.#text.scrollTop = Math.max(0, line - 5) * this.#height;
    this.#text.scrollLeft = 0;
    this.#follow();
  }

  // Scrolls to the line if it is not seen; the caret stays.
  reveal(line) {
    const top = (line - 1) * this.#height, { scrollTop, clientHeight } = this.#text;
    if (top < scrollTop || top + this.#height > scrollTop + clientHeight) this.showFrom(Math.max(1, line - 5));
  }

  // Brings the line to the top.
  showFrom(line) {
    this.#text.scrollTop = (line - 1) * this.#height;
    this.#follow();
  }

  get #height() {
    return parseFloat(getComputedStyle(this.#text).lineHeight);
  }

  #follow() {
    const { scrollTop, scrollLeft } = this.#text;
    this.#shown.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
    this.#numbers.style.transform = `translateY(${-scrollTop}px)`;
  }

  #put(text, caret) {
    const { scrollTop, scrollLeft } = this.#text;
    this.#text.value = text;
    this.#text.setSelectionRange(caret, caret);
    this.#draw();
    Object.assign(this.#text, { scrollTop, scrollLeft });
    this.#follow();
  }

  #edited() {
    const now = performance.now(), present = [this.text, this.#text.selectionStart];
    if (now - this.#typed < PAUSE && this.#past.length > 1) this.#past[this.#past.length - 1] = present;
    else this.#past.push(present);
    this.#typed = now;
    this.#future = [];
    this.#draw();
    this.onChange(this.text);
  }

  #key(event) {
    const { key, ctrlKey, metaKey, shiftKey } = event, command = ctrlKey || metaKey, text = this.#text;
    if (command && key.toLowerCase() === "z") {
      event.preventDefault();
      if (shiftKey) this.redo();
      else this.undo();
    } else if (command && key.toLowerCase() === "y") {
      event.preventDefault();
      this.redo();
    } else if (key === "Escape") {
      text.blur(); // the next Tab goes on from here
    } else if (key === "Enter" && !command && !text.readOnly) {
      // The new line begins where this one does.
      event.preventDefault();
      const begin = text.value.lastIndexOf("\n", text.selectionStart - 1) + 1;
      const indent = /^ */.exec(text.value.slice(begin, text.selectionStart))[0];
      text.setRangeText(`\n${indent}`, text.selectionStart, text.selectionEnd, "end");
      this.#edited();
    }
  }

  #draw() {
    const lines = highlighted(this.text);
    this.#shown.innerHTML = lines.map((html) => `<div class="line">${html || " "}</div>`).join("");
    this.#numbers.innerHTML = lines.map((_, at) => `<div class="number">${at + 1}</div>`).join("");
    this.mark(this.#marks);
  }
}
