"""The numbers of the timeline's model, from clocks.toml beside this file."""

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.toml import tomllib

FILE = Path(__file__).with_name("clocks.toml")
ORIGINS = ("measured", "published", "assumed", "fitted")


@dataclass(frozen=True)
class Clocks:
    """In clocks of a multiprocessor; clocks.toml says of what each is the cost."""

    schedulers: float
    issue: float
    issue_beside: float
    mma_sync: float
    mma_pace: float
    wgmma_column: float
    special: float
    special_beside: float
    alu: float
    alu_beside: float
    fp32_takes: float
    arithmetic_pace: float
    shuffle: float
    shared_wavefront: float
    shared_latency: float
    memory_latency: float
    tma_latency: float
    memory_byte: float
    wgmma_latency: float
    barrier: float


@cache
def table(file: Path = FILE) -> dict[str, dict]:
    """{name: {"value", "from", "why"}}. FlashLadderError says what is wrong with the file."""
    try:
        rows = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise FlashLadderError(f"{file} cannot be read: {error}") from error
    wanted = [field.name for field in fields(Clocks)]
    if sorted(rows) != sorted(wanted):
        missing, unknown = sorted(set(wanted) - set(rows)), sorted(set(rows) - set(wanted))
        raise FlashLadderError(f"{file}: missing {missing}, unknown {unknown}; the model has {', '.join(wanted)}")
    for name, row in rows.items():
        value = row.get("value")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise FlashLadderError(f"{file}: {name} must have a value above 0, not {value!r}")
        if row.get("from") not in ORIGINS or not row.get("why"):
            raise FlashLadderError(f"{file}: {name} must say why, and from where: {', '.join(ORIGINS)}")
    return rows


def load(file: Path = FILE) -> Clocks:
    return Clocks(**{name: float(row["value"]) for name, row in table(file).items()})
