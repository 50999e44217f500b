"""Options of the command line that several commands have: the sizes of a problem."""

import argparse
import dataclasses

from flashladder.core.problem import LAYOUTS

TYPES = ("bf16", "fp16", "e4m3")


def settings(kind: type, options: argparse.Namespace):
    """A record of settings: of its fields those that options are called as."""
    told = {field.name: getattr(options, field.name) for field in dataclasses.fields(kind) if field.name in options}
    return kind(**told)


LARGEST = 2**31 - 1


def size(text: str) -> int:
    """The type of options that are sizes."""
    return _whole(text, 1, LARGEST)


def seed(text: str) -> int:
    """The type of options that are seeds of inputs: what the stages' programs take, too."""
    return _whole(text, 0, 2**64 - 1)


def _whole(text: str, least: int, most: int) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from {least} to {most}")
    return int(text)


def numbers(text: str) -> tuple[int, ...]:
    """The type of options that are lists of sizes: "1,2,3" -> (1, 2, 3)"""
    try:
        return tuple(size(part) for part in text.split(",") if part)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers such as 1,2,3") from error


def seconds(text: str) -> float:
    """The type of options that are times."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return value


# A field of Problem each: its option, as in common/host/options.cpp; what it is; what 0 stands for.
_SIZES = {
    "B": ("batch", "batches", ""),
    "Hq": ("heads", "heads of Q", ""),
    "Hkv": ("heads-kv", "heads of K and V", "as many as of Q"),
    "Nq": ("seq", "rows of Q", "200, or the next number that the stage takes"),
    "Nkv": ("seq-kv", "rows of K and V", "as many as of Q"),
    "d_head": ("dim", "head dim", ""),
}


def add_problem_options(
    parser: argparse.ArgumentParser, length: int, dtypes: tuple[str, ...] = TYPES, mask: bool = True, **others: int
) -> None:
    """A field of Problem each. mask: --causal, too. others: values of sizes where they are not told."""
    values = {"B": 1, "Hq": 2, "Hkv": 0, "Nq": length, "Nkv": 0, "d_head": 128} | others
    for field, (option, what, zero) in _SIZES.items():
        told = f"{what} ({values[field] or zero})"
        parser.add_argument(f"--{option}", dest=field, type=size, default=values[field], metavar="N", help=told)
    parser.add_argument("--dtype", default="bf16", choices=dtypes, help="type of the elements (bf16)")
    parser.add_argument("--layout", default="bhnd", choices=LAYOUTS, help="how the tensors lie in memory (bhnd)")
    if mask:
        parser.add_argument("--causal", action="store_true", help="a row sees no key after its own")
