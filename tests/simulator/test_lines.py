"""Which source line an instruction is charged to: a header's own, a wrapper's caller's; and the calls that lead there."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from cudart import PROGRAMS, run_program, run_ptx

FOLDER = PROGRAMS / "lines"
KERNEL, TILES = FOLDER / "kernel.cu", FOLDER / "tiles.cuh"
# Of the headers, so that a program is compiled again when they change.
DIGEST = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(FOLDER.glob("*.cuh")))).hexdigest()[:8]

pytestmark = pytest.mark.simulator_only


def line_of(file, text):
    (number,) = [number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line]
    return number


def run(stride=128, **env):
    return run_program(KERNEL, args=[stride], env=env, flags=[f"-DHEADERS=0x{DIGEST}"], report=True)


def lines_of(result):
    (launch,) = result.report["launches"]
    assert sum(line["instructions"] for line in launch["lines"]) == launch["instructions"]["total"]
    return launch["lines"]


def way(line):
    """[(function, file, line)] of the calls that lead to it."""
    return [(call["function"], Path(call["file"]).name, call["line"]) for call in line.get("inlined", [])]


COPIES = line_of(TILES, "// the copies")
FIRST, SECOND, PAIR = (line_of(KERNEL, f"// the {name}") for name in ("first tile", "second tile", "pair"))
LOW = line_of(TILES, "// the pair's low tile")


def test_a_headers_lines_are_charged_by_the_calls_that_lead_there():
    lines = lines_of(run().check())
    copies = [line for line in lines if Path(line["file"]) == TILES and line["line"] == COPIES]
    assert [way(line) for line in copies] == [
        [("load_tile", "kernel.cu", FIRST)],
        [("load_tile", "kernel.cu", SECOND)],
        [("load_tile", "tiles.cuh", LOW), ("load", "kernel.cu", PAIR)],
        [("load_tile", "tiles.cuh", LOW + 1), ("load", "kernel.cu", PAIR)],
    ]
    assert all(line["shared_wavefronts"] == 3 * 4 and line["global_sectors"] == 3 * 16 for line in copies)


def test_wrappers_and_cudas_headers_count_as_their_callers():
    lines = lines_of(run().check())
    assert {Path(line["file"]).name for line in lines} == {"kernel.cu", "tiles.cuh"}
    own = [line for line in lines if Path(line["file"]) == KERNEL]
    assert all("inlined" not in line for line in own)
    assert line_of(KERNEL, "// a conversion") in {line["line"] for line in own}


def test_other_files_are_named_as_wrappers():
    for patterns in ("tiles.cuh", "other*.h:lines/t*.cuh"):
        lines = lines_of(run(WARPSIM_WRAPPERS=patterns).check())
        assert {Path(line["file"]).name for line in lines} == {"kernel.cu"}
        charged = {line["line"]: line["shared_wavefronts"] for line in lines if line["shared_wavefronts"]}
        assert [charged[line] for line in (FIRST, SECOND, PAIR)] == [12, 12, 24]


def test_the_table_names_the_calls():
    table = run(WARPSIM_TABLE=1).check().stderr
    row = next(line for line in table.splitlines() if f"tiles.cuh:{COPIES} " in line)
    assert "(in load_tile(), called at kernel.cu:" in row


def test_a_hazard_in_a_header_names_the_calls():
    result = run(stride=4096)
    (hazard,) = result.hazards
    assert result.returncode == 3 and hazard["kind"] == "out_of_bounds"
    assert (Path(hazard["file"]), hazard["line"]) == (TILES, COPIES)
    assert way(hazard) == [("load_tile", "kernel.cu", SECOND)]
    place = f"tiles.cuh:{COPIES} (in load_tile(), called at kernel.cu:{SECOND})"
    assert f"cp.async.cg.shared.global at {place} reads 16 bytes at 0x" in hazard["message"]
    assert f"[tiles.cuh:{COPIES}, in load_tile(), called at kernel.cu:{SECOND}, kernel load_tiles" in hazard["message"]


PTX = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry f(.param .u64 p) {
    .reg .b64 %rd<3>; .reg .b32 %r<3>;
    .loc 1 5 1
    ld.param.u64 %rd1, [p];
    .loc 2 10 1, function_name $L__info_string0, inlined_at 1 6 3
    .loc 3 20 1, function_name $L__info_string1, inlined_at 2 10 1
    mov.u32 %r1, 1;
    .loc 2 10 1, function_name $L__info_string0, inlined_at 1 7 3
    .loc 3 20 1, function_name $L__info_string1, inlined_at 2 10 1
    st.global.u32 [%rd1+4096], %r1;
    ret;
}
.file 1 "/home/me/k.cu"
.file 2 "/home/me/b.cuh"
.file 3 "NAME"
.section .debug_str {
$L__info_string0:
.b8 95,90,49,103,105,0
$L__info_string1:
.b8 95,90,49,104,118,0
}
"""


@pytest.mark.parametrize(
    "name, place, calls",
    [
        ("/home/me/c.cuh", ("c.cuh", 20), [("h", "b.cuh", 10), ("g", "k.cu", 7)]),
        ("/home/me/ptx_c.cuh", ("b.cuh", 10), [("g", "k.cu", 7)]),
        ("/opt/cuda/targets/x86_64-linux/include/cuda_fp16.hpp", ("b.cuh", 10), [("g", "k.cu", 7)]),
        ("/v/lib/python3.12/site-packages/nvidia/cu13/include/cccl/cub/warp.cuh", ("b.cuh", 10), [("g", "k.cu", 7)]),
        ("/home/me/cub/block/load.cuh", ("b.cuh", 10), [("g", "k.cu", 7)]),
    ],
)
def test_which_files_are_wrappers(name, place, calls):
    text = PTX.replace("NAME", name)
    result = run_ptx(text, "f", 1, 1, [np.zeros(4, np.uint32)], report=True)
    (hazard,) = result.hazards
    assert (Path(hazard["file"]).name, hazard["line"]) == place
    assert way(hazard) == calls


# nvcc reads the flag once, before the loop, and gives that load line 0.
MOVED = r"""
__global__ void wait_for(MENDED int *flag, int *out) {
    if (blockIdx.x == 0) {
        *flag = 1;
    } else {
        while (*flag == 0) {}  // the loop
        out[1] = 1;
    }
}
int main() {
    int *p;
    cudaMalloc(&p, 64);
    cudaMemset(p, 0, 64);
    wait_for<<<2, 1>>>(p, p + 1);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


def test_what_the_compiler_has_moved_out_of_a_loop_has_its_line():
    result = run_program(MOVED, flags=["-DMENDED="], report=True)
    (hazard,) = result.hazards
    line = 1 + [*MOVED.splitlines()].index("        while (*flag == 0) {}  // the loop")
    assert (hazard["kind"], hazard["line"]) == ("global_race", line)
    assert f"read at program.cu:{line} by" in hazard["message"] and "PTX line" not in result.stderr
    assert not run_program(MOVED, flags=["-DMENDED=volatile"], report=True).check().hazards
    # The other block first: what was read is all that there ever is.
    other = {"WARPSIM_SCHEDULE": "1"}
    (hazard,) = run_program(MOVED, flags=["-DMENDED="], env=other, report=True).hazards
    assert (hazard["kind"], hazard["line"]) == ("deadlock", line)
    assert "what is neither volatile nor atomic may be read once, before the loop" in hazard["message"]
    assert not run_program(MOVED, flags=["-DMENDED=volatile"], env=other, report=True).check().hazards
