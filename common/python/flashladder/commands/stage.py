"""One stage and what to do with it, as in `make stage-02 test bench`. VERBS has a table for each kind of stage."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace

from flashladder.building import build
from flashladder.commands import explain, other_parts, testing, throughput, timeline, tune_shapes
from flashladder.core import device
from flashladder.core.console import say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, stage_runner
from flashladder.ladder import diff, host_streams, mistakes, stages
from flashladder.ladder.backward import Backward
from flashladder.ladder.decode import Decode
from flashladder.ladder.host_streams import HostStreams
from flashladder.ladder.ring import Ring
from flashladder.ladder.stages import Kernel, Stage
from flashladder.measuring import backward_bench, bench, machine_code, profile, stream_times
from flashladder.tuning import shape_table


@dataclass(frozen=True)
class Verb:
    do: Callable[[Stage, list[str]], int | None]  # given what stands behind --; a status, None for 0
    needs: Callable[[Stage], list[str]] = lambda stage: stage.targets  # targets that are built before
    takes: bool = True  # whether words behind -- mean something to it


def _nothing(stage: Stage) -> list[str]:
    return []


def _with_previous(stage: Stage) -> list[str]:
    return [target for one in (stage, stages.previous_of(stage)) if one for target in one.targets]


def _of_decode(stage: Stage) -> list[str]:
    """All decode stages, which can be timed beside this one, and the kernel that only reads."""
    return [*(target for one in stages.decode_stages() for target in one.targets), "read_cache"]


def _of_several_gpus(stage: Stage) -> list[str]:
    """All stages for several GPUs, which can be timed beside this one, and the kernel that they share."""
    return list(dict.fromkeys(target for one in stages.ring_stages() for target in one.targets))


# Stages besides the one before whose kernels a stage's tests run: as whose flags they compute what those do.
_COMPARED_WITH: dict[str, tuple[str, ...]] = {
    "autotune": (
        "tensor_cores", "swizzle", "cp_async", "eager_kv", "fragment_tiles", "double_buffering", "fast_softmax",
        "lean_addressing",
    ),
    "shapes": ("optimistic_max", "no_gap"),
}  # fmt: skip


def _tested_with(stage: Stage) -> list[str]:
    """What the stage's tests run: itself, the one before, which has to lack its technique, and those that its kernel is
    compared with."""
    others = [target for name in _COMPARED_WITH.get(stage.slug, ()) for target in stages.get(name).targets]
    return list(dict.fromkeys([*_with_previous(stage), *others]))


def _run(stage: Stage, rest: list[str]) -> int:
    where = device.choose(stage.min_compute)
    runner = stage_runner(stage.number)
    if not runner.exists():
        raise FlashLadderError(f"{runner} does not exist: run `make stage-{stage.id}`.")
    say(f"Device: {where}")
    named = any(word.partition("=")[0] == "--dtype" for word in rest)
    own = ["--dtype", stage.measured_dtype] if isinstance(stage, Kernel) and not named else []
    return subprocess.run([str(runner), *own, *rest], env=device.environment(where)).returncode


def _time_streams(stage: Stage, rest: list[str]) -> int:
    where = device.choose(stage.min_compute)
    if where.kind == "gpu":
        say(f"\nWritten: {os.path.relpath(stream_times.run_bench(where), ROOT)}")
        return 0
    say("A time on the simulator says nothing about a GPU; this is the order in which things happen.")
    return _order_of_streams(stage, rest)


def _order_of_streams(stage: Stage, rest: list[str]) -> int:
    say(f"Device: {device.choose(stage.min_compute, 'sim')}")
    return host_streams.show_order()


_OF_ALL = {
    "build": Verb(lambda stage, rest: say(f"{stage.name}: built."), takes=False),
    "run": Verb(_run),
    "break": Verb(lambda stage, rest: mistakes.show(stage, rest)),
    "test": Verb(lambda stage, rest: testing.run(extra=rest, stage=stage)),
}
_OF_KERNELS = _OF_ALL | {"diff": Verb(lambda stage, rest: diff.show(stage), _nothing, takes=False)}
VERBS: dict[type[Stage], dict[str, Verb]] = {
    Kernel: _OF_KERNELS
    | {
        "test": replace(_OF_ALL["test"], needs=_tested_with),
        "bench": Verb(
            lambda stage, rest: throughput.bench_or_count(bench.Settings(stages=(stage.number,))), takes=False
        ),
        "profile": Verb(lambda stage, rest: profile.show(stage), _with_previous, takes=False),
        "order": Verb(lambda stage, rest: machine_code.show(stage, rest), _nothing),
        "timeline": Verb(lambda stage, rest: timeline.show(stage), takes=False),
    },
    Backward: _OF_KERNELS
    | {
        "run": Verb(other_parts.run_gradients),
        "bench": Verb(
            lambda stage, rest: other_parts.bench_gradients(stage),
            lambda stage: [*stage.targets, f"stage_{stages.get(backward_bench.FORWARD).id}"],
            takes=False,
        ),
        "timeline": Verb(lambda stage, rest: timeline.show(stage), takes=False),
    },
    Decode: _OF_KERNELS
    | {
        "run": Verb(other_parts.run_decode),
        "test": replace(_OF_ALL["test"], needs=_with_previous),
        "bench": Verb(other_parts.bench_decode, _of_decode),
    },
    Ring: _OF_KERNELS
    | {
        "run": Verb(other_parts.run_ring),
        "bench": Verb(other_parts.bench_ring, _of_several_gpus),
    },
    HostStreams: _OF_ALL
    | {
        "test": replace(_OF_ALL["test"], needs=lambda stage: [*stage.targets, "stage_01", "stage_09"]),
        "bench": Verb(_time_streams, lambda stage: [*stage.targets, "stage_09"], takes=False),
        "profile": Verb(_order_of_streams, takes=False),
    },
}


# Of the stages whose kernel has a configuration, as stage.toml says, besides.
_OF_CONFIGURED = {"explain": Verb(lambda stage, rest: _explain(stage, rest), _nothing)}


def _explain(stage: Stage, rest: list[str]) -> int:
    if stage.slug == shape_table.STAGE:
        return tune_shapes.explain(rest)
    return explain.show(rest, stage.targets)


_APART = ("profile", "timeline")  # commands of their own, too, which have options


def verbs_of(stage: Stage) -> dict[str, Verb]:
    configured = any("configuration" in launch for launch in stage.data.get("launch", []))
    return VERBS[type(stage)] | (_OF_CONFIGURED if configured else {})


def command(which: str, words: list[str], rest: list[str]) -> int:
    """Does what the words ask for, in their order; the last status that is not 0, else 0."""
    stage = stages.entry(which)
    verbs = verbs_of(stage)
    unknown = [word for word in words if word not in verbs]
    if unknown:
        raise FlashLadderError(f"'{unknown[0]}': stage {stage.id} can {', '.join(verbs)}.")
    chosen = [verbs[word] for word in words or ["build"]]
    if rest and not any(verb.takes for verb in chosen):
        apart = next((word for word in words if word in _APART), None)
        hint = f" `.venv/bin/flashladder {apart} {stage.id} --help` lists what it takes." if apart else ""
        told = " and ".join(words or ["build"])
        raise FlashLadderError(f"'{' '.join(rest)}': {told} of stage {stage.id} takes no ARGS.{hint}")
    targets = sorted({target for verb in chosen for target in verb.needs(stage)})
    if targets:
        build.build(targets)
    status = 0
    for verb in chosen:
        status = verb.do(stage, rest) or status
    return status
