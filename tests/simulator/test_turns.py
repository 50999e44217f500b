"""Blocks that communicate run on several host threads; what they compute, print and count does not show it."""

import numpy as np
import pytest
from cudart import REPOSITORY, run_program, run_ptx
from families import run_clean

pytestmark = pytest.mark.simulator_only

# Sums, flags, locks, the last block, look-back scans, queues, tables, grid.sync().
TOGETHER = [
    "atomics", "blocks_together", "flags", "grid_sync", "histogram", "locks", "own_updates", "reductions", "scan",
    pytest.param("cub_device", marks=pytest.mark.long),  # a quarter of a minute to compile
]  # fmt: skip


def outcome(name, threads, seed=0):
    env = {"WARPSIM_THREADS": threads, "WARPSIM_SCHEDULE": seed}
    result = run_clean(name, env)
    return result.stdout, result.report


@pytest.mark.parametrize("seed", [0, 7], ids=["default", "shuffled"])
@pytest.mark.parametrize("name", TOGETHER)
def test_the_number_of_threads_does_not_show(name, seed):
    said, report = outcome(name, 1, seed)
    for threads in (1, 2, 3, 8):
        again, counted = outcome(name, threads, seed)
        assert again == said, f"{threads} host threads print something else than one"
        assert counted == report, f"{threads} host threads count something else than one"


def test_a_seed_is_another_interleaving():
    said = {outcome("blocks_together", 2, seed)[0] for seed in (0, 1, 2)}
    assert len(said) == 3, "blocks came in the same order with three seeds of WARPSIM_SCHEDULE"


STORES_ITS_NUMBER = """.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .u64 %rd<2>;
    .reg .u32 %r<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    st.global.u32 [%rd1], %r1;
    UPDATE
    ret;
}"""


@pytest.mark.parametrize("update", ["", "atom.global.add.u32 %r2, [%rd1+4], 1;"])
@pytest.mark.parametrize("seed, last", [(0, 4), (1, 0)])
def test_blocks_that_do_not_communicate_come_in_reverse_with_a_seed(seed, last, update):
    """What depends on their order shows, e.g. where they write each other's results, which is a race as well. An update
    whose old value nothing uses tells no block of another."""
    env = {"WARPSIM_THREADS": 1, "WARPSIM_SCHEDULE": seed, "WARPSIM_HAZARDS": "warn"}
    out = [np.full(2, 9, np.uint32)]
    result = run_ptx(
        STORES_ITS_NUMBER.replace("UPDATE", update), "kernel", grid=5, block=1, args=out, env=env, report=True
    ).check()
    assert result.outputs[0][0] == last
    assert {found["kind"] for found in result.hazards} == {"global_race"}


@pytest.mark.parametrize(
    "name", ["histogram", "float_sum", "float_scatter", "work_queue", "grid_sync", "short_launches"]
)
def test_the_workloads_of_bench_sim(name):
    source = REPOSITORY / "common/simulator/bench/workloads.cu"
    reports = []
    for threads in (1, 2):
        result = run_program(source, args=[name, 70, 1], env={"WARPSIM_THREADS": threads}, report=True).check()
        reports.append(result.report)
    assert reports[0] == reports[1], "two host threads count something else than one"
    assert reports[0]["launches"]
