"""What `make stage-NN run` and `bench` do of a decode stage."""

from flashladder.core import device
from flashladder.core.console import count, say, table
from flashladder.ladder import stages
from flashladder.ladder.decode import Decode
from flashladder.measuring import decode_bench
from warpsim import counters


def verify(stage: Decode) -> int:
    """Runs a small problem and compares it with the reference; 1 if it is wrong."""
    where, problem = device.choose(stage.min_compute), stage.usual()
    say(f"Device: {where}")
    inputs = stage.random_inputs(problem)
    comparison = stage.check(problem, inputs, stage.run(problem, inputs).bits)
    say(f"{problem}: {'right' if comparison else 'WRONG'}, {comparison.message}")
    return 0 if comparison else 1


def bench_or_count(stage: Decode, rest: list[str]) -> None:
    """Microseconds beside the peers and beside reading on a GPU; on the simulator its counters. rest: other decode
    stages, which are timed in the same run."""
    where = device.choose(stage.min_compute)
    if where.kind == "gpu":
        every = {one.number for one in (stage, *map(stages.entry, rest))}
        decode_bench.run_bench(decode_bench.Settings(stages=tuple(sorted(every))), where)
        return
    say(f"Device: {where}. It has no time to measure: these are counters.")
    summary = counters.summary(counters.totals(stage.run(stage.usual(), device="sim").report))
    columns = ["", *summary]
    row = [stage.name, *(count(value) for value in summary.values())]
    table(f"{stage.usual()}; by warp, summed over all launches", columns, [row], right=range(1, len(columns)))
