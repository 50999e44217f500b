// One of the two kernels: which it is, its source, and what was run of it.
import { changes } from "./diff.js";
import { node } from "./dom.js";
import { Editor } from "./editor.js";
import { kernelFile } from "./kernels.js";

const KINDS = { stage: "", variant: ", changed", mistake: ", with a mistake" };
const WORDS = { variant: "changed: ", mistake: "mistake: " };

export class Side {
  run = null; // of the text as it is; null where there is none
  entry = null; // of the catalogue
  file = null;
  #stages = node("select");
  #versions = node("select");
  #undo = node("button", { type: "button" }, "Undo");
  #reset = node("button", { type: "button" }, "Reset");

  // onChoice(fault): another kernel, or why not; onEdit(): another text; onLine(line): the caret's.
  constructor(name, catalogue, { onChoice, onEdit, onLine }) {
    this.name = name;
    this.catalogue = catalogue;
    this.editor = new Editor({
      onChange: () => {
        this.run = null;
        this.#draw();
        onEdit();
      },
      onLine,
    });
    this.#stages.id = `run-${name}-stage`;
    this.#stages.setAttribute("aria-label", `stage on the ${name}`);
    this.#versions.id = `run-${name}-version`;
    this.#versions.setAttribute("aria-label", "as it is, changed, or with a mistake");
    const stages = catalogue.kernels.filter(({ kind }) => kind === "stage");
    this.#stages.append(...stages.map((one) => new Option(one.name, one.stage)));
    for (const menu of [this.#stages, this.#versions]) {
      menu.addEventListener("change", () =>
        this.open(menu.value).then(() => onChoice(""), (error) => onChoice(`The kernel cannot be fetched: ${error.message}.`)));
    }
    this.#undo.addEventListener("click", () => this.editor.undo());
    this.#reset.addEventListener("click", () => this.editor.replace(this.shipped));
    const head = node("div", { class: "head" }, this.#stages, this.#versions, this.#undo, this.#reset);
    this.element = node("section", { class: "side", id: `run-${name}`, "data-side": name }, head, this.editor.element);
  }

  get id() {
    return this.entry.id;
  }

  get shipped() {
    return this.file.sources["kernel.cu"];
  }

  get changes() {
    return changes(this.shipped.split("\n"), this.editor.text.split("\n"));
  }

  get edited() {
    return this.editor.text !== this.shipped;
  }

  // "04 Tensor cores, edited"
  get title() {
    return this.entry.name + KINDS[this.entry.kind] + (this.edited ? ", edited" : "");
  }

  knows(id) {
    return this.catalogue.kernels.some((one) => one.id === id);
  }

  // Another kernel, by its id in the catalogue.
  async open(id) {
    const entry = this.catalogue.kernels.find((one) => one.id === id);
    const file = await kernelFile(id);
    Object.assign(this, { entry, file, run: null });
    this.editor.open(this.shipped);
    this.#stages.value = entry.stage;
    const versions = this.catalogue.kernels.filter(({ stage }) => stage === entry.stage);
    this.#versions.replaceChildren(...versions.map((one) =>
      new Option(one.kind === "stage" ? "as it is" : WORDS[one.kind] + one.title, one.id)));
    this.#versions.value = id;
    this.#versions.hidden = versions.length < 2;
    this.#draw();
  }

  set readOnly(value) {
    this.editor.readOnly = value;
    for (const button of [this.#undo, this.#reset]) button.hidden = value;
  }

  #draw() {
    this.#undo.disabled = !this.editor.canUndo;
    this.#reset.disabled = !this.edited;
    this.editor.label = `Source of ${this.title}`;
  }
}
