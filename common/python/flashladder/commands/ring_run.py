"""What `make stage-NN run` and `bench` do of a stage for several GPUs."""

from dataclasses import fields, replace

from flashladder.core import device
from flashladder.core.console import count, say, table
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.ring import Ring
from flashladder.measuring import ring_bench


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


def bench(stage: Ring, rest: list[str]) -> None:
    """Times the stage beside peers on all GPUs; on the simulator the same calls, without times. rest: other stages for
    several GPUs, timed in the same run, and settings such as lengths=16384,65536 or budget_s=300."""
    where = device.choose(stage.min_compute)
    others = [stages.entry(word) for word in rest if "=" not in word]
    every = sorted({one.number: one.slug for one in (stage, *others)}.items())
    settings = ring_bench.Settings() if where.kind == "gpu" else ring_bench.REHEARSAL
    settings = replace(settings, stages=tuple(slug for _, slug in every))
    for word in rest:
        if "=" in word:
            settings = replace(settings, **_setting(*word.split("=", 1)))
    if where.kind == "gpu":
        ring_bench.run_bench(settings, where)
        return
    say(f"Device: {where}. It has no time to measure: these are the benchmark's calls.")
    ring_bench.rehearse(settings, where)


def _setting(name: str, value: str) -> dict:
    """A field of ring_bench.Settings: numbers and words of a list go between commas."""
    known = {field.name: field.default for field in fields(ring_bench.Settings)}
    simple = {one for one, default in known.items() if isinstance(default, (int, float, str))} | {"lengths", "parts"}
    if name not in simple - {"dtype"}:
        raise FlashLadderError(f"'{name}' is no setting of this benchmark: {', '.join(sorted(simple - {'dtype'}))}.")
    try:
        if name == "lengths":
            return {name: tuple(int(part) for part in value.split(","))}
        if name == "parts":
            return {name: tuple(value.split(","))}
        return {name: type(known[name])(value)}
    except ValueError as error:
        raise FlashLadderError(f"{name}={value}: {error}.") from error
