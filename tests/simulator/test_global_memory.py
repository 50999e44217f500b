"""Threads that meet in global memory: within a block, and between blocks of one launch."""

from pathlib import Path

import pytest
from cudart import ARCHITECTURE, ON_GPU, run_program
from fault_marks import cases, check_clean, check_fault, check_host_threads, check_mended

FOLDER = Path(__file__).parent / "programs" / "global_memory"
FAULTS = FOLDER / "faults.cu"


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name, seed):
    """Which side is told depends on the order in which the blocks ran; both lines are always named."""
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    hazard, _ = check_fault(FAULTS, name, env, ARCHITECTURE)
    assert f"{FAULTS.name}:{hazard['line']}" in hazard["message"]
    check_mended(FAULTS, name, env, ARCHITECTURE)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 3, 8])
def test_right_programs_are_clean(seed):
    report = check_clean(FOLDER / "clean.cu", seed, ARCHITECTURE)
    assert ON_GPU or not any(launch.get("notes") for launch in report["launches"])


@pytest.mark.simulator_only
def test_the_same_value_from_several_blocks_is_a_note():
    result = run_program(FOLDER / "same_value.cu", report=True).check()
    assert result.stdout == "OK\n" and result.hazards == []
    (note,) = result.report["launches"][0]["notes"]
    assert note["kind"] == "global_race" and "Both store the same value" in note["message"]
    strict = run_program(FOLDER / "same_value.cu", env={"WARPSIM_HAZARDS": "strict"}, report=True)
    assert strict.returncode == 1 and [h["kind"] for h in strict.hazards] == ["global_race"]


@pytest.mark.simulator_only
@pytest.mark.parametrize("name", ["tiles_overlap", "histogram", "flag_without_a_fence", "lock_without_fences"])
@pytest.mark.parametrize("hazards", ["on", "warn"])
def test_reports_do_not_depend_on_host_threads(name, hazards):
    check_host_threads(FAULTS, name, {"WARPSIM_HAZARDS": hazards}, ARCHITECTURE)


# Tiles add up those before them: an aggregate is looked at only where the tile's sum is not there yet.
LOOK_BACK = r"""
#include <cuda/atomic>
#include <cstdio>
using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
__global__ void look_back(unsigned *turn, unsigned *flags, unsigned *sums, unsigned *all, bool released) {
    if (threadIdx.x) return;
    const unsigned tile = atomicAdd(turn, 1);
    unsigned before = 0;
    sums[tile] = tile + 1;
    Flag(flags[tile]).store(1, released ? cuda::memory_order_release : cuda::memory_order_relaxed);
    for (unsigned k = tile; k-- > 0;) {
        unsigned flag;
        while ((flag = Flag(flags[k]).load(cuda::memory_order_acquire)) == 0) {}
        before += flag == 2 ? all[k] : sums[k];
        if (flag == 2) break;
    }
    all[tile] = before + tile + 1;
    Flag(flags[tile]).store(2, cuda::memory_order_release);
}
int main(int, char **argv) {
    unsigned *memory, all[64];
    cudaMalloc(&memory, 4 * sizeof all);
    cudaMemset(memory, 0, 4 * sizeof all);
    look_back<<<32, 32>>>(memory + 192, memory, memory + 64, memory + 128, argv[1][0] == '1');
    const cudaError_t error = cudaMemcpy(all, memory + 128, sizeof all, cudaMemcpyDeviceToHost);
    for (unsigned k = 0; !error && k < 32; ++k)
        if (all[k] != (k + 1) * (k + 2) / 2) return std::printf("tile %u: %u\n", k, all[k]), 1;
    std::printf("%s\n", cudaGetErrorName(error));
}
"""


@pytest.mark.long
@pytest.mark.simulator_only
def test_by_an_odd_seed_blocks_see_what_stands_between_two_ordered_accesses():
    for seed in (1, 3, 5, 7):
        env = {"WARPSIM_SCHEDULE": seed}
        assert run_program(LOOK_BACK, [1], env=env, report=True).check().hazards == [], seed
        (hazard,) = run_program(LOOK_BACK, [0], env=env, report=True).hazards
        assert hazard["kind"] == "global_race" and hazard["line"] in (9, 14), seed


# Stores that other blocks see late: by another schedule than the default one.

LATE = FOLDER / "late.cu"
SEEDS = range(1, 9)


def said(name: str, fenced: bool, seed: int, hazards: str = "off") -> str:
    env = {"WARPSIM_SCHEDULE": seed, "WARPSIM_HAZARDS": hazards, "WARPSIM_TIMEOUT_S": "20"}
    return run_program(LATE, [name, int(fenced)], env=env).check().stdout.strip()


@pytest.mark.long
@pytest.mark.simulator_only
@pytest.mark.parametrize("name", ["flag", "sum"])
def test_a_missing_fence_shows_as_a_wrong_number_by_some_schedule(name):
    assert said(name, False, 0) == "right"  # by the default one, stores are seen at once
    assert "wrong" in {said(name, False, seed) for seed in SEEDS}


@pytest.mark.simulator_only
@pytest.mark.parametrize("name", ["flag", "sum", "poll"])
def test_with_its_fence_the_program_is_right_by_every_schedule(name):
    assert {said(name, True, seed) for seed in SEEDS} == {"right"}
    assert {said(name, True, seed, "on") for seed in (1, 4) if name != "poll"} <= {"right"}


@pytest.mark.simulator_only
def test_a_store_is_seen_some_day():
    assert {said("poll", False, seed) for seed in SEEDS} == {"right"}
