"""`make stage-41 run ARGS="--seq 1024 --heads 4"`: one run of a stage that computes gradients, compared with float64.
The options are those of the other stages' runners (common/host/options.cpp)."""

import argparse
from collections.abc import Sequence

from flashladder.core.console import say
from flashladder.core.device import choose
from flashladder.core.problem import LAYOUTS, Problem
from flashladder.ladder import backward
from flashladder.ladder.backward import Backward
from flashladder.running import gradients


def options(words: Sequence[str], name: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(name, description="Runs this stage on random inputs, compared with float64.")
    parser.add_argument("--batch", type=int, default=1, metavar="B", help="batches")
    parser.add_argument("--heads", type=int, default=2, metavar="H", help="heads of Q")
    parser.add_argument("--heads-kv", type=int, default=0, metavar="H", help="heads of K and V; as many as of Q")
    parser.add_argument("--seq", type=int, default=256, metavar="N", help="rows of Q")
    parser.add_argument("--seq-kv", type=int, default=0, metavar="N", help="rows of K and V; as many as of Q")
    parser.add_argument("--dim", type=int, default=128, metavar="D", help="head dim: 64 or 128")
    parser.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    parser.add_argument("--layout", choices=LAYOUTS, default="bhnd", help="how the tensors lie in memory")
    parser.add_argument("--causal", action="store_true", help="query i sees keys up to i + seq_kv - seq only")
    parser.add_argument("--scale", type=float, default=0.0, metavar="X", help="factor of QK\u1d40; 1 / sqrt(dim)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the inputs")
    parser.add_argument("--repeat", type=int, default=1, metavar="R", help="runs, which share a workspace")
    return parser.parse_args(list(words))


def run(stage: Backward, words: Sequence[str]) -> int:
    """0 where the gradients are right, else 1."""
    asked = options(words, f"stage {stage.id}")
    problem = Problem(
        B=asked.batch, Hq=asked.heads, Hkv=asked.heads_kv, Nq=asked.seq, Nkv=asked.seq_kv, d_head=asked.dim,
        dtype=asked.dtype, layout=asked.layout, causal=asked.causal, scale=asked.scale,
    )  # fmt: skip
    where = choose(stage.min_compute)
    say(f"Device: {where}")
    inputs = gradients.random_inputs(problem, asked.seed)
    result = backward.run(stage, problem, inputs, where.kind, repeat=asked.repeat)
    comparison = gradients.check(problem, inputs, result.bits)
    say(f"{stage.title}, {problem}: {'right' if comparison else 'WRONG'}")
    say("\n".join(f"  {part}" for part in comparison.message.split("; ")))
    if result.changed:
        say(f"Other bits in another run: {', '.join(result.changed)}, summed in no fixed order.")
    return 0 if comparison else 1
