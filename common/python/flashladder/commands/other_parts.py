"""What `make stage-NN run` and `bench` do of the parts besides attention itself: gradients, decode, several GPUs."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import fields, replace

from flashladder.commands.options import add_problem_options, numbers, seconds, seed, settings, size
from flashladder.commands.throughput import PROBLEM, show_counters
from flashladder.core import device
from flashladder.core.console import count, say, table
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder.backward import Backward
from flashladder.ladder.decode import Decode
from flashladder.ladder.ring import Ring
from flashladder.ladder.stage import Stage
from flashladder.ladder.stages import entry
from flashladder.measuring import backward_bench, bench, decode_bench, ring_bench
from warpsim import counters

_TYPES = ("bf16", "fp16")


def _run_parser(stage: Stage) -> argparse.ArgumentParser:
    """With the options that `run` has of each part, those of its problem's sizes left out."""
    text = "Runs this stage on random inputs, compared with float64."
    parser = argparse.ArgumentParser(f"stage {stage.id}", description=text)
    parser.add_argument("--scale", type=float, default=0.0, metavar="X", help="factor of QK\u1d40 (1 / sqrt(dim))")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="seed of the random inputs (0)")
    return parser


# ---- gradients ----


def run_gradients(stage: Backward, words: Sequence[str]) -> int:
    """`make stage-41 run ARGS="--seq 1024"`: 0 where the gradients are right, else 1."""
    parser = _run_parser(stage)
    add_problem_options(parser, 256, _TYPES)
    parser.add_argument("--repeat", type=size, default=1, metavar="R", help="runs, which share a workspace (1)")
    asked = parser.parse_args(list(words))
    problem = settings(Problem, asked)
    where = device.choose(stage.min_compute)
    say(f"Device: {where}")
    inputs = stage.random_inputs(problem, asked.seed)
    result = stage.run(problem, inputs, where.kind, repeat=asked.repeat)
    comparison = stage.compared(problem, inputs, result)
    say(f"{stage.title}, {problem}: {'right' if comparison else 'WRONG'}")
    say("\n".join(f"  {part}" for part in comparison.message.split("; ")))
    if result.changed:
        say(f"Other bits in another run: {', '.join(result.changed)}, summed in no fixed order.")
    return 0 if comparison else 1


def bench_gradients(stage: Backward) -> None:
    """Throughput on a GPU; on the simulator counters of each kernel."""
    where = device.choose(stage.min_compute)
    if where.kind == "gpu":
        file = backward_bench.run(bench.Settings(stages=(stage.number,)), where)
        say(f"\nWritten: {os.path.relpath(file, ROOT)}")
        return
    say(f"Device: {where}. It has no throughput to measure: these are counters.")
    launches = stage.run(PROBLEM, device="sim").report["launches"]
    sums = [(one["kernel"].partition("<")[0].removeprefix("void "), [one]) for one in launches]
    sums.append(("all", launches))
    show_counters(f"{PROBLEM}; by warp", [(name, counters.totals({"launches": several})) for name, several in sums])


def others_of(stage: Stage, words: Sequence[str]) -> list[Stage]:
    """Other stages of the same kind, which are timed beside it."""
    found = [entry(word) for word in words]
    for one in found:
        if type(one) is not type(stage):
            raise FlashLadderError(f"Stage {one.id} is none of those that can be timed beside stage {stage.id}.")
    return found


# ---- decode ----


def run_decode(stage: Decode, words: Sequence[str]) -> int:
    """`make stage-54 run ARGS="--seq-kv 4096"`: 0 where O and the log-sum-exp are right, else 1."""
    parser, usual = _run_parser(stage), stage.usual()
    add_problem_options(parser, usual.Nq, _TYPES, mask=False, Hq=usual.Hq, Hkv=usual.Hkv, Nkv=usual.Nkv)
    text = "rows of K and V of each sequence, at most --seq-kv (all have --seq-kv)"
    parser.add_argument("--lengths", type=lengths, default=(), metavar="N,N", help=text)
    parser.add_argument("--page-size", type=size, default=0, metavar="N", help="rows of a page (no pages)")
    asked = parser.parse_args(list(words))
    problem = settings(DecodeProblem, asked)
    where = device.choose(stage.min_compute)
    say(f"Device: {where}")
    inputs = stage.random_inputs(problem, asked.seed)
    comparison = stage.compared(problem, inputs, stage.run(problem, inputs))
    say(f"{problem}: {'right' if comparison else 'WRONG'}, {comparison.message}")
    return 0 if comparison else 1


def lengths(text: str) -> tuple[int, ...]:
    """Of sequences, which may be empty."""
    if not all(part.isdecimal() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of lengths such as 600,0,17")
    return tuple(int(part) for part in text.split(","))


def bench_decode(stage: Decode, rest: list[str]) -> None:
    """Microseconds beside the peers and beside reading on a GPU; on the simulator counters. rest: other decode stages,
    which are timed, or counted, in the same run."""
    every = sorted({one.number for one in (stage, *others_of(stage, rest))})
    where = device.choose(stage.min_compute)
    if where.kind == "gpu":
        decode_bench.run_bench(decode_bench.Settings(stages=tuple(every)), where)
        return
    say(f"Device: {where}. It has no time to measure: these are counters.")
    sums = [(one.name, counters.totals(one.run(stage.usual(), device="sim").report)) for one in map(entry, every)]
    show_counters(f"{stage.usual()}; by warp, summed over all launches", sums)


# ---- several GPUs ----


def run_ring(stage: Ring, words: Sequence[str]) -> int:
    """`make stage-63 run ARGS="--ranks 2"`: 0 where O is right, else 1. Says what each rank has and does."""
    parser, usual = _run_parser(stage), stage.usual(ranks=4)
    add_problem_options(parser, 0, _TYPES, mask=False, Hq=usual.Hq, Hkv=usual.Hkv, d_head=usual.d_head)
    parser.add_argument("--no-causal", dest="causal", action="store_false", help="every row sees all keys")
    parser.add_argument(
        "--ranks", type=size, default=usual.ranks, metavar="P", help=f"GPUs that share the sequence ({usual.ranks})"
    )
    asked = parser.parse_args(list(words))
    asked.Nq = asked.Nq or stage.usual(ranks=asked.ranks).Nq
    problem = settings(RingProblem, asked)
    where = device.choose(stage.min_compute)
    say(f"Device: {where}")
    inputs = stage.random_inputs(problem, asked.seed)
    result = stage.run(problem, inputs)
    rows = [
        [rank, _pieces(one["pieces"]), count(one["pulled_bytes"]), count(one["scores"])]
        for rank, one in enumerate(result.description["ranks"])
    ]
    table(f"{problem}", ("rank", "rows", "bytes copied from others", "scores of a head"), rows, right=(2, 3))
    comparison = stage.compared(problem, inputs, result)
    say(f"{'right' if comparison else 'WRONG'}, {comparison.message}")
    return 0 if comparison else 1


def _pieces(pieces: list[list[int]]) -> str:
    return " and ".join(f"{first} to {first + rows - 1}" for first, rows in pieces)


def bench_ring(stage: Ring, rest: list[str]) -> None:
    """Times the stage beside peers on all GPUs; on the simulator the same calls, without times. rest: other stages for
    several GPUs, timed in the same run, and settings such as lengths=16384,65536 or budget_s=300."""
    where = device.choose(stage.min_compute)
    others = others_of(stage, [word for word in rest if "=" not in word])
    every = sorted({one.number: one.slug for one in (stage, *others)}.items())
    settings = ring_bench.Settings() if where.kind == "gpu" else ring_bench.REHEARSAL
    settings = replace(settings, stages=tuple(slug for _, slug in every))
    for word in rest:
        if "=" in word:
            settings = replace(settings, **ring_setting(*word.split("=", 1)))
    if where.kind == "gpu":
        ring_bench.run_bench(settings, where)
        return
    say(f"Device: {where}. It has no time to measure: these are the benchmark's calls.")
    ring_bench.rehearse(settings, where)


def ring_setting(name: str, value: str) -> dict:
    """A field of ring_bench.Settings: numbers and words of a list go between commas."""
    known = {field.name: field.default for field in fields(ring_bench.Settings)}
    simple = {one for one, default in known.items() if isinstance(default, (int, float, str))} | {"lengths", "parts"}
    if name not in simple - {"dtype"}:
        raise FlashLadderError(f"'{name}' is no setting of this benchmark: {', '.join(sorted(simple - {'dtype'}))}.")
    if name == "parts":
        return {name: tuple(value.split(","))}
    try:
        read = numbers if name == "lengths" else size if isinstance(known[name], int) else seconds
        return {name: read(value)}
    except argparse.ArgumentTypeError as error:
        raise FlashLadderError(f"{name}={value}: {error}.") from error
