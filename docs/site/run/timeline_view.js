// The part of the page about clocks: the timeline of a launch's first block, by the model.
import { byLaunch, excerpt, node } from "./dom.js";
import { BACKGROUND, NAMES, timelineOf } from "./timeline.js";
import { clocksOf, drawTimeline, workingWarps } from "./timeline_picture.js";

const HINT = "Point at a bar, or tap it: what the warp does there. With the keyboard: arrow keys, in the picture.";

function legend(timeline) {
  const kinds = Object.keys(NAMES).filter((kind) => timeline.spans.some((span) => span.kind === kind));
  const parts = kinds.map((kind) => {
    const more = kind === "wait" ? " for what stands in the bar" : BACKGROUND.includes(kind) ? ", below the bar" : "";
    return node("span", {}, node("i", { class: `bar ${kind}` }), ` ${NAMES[kind]}${more}`);
  });
  return node("p", { class: "note legend" }, ...parts);
}

// What part of the time each warp spends with each kind of what it does itself.
function shares(timeline) {
  const kinds = Object.keys(NAMES).filter((kind) => !BACKGROUND.includes(kind));
  const rows = workingWarps(timeline, -1).map((warp) => {
    const cells = kinds.map((kind) => {
      const own = timeline.spans.filter((span) => span.warp === warp && span.kind === kind);
      const part = own.reduce((sum, { start, end }) => sum + end - start, 0) / timeline.end;
      return node("td", { class: "number" }, `${Math.round(100 * part)}%`);
    });
    return node("tr", {}, node("th", { scope: "row" }, String(warp)), ...cells);
  });
  const heads = ["warp", ...kinds.map((kind) => NAMES[kind])].map((text) => node("th", { scope: "col" }, text));
  const table = node("table", { class: "counters" }, node("thead", {}, node("tr", {}, ...heads)), node("tbody", {}, ...rows));
  return node("details", {}, node("summary", {}, "Shares of the clocks, by warp"), node("div", { class: "scroll", tabindex: "0" }, table));
}

function view(launch, clocks, { sources, phases }) {
  let timeline;
  try {
    timeline = timelineOf(launch, clocks, sources, phases);
  } catch (error) {
    return [node("p", {}, `The model has no timeline of this launch: ${error.message}.`)];
  }
  const { end } = timeline;
  const menu = node("select", { id: "run-scheduler" }, node("option", { value: -1 }, "all warps"));
  for (let number = 0; number < timeline.schedulers; ++number) {
    if (workingWarps(timeline, number).length) menu.append(node("option", { value: number }, `warps of scheduler ${number}`));
  }
  const closer = node("button", { type: "button", id: "run-closer" }, "Closer");
  const farther = node("button", { type: "button", id: "run-farther" }, "Farther");
  const slider = node("input", { type: "range", min: 0, max: 1000, value: 0, "aria-label": "from which clock on" });
  const shown = node("p", { class: "where" });
  const picture = node("div", { id: "run-timeline" });
  const told = node("p", { class: "told", role: "status" }, HINT);
  const code = node("div");
  let from = 0, zoom = 1, width = 0, span, drawn;

  const long = () => end / zoom;
  const tell = (chosen) => {
    span = chosen;
    drawn.mark(span);
    const length = span && clocksOf(span.end - span.start);
    told.textContent = span
      ? `Warp ${span.warp}, clocks ${clocksOf(span.start)} to ${clocksOf(span.end)} (${length}): ${span.words}`
      : HINT;
    const { file, line } = span?.place ?? {};
    code.replaceChildren(...(line && sources[file] ? [excerpt(sources[file], line)] : []));
  };
  const draw = () => {
    from = Math.min(Math.max(from, 0), end - long());
    slider.disabled = zoom === 1;
    slider.value = zoom === 1 ? 0 : (1000 * from) / (end - long());
    farther.disabled = zoom === 1;
    closer.disabled = long() < 100;
    shown.textContent = `clocks ${clocksOf(from)} to ${clocksOf(from + long())} of ${clocksOf(end)}`;
    const focused = document.activeElement === drawn?.svg;
    width = picture.clientWidth;
    drawn = drawTimeline(timeline, { scheduler: Number(menu.value), from, to: from + long(), width: width || 600 });
    picture.replaceChildren(drawn.svg);
    drawn.mark(span);
    if (focused) drawn.svg.focus();
  };
  const zoomBy = (factor) => {
    const middle = span ? (span.start + span.end) / 2 : from + long() / 2;
    zoom = Math.max(1, zoom * factor);
    from = middle - long() / 2;
    draw();
  };
  // The next bar of the warp's own, or the same time in another warp.
  const step = (key) => {
    const warps = workingWarps(timeline, Number(menu.value));
    const own = (warp) => timeline.spans.filter((one) => one.warp === warp && !BACKGROUND.includes(one.kind));
    if (!span || !warps.includes(span.warp)) return own(warps[0]).find((one) => one.end > from);
    if (key === "ArrowLeft") return own(span.warp).findLast((one) => one.start < span.start) ?? span;
    if (key === "ArrowRight") return own(span.warp).find((one) => one.start > span.start) ?? span;
    const other = own(warps[warps.indexOf(span.warp) + (key === "ArrowUp" ? -1 : 1)]);
    return other.findLast((one) => one.start <= span.start) ?? other[0] ?? span;
  };
  const placeOf = ({ clientX, clientY }) => {
    const { left, top } = drawn.svg.getBoundingClientRect();
    return drawn.at(clientX - left, clientY - top);
  };

  menu.addEventListener("change", draw);
  closer.addEventListener("click", () => zoomBy(2));
  farther.addEventListener("click", () => zoomBy(0.5));
  slider.addEventListener("input", () => {
    from = (Number(slider.value) / 1000) * (end - long());
    draw();
  });
  picture.addEventListener("pointermove", (event) => {
    const found = event.pointerType === "mouse" ? placeOf(event) : undefined;
    if (found && found !== span) tell(found);
  });
  picture.addEventListener("click", (event) => tell(placeOf(event)));
  picture.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const next = step(event.key);
    if (next && (next.end <= from || next.start >= from + long())) {
      from = next.start - long() / 4;
      draw();
    }
    tell(next);
  });
  new ResizeObserver(() => {
    if (picture.clientWidth !== width) draw();
  }).observe(picture);
  picture.timeline = timeline; // for who wants its numbers
  draw();
  const controls = node("div", { class: "stepping" }, node("label", { for: "run-scheduler" }, "Show"), menu, closer, farther, slider, shown);
  return [controls, legend(timeline), picture, told, code, shares(timeline)];
}

// Nothing where there is no trace, or too much for one. clocks: the model's numbers.
export function clocksPart(trace, file, clocks) {
  const launches = (trace?.launches ?? []).filter((one) => one.traced.length && !one.traced[0].cut);
  if (!launches.length) return [];
  const words = [
    node("strong", {}, "A model, not a measurement: "),
    "the order is the simulator's, the clocks are computed from ",
    node("a", { href: "docs/timeline.html" }, "a table of costs"),
    ", with errors of some ten percent and more. No throughput comes from it. ",
    "The first block, as if it had a multiprocessor for itself.",
  ];
  const show = (launch) =>
    launch.error ? [node("p", {}, "This launch failed: the model replays whole launches alone.")] : view(launch, clocks, file);
  return [
    node("h2", {}, "When the warps do it, by a model"),
    node("p", { class: "note" }, ...words),
    ...byLaunch("run-clocks-launch", launches, show),
  ];
}
