"""Instances of the kernel of stage shapes: the table of those built by default, and any configuration in a library of
its own.

The stage's instances.h is that table: what is built, and which of them runs what. It follows from two things, and
`make results` writes it: what GPUs chose that were tuned (docs/results/GPU-shapes.json), and, where none was for a
type, head dim and mask, what the stage's choices.toml predicts; that says from what, and so does the table.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from flashladder.core.abi import DTYPES
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.core.toml import tomllib
from flashladder.ladder import launches, stages
from flashladder.ladder.kernels import code_hash
from flashladder.measuring import recorded
from flashladder.tuning import instances
from flashladder.tuning.instances import LONGEST, Built, line, stretches
from flashladder.tuning.shapes import Configuration, parse

STAGE = "shapes"
TABLE = stages.get(STAGE).folder / "instances.h"
PREDICTED = TABLE.with_name("choices.toml")
MASKS = ("full", "causal")
_HEAD = """\
// Written by `make results` (flashladder/tuning/shape_table.py): what is built, and which of them runs what: measured,
// or predicted from what its line says.
// clang-format off
#define INSTANCE(T, d_head, short_form, ...) instance<T, d_head, Configuration{__VA_ARGS__}>(short_form),
#define CHOICE(...) {__VA_ARGS__},
"""


@dataclass(frozen=True)
class Choice(instances.Choice):
    """What runs lengths first to last (rows of Q) under a mask, on a GPU."""

    mask: str = "full"
    predicted_from: str = ""  # where it was not measured

    @property
    def group(self) -> tuple[str, int, str]:
        return self.configuration.dtype, self.configuration.d_head, self.mask

    def line(self) -> str:
        c = self.configuration
        basis = f"predicted from {self.predicted_from}" if self.predicted_from else ""
        return (
            f'CHOICE("{self.gpu}", {self.compute}, {self.multiprocessors}, FLASH_{c.dtype.upper()}, {c.d_head}, '
            f'{self.first}, {self.last}, "{c}", flash::{self.mask}, {json.dumps(basis)})'
        )


def table(configurations: Iterable[Configuration], choices: Iterable[Choice] = ()) -> str:
    """The text of instances.h: each configuration once, in the order given, and the choices."""
    built = [line(one) for one in dict.fromkeys(configurations)]
    return "\n".join(
        [f"{_HEAD}static const flash::Table table = {{{{", *built, "}, {", *(one.line() for one in choices), "}};"]
        + ["#undef INSTANCE", "#undef CHOICE", "// clang-format on", ""]
    )


def build(configuration: Configuration, compute: int | None = None) -> Built:
    """Compiles the stage's kernel with this configuration alone, as instances.build() does for stage autotune."""
    stage = stages.get(STAGE)
    copy = instances.place_beside("shapes", stage.kernel, configuration, table([configuration]))
    return instances.built(configuration, copy, stage, compute)


def kernel_hash() -> str:
    """Of the kernel without its table, which follows from what was recorded of the kernel."""
    stage = stages.get(STAGE)
    files = [stage.kernel, *(header for header in stage.own_headers() if header.name != TABLE.name)]
    return code_hash(*(file.read_bytes() for file in files))


# ---- what runs where ----


def predicted(text: str | None = None) -> list[Choice]:
    """What choices.toml (or a text like it) says, for both types."""
    data = tomllib.loads(PREDICTED.read_text() if text is None else text)
    found = []
    for dtype in DTYPES:
        for entry in data["choice"]:
            c = parse(entry["configuration"])
            if entry["mask"] not in MASKS or c.d_head != entry["d_head"] or not entry["predicted_from"].strip():
                raise FlashLadderError(
                    f"{PREDICTED}: '{entry['configuration']}' is for d_head {entry['d_head']} and mask "
                    f"'{entry['mask']}': that must be its own head dim, full or causal, and predicted_from not empty."
                )
            lengths = entry.get("first", 1), entry.get("last", LONGEST)
            gpu = data["gpu"], data["compute"], data["multiprocessors"]
            found.append(Choice(*gpu, replace(c, dtype=dtype), *lengths, entry["mask"], entry["predicted_from"]))
    return found


def measured(results: dict) -> list[Choice]:
    """What a record of the tuner chose: results["chosen"] has a row for each type, head dim, mask and length."""
    provenance = results["provenance"]
    gpu = provenance["device"], round(10 * provenance["compute_capability"]), results["multiprocessors"]

    def group(row: dict) -> tuple:
        return row["dtype"], row["d_head"], row["causal"]

    found = []
    for (_, _, causal), rows in groupby(sorted(results["chosen"], key=lambda row: (*group(row), row["Nq"])), key=group):
        for configuration, first, last in stretches(rows, parse):
            found.append(Choice(*gpu, configuration, first, last, MASKS[causal]))
    return found


def choices(records: Iterable[dict], guesses: Iterable[Choice]) -> list[Choice]:
    """What the GPUs chose, and of the guesses those for what no GPU has measured."""
    found = [one for results in records for one in measured(results)]
    groups = {one.group for one in found}
    return [*found, *(one for one in guesses if one.group not in groups)]


def chosen(dtype: str, d_head: int, mask: str, length: int) -> Choice:
    """What the table has run there, on the first GPU that is in it."""
    found = choices(recorded.shipped(kind="shapes"), predicted())
    return next(one for one in found if one.group == (dtype, d_head, mask) and one.first <= length <= one.last)


def as_launched(dtype: str = "bf16", d_head: int = 128) -> Configuration:
    """The configuration that stage.toml's launch is of."""
    return parse(stages.get(STAGE).configuration(Problem(dtype=dtype, d_head=d_head)))


def defaults() -> list[Configuration]:
    """What is built besides what is chosen: for each type and head dim the one that stage.toml's launch is of; and
    those by which changed kernels are judged, too."""
    launched = [as_launched(dtype, d_head) for dtype in DTYPES for d_head in (128, 64)]
    judged = [parse(one["configuration"]) for one in stages.get(STAGE).data["judged_by"] if "configuration" in one]
    return [*launched, *judged]


def shipped() -> str:
    """The text that instances.h should have. What runs most of what has no mask comes first: `order` shows it."""
    found = choices(recorded.shipped(kind="shapes"), predicted())
    by_width = sorted(found, key=lambda one: (one.mask != "full", one.first - one.last))
    return table([*(one.configuration for one in by_width), *defaults()], found)


def configurations_built() -> list[Configuration]:
    """Those of the committed table, in its order."""
    return [parse(one.configuration) for one in launches.instances(stages.get(STAGE))]
