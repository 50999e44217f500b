"""Options of the command line that several commands have: the sizes of a problem."""

import argparse
import dataclasses

from flashladder.core.problem import LAYOUTS

TYPES = ("bf16", "fp16", "e4m3")


def settings(kind: type, options: argparse.Namespace):
    """A record of settings: of its fields those that options are called as."""
    told = {field.name: getattr(options, field.name) for field in dataclasses.fields(kind) if field.name in options}
    return kind(**told)


def add_problem_options(parser: argparse.ArgumentParser, length: int, dtypes: tuple[str, ...] = TYPES) -> None:
    """A field of Problem each, as the runners of common/host/options.cpp call them."""
    parser.add_argument("--batch", dest="B", type=int, default=1)
    parser.add_argument("--heads", dest="Hq", type=int, default=2)
    parser.add_argument("--heads-kv", dest="Hkv", type=int, default=0, help="default: as many as --heads")
    parser.add_argument("--seq", dest="Nq", type=int, default=length)
    parser.add_argument("--seq-kv", dest="Nkv", type=int, default=0, help="default: as long as --seq")
    parser.add_argument("--dim", dest="d_head", type=int, default=128)
    parser.add_argument("--dtype", default="bf16", choices=dtypes)
    parser.add_argument("--layout", default="bhnd", choices=LAYOUTS)
    parser.add_argument("--causal", action="store_true")
