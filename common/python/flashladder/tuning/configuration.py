"""Configurations of stage 12's kernel: which techniques are on, and how large its tiles are.

A configuration is a frozen dataclass, one readable line that is parsed back exactly, and an aggregate of C++:

    >>> configuration = parse("(BF16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax")
    >>> str(configuration)
    '(BF16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax'
    >>> configuration.cpp()
    '{128, 64, 4, true, true, true, 2, 2, 2, false, 2, 1, true, false, false, false, 0}'

What goes together is said by flashladder.tuning.rules.
"""

import re
from dataclasses import dataclass, fields

from flashladder.core.abi import DTYPES
from flashladder.core.errors import FlashLadderError


class Aggregate:
    """A configuration of either stage, whose first two fields are the type and the head dim."""

    def cpp(self) -> str:
        """The aggregate that initialises the kernel's struct; type and head dim are template arguments of their own."""
        values = [getattr(self, field.name) for field in fields(self)][2:]
        return "{" + ", ".join(str(value).lower() for value in values) + "}"


@dataclass(frozen=True)
class Configuration(Aggregate):
    """The fields of stages/12_autotune/kernel.cu's struct, in its order, behind the type and the head dim."""

    dtype: str = "bf16"
    d_head: int = 128
    Br: int = 128  # rows of Q a block
    Bc: int = 64  # rows of K and V a tile
    warps: int = 4
    async_copy: bool = False
    eager: bool = False
    swizzled: bool = False
    # Fragments of 8 elements loaded at a time: 0 is the whole block, 2 a step of mma; 1 (K and V) a single ldmatrix.
    load_Q: int = 0
    load_K: int = 0
    load_V: int = 0
    Q_in_registers: bool = False
    kv_stages: int = 1  # buffers for tiles of K and of V
    fragment_stages: int = 1  # buffers for fragments
    fast_softmax: bool = False  # exp2 with the scale folded in, sums reduced once at the end
    skip_rescale: bool = False  # O is rescaled only where the warp's vote says that a maximum grew
    lean: bool = False  # addresses of copies are computed once; K as register pairs; backwards
    lean_ldmatrix: bool = False  # addresses of ldmatrix are computed once
    resident_blocks: int = 0  # a multiprocessor, as the compiler is told; 0: it is told nothing

    def __str__(self) -> str:
        words = []
        for name, word in _WORDS.items():
            value = getattr(self, name)
            if name == "load_Q":
                words.append(f"load_{self.load_Q}_{self.load_K}_{self.load_V}_tiles")
            elif value is True:
                words.append(word)
            elif value != _USUAL[name]:
                words.append(f"{word}_{value}")
        return f"({self.dtype.upper()}, {self.d_head}, {self.Br}, {self.Bc}, {self.warps}): {'+'.join(words)}"


# The words of the short form, in its order: flags, counts (with their number behind them, where it is not the usual
# one), and among them the fragments of Q, K and V in one.
_WORDS = {
    "async_copy": "async",
    "eager": "eager",
    "swizzled": "swizzled",
    "load_Q": "load",
    "Q_in_registers": "Q_registers",
    "kv_stages": "kv_buffers",
    "fragment_stages": "fragment_buffers",
    "fast_softmax": "opt_softmax",
    "skip_rescale": "skip_rescale",
    "lean": "lean",
    "lean_ldmatrix": "lean_ldmatrix",
    "resident_blocks": "blocks",
}
_USUAL = {field.name: field.default for field in fields(Configuration) if field.name in _WORDS}
_SHORT_FORM = re.compile(r"\s*\((\w+),\s*(\d+),\s*(\d+),\s*(\d+),\s*(\d+)\)\s*:\s*([\w+]+)\s*")


def parse(text: str) -> Configuration:
    """The configuration of a short form; words may stand in any order, each once."""
    match = _SHORT_FORM.fullmatch(text)
    if not match:
        raise FlashLadderError(f"'{text}' is no configuration; one is written like '{Configuration()}'.")
    dtype, *numbers, words = match.groups()
    if dtype.lower() not in DTYPES:
        raise FlashLadderError(f"'{dtype}' in '{text}': choose {' or '.join(name.upper() for name in DTYPES)}.")
    values = dict(zip(("d_head", "Br", "Bc", "warps"), map(int, numbers), strict=True))
    flags = {word: name for name, word in _WORDS.items() if _USUAL[name] is False}
    counts = {word: name for name, word in _WORDS.items() if word not in flags and word != "load"}
    seen: set[str] = set()
    for word in words.split("+"):
        if load := re.fullmatch(r"load_(\d+)_(\d+)_(\d+)_tiles", word):
            name, found = "load", dict(zip(("load_Q", "load_K", "load_V"), map(int, load.groups()), strict=True))
        elif word in flags:
            name, found = word, {flags[word]: True}
        elif (count := re.fullmatch(r"(\w+)_(\d+)", word)) and count[1] in counts:
            name, found = count[1], {counts[count[1]]: int(count[2])}
        else:
            known = [*flags, "load_q_k_v_tiles", *(f"{one}_n" for one in counts)]
            raise FlashLadderError(f"'{word}' in '{text}' is no word of a configuration. Words: {', '.join(known)}.")
        if name in seen:
            raise FlashLadderError(f"'{name}' stands twice in '{text}'.")
        seen.add(name)
        values |= found
    if "load" not in seen:
        raise FlashLadderError(f"'{text}' does not say load_q_k_v_tiles: how many fragments are loaded at a time.")
    return Configuration(dtype=dtype.lower(), **values)


def of_stage(number: int, dtype: str = "bf16", d_head: int = 128) -> Configuration:
    """The flags with which stage 12's kernel is one of the stages 04 to 11."""
    if not 4 <= number <= 11:
        raise FlashLadderError(f"Stages 04 to 11 are configurations of stage 12; {number:02d} is none.")
    load = 2 if number >= 8 else 0
    return Configuration(
        dtype=dtype,
        d_head=d_head,
        swizzled=number >= 5,
        async_copy=number >= 6,
        eager=number >= 7,
        load_Q=load,
        load_K=load,
        load_V=load,
        kv_stages=2 if number >= 9 else 1,
        fast_softmax=number >= 10,
        skip_rescale=number >= 10,
        lean=number >= 11,
        lean_ldmatrix=number >= 11,
    )
