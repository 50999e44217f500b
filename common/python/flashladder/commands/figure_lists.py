"""The lists of the numbers that texts quote, and the tables that are declared for them: `figures.toml`.

A stage's README and notebook share the list in the stage's folder; all other texts have docs/figures.toml.

    ["stages/05_swizzle/README.md"]
    "N = 4096: {} TFLOP/s at d = 128 after {}" = ["tflops(5)", "tflops(4)"]

    [tables.beside_cudnn]
    cell = '{100 * tflops("shapes", N=N, d=d) / tflops("cuDNN attention", N=N, d=d) : .0f}'
    columns = { N = [512, 4096] }
    rows = { d = [128, 64] }

The first kind is commands/quotes.py's, the second one commands/declared_tables.py's.
"""

from functools import cache
from pathlib import Path

from flashladder.core import toml
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.measuring import recorded

NAME = "figures.toml"


def list_of(text: Path) -> Path:
    """The list that a text's numbers and tables stand in, whether it is there or not."""
    stage = text.stem if text.suffix == ".ipynb" else text.parent.name
    folder = ROOT / "stages" / stage
    return (folder if (folder / "stage.toml").exists() else ROOT / "docs") / NAME


def gpu_of(text: Path) -> str:
    """The GPU whose throughputs a text quotes where it names none: a stage's page and notebook that of its stage, and
    "" (recorded.MAIN) others."""
    folder = list_of(text).parent
    return recorded.gpu_of(folder.name) if (folder / "stage.toml").exists() else ""


def lists() -> list[Path]:
    return sorted([*ROOT.glob(f"stages/*/{NAME}"), *ROOT.glob(f"docs/{NAME}")])


@cache
def read(file: Path) -> dict:
    """{a text's place in the project: {words: sources}}, and "tables"."""
    return toml.read(file, str(file))


def quoted(text: Path) -> dict[str, str | list[str]]:
    """{words: sources} of a text."""
    place = text.relative_to(ROOT).as_posix() if text.is_relative_to(ROOT) else text.name
    return read(list_of(text)).get(place, {})


def table(text: Path, name: str) -> dict:
    declared = read(list_of(text)).get("tables", {})
    if name not in declared:
        there = ", ".join(declared) or "none"
        raise FlashLadderError(f'{list_of(text)} declares no table "{name}"; there are: {there}')
    return declared[name]
