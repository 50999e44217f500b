"""mma.sync beyond 16 x 8 of 8, 16 and 32-bit elements: 8 rows, 4-bit and single-bit elements, 8-bit floats, Volta's
quad pairs; and wmma of elements narrower than a byte. Fragments are placed element by element as the manual says."""

import numpy as np
import pytest
from cudart import run_ptx
from exact_arithmetic import FORMATS

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
BITS = {"b1": 1, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f16": 16, "f32": 32, "s32": 32}


def place_a(lane, element, bits, rows):
    """Row and column of a lane's element, `32 / bits` to a register."""
    per, group, t = 32 // bits, lane // 4, lane % 4
    register, j = divmod(element, per)
    halves = rows // 8
    return group + 8 * (register % halves), per * t + j + 4 * per * (register // halves)


def place_b(lane, element, bits, rows):
    per, group, t = 32 // bits, lane // 4, lane % 4
    register, j = divmod(element, per)
    return per * t + j + 4 * per * register, group


def place_c(lane, element, bits, rows):
    return lane // 4 + 8 * (element // 2), 2 * (lane % 4) + element % 2


def volta_a(layout):
    def place(lane, element):
        upper = 0 if lane < 16 else 4
        return (lane % 4 + upper, element) if layout == "row" else (element + upper, lane % 4)

    return place


def volta_b(layout):
    def place(lane, element):
        upper = 0 if lane < 16 else 4
        return (lane % 4, element + upper) if layout == "row" else (element, lane % 4 + upper)

    return place


def volta_c(kind):
    def place(lane, element):
        upper = 0 if lane < 16 else 4
        if kind == "f16":
            return lane % 4 + upper, element
        return (lane & 1) + (element & 2) + upper, (element & 4) + (lane & 2) + (element & 1)

    return place


def pack(matrix, place, elements, bits):
    """A matrix of bit patterns as registers [register][lane]."""
    per = 32 // bits
    registers = np.zeros((max(1, elements // per), 32), np.uint64)
    for lane in range(32):
        for e in range(elements):
            row, column = place(lane, e)
            registers[e // per, lane] |= np.uint64(int(matrix[lane][row, column]) << bits * (e % per))
    return registers.astype(np.uint32)


def unpack(registers, place, elements, bits, shape, owner=lambda lane: 0, owners=1):
    per = 32 // bits
    matrix = np.zeros((owners, *shape), np.uint32)
    for lane in range(32):
        for e in range(elements):
            matrix[(owner(lane), *place(lane, e))] = (
                int(registers[e // per, lane]) >> bits * (e % per) & (1 << bits) - 1
            )
    return matrix


def execute(form, fragments, results):
    """Runs one mma on fragments A, B, C; `results` registers come back."""
    loads = []
    for name, fragment in zip("abc", fragments, strict=True):
        for i in range(len(fragment)):
            loads.append(f"ld.param.u64 %p, [p{name}]; add.u64 %p, %p, %at; ld.global.b32 %{name}{i}, [%p+{128 * i}];")
    lists = [
        "{" + ", ".join(f"%{n}{i}" for i in range(c)) + "}" for n, c in zip("dabc", [results, *map(len, fragments)])
    ]
    stores = "\n".join(f"st.global.b32 [%p+{128 * i}], %d{i};" for i in range(results))
    text = f"""{HEAD}.visible .entry test(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc) {{
        .reg .b32 %lane, %a<8>, %b<8>, %c<8>, %d<8>;
        .reg .b64 %p, %at;
        mov.u32 %lane, %tid.x;
        mul.wide.u32 %at, %lane, 4;
        {chr(10).join(loads)}
        {form} {", ".join(lists)};
        ld.param.u64 %p, [pd];
        add.u64 %p, %p, %at;
        {stores}
        ret; }}"""
    arguments = [np.full((results, 32), 0x5A5A5A5A, np.uint32), *fragments]
    return run_ptx(text, "test", 1, 32, arguments).check().outputs[0]


def values_of(bits, kind):
    """What bit patterns of an integer kind stand for."""
    values = bits.astype(np.int64)
    width = BITS[kind]
    return np.where((kind[0] == "s") & (values >> (width - 1) == 1), values - (1 << width), values)


def multiply(rows, k, a_kind, b_kind, a, b, c, modifier="", tail=""):
    bits = BITS[a_kind]
    same = [a] * 32, [b] * 32, [c] * 32
    fragments = [
        pack(same[0], lambda lane, e: place_a(lane, e, bits, rows), rows * k // 32, bits),
        pack(same[1], lambda lane, e: place_b(lane, e, bits, rows), 8 * k // 32, bits),
        pack(same[2], lambda lane, e: place_c(lane, e, 32, rows), rows // 4, 32),
    ]
    form = f"mma.sync.aligned.m{rows}n8k{k}.row.col{modifier}.s32.{a_kind}.{b_kind}.s32{tail}"
    got = execute(form, fragments, rows // 4)
    return unpack(got, lambda lane, e: place_c(lane, e, 32, rows), rows // 4, 32, (rows, 8))[0].astype(np.int32)


@pytest.mark.parametrize(("rows", "k", "width"), [(8, 16, 8), (8, 32, 4), (16, 32, 4), (16, 64, 4)])
@pytest.mark.parametrize("signs", range(4))
@pytest.mark.parametrize("modifier", ["", ".satfinite"])
def test_integers(rows, k, width, signs, modifier):
    a_kind, b_kind = ("su"[signs >> i & 1] + str(width) for i in range(2))
    rng = np.random.default_rng(k + signs)
    a, b = rng.integers(0, 1 << width, (rows, k)), rng.integers(0, 1 << width, (k, 8))
    c = rng.integers(-1000, 1000, (rows, 8))
    c[0], c[1] = 2**31 - 5, -(2**31) + 5
    exact = values_of(a, a_kind) @ values_of(b, b_kind) + c
    want = np.clip(exact, -(2**31), 2**31 - 1) if modifier else (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(multiply(rows, k, a_kind, b_kind, a, b, c & 0xFFFFFFFF, modifier), want)


@pytest.mark.parametrize(("rows", "k"), [(8, 128), (16, 128), (16, 256)])
@pytest.mark.parametrize("operation", ["xor", "and"])
def test_single_bits(rows, k, operation):
    rng = np.random.default_rng(k)
    a, b, c = rng.integers(0, 2, (rows, k)), rng.integers(0, 2, (k, 8)), rng.integers(-99, 99, (rows, 8))
    pairs = a[:, :, None] ^ b[None] if operation == "xor" else a[:, :, None] & b[None]
    got = multiply(rows, k, "b1", "b1", a, b, c & 0xFFFFFFFF, tail=f".{operation}.popc")
    np.testing.assert_array_equal(got, pairs.sum(1) + c)


def float8(bits, kind):
    """Values of e4m3 and e5m2, as the manual has them: e4m3 has no infinities, its NaN is all ones."""
    fmt = FORMATS[kind]
    fraction_bits = fmt.precision - 1
    bias = (1 << (fmt.exponent_bits - 1)) - 1
    sign = np.where(bits >> 7, -1.0, 1.0)
    exponent, fraction = bits >> fraction_bits & (1 << fmt.exponent_bits) - 1, bits & (1 << fraction_bits) - 1
    scaled = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction).astype(float)
    return sign * scaled * 2.0 ** (np.maximum(exponent, 1) - bias - fraction_bits)


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("a_kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("b_kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("d_kind", ["f32", "f16"])
def test_floats_of_8_bits(k, a_kind, b_kind, d_kind):
    """Small integers and halves, whose sums are exact in every order; infinities and NaN where there are some."""
    rng = np.random.default_rng(k)
    # Magnitudes from 1/4 to 3.5, of both signs, and zero.
    finite = {
        "e4m3": [0, 0x28, 0x30, 0x38, 0x3C, 0x40, 0x46, 0xB8, 0xC0],
        "e5m2": [0, 0x34, 0x38, 0x3C, 0x3E, 0x40, 0xBC, 0xC2],
    }
    a, b = rng.choice(finite[a_kind], (16, k)), rng.choice(finite[b_kind], (k, 8))
    a[3, 1] = {"e4m3": 0x7F, "e5m2": 0x7E}[a_kind]  # NaN
    one = {"e4m3": 0x38, "e5m2": 0x3C}[b_kind]
    if a_kind == "e5m2":
        a[5], a[5, 2], b[2] = 0, 0xFC, one  # -infinity
    c = rng.integers(-8, 8, (16, 8)).astype(float)
    bits_of = {
        "f32": lambda x: x.astype(np.float32).view(np.uint32),
        "f16": lambda x: x.astype(np.float16).view(np.uint16),
    }
    width = BITS[d_kind]
    per = 32 // width

    def place(lane, e):
        return place_c(lane, e, width, 16)

    fragments = [
        pack([a] * 32, lambda lane, e: place_a(lane, e, 8, 16), 16 * k // 32, 8),
        pack([b] * 32, lambda lane, e: place_b(lane, e, 8, 16), 8 * k // 32, 8),
        pack([bits_of[d_kind](c)] * 32, place, 4, width),
    ]
    form = f"mma.sync.aligned.m16n8k{k}.row.col.{d_kind}.{a_kind}.{b_kind}.{d_kind}"
    got = unpack(execute(form, fragments, 4 // per), place, 4, width, (16, 8))[0]
    want = float8(a, a_kind) @ float8(b, b_kind) + c
    want[3] = np.nan
    if a_kind == "e5m2":
        want[5] = -np.inf
    got = got.astype(np.uint16).view(np.float16) if d_kind == "f16" else got.view(np.float32)
    np.testing.assert_array_equal(got.astype(float), want)


@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize("b_layout", ["row", "col"])
@pytest.mark.parametrize(("d_kind", "c_kind"), [("f16", "f16"), ("f32", "f16"), ("f32", "f32")])
def test_quad_pairs(a_layout, b_layout, d_kind, c_kind):
    """m8n8k4 of f16: four products of 8 x 4 and 4 x 8 at once, of lanes 4p.. and 16 + 4p.. each."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-9, 9, (4, *shape)).astype(np.float16) for shape in ((8, 4), (4, 8)))
    c = rng.integers(-99, 99, (4, 8, 8)).astype({"f16": np.float16, "f32": np.float32}[c_kind])

    def by_lane(matrices):
        bits = matrices.view({2: np.uint16, 4: np.uint32}[matrices.itemsize])
        return [bits[lane % 16 // 4] for lane in range(32)]

    fragments = [
        pack(by_lane(a), volta_a(a_layout), 4, 16),
        pack(by_lane(b), volta_b(b_layout), 4, 16),
        pack(by_lane(c), volta_c(c_kind), 8, BITS[c_kind]),
    ]
    form = f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d_kind}.f16.f16.{c_kind}"
    width = BITS[d_kind]
    got = execute(form, fragments, 8 * width // 32)
    got = unpack(got, volta_c(d_kind), 8, width, (8, 8), lambda lane: lane % 16 // 4, 4)
    got = got.astype(np.uint16).view(np.float16) if d_kind == "f16" else got.view(np.float32)
    np.testing.assert_array_equal(got.astype(float), a.astype(float) @ b.astype(float) + c)


@pytest.mark.parametrize(
    ("shape", "k", "kind", "operation"),
    [("m8n8k32", 32, "s4", ""), ("m8n8k32", 32, "u4", ""), ("m8n8k128", 128, "b1", ".xor.popc"),
     ("m8n8k128", 128, "b1", ".and.popc")],
)  # fmt: skip
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("layout", ["row", "col"])
def test_wmma_of_elements_narrower_than_a_byte(shape, k, kind, operation, padding, layout):
    bits = BITS[kind]
    rng = np.random.default_rng(bits)
    a, b = rng.integers(0, 1 << bits, (8, k)), rng.integers(0, 1 << bits, (k, 8))
    c = rng.integers(-99, 99, (8, 8)).astype(np.int32)
    stride = k * (1 + padding)

    def lines(matrix):  # by lines of `stride` elements
        wide = np.zeros((8, stride), np.uint64)
        wide[:, :k] = matrix
        words = wide.reshape(8, -1, 32 // bits) << (bits * np.arange(32 // bits, dtype=np.uint64))
        return words.sum(2).astype(np.uint32)

    body = f"""
        wmma.load.a.sync.aligned.row.{shape}.global.{kind} {{%a}}, [%pa], {stride};
        wmma.load.b.sync.aligned.col.{shape}.global.{kind} {{%b}}, [%pb], {stride};
        wmma.load.c.sync.aligned.{layout}.{shape}.global.s32 {{%c0, %c1}}, [%pc], 8;
        wmma.mma{operation}.sync.aligned.row.col.{shape}.s32.{kind}.{kind}.s32 {{%c0, %c1}}, {{%a}}, {{%b}}, {{%c0, %c1}};
        wmma.store.d.sync.aligned.{layout}.{shape}.global.s32 [%pc], {{%c0, %c1}}, 8;"""
    text = f"""{HEAD}.visible .entry test(.param .u64 pa, .param .u64 pb, .param .u64 pc) {{
        .reg .b32 %a, %b, %c<2>; .reg .b64 %pa, %pb, %pc;
        ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pc, [pc];
        {body} ret; }}"""
    stored = c if layout == "row" else np.ascontiguousarray(c.T)
    got = run_ptx(text, "test", 1, 32, [lines(a), lines(b.T), stored]).check().outputs[2]
    if operation:
        pairs = a[:, :, None] ^ b[None] if "xor" in operation else a[:, :, None] & b[None]
        want = pairs.sum(1) + c
    else:
        want = values_of(a, kind) @ values_of(b, kind) + c
    np.testing.assert_array_equal(got if layout == "row" else got.T, want)


@pytest.mark.simulator_only
@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 <4>, <4>, <2>, <4>", "only sums of integers"),
        ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor <2>, <1>, <1>, <2>", "no such shape"),
        ("mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 <4>, <4>, <2>, <4>", "no such shape"),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 <2>, <2>, <1>, <2>", "A has 2 registers, not 1"),
        ("wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32 <2>, <1>, <1>, <2>", "no such combination"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 <8>, <2>, <2>, <8>", "no such combination"),
    ],
)
def test_what_is_no_form_is_refused(form, why):
    for count in (1, 2, 4, 8):
        form = form.replace(f"<{count}>", "{" + ", ".join(f"%r{i}" for i in range(count)) + "}")
    text = f"{HEAD}.visible .entry test() {{ .reg .b32 %r<8>; {form}; ret; }}"
    result = run_ptx(text, "test", 1, 32, [])
    assert not result.ok and why in result.stderr, result.stderr
