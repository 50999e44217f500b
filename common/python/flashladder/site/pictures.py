"""Pictures that are drawn when the site is built: the climb of the front page, and what the lessons' sliders show.

A lesson calls `slider(plot.swizzle, d=[128, 64], ...)`. In JupyterLab its controls have the picture drawn anew; a page
has no Python, so a picture for each choice lies beside it, and docs/site/static/site.js fetches the one that is chosen.
"""

import ast
import concurrent.futures
import hashlib
import io
import itertools
import json
import math
import shutil
from dataclasses import dataclass
from html import escape
from pathlib import Path

from PIL import Image

from flashladder import plot
from flashladder.building import build
from flashladder.ladder import stages
from flashladder.lessons import notebook_format, sections
from flashladder.measuring import recorded

# Beside docs/results/climb.svg, which README has, too: inches, and the most labels.
FRONT = {"climb-narrow.svg": (3.8, 3.2, 7), "climb.png": (10.0, 5.25, 12)}
SLIDERS = "sliders"
MOST_FRAMES = 150  # of one slider
COLOURS = 64


@dataclass(frozen=True)
class Slider:
    name: str  # of its pictures: the notebook's, and its cell's
    draw: str  # a function of flashladder.plot
    choices: dict[str, list]

    def control(self) -> str:
        """What site.js makes the controls of; a page without it shows the saved picture alone."""
        choices = escape(json.dumps(self.choices), quote=True)
        return f'<div class="slider" data-frames="../_static/{SLIDERS}/{self.name}" data-choices="{choices}"></div>'

    def frames(self) -> list[tuple[int, ...]]:
        """The places of what is chosen in the lists of the arguments' values, for every choice."""
        return list(itertools.product(*(range(len(one)) for one in self.choices.values())))

    def write(self, folder: Path, places: tuple[int, ...]) -> None:
        """NAME-0-2.png has the first choice of the first argument and the third of the second one."""
        chosen = {name: one[place] for (name, one), place in zip(self.choices.items(), places)}
        with io.BytesIO() as file:
            getattr(plot, self.draw)(**chosen).savefig(file, format="png", metadata={"Software": None})
            picture = Image.open(file).convert("RGB")
        few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(folder / f"{self.name}-{'-'.join(map(str, places))}.png", optimize=True)


def slider_of(cell: dict, name: str) -> Slider | None:
    """The slider that a code cell's last line makes, None where it makes none that can be drawn ahead."""
    text = sections.text_of(cell)
    if cell["cell_type"] != "code" or not text.lstrip().startswith("slider(plot."):
        return None
    call = ast.parse(text).body[0].value
    choices = {one.arg: _values(one.value) for one in call.keywords}
    if not 1 < math.prod(len(one) for one in choices.values()) <= MOST_FRAMES:
        return None
    return Slider(name, call.args[0].attr, choices)


def _values(node: ast.expr) -> list:
    """A list of literals, *range(...) among them."""
    found = []
    for one in node.elts:
        if isinstance(one, ast.Starred):
            found += range(*(ast.literal_eval(end) for end in one.value.args))
        else:
            found.append(ast.literal_eval(one))
    return found


def sliders() -> list[Slider]:
    made = []
    for file in notebook_format.files():
        for place, cell in enumerate(notebook_format.load(file)["cells"]):
            one = slider_of(cell, f"{file.stem}-{place}")
            made += [one] if one else []
    return made


def write(static: Path) -> None:
    """Into the built site's folder _static; again only where what draws them, or what they show, has changed."""
    top = recorded.of(stages.main_line()[-1].name)
    wanted = sliders()
    sources = sorted(Path(plot.__file__).parent.rglob("*.py"))
    text = "".join([repr(wanted), repr(FRONT), json.dumps(top), *(file.read_text() for file in sources)])
    mark, folder = hashlib.sha256(text.encode()).hexdigest(), static / SLIDERS
    stamp = folder / "drawn"
    if stamp.exists() and stamp.read_text() == mark:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    frames = [(one, folder, places) for one in wanted for places in one.frames()]
    with concurrent.futures.ProcessPoolExecutor(build.jobs()) as pool:
        list(pool.map(Slider.write, *zip(*frames), chunksize=4))
    for name, size in FRONT.items():
        plot.save(plot.front_picture(top, *size), static / name)
    stamp.write_text(mark)
