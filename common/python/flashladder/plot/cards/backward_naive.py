"""The card's picture of stage backward_naive: the chain rule through softmax as a graph of eight small steps."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, INK, SKY, new_figure, plain, text_on

WORDS = (
    "S from Q and K gives P with the log-sum-exp; dP comes from dO and V, D from dO and O; P, dP and D give dS; dV "
    "needs P and dO, dQ needs dS and K, dK needs dS and Q. Five of the steps are matrix products"
)
WIDTH, HEIGHT = 3.1, 0.95
# (left, bottom, text, whether it is a matrix product)
STEPS = {
    "S": (0, 6, "S = scale Q Kᵀ", True),
    "dP": (3.6, 6, "dP = dO Vᵀ", True),
    "D": (7.2, 6, "D = rowsum(dO*O)", False),
    "P": (0, 4, "P = exp(S − lse)", False),
    "dS": (3.6, 2, "dS = P * (dP − D)", False),
    "dV": (0, 0, "dV = Pᵀ dO", True),
    "dQ": (3.6, 0, "dQ = scale dS K", True),
    "dK": (7.2, 0, "dK = scale dSᵀ Q", True),
}
ARROWS = (("S", "P"), ("P", "dV"), ("P", "dS"), ("dP", "dS"), ("D", "dS"), ("dS", "dQ"), ("dS", "dK"))


def draw() -> Figure:
    figure = new_figure(5.2, 3.7, WORDS)
    axes = figure.subplots()
    plain(axes)
    for tail, head in ARROWS:
        _arrow(axes, tail, head)
    for left, bottom, text, product in STEPS.values():
        colour = BLUE if product else SKY
        axes.add_patch(Rectangle((left, bottom), WIDTH, HEIGHT, facecolor=colour, edgecolor="white", zorder=3))
        axes.text(
            left + WIDTH / 2, bottom + HEIGHT / 2, text, ha="center", va="center", fontsize=9.5, color=text_on(colour),
            zorder=4,
        )  # fmt: skip
    for left, text in ((0, "from Q, K"), (3.6, "from dO, V"), (7.2, "from dO, O")):
        axes.text(left + WIDTH / 2, 7.25, text, ha="center", va="center", fontsize=9, color=GREY)
    for left, colour, text in ((0.2, BLUE, "a matrix product"), (5.2, SKY, "element by element, or by row")):
        axes.add_patch(Rectangle((left, -1.25), 0.5, 0.5, facecolor=colour, edgecolor="none"))
        axes.text(left + 0.7, -1.0, text, ha="left", va="center", fontsize=9.5, color=INK)
    axes.set_xlim(-0.1, 10.4)
    axes.set_ylim(-1.4, 7.6)
    return figure


def _arrow(axes, tail: str, head: str) -> None:
    """From the lower side of one step to the upper side of another."""
    (left, bottom, _, _), (to_left, to_bottom, _, _) = STEPS[tail], STEPS[head]
    lean = max(-1, min(1, (left - to_left) / 3.6))  # arrows from several sides end apart
    start, end = (left + WIDTH / 2 - 0.9 * lean, bottom), (to_left + WIDTH / 2 + 0.9 * lean, to_bottom + HEIGHT)
    look = {"arrowstyle": "-|>", "mutation_scale": 12, "color": GREY, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(start, end, **look))
