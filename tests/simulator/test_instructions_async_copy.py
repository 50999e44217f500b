"""cp.async: what it moves, and when."""

import numpy as np
import pytest
from memory_kernels import bytes_of, run

COPY = """
    shl.b64 %rd8, %rd9, 4; add.u64 %rd10, %rd0, %rd8; add.u64 %rd11, %rd1, %rd8;
    cvt.u32.u64 %r1, %rd8; mov.u32 %r2, smem; add.u32 %r2, %r2, %r1;
    st.shared.v4.b32 [%r2], {-1, -1, -1, -1};
"""
OUT = "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r2]; st.global.v4.b32 [%rd11], {%r10, %r11, %r12, %r13};"


@pytest.mark.parametrize("wait", ["cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"])
@pytest.mark.parametrize("text,size", [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16), ("cg.L2::128B", 16)])
def test_async_copy(text, size, wait):
    cache, _, hint = text.partition(".")
    data = bytes_of(32 * 16)
    body = COPY + f"cp.async.{cache}.shared.global{'.' + hint if hint else ''} [%r2], [%rd10], {size}; {wait}" + OUT
    out = run(body, [data, np.zeros_like(data)]).check().outputs[1].reshape(32, 16)
    assert (out[:, :size] == data.reshape(32, 16)[:, :size]).all() and (out[:, size:] == 255).all()


def test_async_copy_fills_with_zeros_and_reads_no_more_than_src_size():
    data = bytes_of(31 * 16 + 5)  # lane 31 has 5 bytes left; lane 0 reads nothing, from nowhere
    body = (
        COPY
        + """
    mov.u32 %r5, 16; setp.eq.u32 %p1, %r0, 31; @%p1 mov.u32 %r5, 5;
    setp.eq.u32 %p2, %r0, 0; @%p2 mov.u32 %r5, 0; @%p2 mov.u64 %rd10, 0;
    cp.async.cg.shared.global [%r2], [%rd10], 16, %r5; cp.async.wait_all;
    """
        + OUT
    )
    out = run(body, [data, np.zeros(512, np.uint8)]).check().outputs[1]
    expected = np.concatenate([data, np.zeros(11, np.uint8)])
    expected[:16] = 0
    assert (out == expected).all()


def test_async_copy_ignores_the_source_under_a_predicate():
    data = bytes_of(512)
    body = (
        COPY + "setp.ge.u32 %p1, %r0, 16; cp.async.ca.shared.global [%r2], [%rd10], 16, %p1; cp.async.wait_all;" + OUT
    )
    out = run(body, [data, np.zeros_like(data)]).check().outputs[1]
    assert (out[:256] == data[:256]).all() and (out[256:] == 0).all()


@pytest.mark.simulator_only
def test_async_copy_arrives_with_its_group_and_not_before():
    """Three groups to three places; after wait_group 1 two have arrived and the third is still poison."""
    data = np.arange(96, dtype=np.uint32)
    body = """
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; add.u64 %rd11, %rd1, %rd8;
    cvt.u32.u64 %r1, %rd8; mov.u32 %r2, smem; add.u32 %r2, %r2, %r1;
    cp.async.ca.shared.global [%r2], [%rd10], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%r2+128], [%rd10+128], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%r2+256], [%rd10+256], 4; cp.async.commit_group;
    mov.u32 %r5, 0; st.global.u32 [%rd10+256], %r5;
    cp.async.wait_group 1;
    ld.shared.u32 %r10, [%r2]; ld.shared.u32 %r11, [%r2+128]; ld.shared.u32 %r12, [%r2+256];
    st.global.u32 [%rd11], %r10; st.global.u32 [%rd11+128], %r11; st.global.u32 [%rd11+256], %r12;
    cp.async.wait_group 0; ld.shared.u32 %r12, [%r2+256]; st.global.u32 [%rd11+384], %r12;
    """
    result = run(body, [data, np.zeros(128, np.uint32)], env={"WARPSIM_HAZARDS": "off"}).check()
    out = result.outputs[1]
    assert (out[:64] == data[:64]).all() and (out[64:96] == 0xFFFFFFFF).all() and (out[96:] == data[64:]).all()
    warned = run(body, [data, np.zeros(128, np.uint32)])
    assert not warned.ok and "wait_group" in warned.error_string + warned.stderr


@pytest.mark.simulator_only
def test_copies_that_are_never_waited_for_do_not_pile_up():
    body = (
        COPY
        + """
    mov.u32 %r20, 0;
    LOOP: cp.async.ca.shared.global [%r2], [%rd10], 16; cp.async.commit_group;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 20000; @%p1 bra LOOP;
    cp.async.wait_all;
    """
        + OUT
    )
    data = bytes_of(512)
    out = run(body, [data, np.zeros_like(data)], env={"WARPSIM_HAZARDS": "off"}).check().outputs[1]
    assert (out == data).all()
