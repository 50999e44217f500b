"""Loads, stores, atomics and asynchronous copies: what they move, and what is said when an address is wrong."""

import random
import struct

import cudart
import numpy as np
import pytest
from memory_kernels import bytes_of, run

KINDS = ["u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"]
SIZE = {kind: int(kind[1:]) // 8 for kind in KINDS}
SPACES = ["global", "shared", "local", "generic-shared", "generic-global", "generic-local", "const"]
LANE = 32  # bytes of a lane


def register(size):
    return {2: "%rs", 4: "%r", 8: "%rd"}[size]


def prepare(space):
    """PTX that leaves the base address in %rd20 and, except for global and const, copies the lane's 32 bytes there."""
    copy = "\n".join(f"ld.global.u32 %r50, [%rd10+{i}]; st{{0}}.u32 [%rd20+{i}], %r50;" for i in range(0, LANE, 4))
    offset = "shl.b64 %rd8, %rd9, 5; add.u64 %rd10, %rd0, %rd8;"
    if space in ("global", "generic-global"):
        return offset + "mov.u64 %rd20, %rd10;"
    if space == "const":
        return offset + "mov.u64 %rd20, table; add.u64 %rd20, %rd20, %rd8;"
    if space.endswith("shared"):
        text = offset + "mov.u64 %rd20, smem; add.u64 %rd20, %rd20, %rd8;" + copy.format(".shared")
        return text + ("cvta.shared.u64 %rd20, %rd20;" if space.startswith("generic") else "")
    text = offset + ".local .align 16 .b8 mine[32]; mov.u64 %rd20, mine;" + copy.format(".local")
    return text + ("cvta.local.u64 %rd20, %rd20;" if space.startswith("generic") else "")


def modifier(space):
    return "" if space.startswith("generic") else f".{space}"


def constant_table(data):
    return f".const .align 16 .b8 table[{len(data)}] = {{{', '.join(map(str, data))}}};"


def declared(space, data):
    return {"declarations": constant_table(data)} if space == "const" else {}


def extended(raw, kind, size):
    value = int.from_bytes(raw, "little", signed=kind[0] == "s")
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", SPACES)
def test_load_of_each_width_into_each_register(space, kind):
    data = bytes_of(32 * LANE)
    widths = [w for w in (2, 4, 8) if w >= SIZE[kind] and (kind[0] != "f" or w == SIZE[kind])]
    body = prepare(space) + "shl.b64 %rd8, %rd9, 5; add.u64 %rd11, %rd1, %rd8;"
    for place, width in enumerate(widths):
        body += f"ld{modifier(space)}.{kind} {register(width)}30, [%rd20+8];"
        body += f"st.global.b{8 * width} [%rd11+{8 * place}], {register(width)}30;"
    out = run(body, [data, np.zeros(32 * LANE, np.uint8)], **declared(space, data)).check().outputs[1]
    for lane in range(32):
        raw = data[lane * LANE + 8 :][: SIZE[kind]].tobytes()
        for place, width in enumerate(widths):
            got = out[lane * LANE + 8 * place :][:width].tobytes()
            assert got == extended(raw, kind, width), (lane, width)


@pytest.mark.parametrize("kind", ["u8", "b16", "u32", "f32", "b64"])
@pytest.mark.parametrize("space", ["global", "shared", "local", "generic-shared", "generic-global", "generic-local"])
def test_store_writes_its_bytes_and_no_others(space, kind):
    size = SIZE[kind]
    data = bytes_of(32 * LANE)
    body = prepare(space) + "shl.b64 %rd8, %rd9, 5; add.u64 %rd11, %rd1, %rd8;"
    width = max(2, size)
    body += f"ld.global.b{8 * width} {register(width)}30, [%rd10];"
    body += f"st{modifier(space)}.{kind} [%rd20+16], {register(width)}30;"
    if size <= 4:  # from a wider register, too, and from a number
        body += f"ld.global.b64 %rd31, [%rd10]; st{modifier(space)}.{kind} [%rd20+24], %rd31;"
    if kind[0] != "f":
        body += f"st{modifier(space)}.{kind} [%rd20+8], 7;"
    for i in range(0, LANE, 4):
        body += f"ld{modifier(space)}.u32 %r50, [%rd20+{i}]; st.global.u32 [%rd11+{i}], %r50;"
    out = run(body, [data, np.zeros(32 * LANE, np.uint8)]).check().outputs[1]
    for lane in range(32):
        expected = bytearray(data[lane * LANE :][:LANE].tobytes())
        expected[16 : 16 + size] = expected[:size]
        if size <= 4:
            expected[24 : 24 + size] = expected[:size]
        if kind[0] != "f":
            expected[8 : 8 + size] = (7).to_bytes(size, "little")
        assert out[lane * LANE :][:LANE].tobytes() == bytes(expected), lane


VECTORS = [
    ("v2", "u8"),
    ("v4", "u8"),
    ("v2", "b16"),
    ("v4", "b16"),
    ("v2", "s8"),
    ("v2", "b32"),
    ("v4", "f32"),
    ("v4", "u32"),
    ("v2", "b64"),
    ("v2", "f64"),
]


@pytest.mark.parametrize("vector,kind", VECTORS)
@pytest.mark.parametrize("space", ["global", "shared", "local", "generic-shared", "const"])
def test_vectors(space, vector, kind):
    count, size = int(vector[1:]), SIZE[kind]
    width = max(2, size)
    data = bytes_of(32 * LANE, 2)
    body = prepare(space) + "shl.b64 %rd8, %rd9, 5; add.u64 %rd11, %rd1, %rd8;"
    names = [f"{register(width)}{30 + i}" for i in range(count)]
    body += f"ld{modifier(space)}.{vector}.{kind} {{{', '.join(names)}}}, [%rd20+16];"
    if space != "const":  # back again, in reverse
        body += f"st{modifier(space)}.{vector}.{kind} [%rd20], {{{', '.join(reversed(names))}}};"
        body += f"ld{modifier(space)}.{vector}.{kind} {{{', '.join(names)}}}, [%rd20];"
    for i, name in enumerate(names):
        body += f"st.global.{'u8' if size == 1 else 'b' + str(8 * size)} [%rd11+{i * size}], {name};"
    out = run(body, [data, np.zeros(32 * LANE, np.uint8)], **declared(space, data)).check().outputs[1]
    for lane in range(32):
        parts = [data[lane * LANE + 16 + i * size :][:size].tobytes() for i in range(count)]
        if space != "const":
            parts.reverse()
        assert out[lane * LANE :][: count * size].tobytes() == b"".join(parts), lane


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x0000FFFF, 0x80000001, 0xDEADBEE8])
@pytest.mark.parametrize("form", ["b16", "b32", "b64", "v2.b32", "v4.b32", "v2.b64"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_masks_and_patterns(space, form, mask, scattered):
    """Contiguous, permuted and broadcast addresses under a guard; lanes without it keep their registers."""
    count = int(form[1]) if form[0] == "v" else 1
    size = int(form.split("b")[1]) // 8
    total = count * size
    rng = np.random.default_rng(3)
    data = bytes_of(64 * total, 4)
    where = (rng.permutation(32) if scattered else np.arange(32)).astype(np.uint32)
    reg = register(size)
    names = ", ".join(f"{reg}{30 + i}" for i in range(count))
    names = f"{{{names}}}" if count > 1 else names
    back = ", ".join(f"{reg}{40 + i}" for i in range(count))
    back = f"{{{back}}}" if count > 1 else back
    body = f"""
    mul.lo.u32 %r1, %r0, 4; cvt.u64.u32 %rd4, %r1; add.u64 %rd5, %rd2, %rd4; ld.global.u32 %r2, [%rd5];
    mov.u32 %r3, {mask}; shr.u32 %r3, %r3, %r0; and.b32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0;
    mul.wide.u32 %rd6, %r0, {total}; mul.wide.u32 %rd7, %r2, {total};
    """
    for i in range(count):
        body += f"mov.b{8 * size} {reg}{30 + i}, 5;"
    if space == "shared":  # the whole input goes to shared memory by byte
        body += """
    cvt.u32.u64 %r5, %rd6; mov.u32 %r6, smem; add.u32 %r7, %r6, %r5;
    add.u64 %rd10, %rd0, %rd6;
    """
        for i in range(0, total, 2):
            body += f"ld.global.b16 %rs1, [%rd10+{i}]; st.shared.b16 [%r7+{i}], %rs1;"
        body += f"""
    bar.sync 0;
    cvt.u32.u64 %r8, %rd7; add.u32 %r9, %r6, %r8;
    @%p1 ld.shared.{form} {names}, [%r9];
    bar.sync 0;
    @%p1 st.shared.{form} [%r9+{32 * total}], {names};
    bar.sync 0;
    ld.shared.{form} {back}, [%r6];
    add.u64 %rd11, %rd1, %rd6;
    st.global.{form} [%rd11], {names};
    @%p1 ld.shared.{form} {names}, [%r9+{32 * total}];
    @%p1 st.global.{form} [%rd11+{32 * total}], {names};
    """
    else:
        body += f"""
    add.u64 %rd10, %rd0, %rd7; add.u64 %rd11, %rd1, %rd6;
    @%p1 ld.global.{form} {names}, [%rd10];
    ld.global.{form} {back}, [%rd0];
    st.global.{form} [%rd11], {names};
    @%p1 st.global.{form} [%rd11+{32 * total}], {names};
    """
    body += f"add.u64 %rd13, %rd3, %rd6; st.global.{form} [%rd13], {back};"
    arrays = [data, np.zeros(64 * total, np.uint8), where, np.zeros(32 * total, np.uint8)]
    _, out, _, broadcast = run(body, arrays).check().outputs
    active = [bool(mask >> lane & 1) for lane in range(32)]
    for lane in range(32):
        loaded = data[where[lane] * total :][:total].tobytes()
        assert out[lane * total :][:total].tobytes() == (
            loaded if active[lane] else (5).to_bytes(size, "little") * count
        )
        assert out[(32 + lane) * total :][:total].tobytes() == (loaded if active[lane] else bytes(total))
        assert broadcast[lane * total :][:total].tobytes() == data[:total].tobytes()


def test_sixteen_byte_elements():
    data = bytes_of(32 * 16)
    body = """
    shl.b64 %rd8, %rd9, 4; add.u64 %rd10, %rd0, %rd8; add.u64 %rd11, %rd1, %rd8;
    ld.global.b128 %q1, [%rd10];
    cvt.u32.u64 %r1, %rd8; mov.u32 %r2, smem; add.u32 %r2, %r2, %r1;
    st.shared.b128 [%r2], %q1;
    ld.shared.b128 %q2, [%r2];
    st.global.b128 [%rd11], %q2;
    """
    assert (run(body, [data, np.zeros_like(data)]).check().outputs[1] == data).all()


def test_registers_of_different_widths_in_one_vector():
    data = bytes_of(128)
    body = """
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; shl.b64 %rd8, %rd9, 4; add.u64 %rd11, %rd1, %rd8;
    ld.global.v4.s8 {%r1, %rs2, _, %rd3}, [%rd10];
    st.global.u32 [%rd11], %r1; st.global.u16 [%rd11+4], %rs2; st.global.u64 [%rd11+8], %rd3;
    """
    out = run(body, [data, np.zeros(512, np.uint8)]).check().outputs[1]
    for lane in range(32):
        a, b, _, d = np.frombuffer(data[4 * lane : 4 * lane + 4].tobytes(), np.int8)
        assert struct.unpack("<ihxxq", out[16 * lane : 16 * lane + 16].tobytes()) == (a, b, d)


HINTS = [
    "global.nc",
    "global.ca",
    "global.cg",
    "global.cs",
    "global.lu",
    "global.cv",
    "volatile.global",
    "relaxed.gpu.global",
    "acquire.sys.global",
    "weak.global",
    "global.L1::no_allocate",
    "global.L1::evict_last.L2::128B",
    "global.nc.L1::no_allocate.L2::256B",
    "volatile",
    "relaxed.cta",
    "acquire.gpu",
]


@pytest.mark.parametrize("text", HINTS)
def test_load_hints_and_orders(text):
    data = np.arange(32, dtype=np.uint32)
    body = f"""
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; add.u64 %rd11, %rd1, %rd8;
    ld.{text}.u32 %r1, [%rd10]; st.global.u32 [%rd11], %r1;
    """
    assert (run(body, [data, np.zeros_like(data)]).check().outputs[1] == data).all()


def test_store_orders_policies_and_prefetches():
    data = np.arange(32, dtype=np.uint32)
    body = """
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8;
    createpolicy.fractional.L2::evict_last.b64 %rd20, 1.0;
    prefetch.global.L2 [%rd10]; prefetch.global.L1 [0]; prefetchu.L1 [%rd10]; prefetch.global.L2::evict_last [%rd10];
    ld.global.L2::cache_hint.u32 %r1, [%rd10], %rd20; add.u32 %r1, %r1, 1;
    st.global.L2::cache_hint.u32 [%rd10], %r1, %rd20; ld.global.u32 %r1, [%rd10]; add.u32 %r1, %r1, 1;
    st.volatile.global.u32 [%rd10], %r1; ld.volatile.global.u32 %r1, [%rd10]; add.u32 %r1, %r1, 1;
    st.release.gpu.global.u32 [%rd10], %r1; ld.acquire.gpu.global.u32 %r1, [%rd10]; add.u32 %r1, %r1, 1;
    st.relaxed.sys.global.L1::no_allocate.u32 [%rd10], %r1; ld.global.u32 %r1, [%rd10]; add.u32 %r1, %r1, 1;
    st.global.wt.u32 [%rd10], %r1;
    """
    assert (run(body, [data]).check().outputs[0] == data + 5).all()


@pytest.mark.simulator_only
@pytest.mark.parametrize(
    "text",
    [
        "ld.global.u32.foo %r1, [%rd0]",
        "ld.global.L3::x.u32 %r1, [%rd0]",
        "st.global.nc.u32 [%rd0], %r1",
        "ld.global.v2.u32 %r1, [%rd0]",
        "ld.global.v4.u32 {%r1, %r2}, [%rd0]",
        "ld.global.v8.b64 {%rd1,%rd2,%rd3,%rd4,%rd5,%rd6,%rd7,%rd8}, [%rd0]",
        "ld.global.u64 %r1, [%rd0]",
        "atom.global.add.b32 %r1, [%rd0], %r2",
        "red.global.cas.b32 [%rd0], %r1",
        "atom.global.mul.u32 %r1, [%rd0], %r2",
        "cp.async.cg.shared.global [%r1], [%rd0], 8",
        "cp.async.ca.shared.global [%r1], [%rd0], 12",
        "atom.global.add.f16 %rs1, [%rd0], %rs2",
    ],
)
def test_unknown_forms_are_refused_by_name(text):
    result = run(text + ";", [np.zeros(64, np.uint32)])
    assert not result.ok
    assert text.split()[0] in result.error_string + result.stderr, result


# ---- atomics ----

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
    bar.sync 0; ld.{space}.b{8 * size} {reg}33, [%rd12]; st.global.b{8 * size} [%rd0], {reg}33;
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


# ---- cp.async ----

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


# ---- wrong addresses ----


def failure(body, arrays=None, **keywords):
    result = run(body, [np.zeros(100, np.uint8)] if arrays is None else arrays, report=True, **keywords)
    assert not result.ok
    (hazard,) = result.hazards
    return hazard


WRONG = [
    (
        "ld.global.u32 %r1, [%rd0+100]",
        "out_of_bounds",
        0,
        "reads 4 bytes at",
        "0 bytes past the end of the 100-byte allocation",
    ),
    (
        "st.global.u32 [%rd0+200], %r1",
        "out_of_bounds",
        0,
        "writes 4 bytes at",
        "100 bytes past the end of the 100-byte",
    ),
    (
        "ld.global.u64 %rd1, [%rd0+96]",
        "out_of_bounds",
        0,
        "reads 8 bytes",
        "partly past the end of the 100-byte allocation",
    ),
    ("ld.global.u32 %r1, [%rd0+-4]", "out_of_bounds", 0, "reads 4 bytes", "4 bytes before the 100-byte allocation"),
    ("ld.global.u32 %r1, [%rd0+2]", "misaligned", 0, "reads 4 bytes", "2 bytes past a multiple of 4"),
    (
        "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd0+8]",
        "misaligned",
        0,
        "reads 16 bytes",
        "8 bytes past a multiple of 16",
    ),
    ("ld.global.u32 %r1, [0]", "invalid_address", 0, "at 0x0", "null pointer"),
    ("st.u8 [8], %rs1", "invalid_address", 0, "at 0x8", "null pointer"),
    ("red.global.add.u32 [%rd0+100], 1", "out_of_bounds", 0, "updates 4 bytes", "past the end"),
    ("atom.global.add.u32 %r1, [%rd0+1], 1", "misaligned", 0, "updates 4 bytes", "1 byte past a multiple of 4"),
    ("red.global.add.v2.f32 [%rd0+4], {%r1, %r2}", "misaligned", 0, "updates 4 bytes", "4 bytes past a multiple of 8"),
    (
        "ld.shared.u32 %r1, [smem+256]",
        "out_of_bounds",
        0,
        "reads 4 bytes at 0x100",
        "0 bytes past the end of the block's 256 bytes",
    ),
    ("st.shared.u64 [smem+252], %rd1", "out_of_bounds", 0, "writes 8 bytes", "reaches past the end"),
    ("mov.u32 %r1, -16; ld.shared.u32 %r2, [%r1]", "out_of_bounds", 0, "reads 4 bytes", "16 bytes before the start"),
    ("ld.shared.u32 %r1, [smem+6]", "misaligned", 0, "reads 4 bytes at 0x6", "2 bytes past a multiple of 4"),
    (
        "ld.shared.u32 %r1, [%rd0]",
        "invalid_address",
        0,
        "reads 4 bytes",
        "an address of global memory, not of shared memory",
    ),
    (
        "cvta.shared.u64 %rd5, 16; ld.global.u32 %r1, [%rd5]",
        "invalid_address",
        0,
        "reads 4 bytes",
        "a generic address in shared memory",
    ),
    ("cvta.shared.u64 %rd5, 16; ld.shared.u32 %r1, [%rd5]", "invalid_address", 0, "reads", "see cvta.to.shared"),
    (
        "cvta.shared.u64 %rd5, 256; ld.u32 %r1, [%rd5]",
        "out_of_bounds",
        0,
        "reads 4 bytes",
        "past the end of the block's 256 bytes",
    ),
    (
        ".local .align 8 .b8 mine[64]; ld.local.u32 %r1, [mine+4096]",
        "out_of_bounds",
        0,
        "reads 4 bytes",
        "outside of the thread's local memory",
    ),
    ("st.global.u32 [table], %r1", "invalid_address", 0, "writes 4 bytes", "constant memory cannot be written"),
    ("atom.add.u32 %r1, [table], 1", "invalid_address", 0, "updates 4 bytes", "constant memory cannot be written"),
    ("ld.const.u32 %r1, [%rd0]", "invalid_address", 0, "reads 4 bytes", "not in constant memory"),
    ("discard.global.L2 [%rd0], 128", "out_of_bounds", 0, "reads 128 bytes", "by 28 bytes"),
    ("cp.async.ca.shared.global [smem], [%rd0+98], 4", "out_of_bounds", 0, "reads 4 bytes", "by 2 bytes"),
    (
        "cp.async.cg.shared.global [smem+8], [%rd0], 16",
        "misaligned",
        0,
        "writes 16 bytes at 0x8",
        "8 bytes past a multiple of 16",
    ),
]


@pytest.mark.simulator_only
@pytest.mark.parametrize("text,kind,lane,access,why", WRONG, ids=[f"{w[1]}-{w[0][:40]}" for w in WRONG])
def test_wrong_addresses_are_named(text, kind, lane, access, why):
    text = f"setp.eq.u32 %p1, %r0, 0; @!%p1 bra DONE; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.b64 %rd1, 0; mov.b16 %rs1, 0; {text}; DONE:"
    hazard = failure(text, shared=256, declarations=".const .align 4 .u32 table[4];")
    assert hazard["kind"] == kind and hazard["lane"] == lane
    assert access in hazard["message"] and why in hazard["message"], hazard["message"]


@pytest.mark.simulator_only
def test_the_first_bad_lane_is_named_and_the_others_counted():
    body = "shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; ld.global.u32 %r1, [%rd10];"
    hazard = failure(body)
    assert hazard["lane"] == 25 and "(and 6 more lanes)" in hazard["message"]


@pytest.mark.simulator_only
def test_lanes_in_different_allocations():
    body = """
    setp.lt.u32 %p1, %r0, 7; selp.b64 %rd4, %rd0, %rd1, %p1; shl.b64 %rd8, %rd9, 2; add.u64 %rd4, %rd4, %rd8;
    ld.global.u32 %r1, [%rd4]; add.u32 %r1, %r1, 1; st.global.u32 [%rd4], %r1; atom.global.add.u32 %r2, [%rd4], 10;
    """
    a, b = run(body, [np.arange(32, dtype=np.uint32), np.arange(32, dtype=np.uint32) * 100]).check().outputs
    lanes = np.arange(32)
    assert (a == np.where(lanes < 7, lanes + 11, lanes)).all() and (
        b == np.where(lanes < 7, lanes * 100, lanes * 100 + 11)
    ).all()


def test_generic_addresses_of_several_spaces_in_one_instruction():
    body = """
    .local .align 4 .b8 mine[4];
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; mov.u64 %rd11, smem; add.u64 %rd11, %rd11, %rd8;
    mul.lo.u32 %r1, %r0, 3; st.shared.u32 [%rd11], %r1; mul.lo.u32 %r1, %r0, 5; st.local.u32 [mine], %r1;
    cvta.shared.u64 %rd11, %rd11; mov.u64 %rd12, mine; cvta.local.u64 %rd12, %rd12;
    rem.u32 %r2, %r0, 3; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2;
    mov.u64 %rd13, %rd10; @%p1 mov.u64 %rd13, %rd11; @%p2 mov.u64 %rd13, %rd12;
    ld.u32 %r5, [%rd13]; add.u32 %r6, %r5, 1; st.u32 [%rd13], %r6; ld.u32 %r7, [%rd13];
    add.u64 %rd14, %rd1, %rd8; st.global.u32 [%rd14], %r7;
    """
    data = np.arange(32, dtype=np.uint32) + 1000
    out = run(body, [data, np.zeros_like(data)]).check().outputs[1]
    lanes = np.arange(32)
    assert (out == np.choose(lanes % 3, [data, lanes * 3, lanes * 5]) + 1).all()


@pytest.mark.simulator_only
def test_warnings_let_the_good_lanes_go_on():
    body = """
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; add.u64 %rd11, %rd1, %rd8; mov.u32 %r1, 9;
    ld.global.u32 %r1, [%rd10]; st.global.u32 [%rd11], %r1;
    """
    result = run(
        body, [np.arange(20, dtype=np.uint32), np.zeros(32, np.uint32)], env={"WARPSIM_HAZARDS": "warn"}, report=True
    )
    assert [h["kind"] for h in result.hazards] == ["out_of_bounds"]
    assert result.outputs[1].tolist() == list(range(20)) + [9] * 12


@pytest.mark.simulator_only
def test_freed_memory_is_named():
    source = r"""
    __global__ void touch(int *p) { p[3] = 1; }
    int main() {
        int *p, *q;
        cudaMalloc(&p, 4000);
        cudaMalloc(&q, 4000);
        cudaFree(p);
        touch<<<1, 1>>>(p);
        return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
    }
    """
    result = cudart.run_program(source, report=True)
    assert result.returncode == 0, result.stderr
    assert "4000-byte allocation" in result.hazards[0]["message"] and "freed" in result.hazards[0]["message"]


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", range(6))
def test_random_addresses_never_reach_the_host(seed):
    """Every kind of access at addresses from everywhere: each launch ends with an answer, none with a dead process."""
    rng = random.Random(seed)
    accesses = [
        "ld{s}.u8 %rs1, [{a}]",
        "ld{s}.v4.u32 {{%r10,%r11,%r12,%r13}}, [{a}]",
        "st{s}.u64 [{a}], %rd30",
        "st{s}.v2.u16 [{a}], {{%rs2,%rs3}}",
        "atom{s}.add.u32 %r14, [{a}], %r15",
        "red{s}.add.u64 [{a}], %rd30",
        "ld{s}.f64 %rd31, [{a}]",
        "atom{s}.cas.b64 %rd32, [{a}], %rd30, %rd31",
    ]
    spaces = ["", ".global", ".shared", ".local", ".const", ".volatile.global", ".volatile.shared"]
    body = "mov.u64 %rd30, 1; mov.u64 %rd31, 2; mov.u32 %r15, 3; mov.b16 %rs2, 4; mov.b16 %rs3, 5;\n.local .align 8 .b8 mine[64];\n"
    body += "mov.u64 %rd40, %rd0; mov.u64 %rd41, smem; mov.u64 %rd42, mine; cvta.shared.u64 %rd43, smem; cvta.local.u64 %rd44, mine; mov.u64 %rd45, 0;\n"
    for _ in range(60):
        text, space = rng.choice(accesses), rng.choice(spaces)
        if text.startswith(("atom", "red")) and space not in ("", ".global", ".shared"):
            space = ""
        if text.startswith("st") and space == ".const":
            space = ".global"
        offset = rng.choice([0, 8, 56, 64, 4096, 2**20, 2**31, -8, -(2**31), rng.getrandbits(31)])
        body += f"""
        mad.lo.u64 %rd50, %rd9, {rng.choice([0, 4, 8, 1 << 20, 1 << 56, (1 << 63) + 8])}, %rd{rng.randint(40, 45)};
        xor.b64 %rd50, %rd50, {rng.choice([0, 0, 0, 1, 1 << 40, 1 << 56, 1 << 57, rng.getrandbits(62)])};
        {text.format(s=space, a=f"%rd50+{offset}")};"""
    env = {"WARPSIM_HAZARDS": "warn", "WARPSIM_TIMEOUT_S": 20}
    result = run(body, [np.zeros(64, np.uint8)], shared=256, env=env)
    assert result.error_name != "workerDied", result.error_string
    assert not run(body, [np.zeros(64, np.uint8)], shared=256).ok


@pytest.mark.parametrize("kind,size", [("s8", 1), ("u8", 1), ("s16", 2), ("u16", 2), ("s32", 4), ("u32", 4)])
def test_pairs_extend_into_wider_registers(kind, size):
    data = bytes_of(64 * size, 9)
    body = f"""
    mul.wide.u32 %rd4, %r0, {2 * size}; add.u64 %rd10, %rd0, %rd4; shl.b64 %rd8, %rd9, 4; add.u64 %rd11, %rd1, %rd8;
    ld.global.v2.{kind} {{%rd20, %rd21}}, [%rd10]; st.global.v2.b64 [%rd11], {{%rd20, %rd21}};
    """
    out = run(body, [data, np.zeros(512, np.uint8)]).check().outputs[1].view(np.uint64)
    for i in range(64):
        assert out[i].tobytes() == extended(data[i * size :][:size].tobytes(), kind, 8)
