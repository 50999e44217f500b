"""stage.toml's launch data is what the launcher does, and the kernel's file keeps to its size."""

import re

import pytest
from chosen import of_chosen
from queued import each

from flashladder import lessons
from flashladder.core.device import choose, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import diff, stages, sweep
from flashladder.ladder.launches import for_problem, launches, workspace_bytes
from flashladder.ladder.run import describe, run_problem
from flashladder.running.cudart import MULTIPROCESSORS, Cudart

PROBLEMS = [Problem(B=2, Hq=3, Nq=256, Nkv=384, d_head=128), Problem(Hq=1, Nq=128, Nkv=64, d_head=64)]
# What common/include has for kernels; those of Hopper from tma on.
SHARED_HEADERS = {"launch.h", "numbers.cuh", "ptx.cuh", "ptx_hopper.cuh", "tensor_maps.h", "wgmma.cuh"}
# What a stage teaches, and later ones include unchanged.
SHARED_HEADERS |= {"accumulator.cuh", "online_softmax.cuh", "pipeline.cuh", "tile_scheduler.cuh", "ping_pong.cuh"}
SHARED_HEADERS |= {"epilogue.cuh", "load.cuh", "mask.cuh", "optimistic_softmax.cuh", "ptx_cluster.cuh"}
RAGGED = [Problem(Hq=6, Hkv=2, Nq=129, Nkv=1, d_head=64, causal=True), Problem(B=3, Nq=255, Nkv=1000, d_head=128)]


def multiprocessors(stage) -> int | None:
    """Of the GPU that runs the stage here; None: of the device that the simulator plays."""
    where = choose(stage.min_compute)
    return Cudart(cudart(where)).attribute(MULTIPROCESSORS) if where.kind == "gpu" else None


def expect(stage, problem: Problem, got: dict, wanted: dict, source: str) -> None:
    """Each value that `source` gives is what stage.toml says."""
    for name, value in wanted.items():
        assert got[name] == value, (
            f"stage {stage.id}, {problem}: stage.toml says {name} = {value}, {source} says {got[name]}"
        )


def test_a_stage_is_found_by_its_name_and_by_its_number(stage):
    for which in (stage.slug, stage.slug.replace("_", "-"), f"stage-{stage.slug}", stage.number, stage.id, stage.name):
        assert stages.entry(which) == stage, which
    before = stages.previous_of(stage)
    assert stage.previous == (before and before.slug), f"stage {stage.id}: there is no stage '{stage.previous}'"


def test_the_stages_that_mask_say_so(stage):
    described = describe(stage)
    takes = described["supports_causal"] and described["supports_gqa"]
    takes = takes and described["multiple_Nq"] == described["multiple_Nkv"] == 1
    assert bool(takes) == stage.data.get("masks", False), (
        f"stage {stage.id}: flash_describe() says {described}, stage.toml has masks = {stage.data.get('masks', False)}"
    )


@pytest.mark.parametrize("problem", PROBLEMS + RAGGED, ids=str)
def test_launch_data(stage, problem):
    problem = stage.own(problem)
    described = describe(stage)
    if problem.Nq % 2 and described["multiple_Nq"] > 1:
        pytest.skip("this stage takes whole tiles alone")
    if problem.causal and not described["supports_causal"]:
        pytest.skip("this stage does not mask")
    launch = for_problem(stage.data["launch"][-1], problem)
    planned = launches(stage, problem, multiprocessors(stage))[-1]
    wanted = {
        "title": stage.title,
        "min_compute": stage.min_compute,
        "threads": launch["threads"],
        "Br": launch.get("Br", 0),
        "Bc": launch.get("Bc", 0),
        "shared_bytes": planned.shared_bytes,
        "grid": list(planned.grid),
        "workspace_bytes": workspace_bytes(stage, problem),
        "supports_log_sum_exp": int(stage.data.get("log_sum_exp", False)),
    }
    described = describe(stage, problem, configuration=stage.configuration(problem))
    expect(stage, problem, described, wanted, "flash_describe()")


def test_launches_as_the_simulator_sees_them(stage, tile):
    problem = stage.own(Problem(B=2, Hq=1, Nq=2 * tile[0], Nkv=tile[1], d_head=64))
    configuration = stage.configuration(problem)
    happened = run_problem(stage, problem, device="sim", configuration=configuration).report["launches"]
    wanted = launches(stage, problem)
    assert len(happened) == len(wanted), (
        f"stage {stage.id}: stage.toml has {len(wanted)} launches, the simulator saw {len(happened)}: "
        f"{', '.join(seen['kernel'] for seen in happened)}"
    )
    for seen, launch in zip(happened, wanted, strict=True):
        assert launch.kernel in seen["kernel"], (
            f"stage {stage.id}: stage.toml's kernel is {launch.kernel}, the simulator saw {seen['kernel']}"
        )
        values = {
            "block": [launch.threads, 1, 1],
            "grid": list(launch.grid),
            "shared_bytes": launch.shared_bytes,
        }
        expect(stage, problem, seen, values, "the simulator")


def test_one_file_of_readable_length(stage):
    text = stage.kernel.read_text()
    length = len(text.splitlines())
    most = 450 if stage.hopper or stage.slug == "autotune" else 350  # warpgroups with different work; kernels in one
    assert length <= most, f"{stage.kernel} has {length} lines; a lesson's kernel has at most {most}"
    others = set(re.findall(r'#include ["<]([^">]+)[">]', text)) - SHARED_HEADERS
    others -= {"configured.h", "instances.h"} if "configuration" in stage.data["launch"][-1] else set()
    assert not others, (
        f"{stage.kernel} includes {', '.join(sorted(others))}; only {', '.join(sorted(SHARED_HEADERS))} are for kernels"
    )


@each(of_chosen((*stages.all_stages(), *stages.backward_stages())))
def test_changes_one_thing(one):
    before = stages.previous_of(one)
    if not before:
        pytest.skip("there is no stage before")
    changed, most = max(diff.changed_lines(before, one)), 80 if one.hopper else 60
    why = one.data.get("larger_step", "")
    assert changed <= most or why, (
        f"{one.kernel}: {changed} lines differ from {before.name}; one technique is at most {most}, "
        "or stage.toml has a larger_step that says why"
    )
    assert not why or changed > most, f"{one.name}: {changed} lines differ, so stage.toml's larger_step says nothing"


def test_no_stage_refuses_a_problem_of_the_demo():
    """Those that take whole tiles alone have none but whole ones."""
    asked = sweep.demo_problems()
    assert {one.dtype for one in asked} == {"bf16", "fp16"} and {one.d_head for one in asked} == {64, 128}
    for stage in stages.since("naive"):
        if not stage.data.get("masks"):
            tile = stage.launch.get("Br", 1), stage.launch.get("Bc", 1)
            assert not any(one.Nq % tile[0] or one.Nkv % tile[1] for one in asked), stage.name


@pytest.mark.parametrize(
    "slug, what",
    (("backward_naive", "computes gradients"), ("split_kv", "computes decode"), ("ring", "is for several GPUs")),
)
def test_a_forward_command_says_why_it_is_not_for_a_stage_of_another_part(slug, what):
    with pytest.raises(FlashLadderError, match=f"{what}, and this takes only stages that compute attention") as refused:
        stages.get(slug)
    stage = stages.entry(slug)
    assert f"flashladder.lessons.{stage.LESSON}({stage.number})." in str(refused.value)
    assert getattr(lessons, stage.LESSON)(stage.number).stage == stage
    other = lessons.RingLesson if stage.LESSON != "RingLesson" else lessons.DecodeLesson
    with pytest.raises(FlashLadderError, match=rf"use flashladder.lessons.{stage.LESSON}\({stage.number}\)\."):
        other(stage.number)
    assert stages.entry(slug) not in stages.every_stage()


def test_uses_as_much_shared_memory_as_there_is(stage):
    """Every GPU that runs the stage has it: consumer cards 99 KB, the only GPUs that run a specific stage 227."""
    used = describe(stage, stage.own(Problem(Nq=256, d_head=128)))["shared_bytes"]
    most = (227 if stage.min_compute.specific else 99) * 1024
    assert used <= most, f"stage {stage.id} uses {used} bytes of shared memory; GPUs that run it have {most}"
