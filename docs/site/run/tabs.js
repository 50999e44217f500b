// The tabs below the sources: a run of one of the two kernels, seen in one of several ways. Tabs are drawn when they are
// looked at.
import { node } from "./dom.js";
import { untraced } from "./order.js";
import { banksTab, linesTab, verdictTab } from "./results.js";
import { stepping } from "./steps.js";
import { clocksPart } from "./timeline_view.js";
import { moved } from "./diff.js";

const NAMES = { verdict: "Verdict", lines: "Counters by line", banks: "Bank grid", timeline: "Timeline" };

// The phases of an edited source: those of the shipped one, where its lines now stand.
function phasesOf({ file, changes }) {
  const shifted = ([name, first, last]) => [name, moved(first, changes), moved(last, changes)];
  return { ...file.phases, "kernel.cu": (file.phases["kernel.cu"] ?? []).map(shifted) };
}

export class Tabs {
  #name = "verdict";
  #side = "left";
  #line = 0;
  #shown = {}; // by side: {run, verdict}
  #panel = node("div", { id: "run-panel", role: "tabpanel", tabindex: "0" });
  #tabs = new Map();
  #sides = { left: node("button", { type: "button" }), right: node("button", { type: "button" }) };

  // clocks: the model's numbers. onLine(side, line): where a line is chosen here.
  constructor(place, clocks, onLine) {
    this.place = place;
    this.clocks = clocks;
    this.onLine = onLine;
    const list = node("div", { role: "tablist", "aria-label": "What came of it" });
    for (const [name, words] of Object.entries(NAMES)) {
      const tab = node("button", { type: "button", role: "tab", id: `run-tab-${name}`, "aria-controls": "run-panel" }, words);
      tab.addEventListener("click", () => {
        this.open(name);
        place.scrollIntoView({ block: "nearest" }); // what was chosen may begin below the window
      });
      this.#tabs.set(name, tab);
      list.append(tab);
    }
    list.addEventListener("keydown", (event) => this.#key(event));
    const sides = node("div", { class: "sides", role: "group", "aria-label": "Of which kernel" });
    for (const [side, button] of Object.entries(this.#sides)) {
      button.addEventListener("click", () => this.open(this.#name, side));
      sides.append(button);
    }
    place.replaceChildren(node("div", { class: "tabs" }, list, sides), this.#panel);
  }

  // The runs of both sides with their verdicts.
  show(shown, side) {
    this.#shown = shown;
    this.#line = 0;
    this.place.hidden = !shown.left && !shown.right;
    for (const [name, button] of Object.entries(this.#sides)) {
      button.hidden = !shown[name];
      button.textContent = shown[name]?.run.name ?? "";
    }
    this.open(this.#name, side);
  }

  // The caret of a side has gone to a line.
  choose(side, line) {
    this.#line = line;
    if (this.#name === "banks" && this.#shown[side] && !this.place.hidden) this.open("banks", side);
  }

  open(name, side = this.#side) {
    this.#name = name;
    this.#side = this.#shown[side] ? side : Object.keys(this.#shown).find((one) => this.#shown[one]);
    for (const [one, tab] of this.#tabs) {
      tab.setAttribute("aria-selected", String(one === name));
      tab.tabIndex = one === name ? 0 : -1;
    }
    for (const [one, button] of Object.entries(this.#sides)) button.setAttribute("aria-pressed", String(one === this.#side));
    this.#panel.setAttribute("aria-labelledby", `run-tab-${name}`);
    this.#panel.replaceChildren(...(this.#side ? this.#content() : []));
  }

  #content() {
    const { run, verdict } = this.#shown[this.#side];
    if (this.#name === "verdict") return verdictTab(run, verdict);
    if (run.said) return [node("p", {}, `${run.name} does not compile: nothing was run.`)];
    const onLine = (line) => this.onLine(this.#side, line);
    if (this.#name === "lines") return linesTab(run, onLine);
    if (this.#name === "banks") return banksTab(run, this.#line, onLine);
    const file = { sources: run.sources, phases: phasesOf(run) };
    const parts = [...clocksPart(run.result.trace, file, this.clocks), ...stepping(run.result.trace, run.sources)];
    return parts.length ? parts : [node("p", {}, untraced(run.result.trace))];
  }

  #key(event) {
    const names = [...this.#tabs.keys()], by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.open(names[(names.indexOf(this.#name) + by + names.length) % names.length]);
    this.#tabs.get(this.#name).focus();
  }
}
