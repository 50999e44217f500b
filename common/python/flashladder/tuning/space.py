"""The configurations that `make tune` looks at, before the rules, and the neighbours of one: a flag off at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.tuning import rules
from flashladder.tuning.configuration import Configuration, parse

DEVICE = rules.Device()  # compute capability 9.0
# (Br, Bc, warps): 16 or 32 rows a warp.
TILES = ((64, 64, 4), (128, 32, 4), (128, 64, 4), (128, 128, 4), (128, 64, 8), (256, 64, 8))
# Fragments of Q, K and V to load at a time; Q's are not loaded again where they stay in registers.
LOADS = ((2, 2, 2), (2, 1, 1))
_TECHNIQUES = {"async_copy": True, "eager": True, "swizzled": True, "fast_softmax": True, "lean": True}


def _combined(dtype: str, d_head: int, tiles, loads, buffers, blocks) -> Iterator[Configuration]:
    """All techniques on, and every combination of what they leave open. buffers: (kv_stages, fragment_stages)."""
    for (Br, Bc, warps), load, in_registers, (kv_stages, fragment_stages), promised, skip, lean in product(
        tiles, loads, (False, True), buffers, blocks, (True, False), (True, False)
    ):
        load_Q, load_K, load_V = load
        yield Configuration(
            dtype,
            d_head,
            Br,
            Bc,
            warps,
            load_Q=0 if in_registers else load_Q,
            load_K=load_K,
            load_V=load_V,
            Q_in_registers=in_registers,
            kv_stages=kv_stages,
            fragment_stages=fragment_stages,
            skip_rescale=skip,
            lean_ldmatrix=lean,
            resident_blocks=promised,
            **_TECHNIQUES,
        )


def bounded(dtype: str, d_head: int) -> Iterator[Configuration]:
    """What is tuned unless told otherwise."""
    yield from _combined(dtype, d_head, TILES, LOADS, ((1, 1), (2, 1)), (0, 2))


def full(dtype: str, d_head: int) -> Iterator[Configuration]:
    """More, thousands: tiles with 16 to 64 rows a warp in every size, whole fragments of one operand or all,
    a second buffer for fragments, three promised blocks."""
    tiles = product((64, 128, 256), (32, 64, 128), (4, 8))
    loads = (*LOADS, (0, 0, 0), (0, 2, 2), (2, 0, 2), (2, 2, 0), (2, 4, 4))
    yield from _combined(dtype, d_head, tiles, loads, product((1, 2), (1, 2)), (0, 2, 3))


def from_file(file: Path) -> list[Configuration]:
    """A configuration in its short form on each line; empty lines and those with # in front are left out."""
    try:
        lines = [line.strip() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise FlashLadderError(f"{file} cannot be read: {error}") from error
    found = [parse(line) for line in lines if line and not line.startswith("#")]
    if not found:
        raise FlashLadderError(f"{file} has no configuration; write one on each line, such as {Configuration()}")
    return found


@dataclass(frozen=True)
class Refusals:
    """What the rules left of a space."""

    enumerated: int
    admitted: tuple[Configuration, ...]
    by_rule: dict[str, int]  # a configuration can break several
    by_one_alone: dict[str, int]  # that broke no other rule

    def thinned(self, count: int) -> "Refusals":
        """At most so many of the admitted, evenly over their order."""
        kept = len(self.admitted)
        picked = tuple(self.admitted[index * kept // count] for index in range(min(count, kept)))
        return replace(self, admitted=self.admitted if count >= kept else picked)


def admitted(configurations: Iterable, device: rules.Device = DEVICE, among=rules.RULES) -> Refusals:
    """Those that no rule refuses, each once, in their order; and how many each rule refused. All rules are named.
    among: the rules of either stage."""
    distinct = list(dict.fromkeys(configurations))
    by_rule = {rule.name: 0 for rule in among}
    alone = dict(by_rule)
    kept = []
    for one in distinct:
        broken = [rule for rule in among if rule.refuses(one, device)]
        for rule in broken:
            by_rule[rule.name] += 1
        if len(broken) == 1:
            alone[broken[0].name] += 1
        if not broken:
            kept.append(one)
    return Refusals(len(distinct), tuple(kept), by_rule, alone)


# Each flag: the fields and their values that are "off", in words for tables.
OFF: dict[str, dict] = {
    "asynchronous copies": {"async_copy": False},
    "eager K and V": {"eager": False},
    "swizzling": {"swizzled": False},
    "fragment tiles": {"load_Q": 0, "load_K": 0, "load_V": 0},
    "Q in registers": {"Q_in_registers": False},
    "second buffer for tiles": {"kv_stages": 1},
    "second buffer for fragments": {"fragment_stages": 1},
    "fast softmax": {"fast_softmax": False},
    "skipped rescaling": {"skip_rescale": False},
    "lean addressing": {"lean": False},
    "lean ldmatrix": {"lean_ldmatrix": False},
    "promised blocks": {"resident_blocks": 0},
}


@dataclass(frozen=True)
class Neighbour:
    """A configuration with a flag off, and with those off that the rules do not allow without it."""

    flag: str
    besides: tuple[str, ...]
    configuration: Configuration


def neighbours(configuration: Configuration) -> list[Neighbour]:
    """One for each flag that is on: as few other flags off as the rules ask for. Left out where nothing is admitted."""

    def off(one: Configuration, flag: str) -> Configuration:
        return replace(one, **OFF[flag])

    found = []
    on = [flag for flag in OFF if off(configuration, flag) != configuration]
    for flag in on:
        others = [other for other in on if other != flag]
        for count in range(len(others) + 1):
            for besides in combinations(others, count):
                changed = off(configuration, flag)
                for other in besides:
                    changed = off(changed, other)
                if not rules.refusals(changed):
                    found.append(Neighbour(flag, besides, changed))
                    break
            else:
                continue
            break
    return found
