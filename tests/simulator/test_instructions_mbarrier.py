"""mbarrier: counts, bytes, phases and states, one step after the other in one thread; and bulk copies of every alignment."""

import numpy as np
import pytest
from memory_kernels import bytes_of, run


def steps(*lines):
    """Runs the lines, keeps what those set that name %p1 or %r5; returns these values."""
    body, count = "mov.u32 %r1, smem;\n", 0
    for line in lines:
        if "%p1" in line:
            body += f"{line}; selp.u32 %r5, 1, 0, %p1; st.global.u32 [%rd0+{4 * count}], %r5;\n"
        elif "%r5" in line:
            body += f"{line}; st.global.u32 [%rd0+{4 * count}], %r5;\n"
        else:
            body += line + ";\n"
            continue
        count += 1
    return run(body, [np.zeros(count, np.uint32)], block=1).check().outputs[0].tolist()


def parity(p, instruction="test_wait"):
    return f"mbarrier.{instruction}.parity.shared.b64 %p1, [%r1], {p}"


def test_a_fresh_mbarrier_has_completed_the_phase_before_the_first():
    assert steps("mbarrier.init.shared.b64 [%r1], 1", parity(1), parity(0), parity(1, "try_wait")) == [1, 0, 1]


def test_arrivals_complete_a_phase_and_the_next_takes_as_many():
    values = steps(
        "mbarrier.init.shared.b64 [%r1], 3",
        "mbarrier.arrive.noComplete.shared.b64 %rd1, [%r1], 2",
        "mbarrier.pending_count.b64 %r5, %rd1",
        "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1",
        "mbarrier.arrive.shared.b64 %rd2, [%r1]",
        "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1",
        "mbarrier.try_wait.shared.b64 %p1, [%r1], %rd2, 100",
        parity(0),
        parity(1),
        "mbarrier.arrive.shared.b64 _, [%r1], 3",
        parity(0),
        parity(1),
    )
    assert values == [3, 0, 1, 1, 1, 0, 0, 1]


def test_bytes_hold_a_phase_open_and_may_come_before_they_are_announced():
    values = steps(
        "mbarrier.init.shared.b64 [%r1], 1",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 96",
        parity(0),
        "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 64",
        parity(0),
        "mbarrier.complete_tx.shared.b64 [%r1], 32",
        parity(0),
        "mbarrier.complete_tx.shared.b64 [%r1], 512",
        "mbarrier.arrive.shared.b64 _, [%r1]",
        parity(1),
        "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], 512",
        parity(1),
    )
    assert values == [0, 0, 1, 0, 1]


def test_who_drops_out_is_not_waited_for_any_more():
    values = steps(
        "mbarrier.init.shared.b64 [%r1], 3",
        "mbarrier.arrive_drop.shared.b64 _, [%r1]",
        "mbarrier.arrive.shared.b64 _, [%r1], 2",
        parity(0),
        "mbarrier.arrive.shared.b64 _, [%r1]",
        parity(1),
        "mbarrier.arrive.shared.b64 _, [%r1]",
        parity(1),
    )
    assert values == [1, 0, 1]


def test_after_inval_it_may_be_initialised_again():
    again = ["mbarrier.inval.shared.b64 [%r1]", "mbarrier.init.shared.b64 [%r1], 1"]
    assert steps("mbarrier.init.shared.b64 [%r1], 1", "mbarrier.arrive.shared.b64 _, [%r1]", *again, parity(0)) == [0]


def test_generic_addresses():
    values = steps(
        "cvt.u64.u32 %rd4, %r1",
        "cvta.shared.u64 %rd3, %rd4",
        "mbarrier.init.b64 [%rd3+16], 1",
        "mbarrier.arrive.b64 _, [%rd3+16]",
        "mbarrier.test_wait.parity.b64 %p1, [%rd3+16], 0",
    )
    assert values == [1]


@pytest.mark.parametrize("size", [16, 48, 1040, 16384])
@pytest.mark.parametrize("offset", [0, 16, 112])
def test_bulk_copies_there_and_back(size, offset):
    data = bytes_of(size + 64)
    body = f"""
    mov.u32 %r1, smem; add.u32 %r2, %r1, {128 + offset};
    mbarrier.init.shared.b64 [%r1], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], {size};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0+32], {size}, [%r1];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra WAIT;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1+16], [%r2], {size};
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    out = run(body, [data, np.zeros(size + 32, np.uint8)], block=1).check().outputs[1]
    expected = np.zeros(size + 32, np.uint8)
    expected[16 : 16 + size] = data[32 : 32 + size]
    assert (out == expected).all()


def test_offsets_may_be_negative():
    body = """
    mov.u32 %r1, smem; add.u32 %r2, %r1, 1024;
    mbarrier.init.shared.b64 [%r2+-16], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2+-16], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+-512], [%rd0+0], 64, [%r2+-16];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r1+1008], 0; @!%p1 bra WAIT;
    add.u64 %rd2, %rd1, 64;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2+-64], [%r2+-512], 64;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    data = bytes_of(64)
    assert (run(body, [data, np.zeros(64, np.uint8)], block=1).check().outputs[1] == data).all()


def halves(kind, combine):
    """Of bits: 16-bit floats combined in fp32 and rounded once, a NaN the canonical one."""

    def widen(bits):
        return bits.view(np.float16).astype(np.float32) if kind == "f16" else (bits.astype(np.uint32) << 16).view("f4")

    def narrow(value):
        bits = value.astype(np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)
        rounded = value.astype(np.float16).view(np.uint16) if kind == "f16" else rounded
        return np.where(np.isnan(value), np.uint16(0x7FFF), rounded)

    return lambda a, b: narrow(combine(widen(a), widen(b)))


def smaller(a, b):
    return np.where(a == b, np.where(np.signbit(a), a, b), np.fmin(a, b))


def larger(a, b):
    return np.where(a == b, np.where(np.signbit(a), b, a), np.fmax(a, b))


REDUCTIONS = {
    **{f"add.noftz.{kind}": (np.uint16, halves(kind, lambda a, b: a + b)) for kind in ("f16", "bf16")},
    **{f"min.{kind}": (np.uint16, halves(kind, smaller)) for kind in ("f16", "bf16")},
    **{f"max.{kind}": (np.uint16, halves(kind, larger)) for kind in ("f16", "bf16")},
    "add.u32": (np.uint32, lambda a, b: a + b),
    "add.s32": (np.int32, lambda a, b: a + b),
    "add.u64": (np.uint64, lambda a, b: a + b),
    "add.f32": (np.float32, lambda a, b: a + b),
    "add.f64": (np.float64, lambda a, b: a + b),
    "min.s32": (np.int32, np.minimum),
    "min.u32": (np.uint32, np.minimum),
    "max.s64": (np.int64, np.maximum),
    "max.u64": (np.uint64, np.maximum),
    "inc.u32": (np.uint32, lambda a, b: np.where(a >= b, 0, a + 1)),
    "dec.u32": (np.uint32, lambda a, b: np.where((a == 0) | (a > b), b, a - 1)),
    "and.b32": (np.uint32, np.bitwise_and),
    "or.b64": (np.uint64, np.bitwise_or),
    "xor.b32": (np.uint32, np.bitwise_xor),
}


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_bulk_reductions(operation):
    kind, combine = REDUCTIONS[operation]
    rng = np.random.default_rng(5)
    if kind in (np.float32, np.float64):
        a, b = (rng.standard_normal(64).astype(kind) for _ in range(2))
    elif kind == np.uint16:
        # Subnormals, zeros, infinities and NaN meet each other; the rest is any number.
        edges = np.array([0, 0x8000, 1, 0x8001, 0x80, 0x7F, 0x3FF, 0x7C00, 0xFC00, 0x7F80, 0xFF80, 0x7FC1], np.uint16)
        a, b = (g.ravel() for g in np.meshgrid(edges, edges))
        a, b = (np.append(x, rng.integers(0, 1 << 16, 368, np.uint16)) for x in (a, b))
    else:
        a, b = (np.frombuffer(bytes_of(64 * np.dtype(kind).itemsize, seed), kind) % 1000 for seed in (1, 2))
    size = a.nbytes
    body = f"""
    mov.u32 %r1, smem;
    mbarrier.init.shared.b64 [%r1], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], {size};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+128], [%rd0], {size}, [%r1];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra WAIT;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%rd1], [%r1+128], {size};
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
    """
    out = run(body, [b, a.copy()], block=1).check().outputs[1]
    with np.errstate(all="ignore"):
        assert (out.view(kind) == combine(a, b).astype(kind)).all()


def test_sums_of_floats_in_the_background_flush_subnormals():
    """As the manual says of fp32: those that go in, and those that come out."""
    a = np.array([1e-40, 1e-40, 1.5e-38, -2e-38], np.float32)
    b = np.array([1.0, 1e-40, -1.3e-38, 2e-38 + 1e-39], np.float32)
    body = """
    mov.u32 %r1, smem;
    ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0]; st.shared.v4.u32 [%r1], {%r2, %r3, %r4, %r5};
    fence.proxy.async;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    out = run(body, [b, a], block=1).check().outputs[1]
    assert out.view(np.float32).tolist() == [1, 0, 0, 0]


def test_copies_that_are_never_waited_for_do_not_pile_up():
    data = bytes_of(64)
    body = """
    mov.u32 %r1, smem; mov.u32 %r20, 0;
    mbarrier.init.shared.b64 [%r1], 1; fence.mbarrier_init.release.cluster;
    LOOP: mbarrier.expect_tx.shared.b64 [%r1], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+128], [%rd0], 64, [%r1];
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1+128], 64;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 3000; @%p1 bra LOOP;
    mbarrier.arrive.shared.b64 _, [%r1];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra WAIT;
    """
    out = run(body, [data, np.zeros_like(data)], block=1, env={"WARPSIM_HAZARDS": "off"}).check().outputs[1]
    assert (out == data).all()
