"""What `make stage-NN run` does of a stage for several GPUs."""

from flashladder.core import device
from flashladder.core.console import count, say, table
from flashladder.ladder.ring import Ring


def verify(stage: Ring) -> int:
    """Runs a small problem and compares it with the reference; 1 if it is wrong. Says what each rank has and does."""
    where, problem = device.choose(stage.min_compute), stage.usual(ranks=4)
    say(f"Device: {where}")
    inputs = stage.random_inputs(problem)
    result = stage.run(problem, inputs)
    rows = [
        [rank, _pieces(one["pieces"]), count(one["pulled_bytes"]), count(one["scores"])]
        for rank, one in enumerate(result.description["ranks"])
    ]
    table(f"{problem}", ("rank", "rows", "bytes copied from others", "scores of a head"), rows, right=(2, 3))
    comparison = stage.check(problem, inputs, result.bits)
    say(f"{'right' if comparison else 'WRONG'}, {comparison.message}")
    return 0 if comparison else 1


def _pieces(pieces: list[list[int]]) -> str:
    return " and ".join(f"{first} to {first + rows - 1}" for first, rows in pieces)
