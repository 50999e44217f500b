"""WARPSIM_TRACE: what the warps of a launch's first blocks did, in their order."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from cudart import ARCHITECTURE, run_program
from fault_marks import HOPPER

pytestmark = pytest.mark.simulator_only

PIPELINES = Path(__file__).parent / "programs" / "arrivals" / "pipelines.cu"
SOURCE = r"""
__global__ void kernel(float *x, int turns) {
    __shared__ float tile[33 * 64];
    const int i = threadIdx.x;
    float sum = 0;
    for (int t = 0; t < turns + int(blockIdx.x); ++t) {
        tile[i * 33] = x[(i + 64 * t) % 4096];
        __syncthreads();
        sum += exp2f(tile[(63 - i) * 33]);
        if (i < 32) asm volatile("barrier.cta.arrive 2, 64;"); else asm volatile("barrier.cta.sync 2, 64;");
        __syncthreads();
    }
    if (i % 2) x[4096 + 64 * blockIdx.x + i] = sum;
}
int main(int argc, char **argv) {
    float *x;
    cudaMalloc(&x, 1 << 16);
    cudaMemset(x, 0, 1 << 16);
    kernel<<<3, 64>>>(x, 4);
    kernel<<<1, 64>>>(x, argc > 1 ? 1 << 16 : 1);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


def traced(folder, source=SOURCE, architecture=None, arguments=(), **env):
    """(the trace's text, the report) of a program."""
    file = folder / "trace.json"
    variables = {"WARPSIM_TRACE": str(file)} | {name: str(value) for name, value in env.items()}
    own = {"architecture": architecture} if architecture else {}
    result = run_program(source, env=variables, report=True, args=list(arguments), **own).check()
    return file.read_text(), result.report


def launches(folder, source=SOURCE, **env):
    text, report = traced(folder, source, **env)
    return json.loads(text)["launches"], report["launches"]


def executed(launch, block):
    """Ops of the block's warps, one behind the other, and how often."""
    known = {op[0] for op in launch["ops"]}
    counts = Counter()
    for warp in block["warps"]:
        for event in warp:
            if event[0] == "run":
                first, last, _ = block["pieces"][event[1]]
                counts.update(op for op in range(first, last + 1) if op in known)
            elif event[0] in ("arrive", "sync", "wait", "warpgroup"):
                counts[event[1]] += 1
    return counts


def test_nothing_is_written_unless_asked_for(tmp_path):
    run_program(SOURCE, report=True).check()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source, architecture", [(SOURCE, ARCHITECTURE), (PIPELINES, HOPPER)])
def test_counters_do_not_change(tmp_path, source, architecture):
    plain = run_program(source, report=True, architecture=architecture).check().report
    for blocks in (0, 1, 2, 32):
        _, report = traced(tmp_path, source, architecture, WARPSIM_TRACE_BLOCKS=blocks)
        assert report == plain, blocks


@pytest.mark.parametrize("blocks, recorded", [(0, [0, 0]), (1, [1, 1]), (2, [2, 1]), (32, [3, 1])])
def test_the_first_blocks_are_recorded(tmp_path, blocks, recorded):
    found, _ = launches(tmp_path, WARPSIM_TRACE_BLOCKS=blocks)
    assert [len(one["traced"]) for one in found] == recorded
    for one in found:
        assert [block["block"] for block in one["traced"]] == [[k, 0, 0] for k in range(len(one["traced"]))]


def test_instructions_and_costs_are_the_reports(tmp_path):
    found, reports = launches(tmp_path, WARPSIM_TRACE_BLOCKS=32)
    for trace, report in zip(found, reports, strict=True):
        classes = {op[0]: op[1] for op in trace["ops"]}
        counts, costs = Counter(), Counter()
        for block in trace["traced"]:
            for op, count in executed(trace, block).items():
                counts[classes[op]] += count
            for warp in block["warps"]:
                for event in warp:
                    for _, wavefronts, sectors, _ in block["pieces"][event[1]][2] if event[0] == "run" else ():
                        costs["wavefronts"] += wavefronts
                        costs["sectors"] += sectors
        wanted = report["instructions"]["by_class"]
        # A store that no lane executes has its issue slot all the same.
        assert {name: counts[name] for name in wanted if name != "store_global"} == {
            name: count for name, count in wanted.items() if name != "store_global"
        }
        assert costs["wavefronts"] == sum(one["wavefronts"] for one in report["shared"].values()) > 0
        assert costs["sectors"] == sum(one["sectors"] for one in report["global"].values()) > 0


def test_barriers_are_numbered_by_their_uses(tmp_path):
    found, _ = launches(tmp_path)
    for warp, kind in enumerate(("arrive", "sync")):
        events = found[0]["traced"][0]["warps"][warp]
        assert [event[3] for event in events if event[0] == "sync" and event[2] == 0] == list(range(8))
        assert [event[3] for event in events if event[0] == kind and event[2] == 2] == list(range(4))


@pytest.mark.parametrize("source, architecture", [(SOURCE, None), (PIPELINES, HOPPER)])
def test_the_same_trace_each_time(tmp_path, source, architecture):
    texts = [
        traced(tmp_path, source, architecture, WARPSIM_THREADS=threads, WARPSIM_TRACE_BLOCKS=2)[0]
        for threads in (1, 4, 4)
    ]
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("seed", (0, 7))
def test_phases_of_mbarriers_get_what_they_were_initialised_for(tmp_path, seed):
    text, report = traced(tmp_path, PIPELINES, HOPPER, WARPSIM_TRACE_BLOCKS=2, WARPSIM_SCHEDULE=seed)
    ring = json.loads(text)["launches"][0]
    assert report["launches"][0]["bulk"]["load"] == {"copies": 32, "bytes": 8192}
    for block in ring["traced"]:
        arrivals, announced, brought, waited = Counter(), Counter(), Counter(), defaultdict(int)
        for warp in block["warps"]:
            for kind, _, *rest in warp:
                if kind == "arrive_phase":
                    arrivals[tuple(rest[:2])] += rest[2]
                    announced[tuple(rest[:2])] += rest[3]
                elif kind == "copy":
                    brought[tuple(rest[:2])] += rest[3]
                elif kind == "wait":
                    waited[tuple(rest[:2])] += 1
        assert sum(brought.values()) == 4096 and announced == Counter({key: 0 for key in arrivals}) + announced
        assert {key: count for key, count in announced.items() if count} == dict(brought)
        for (mbarrier, phase), count in arrivals.items():
            assert count == block["mbarriers"][mbarrier][2], (mbarrier, phase)
        assert waited
        # What is waited for was complete: all of its arrivals are there, or it is the phase before the first.
        assert all(phase == -1 or (mbarrier, phase) in arrivals for mbarrier, phase in waited)


def test_a_block_that_does_very_much_is_cut(tmp_path):
    text, _ = traced(tmp_path, arguments=["long"], WARPSIM_TIMEOUT_S=0)
    first, second = json.loads(text)["launches"]
    assert not first["traced"][0]["cut"] and second["traced"][0]["cut"]
    assert sum(len(warp) for warp in second["traced"][0]["warps"]) == 1 << 18


LOCK = r"""
__device__ int lock, next_tile, sum;
__global__ void kernel() {
    for (;;) {
        __shared__ int tile;
        if (threadIdx.x == 0) tile = atomicAdd(&next_tile, 1);
        __syncthreads();
        if (tile >= 12) return;
        if (threadIdx.x == 0) {
            while (atomicCAS(&lock, 0, 1)) __nanosleep(20);
            __threadfence();
            sum += tile;
            __threadfence();
            atomicExch(&lock, 0);
        }
        __syncthreads();
    }
}
int main() {
    kernel<<<4, 64>>>();
    int found;
    cudaMemcpyFromSymbol(&found, sum, sizeof found);
    return found != 66;
}
"""


def test_blocks_that_take_turns(tmp_path):
    plain = run_program(LOCK, report=True).check().report
    texts = set()
    for threads in (1, 3):
        text, report = traced(tmp_path, LOCK, WARPSIM_TRACE_BLOCKS=4, WARPSIM_THREADS=threads)
        assert report == plain
        texts.add(text)
    assert len(texts) == 1


FAILS = r"""
__global__ void kernel(int *x) {
    __shared__ int tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x * (threadIdx.x > 3 ? 1 << 20 : 1)] = tile[31 - threadIdx.x];
}
int main() {
    int *x;
    cudaMalloc(&x, 128);
    kernel<<<2, 32>>>(x);
    return cudaDeviceSynchronize() == cudaSuccess;
}
"""


def test_a_launch_that_fails_says_so(tmp_path):
    (trace,) = launches(tmp_path, FAILS, WARPSIM_TRACE_BLOCKS=2)[0]
    assert "program.cu:6" in trace["error"]
    assert [event[0] for event in trace["traced"][0]["warps"][0]][:2] == ["run", "sync"]


@pytest.mark.parametrize("value", ("33", "-1", "two", "1.5"))
def test_a_bad_number_of_blocks_is_refused(value):
    result = run_program(SOURCE, env={"WARPSIM_TRACE_BLOCKS": value})
    assert result.returncode != 0
    assert f"WARPSIM_TRACE_BLOCKS={value}: must be a number of blocks from 0 to 32" in result.stderr


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    result = run_program(SOURCE, env={"WARPSIM_TRACE": str(tmp_path / "no such folder" / "trace.json")})
    assert "cannot write WARPSIM_TRACE=" in result.stderr


def test_process_id_in_the_name(tmp_path):
    run_program(SOURCE, env={"WARPSIM_TRACE": str(tmp_path / "%p.json")}).check()
    (file,) = tmp_path.iterdir()
    assert file.stem.isdigit() and json.loads(file.read_text())["version"] == 1
