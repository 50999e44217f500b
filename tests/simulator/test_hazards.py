"""Each faulty program is refused with the right kind, line and words, whatever the schedule; its mended twin is clean.

A program marks the line of the fault `//! kind: words | more words` ("or" between alternatives) and the other side of
a conflict `//~`. The report's line is one of those, and the message names all of them.
"""

import re
from pathlib import Path

import pytest
from cudart import run_program
from families import FAULTY, run_faulty

pytestmark = pytest.mark.simulator_only


def marks(name):
    """(kinds, words, all marked lines) of the program's namespace"""
    kinds = words = None
    lines, within = set(), False
    for number, line in enumerate(FAULTY[name].read_text().splitlines(), 1):
        within = line == f"namespace {name} {{" or within and line != f"}}  // namespace {name}"
        if within and (match := re.search(r"//! ([a-z_ ]+): (.+)", line)):
            kinds = match[1].split(" or ")
            words = [w.split(" or ") for w in match[2].split(" | ")]
        if within and ("//!" in line or "//~" in line):
            lines.add(number)
    assert kinds, f"{name} marks no fault"
    return kinds, words, lines


@pytest.mark.parametrize("name", FAULTY)
def test_faulty_program(name):
    kinds, words, lines = marks(name)
    file = FAULTY[name].name
    result = run_faulty(name)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    assert hazard["kind"] in kinds, hazard
    assert Path(hazard["file"]).name == file
    assert hazard["line"] in lines, hazard
    for alternatives in words:
        assert any(w in hazard["message"] for w in alternatives), hazard["message"]
    for line in lines:
        assert f"{file}:{line}" in hazard["message"] + f" {file}:{hazard['line']}"
    assert f"{file}:{hazard['line']}" in result.stderr, "the line is not printed"


ADDRESSES = [
    name for name in FAULTY if re.match("bounds|misaligned|address|surface|texture_layer|texture_larger", name)
]


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_bad_address_names_the_line_of_its_access(name):
    hazard = run_faulty(name).hazards[0]
    assert re.match(rf"\S+ at {FAULTY[name].name}:{hazard['line']} (reads|writes|updates) ", hazard["message"])


@pytest.mark.parametrize("name", FAULTY)
def test_mended_twin(name):
    result = run_faulty(name, mended=True).check()
    assert result.stdout == "cudaSuccess\n" and result.hazards == []


@pytest.mark.parametrize("name", FAULTY)
def test_verdict_does_not_depend_on_the_schedule(name):
    kinds, _, lines = marks(name)
    for seed in (1, 2, 3):
        result = run_faulty(name, WARPSIM_SCHEDULE=seed)
        assert result.returncode == 3 and result.hazards[0]["kind"] in kinds, f"seed {seed}: {result.hazards[:1]}"
        assert result.hazards[0]["line"] in lines
        assert run_faulty(name, mended=True, WARPSIM_SCHEDULE=seed).check().hazards == [], f"seed {seed}"


def test_warn_reports_and_goes_on():
    result = run_faulty("race_missing_barrier", WARPSIM_HAZARDS="warn").check()
    assert result.hazards[0]["kind"] == "shared_race"


def test_off_reports_no_race():
    assert run_faulty("race_missing_barrier", WARPSIM_HAZARDS="off").check().hazards == []


# Later blocks are over sooner, so that with several host threads they fail before the first one that does.
MANY_BLOCKS = """
#include <cstdio>
__global__ void k(int *out, int first) {
    __shared__ int x[64];
    int sum = 0;
    for (int i = 0; i < 600 * (gridDim.x - blockIdx.x); ++i) sum += i ^ sum;
    if (threadIdx.x < 32 || blockIdx.x < first) x[threadIdx.x] = sum;
    if (blockIdx.x < first) __syncthreads();
    for (int i = 0; i < blockIdx.x % 3 + 1; ++i) out[blockIdx.x * 64 + threadIdx.x] = x[63 - threadIdx.x] + i;
}
int main() {
    int *out;
    cudaMalloc(&out, 64 * 64 * sizeof(int));
    k<<<64, 64>>>(out, 7);
    std::printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


@pytest.mark.long
@pytest.mark.parametrize("mode", ["on", "warn"])
def test_a_report_does_not_depend_on_the_number_of_threads(mode):
    settings = {"WARPSIM_HAZARDS": mode}
    one = run_program(MANY_BLOCKS, env={**settings, "WARPSIM_THREADS": 1}, report=True)
    kinds = {h["kind"]: h["count"] for h in one.hazards}
    assert set(kinds) <= {"uninitialized_shared", "shared_race"} and one.hazards[0]["block"] == [7, 0, 0]
    assert sum(kinds.values()) == 1 if mode == "on" else sum(kinds.values()) > 57, kinds
    for threads in (2, 5):
        for _ in range(3):
            more = run_program(MANY_BLOCKS, env={**settings, "WARPSIM_THREADS": threads}, report=True)
            for launch, other in zip(one.report["launches"], more.report["launches"], strict=True):
                assert other["hazards"] == launch["hazards"], f"{threads} threads report other hazards"
                assert other == launch, f"{threads} threads count otherwise"
            assert (more.stdout, more.stderr) == (one.stdout, one.stderr), f"{threads} threads say something else"


def test_a_slot_for_what_is_discarded_races_and_does_no_harm():
    result = run_faulty("race_discard_slot", WARPSIM_HAZARDS="warn").check()
    assert {h["kind"] for h in result.hazards} == {"shared_race"}


NON_TRIVIAL_RUNS = r"""
#include <cub/device/device_run_length_encode.cuh>
#include <cstdio>
int main() {
    const int n = 4000;
    int *in, *starts, *lengths, *count;
    cudaMallocManaged(&in, n * sizeof(int));
    cudaMallocManaged(&starts, n * sizeof(int));
    cudaMallocManaged(&lengths, n * sizeof(int));
    cudaMallocManaged(&count, sizeof(int));
    for (int i = 0, left = 0, run = -1; i < n; ++i) {
        if (left-- == 0) ++run, left = run * 5 % 9;
        in[i] = run;
    }
    size_t bytes = 0;
    void *storage = nullptr;
    cub::DeviceRunLengthEncode::NonTrivialRuns(storage, bytes, in, starts, lengths, count, n);
    cudaMalloc(&storage, bytes);
    cub::DeviceRunLengthEncode::NonTrivialRuns(storage, bytes, in, starts, lengths, count, n);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) return printf("%s\n", cudaGetErrorName(error)), 3;
    int found = 0;
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && in[end] == in[i];) ++end;
        if (end - i == 1) continue;
        if (starts[found] != i || lengths[found] != end - i) return printf("run %d\n", found), 1;
        ++found;
    }
    printf("%s\n", found == *count ? "right" : "another number of runs");
}
"""


@pytest.mark.long
def test_the_race_of_cub_is_reported_and_does_no_harm():
    result = run_program(NON_TRIVIAL_RUNS, report=True)
    assert result.returncode == 3 and "shared_race" in [h["kind"] for h in result.hazards]
    assert "does no harm only where nobody reads it" in result.hazards[0]["message"]
    assert run_program(NON_TRIVIAL_RUNS, env={"WARPSIM_HAZARDS": "warn"}).check().stdout == "right\n"


# Every read races with a write of the other warp, at one line: a million and more.
MANY_HAZARDS = """
__global__ void k(int *out) {
    __shared__ int x[64];
    int sum = 0;
    for (int i = 0; i < 4000; ++i) {
        x[threadIdx.x] = i;
        sum += *(volatile int *)&x[63 - threadIdx.x];
    }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}
int main() {
    int *out;
    cudaMalloc(&out, 64 * 64 * sizeof(int));
    k<<<16, 64>>>(out);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 3])
def test_hazards_that_repeat_are_counted(threads):
    environment = {"WARPSIM_HAZARDS": "warn", "WARPSIM_THREADS": threads}
    result = run_program(MANY_HAZARDS, env=environment, report=True).check()
    assert {hazard["kind"] for hazard in result.hazards} <= {"shared_race", "uninitialized_shared"}
    assert sum(hazard["count"] for hazard in result.hazards) > 1_000_000
    assert len(result.hazards) <= 8, "hazards of the same lines are told one by one"
