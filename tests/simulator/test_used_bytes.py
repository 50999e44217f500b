"""Loads behind `.pragma "used_bytes_mask n"`: the bytes of the mask alone can be hazards; values and counts are those
of the whole load."""

import numpy as np
import pytest
from cudart import run_ptx

LOADS = {
    "shared": "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [tile];",
    "shared register": "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r5];",
    "generic": "ld.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];",
}


def run(mask, words, load="shared", address=0, env=None):
    """One thread writes the given words of four, then loads all four."""
    text = f""".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 p) {{
        .shared .align 16 .b8 tile[16];
        .reg .b32 %r<16>; .reg .b64 %rd<4>;
        ld.param.u64 %rd0, [p];
        mov.u32 %r5, tile; mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1;
        {"".join(f"mov.u32 %r6, {10 + w}; st.shared.u32 [tile+{4 * w}], %r6;" for w in words)}
        .pragma "used_bytes_mask {mask}";
        {LOADS[load].replace("tile]", f"tile+{address}]")}
        st.global.v4.u32 [%rd0], {{%r1, %r2, %r3, %r4}};
        ret; }}"""
    return run_ptx(text, "test", 1, 1, [np.zeros(4, np.uint32)], report=True, env=env or {})


@pytest.mark.simulator_only
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(
    "mask, words", [(0x0FFF, (0, 1, 2)), (0xF0FF, (0, 1, 3)), ("0xf00f", (0, 3)), (0xFFFF, range(4))]
)
def test_bytes_that_nobody_uses_may_be_unwritten(load, mask, words):
    result = run(mask, words, load).check()
    assert result.hazards == []
    assert [result.outputs[0][w] for w in words] == [10 + w for w in words]
    counts = result.report["launches"][0]["shared"]["load"]
    assert (counts["wavefronts"], counts["ideal"]) == (1, 1)


@pytest.mark.simulator_only
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("mask, words", [(0x0FFF, (0, 1, 3)), (0x00FF, (1,)), (0xF000, (0, 1, 2)), (0xFFFF, (0, 1, 2))])
def test_bytes_that_are_used_may_not(load, mask, words):
    result = run(mask, words, load)
    assert not result.ok and result.hazards[0]["kind"] == "uninitialized_shared"


@pytest.mark.simulator_only
def test_the_whole_load_must_lie_in_bounds():
    result = run(0x000F, (0, 1), address=16)
    assert not result.ok and result.hazards[0]["kind"] == "out_of_bounds"


@pytest.mark.simulator_only
def test_the_mask_is_of_the_next_instruction_alone():
    text = """.version 8.7\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 p) {
        .shared .align 16 .b8 tile[16];
        .reg .b32 %r<16>; .reg .b64 %rd<4>;
        ld.param.u64 %rd0, [p];
        mov.u32 %r6, 1;
        st.shared.u32 [tile], %r6;
        .pragma "used_bytes_mask 15";
        ld.shared.v2.u32 {%r1, %r2}, [tile];
        st.global.v2.u32 [%rd0], {%r1, %r2};
        ld.shared.v2.u32 {%r3, %r4}, [tile];
        st.global.v2.u32 [%rd0], {%r3, %r4};
        ret; }"""
    result = run_ptx(text, "test", 1, 1, [np.zeros(4, np.uint32)], report=True)
    assert not result.ok and result.hazards[0]["kind"] == "uninitialized_shared"


@pytest.mark.simulator_only
@pytest.mark.parametrize("load", ["ld.global.v4.u32", "ld.v4.u32"])
@pytest.mark.parametrize("mask, races", [(0x0FFF, False), (0x00FF, False), (0xF00F, True), (0xFFFF, True)])
@pytest.mark.parametrize("blocks", [1, 2])
def test_of_global_memory_others_may_write_the_bytes_that_nobody_uses(load, mask, races, blocks):
    """Block 0's thread 0 loads four words, of which the last thread of all writes the fourth."""
    text = f""".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 p) {{
        .reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .pred %p<3>;
        ld.param.u64 %rd0, [p];
        mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; add.u32 %r2, %r0, %r1; setp.eq.u32 %p0, %r2, 0;
        setp.eq.u32 %p1, %r2, {blocks};
        @%p1 st.global.u32 [%rd0+12], 5;
        @!%p0 bra DONE;
        .pragma "used_bytes_mask {mask}";
        {load} {{%r4, %r5, %r6, %r7}}, [%rd0];
        add.u32 %r4, %r4, %r5;
        st.global.u32 [%rd0+16], %r4;
    DONE:
        ret; }}"""
    result = run_ptx(text, "test", blocks, 2, [np.arange(5, dtype=np.uint32)], report=True)
    assert [hazard["kind"] for hazard in result.hazards] == ["global_race"] * races
    assert races or list(result.outputs[0]) == [0, 1, 2, 5, 1]
