"""The way up as one line: throughput of the main line's stages in their order, with the peers as lines across.

A branch stands beside the line as a point of its own. At most MOST_LABELS names are written, those of the largest steps
first; where two would cover each other the smaller step has none.
"""

import itertools
import textwrap
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import recorded
from flashladder.measuring.peers import DETERMINISTIC
from flashladder.plot.style import BLUE, GREY, INK, ORANGE, caption, new_figure

MOST_LABELS = 12
LENGTH = 4096  # of the sequence
FRONT_WORDS = "TFLOP/s of the main line's stages as a line that climbs, FlashAttention-2, -3, -4 and cuDNN as levels"
_SHORT = {f"FlashAttention-{number}": f"FA-{number}" for number in (2, 3, 4)} | {"cuDNN attention": "cuDNN"}
_SIZE, _LETTER, _LINE = 9.0, 0.073, 0.17  # points; inches that a letter and a line of this size take


@dataclass(frozen=True)
class Run:
    """What of a record is drawn: the figures of one type, head dim and mask, at a length or at all."""

    results: dict
    dtype: str = "bf16"
    d: int = 128
    causal: bool = False
    length: int | None = None  # None: all lengths

    def rows(self, **wanted) -> list[dict]:
        """Without the peers' deterministic modes: the tables have them, and a picture has room for few names."""
        wanted |= {"Nq": self.length} if self.length else {}
        found = recorded.pick(self.results, dtype=self.dtype, d_head=self.d, causal=self.causal, **wanted)
        return [row for row in found if not row["name"].endswith(DETERMINISTIC)]

    @property
    def in_words(self) -> str:
        """bf16, d = 128, N = 4096, causal"""
        length = f", N = {self.length}" if self.length else ""
        return f"{self.dtype}, d = {self.d}{length}{', causal' if self.causal else ''}"

    @property
    def ceiling(self) -> dict | None:
        return recorded.ceiling(self.results, self.dtype)

    def at_one_length(self) -> "Run":
        """The length shown as bars: 4096, or the longest that was measured."""
        lengths = {row["Nq"] for row in self.rows()}
        if not lengths:
            raise FlashLadderError(f"No results for {self.in_words} to plot.")
        return replace(self, length=4096 if 4096 in lengths else max(lengths))

    def together(self) -> "Run":
        """That of the run with all stages, where the record has one with such figures."""
        run = replace(self, results=recorded.together(self.results))
        return run if run.rows() else self


@dataclass
class Step:
    row: dict
    place: int
    factor: float  # over the stage of the main line before; 1 for the first one
    branch: bool

    @property
    def name(self) -> str:
        return self.row["name"].replace("_", " ", 1).replace("_", " ")


def steps(run: Run) -> list[Step]:
    """The stages that were measured, in order."""
    rows = run.rows()
    found: list[Step] = []
    before = None
    for place, row in enumerate(sorted((one for one in rows if one["kind"] == "stage"), key=lambda one: one["name"])):
        branch = is_branch(row["name"])
        found.append(Step(row, place, row["tflops"] / before["tflops"] if before else 1.0, branch))
        before = before if branch else row
    if len(found) == sum(one.branch for one in found):  # a type that a branch alone takes
        found = [Step(one.row, one.place, 1.0, False) for one in found]
    return found


def is_branch(name: str) -> bool:
    return any(stage.name == name and stage.is_branch for stage in stages.all_parts())


def short(tflops: float) -> str:
    return f"{tflops:.0f}" if tflops >= 10 else f"{tflops:.2g}"


def stale(row: dict) -> str:
    return " (stale)" if recorded.is_stale(row) else ""


def shares(run: Run) -> str:
    """The main line's last stage in percent of each peer's throughput and of a matrix product's, in the same run."""
    ordered = steps(run)
    if not ordered:
        return ""
    last = next(one.row for one in reversed(ordered) if not one.branch)
    parts = []
    for peer in [*run.rows(kind="peer"), run.ceiling]:
        if peer:
            percent = 100 * last["tflops"] / peer["tflops"]
            parts.append(f"{percent:.{0 if percent >= 1 else 1}f}% of {_SHORT.get(peer['name'], peer['name'])}")
    return f"{last['name']}: {', '.join(parts)}" if parts else ""


def way_up(axes, size: tuple[float, float], run: Run, factors: bool = False, most: int = MOST_LABELS) -> None:
    """Draws the line into axes of about `size` inches. factors: a label says how many times the stage before it is;
    most: of the labels."""
    every = steps(run)
    across = [row for row in [*run.rows(), run.ceiling] if row and row["kind"] != "stage"]
    values = [one.row["tflops"] for one in every] + [row["tflops"] for row in across]
    axes.set_xlim(-0.7, max(len(every) - 1, 1) + 0.7)
    if not every or every[-1].row["tflops"] > max(values) / 4:
        axes.set_ylim(0, max(values) * 1.12)
    else:  # the first stages, which would lie on the lower edge
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 1.35, max(values) * 1.6)
    line = [one for one in every if not one.branch]
    axes.plot([one.place for one in line], [one.row["tflops"] for one in line], color=BLUE, linewidth=2, zorder=3)
    for one in every:
        colour = ORANGE if one.branch else BLUE
        face = "white" if one.branch or recorded.is_stale(one.row) else colour
        axes.plot(one.place, one.row["tflops"], "D" if one.branch else "o", color=colour, markerfacecolor=face,
                  markersize=6, zorder=4)  # fmt: skip
    _across(axes, size, across)
    _names(axes, size, every, most - len(across), factors)
    axes.set_xticks([one.place for one in every], [one.row["name"][:2] for one in every], fontsize=8)
    axes.set_xlabel("stage (diamond: a branch)" if any(one.branch for one in every) else "stage")
    axes.set_ylabel("TFLOP/s")
    axes.minorticks_off()
    axes.grid(alpha=0.25, axis="y")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _across(axes, size: tuple[float, float], rows: list[dict]) -> None:
    """Peers as dotted lines, their names behind the right end, moved apart where they are close."""
    ordered = sorted(rows, key=lambda one: one["tflops"])
    for row in ordered:
        axes.axhline(row["tflops"], color=GREY, linestyle=":", linewidth=1.2, zorder=1)
    places = moved_apart([_height(axes, row["tflops"]) for row in ordered], _LINE / size[1])
    for row, place in zip(ordered, places, strict=True):
        text = f"{_SHORT.get(row['name'], row['name'])} {short(row['tflops'])}"
        axes.text(1.01, place, text, fontsize=_SIZE, color=INK, va="center", transform=axes.transAxes)


def moved_apart(wanted: list[float], least: float) -> list[float]:
    """Places at least so far from each other, in ascending order like the wanted ones; those that are too close to be
    there keep their mean, so that none is moved further than it must be."""
    groups: list[list[float]] = []
    for place in wanted:
        groups.append([place])
        while len(groups) > 1 and _spread(groups[-2], least)[-1] + least > _spread(groups[-1], least)[0]:
            last = groups.pop()
            groups[-1] += last
    return [place for group in groups for place in _spread(group, least)]


def _spread(group: list[float], least: float) -> list[float]:
    middle = sum(group) / len(group)
    return [middle + (number - (len(group) - 1) / 2) * least for number in range(len(group))]


def _names(axes, size: tuple[float, float], every: list[Step], most: int, factors: bool) -> None:
    """Names of the main line's last stage, the last and the first stage, and of the largest steps, left above or right
    below their points, or upright above them."""
    left, right = axes.get_xlim()
    points = [
        ((one.place - left) / (right - left) * size[0], _height(axes, one.row["tflops"]) * size[1]) for one in every
    ]
    top = next((one for one in reversed(every) if not one.branch), None)
    edges = list({one.place: one for one in (top, every[-1], every[0])}.values()) if top else []
    wanted = edges + sorted((one for one in every if one not in edges), key=lambda one: -abs(one.factor - 1))
    line = [points[one.place] for one in every if not one.branch]
    dots = [_dot(point) for point in (*points, *_between(line))]
    taken: list[tuple[float, float, float, float]] = []
    for one in wanted:
        if len(taken) == most:
            break
        text = f"{one.name} {short(one.row['tflops'])}{stale(one.row)}"
        text += f" ×{one.factor:.2f}" if factors and one.factor != 1 else ""
        width = _LETTER * len(text)
        x, y = points[one.place]
        upright = ((x - _LINE / 2, y + 0.09, x + _LINE / 2, y + 0.09 + width), "center", "bottom")
        places = (
            ((x - 0.06 - width, y + 0.06, x - 0.06, y + 0.06 + _LINE), "right", "bottom"),
            ((x + 0.08, y - 0.06 - _LINE, x + 0.08 + width, y - 0.06), "left", "top"),
            *([upright] if x < size[0] / 5 else []),  # at the line's foot, where nothing is above
        )
        for box, ha, va in places:
            inside = box[0] >= 0 and box[2] <= size[0] + 0.2 and box[1] >= 0
            if inside and not any(_cover(box, other) for other in [*taken, *dots]):
                place = {"right": box[2], "left": box[0], "center": x}[ha], box[1] if va == "bottom" else box[3]
                ground = {
                    "facecolor": "white",
                    "edgecolor": "none",
                    "pad": 0.5,
                    "alpha": 0.85,
                }  # above the peers' lines
                axes.text(place[0] / size[0], place[1] / size[1], text, ha=ha, va=va, fontsize=_SIZE, color=INK,
                          weight="bold" if one is top else "normal", rotation=90 if ha == "center" else 0,
                          transform=axes.transAxes, zorder=2.5, bbox=ground)  # fmt: skip
                taken.append(box)
                break


def _between(points: list[tuple[float, float]], parts: int = 12) -> list[tuple[float, float]]:
    """Points along the line through the given ones."""
    return [
        (x + (to_x - x) * part / parts, y + (to_y - y) * part / parts)
        for (x, y), (to_x, to_y) in itertools.pairwise(points)
        for part in range(1, parts)
    ]


def _dot(point: tuple[float, float]) -> tuple[float, float, float, float]:
    return point[0] - 0.03, point[1] - 0.03, point[0] + 0.03, point[1] + 0.03


def _cover(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _height(axes, value: float) -> float:
    """Where a value lies between the axes' lower and upper edge, 0 to 1."""
    return axes.transAxes.inverted().transform(axes.transData.transform((0, value)))[1]


def climb(results: list[tuple[dict, bool]], dtype: str = "bf16", d: int = 128, causal: bool = False) -> Figure:
    """The main line of the first run, with each step's factor, up to the last stage; the peers as lines."""
    one, live = results[0]
    run = Run(one, dtype, d, causal)
    if not run.rows(kind="stage"):
        raise FlashLadderError(f"No stage was measured for {dtype}, d = {d}.")
    run = run.at_one_length()
    figure = new_figure(
        9, 5.2, "Throughput of the main line's stages as one line, with the factors of the largest steps"
    )
    axes = figure.subplots()
    way_up(axes, (7.2, 4.2), run, factors=True)
    axes.set_title(f"{run.in_words}; × is the factor over the stage before", fontsize=10)
    caption(figure, f"{'measured here' if live else 'recorded'}: {recorded.label(one)}")
    return figure


def front_picture(results: dict, width: float, height: float, most: int = MOST_LABELS) -> Figure:
    """The main line without its branches and factors, of the run in which all stages were timed together: for the first
    screen of README and site."""
    results = recorded.together(results)
    results = results | {"measurements": [row for row in results["measurements"] if not is_branch(row["name"])]}
    run = Run(results, length=LENGTH)
    figure = new_figure(width, height, FRONT_WORDS)
    axes = figure.subplots()
    way_up(axes, (width - 2.0, height - 1.1), run, most=most)
    ticks = list(zip(axes.get_xticks(), axes.get_xticklabels()))[:: 1 if width > 6 else 4]
    axes.set_xticks([place for place, _ in ticks], [label.get_text() for _, label in ticks], fontsize=8)
    axes.set_xlabel("")
    source = f"Stages; {run.in_words}. Recorded: {recorded.label(results, run.rows())}. {recorded.earlier(run.rows())}"
    caption(figure, textwrap.fill(source, int(width * 17)))
    return figure
