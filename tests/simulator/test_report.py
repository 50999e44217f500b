"""The JSON report and the table: their shape, and that they are there when they should be."""

import json
import os
import subprocess

import numpy as np
import pytest
from cudart import build_program, run_program, run_ptx, simulator_environment

pytestmark = pytest.mark.simulator_only

SOURCE = r"""
#include <cstdio>
#include <cstring>
template <class T> __global__ void strided(const T *from, T *to, int stride) {
    __shared__ T tile[32 * 32];
    int i = threadIdx.x;
    to += 1056 * blockIdx.x;
    tile[i * stride] = from[i];
    __syncthreads();
    to[i * stride] = tile[i * stride];
    if (i < 5) to[1024 + i] = 1;
}
int main(int argc, char **argv) {
    float *p;
    cudaMalloc(&p, 4096 * 4);
    cudaMemset(p, 0, 4096 * 4);
    strided<float><<<1, 32>>>(p, p + 1024, 1);
    if (argc > 1 && !std::strcmp(argv[1], "twice")) strided<float><<<2, 32>>>(p, p + 1024, 32);
    if (argc > 1 && !std::strcmp(argv[1], "fail")) strided<float><<<1, 32>>>(p, p + 1024, 1 << 20);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    if (argc > 1 && !std::strcmp(argv[1], "abort")) {
        std::fflush(nullptr);
        __builtin_trap();
    }
    return 0;
}
"""
LAUNCH_KEYS = {
    "kernel", "grid", "block", "shared_bytes", "instructions", "shared", "global", "barriers", "divergent_branches",
    "order", "error", "hazards", "notes", "lines", "bulk", "tensor_copies", "mbarriers", "wgmma",
}  # fmt: skip


def test_counters():
    report = run_program(SOURCE, ["twice"], report=True).check().report
    assert report["version"] == 1
    plain, strided = report["launches"]
    assert set(plain) == LAUNCH_KEYS
    assert plain["kernel"] == "void strided<float>(float const*, float*, int)"
    assert (plain["grid"], plain["block"], plain["shared_bytes"]) == ([1, 1, 1], [32, 1, 1], 4096)
    assert strided["grid"] == [2, 1, 1]
    total = plain["instructions"]["total"]
    assert total == sum(plain["instructions"]["by_class"].values()) > 10
    assert plain["shared"]["load"] == {"wavefronts": 1, "ideal": 1}
    assert plain["shared"]["store"] == {"wavefronts": 1, "ideal": 1}
    assert strided["shared"]["load"] == {"wavefronts": 64, "ideal": 2}
    assert plain["global"]["load"] == {"sectors": 4, "ideal": 4, "bytes": 128}
    assert strided["global"]["store"]["sectors"] >= 64
    assert plain["barriers"] == 1 and strided["barriers"] == 2
    assert plain["hazards"] == [] and plain["error"] == ""
    assert plain["shared"]["cp_async"] == {"wavefronts": 0, "ideal": None}


def test_lines_add_up():
    report = run_program(SOURCE, ["twice"], report=True).check().report
    launch = report["launches"][1]
    assert sum(line["shared_wavefronts"] for line in launch["lines"]) == sum(
        kind["wavefronts"] for kind in launch["shared"].values()
    )
    assert sum(line["global_sectors"] for line in launch["lines"]) == sum(
        kind["sectors"] for kind in launch["global"].values()
    )
    source = SOURCE.splitlines()
    worst = max(launch["lines"], key=lambda line: line["shared_wavefronts"])
    assert worst["file"].endswith("program.cu") and "tile[i * stride]" in source[worst["line"] - 1]


def test_hazards_are_in_the_report():
    result = run_program(SOURCE, ["fail"], report=True)
    assert result.returncode == 1
    good, bad = result.report["launches"]
    assert good["error"] == "" and bad["error"]
    hazard = bad["hazards"][0]
    assert hazard["kind"] == "out_of_bounds" and hazard["file"].endswith("program.cu") and hazard["line"] > 0
    assert hazard["block"] == [0, 0, 0] and hazard["warp"] == 0 and 0 <= hazard["lane"] < 32
    assert int(hazard["address"], 16) >= 0 and hazard["message"]
    assert "warpsim: access out of bounds at program.cu:" in result.stderr


def test_report_is_there_after_a_crash():
    result = run_program(SOURCE, ["abort"], report=True)
    assert result.returncode < 0 and len(result.report["launches"]) == 1


UNASKED = r"""
#include <cstring>
__global__ void set(int *p) { *p = 1; }
int main(int, char **argv) {
    int *p, h[64];
    cudaMalloc(&p, 64);
    set<<<1, 1>>>(p);
    const bool launch = !std::strcmp(argv[1], "launch");
    if (launch) set<<<1, 2048>>>(p);
    if (!launch) cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
    if (argv[2][0] == '1' && cudaGetLastError() == cudaSuccess) return 1;
    if (argv[2][0] == '2' && cudaPeekAtLastError() == cudaSuccess) return 1;
    return cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("call", "words"), [("launch", "launch of set(int*) refused"), ("copy", "cudaMemcpy: the source")]
)
def test_errors_that_nothing_asks_for_are_in_the_report(call, words):
    """Such a program ends well. One that asks may have gone another way, and is none of the report's business."""
    result = run_program(UNASKED, [call, "0"], report=True).check()
    (error,) = result.report["unasked_errors"]
    assert error.startswith(words) and len(result.report["launches"]) == 1
    assert (
        "1 call named above was refused, and the program has ended without a cudaGetLastError() behind it"
        in result.stderr
    )
    for asks in "12":
        result = run_program(UNASKED, [call, asks], report=True).check()
        assert "unasked_errors" not in result.report
        assert words in result.stderr and "named above" not in result.stderr


def test_report_without_launches():
    source = "#include <cstdio>\nint main() { int n; return cudaGetDeviceCount(&n); }"
    assert run_program(source, report=True).check().report == {
        "version": 1,
        "launches": [],
        "host_calls": [],
        "operations": [],
    }


def test_process_id_in_the_path(tmp_path):
    environment = simulator_environment({"WARPSIM_REPORT": tmp_path / "report-%p.json"})
    process = subprocess.Popen([build_program(SOURCE)], env=environment)
    assert process.wait() == 0
    assert json.loads((tmp_path / f"report-{process.pid}.json").read_text())["launches"]
    assert len(os.listdir(tmp_path)) == 1


def test_unwritable_path_is_said_once(tmp_path):
    result = run_program(SOURCE, ["twice"], env={"WARPSIM_REPORT": tmp_path / "no" / "report.json"}).check()
    assert result.stderr.count("cannot write WARPSIM_REPORT=") == 1


def test_table():
    result = run_program(SOURCE, ["twice"], env={"WARPSIM_TABLE": 1}).check()
    assert "void strided<float>(float const*, float*, int) grid (2, 1, 1) block (32, 1, 1)" in result.stderr
    assert "wavefronts, ideal 2, bank conflicts 62" in result.stderr
    last = result.stderr.split("grid (2, 1, 1)")[1]
    rows = [line for line in last.splitlines() if line.strip().startswith("program.cu:")]
    excess = []
    for row in rows:
        wavefronts, ideal, sectors, ideal_sectors = (int(x) for x in row.split()[2:6])
        excess.append(wavefronts - ideal + max(0, sectors - ideal_sectors))
    assert len(rows) >= 4 and excess == sorted(excess, reverse=True)
    assert "to[i * stride] = tile[i * stride];" in rows[0]
    assert "more lines" not in last, "all of these few lines are there"


def test_table_and_report_of_a_launch_that_failed_count_nothing():
    result = run_program(SOURCE, ["fail"], env={"WARPSIM_TABLE": 1}, report=True)
    first, failed = result.stderr.split("grid (1, 1, 1)")[1:3]
    assert "PTX warp instructions" in first and "FAILED: " not in first
    assert "FAILED: " in failed and "PTX warp instructions" not in failed, "zeros that look like counters"
    launch = result.report["launches"][-1]
    assert launch["error"] and launch["hazards"] and launch["instructions"]["total"] == 0 and not launch["lines"]


def test_names_with_odd_characters():
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry $odd_name$(.param .u64 p) { ret; }\n"
    result = run_ptx(ptx, "$odd_name$", 1, 32, [np.zeros(1, np.int32)], report=True).check()
    assert result.report["launches"][0]["kernel"] == "$odd_name$"
