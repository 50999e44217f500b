"""atom and red against Python's arithmetic."""

import random

import cudart
import numpy as np
import pytest
from memory_kernels import register, run

INTEGER_ATOMICS = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exch": lambda a, b: b,
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
}
INTEGER_FORMS = [
    ("add", "u32"),
    ("add", "s32"),
    ("add", "u64"),
    ("min", "u32"),
    ("min", "s32"),
    ("min", "u64"),
    ("min", "s64"),
    ("max", "u32"),
    ("max", "s32"),
    ("max", "u64"),
    ("max", "s64"),
    ("and", "b32"),
    ("and", "b64"),
    ("or", "b32"),
    ("or", "b64"),
    ("xor", "b32"),
    ("xor", "b64"),
    ("inc", "u32"),
    ("dec", "u32"),
    ("exch", "b32"),
    ("exch", "b64"),
]


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def atomic_body(text, size, red, values="%rd2"):
    """Lane i updates element i % 5 with value i; the old values go to %rd1."""
    reg = register(size)
    instruction = (
        f"red{text} [%rd12], {reg}30;"
        if red
        else f"atom{text} {reg}31, [%rd12], {reg}30; st.global.b{8 * size} [%rd11], {reg}31;"
    )
    return f"""
    rem.u32 %r1, %r0, 5; mul.wide.u32 %rd4, %r1, {size}; mul.wide.u32 %rd5, %r0, {size};
    add.u64 %rd11, %rd1, %rd5; add.u64 %rd6, {values}, %rd5; ld.global.b{8 * size} {reg}30, [%rd6];
    %SETUP%
    {instruction}
    %FINISH%
    """


def in_space(body, space, size):
    """Puts the five elements of %rd0 into the space, and back when all is done."""
    if space == "global" or space == "generic-global":
        return body.replace("%SETUP%", "add.u64 %rd12, %rd0, %rd4;").replace("%FINISH%", "")
    reg = register(size)
    to = "cvta.shared.u64 %rd12, %rd12;" if space.startswith("generic") else ""
    setup = f"""
    mov.u64 %rd12, smem; add.u64 %rd12, %rd12, %rd4; setp.lt.u32 %p1, %r0, 5; add.u64 %rd13, %rd0, %rd4;
    @%p1 ld.global.b{8 * size} {reg}33, [%rd13]; @%p1 st.shared.b{8 * size} [%rd12], {reg}33; {to} bar.sync 0;"""
    ld = "ld" if space.startswith("generic") else "ld.shared"
    finish = f"bar.sync 0; @%p1 {ld}.b{8 * size} {reg}33, [%rd12]; @%p1 st.global.b{8 * size} [%rd13], {reg}33;"
    return body.replace("%SETUP%", setup).replace("%FINISH%", finish)


@pytest.mark.parametrize("space", ["global", "shared", "generic-global", "generic-shared"])
@pytest.mark.parametrize("name,kind", INTEGER_FORMS)
def test_integer_atomics(name, kind, space):
    bits = int(kind[1:])
    rng = random.Random(name + kind)
    edge = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 3]
    start = [rng.choice(edge + [rng.getrandbits(bits)]) for _ in range(5)]
    values = [rng.choice(edge + [rng.getrandbits(bits)] * 3) for _ in range(32)]
    if name in ("inc", "dec"):
        values = [rng.choice([0, 2, 5, (1 << bits) - 1]) for _ in range(32)]
    memory, old = list(start), []
    view = (lambda v: signed(v, bits)) if kind[0] == "s" else (lambda v: v)
    for lane, value in enumerate(values):
        old.append(memory[lane % 5])
        memory[lane % 5] = INTEGER_ATOMICS[name](view(memory[lane % 5]), view(value)) & (1 << bits) - 1
    dtype = f"u{bits // 8}"
    where = "" if space.startswith("generic") else f".{space}"
    for red in (False, True):
        if red and name == "exch":
            continue
        body = in_space(atomic_body(f"{where}.{name}.{kind}", bits // 8, red), space, bits // 8)
        arrays = [np.array(start, dtype), np.zeros(32, dtype), np.array(values, dtype)]
        got, got_old, _ = run(body, arrays).check().outputs
        if name == "exch" or name in ("inc", "dec"):  # the order of lanes shows; a GPU may have another one
            if cudart.ON_GPU:
                continue
        assert got.tolist() == memory
        if not red and not cudart.ON_GPU:
            assert got_old.tolist() == old


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_compare_and_swap(space, kind):
    """Only the lane that finds the expected value stores: a chain from 0 to 32 in lane order."""
    size = int(kind[1:]) // 8
    reg = register(size)
    body = f"""
    mul.wide.u32 %rd5, %r0, {size}; add.u64 %rd11, %rd1, %rd5;
    cvt.u{8 * size}.u32 {reg}30, %r0; add.u{8 * size} {reg}31, {reg}30, 1;
    mov.u64 %rd12, {"%rd0" if space == "global" else "smem"};
    setp.eq.u32 %p1, %r0, 0; mov.b{8 * size} {reg}35, 0; @%p1 st.{space}.b{8 * size} [%rd12], {reg}35; bar.sync 0;
    atom.{space}.cas.{kind} {reg}32, [%rd12], {reg}30, {reg}31;
    st.global.b{8 * size} [%rd11], {reg}32;
    bar.sync 0; ld.{space}.b{8 * size} {reg}33, [%rd12]; bar.sync 0; st.global.b{8 * size} [%rd0], {reg}33;
    """
    final, old = run(body, [np.zeros(1, f"u{size}"), np.zeros(32, f"u{size}")]).check().outputs
    if cudart.ON_GPU:
        assert 1 <= final[0] <= 32
    else:
        assert final[0] == 32 and old.tolist() == list(range(32))


def test_compare_and_swap_into_its_own_operand():
    """The old value may replace the register that was compared with."""
    body = """
    mov.u32 %r1, 5; mov.u32 %r2, 9; setp.eq.u32 %p1, %r0, 3; @!%p1 mov.u32 %r1, 77;
    atom.global.cas.b32 %r1, [%rd0], %r1, %r2;
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd1, %rd8; st.global.u32 [%rd10], %r1;
    """
    final, old = run(body, [np.array([5], np.uint32), np.zeros(32, np.uint32)]).check().outputs
    assert final[0] == 9 and set(old) <= {5, 9} and old[3] == 5


def test_wide_compare_and_swap_and_exchange():
    body = """
    mov.b64 %rd4, 1; mov.b64 %rd5, 2; mov.b128 %q1, {%rd4, %rd5};
    mov.b64 %rd6, 3; mov.b64 %rd7, %rd9; mov.b128 %q2, {%rd6, %rd7};
    setp.eq.u32 %p1, %r0, 7;
    @%p1 atom.global.cas.b128 %q3, [%rd0], %q1, %q2;
    bar.warp.sync -1;
    setp.eq.u32 %p2, %r0, 8;
    @%p2 atom.global.exch.b128 %q3, [%rd0], %q1;
    @%p2 st.global.b128 [%rd1], %q3;
    """
    final, old = run(body, [np.array([1, 2], np.uint64), np.zeros(2, np.uint64)]).check().outputs
    assert final.tolist() == [1, 2] and old.tolist() == [3, 7]


FLOATS = {"f32": np.float32, "f64": np.float64, "noftz.f16": np.float16}


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("kind", FLOATS)
def test_float_add(kind, space):
    dtype = FLOATS[kind]
    size = np.dtype(dtype).itemsize
    rng = np.random.default_rng(5)
    start, values = (
        rng.integers(-8, 8, 5).astype(dtype),
        (rng.integers(-64, 64, 32) / 4).astype(dtype),
    )  # exact in any order
    body = in_space(atomic_body(f".{space}.add.{kind}", size, False), space, size)
    got = run(body, [start, np.zeros(32, dtype), values]).check().outputs[0]
    expected = start.copy()
    for lane in range(32):
        expected[lane % 5] += values[lane]
    assert (got == expected).all()


def test_float_add_rounds_each_time():
    values = np.full(32, 2.0**-24, np.float32)  # each one alone is lost against 1
    body = in_space(atomic_body(".global.add.f32", 4, True), "global", 4)
    assert (run(body, [np.ones(5, np.float32), np.zeros(32, np.float32), values]).check().outputs[0] == 1).all()


def test_float_add_flushes_subnormals_in_global_memory_only():
    tiny = np.full(32, 1e-40, np.float32)
    for space, expected in (("global", 0), ("shared", 1e-40)):
        body = in_space(atomic_body(f".{space}.add.f32", 4, False), space, 4)
        body = f"setp.lt.u32 %p3, %r0, 5; @!%p3 bra DONE; {body.replace('bar.sync 0;', 'bar.warp.sync 31;')} DONE:"
        got = run(body, [np.zeros(5, np.float32), np.zeros(32, np.float32), tiny]).check().outputs[0]
        assert (got == np.float32(expected)).all()


def bf16(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def test_packed_adds():
    for kind, encode in (("f16x2", lambda v: np.asarray(v, np.float16).view(np.uint16)), ("bf16x2", bf16)):
        low, high = np.arange(32) % 4, np.arange(32) % 3 - 1.0
        values = encode(low).astype(np.uint32) | encode(high).astype(np.uint32) << 16
        body = in_space(atomic_body(f".global.add.noftz.{kind}", 4, True), "global", 4)
        got = run(body, [np.zeros(5, np.uint32), np.zeros(32, np.uint32), values]).check().outputs[0]
        for element in range(5):
            expected = encode([low[element::5].sum(), high[element::5].sum()])
            assert [got[element] & 0xFFFF, got[element] >> 16] == expected.tolist(), kind


def test_vector_atomics():
    body = """
    mul.wide.u32 %rd4, %r0, 16; add.u64 %rd5, %rd1, %rd4; ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd5];
    atom.global.add.v4.f32 {%r11, %r10, %r20, %r21}, [%rd0], {%r10, %r11, %r12, %r13};
    red.global.add.v2.f32 [%rd0+8], {%r12, %r13};
    mov.b32 %r14, 0x40003f80; mov.b32 %r15, 0xc000bf80;
    red.global.max.noftz.v2.bf16x2 [%rd2], {%r14, %r15};
    """
    values = np.arange(128, dtype=np.float32).reshape(32, 4)
    got, _, packed = run(body, [np.zeros(4, np.float32), values, np.zeros(2, np.uint32)]).check().outputs
    total = values.sum(axis=0)
    assert got.tolist() == [total[0], total[1], 2 * total[2], 2 * total[3]]
    assert packed.tolist() == [0x40003F80, 0]


def test_atomics_of_many_blocks_add_up():
    body = "mov.u32 %r1, 1; red.global.add.u32 [%rd0], %r1; atom.global.add.u64 %rd20, [%rd1], 1;"
    counts = run(body, [np.zeros(1, np.uint32), np.zeros(1, np.uint64)], block=96, grid=70).check().outputs
    assert [int(c[0]) for c in counts] == [6720, 6720]
