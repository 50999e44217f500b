"""CUDA arrays, texture and surface objects: what the runtime takes, refuses and copies, and what reports count."""

import re
from pathlib import Path

import cudart
import numpy as np
import pytest
from cudart import run_program

PROGRAM = Path(__file__).parent / "programs" / "runtime" / "texture_api.cu"
LATE_COPIES = "late_copies"
CASES = re.findall(r"CASE\((\w+)\)", PROGRAM.read_text().split("#define CASE")[1])
CASES.remove(LATE_COPIES)


def test_all_cases_are_found():
    assert len(CASES) >= 10


@pytest.mark.simulator_only
@pytest.mark.parametrize("case", CASES)
def test_case(case):
    assert run_program(PROGRAM, [case]).check().stdout == "passed\n"


@pytest.mark.simulator_only
def test_a_pinned_source_is_read_late():
    """That the host has changed it meanwhile is a hazard; without hazards the copy brings what stands there."""
    assert run_program(PROGRAM, [LATE_COPIES], env={"WARPSIM_HAZARDS": "off"}).check().stdout == "passed\n"
    result = run_program(PROGRAM, [LATE_COPIES], report=True)
    (hazard,) = result.hazards
    assert result.returncode and hazard["kind"] == "launch_race"
    assert "cudaMemcpy2DToArrayAsync in stream 0 reads byte 2 of the 128 bytes" in hazard["message"]


@pytest.mark.simulator_only
def test_texture_reads_are_a_class_of_their_own():
    report = run_program(PROGRAM, ["counted"], report=True).check().report
    assert len(report["launches"]) == 2
    for launch in report["launches"]:
        assert launch["instructions"]["by_class"]["texture"] == 4
        stored = launch["instructions"]["by_class"]["store_global"]
        assert launch["global"]["load"]["sectors"] == 0, "a texture read is no load of global memory"
        assert launch["global"]["store"]["sectors"] == 4 * stored


KERNEL = """.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u64 handle)
{{
    .reg .b16 h;
    .reg .b32 r, s, t, u, i;
    .reg .b64 d, e;
    ld.param.u64 e, [out];
    ld.param.u64 d, [handle];
    mov.u32 i, %tid.x;
    cvt.u16.u32 h, i;
    {form};
    mul.wide.u32 d, i, 4;
    add.u64 e, e, d;
    st.global.u32 [e], 7;
    ret;
}}
"""
FORMS = [
    "tex.1d.v4.u32.s32 {r, s, t, u}, [d, {i}]",
    "tex.3d.v4.u32.f32 {r, s, t, u}, [d, {i, i, i, i}]",
    "tex.acube.v4.u32.f32 {r, s, t, u}, [d, {i, i, i, i}]",
    "tld4.g.2d.v4.u32.f32 {r, s, t, u}, [d, {i, i}]",
    "txq.level.width.b32 r, [d], i",
    "suld.b.2d.v4.b32.clamp {r, s, t, u}, [d, {i, i}]",
    "sust.b.3d.b16.zero [d, {i, i, i, i}], {h}",
    "suq.width.b32 r, [d]",
]


@pytest.mark.simulator_only
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("handle", [0, 1, 0x7E00000000000001, 0x5F00000000000001, 2**63, 2**64 - 1], ids=hex)
def test_any_number_may_come_as_a_handle(form, handle):
    text = KERNEL.format(form=form)
    out = np.zeros(32, np.uint32)
    result = cudart.run_ptx(text, "kernel", 1, 32, args=[out, np.uint64(handle)], report=True)
    kind = "surface" if form.startswith("su") else "texture"
    assert result.hazards[0]["kind"] == "invalid_argument"
    assert f"uses {handle:#x}, which is no {kind} object" in result.hazards[0]["message"]
    went_on = cudart.run_ptx(text, "kernel", 1, 32, [out, np.uint64(handle)], env={"WARPSIM_HAZARDS": "warn"}).check()
    assert (went_on.outputs[0] == 7).all(), "with warnings the launch goes on"
