"""Loads and stores: what they move."""

import struct

import cudart
import numpy as np
import pytest
from memory_kernels import bytes_of, register, run

KINDS = ["u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"]
SIZE = {kind: int(kind[1:]) // 8 for kind in KINDS}
SPACES = ["global", "shared", "local", "generic-shared", "generic-global", "generic-local", "const"]
LANE = 32  # bytes of a lane


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
    if kind == "f32" and cudart.ON_GPU:
        pytest.skip("CUDA 13.0 converts a 64-bit register where st.f32 takes one")
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


@pytest.mark.not_on_gpu("CUDA 13.0 refuses registers of different widths in one vector")
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


@pytest.mark.not_on_gpu("CUDA 13.0 refuses one of these forms")
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
