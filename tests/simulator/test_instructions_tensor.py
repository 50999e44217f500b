"""mma.sync, ldmatrix, stmatrix and movmatrix against NumPy, with the fragment layouts of the PTX manual."""

import numpy as np
import pytest
from cudart import ON_GPU, run_ptx
from tensor_sums import matrix_product

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
LANES = np.arange(32)
GROUP, THREAD = LANES // 4, LANES % 4


# ---- Fragments, element by element. Each function gives (row, column) arrays of shape [32 lanes, registers, elements].


def layout_a(k, per_register):
    registers = 2 if k == 4 * per_register else 4
    rows = np.empty((32, registers, per_register), int)
    columns = np.empty_like(rows)
    for i in range(registers):
        for j in range(per_register):
            rows[:, i, j] = GROUP + (8 if i % 2 else 0)
            columns[:, i, j] = THREAD * per_register + j + (4 * per_register if i >= 2 else 0)
    return rows, columns


def layout_b(k, per_register):
    registers = 1 if k == 4 * per_register else 2
    rows = np.empty((32, registers, per_register), int)
    columns = np.empty_like(rows)
    for i in range(registers):
        for j in range(per_register):
            rows[:, i, j] = THREAD * per_register + j + (4 * per_register if i else 0)
            columns[:, i, j] = GROUP
    return rows, columns


def layout_c(per_register):
    registers = 4 // per_register
    rows = np.empty((32, registers, per_register), int)
    columns = np.empty_like(rows)
    for i in range(registers):
        for j in range(per_register):
            element = i * per_register + j
            rows[:, i, j] = GROUP + (8 if element >= 2 else 0)
            columns[:, i, j] = THREAD * 2 + element % 2
    return rows, columns


def pack(matrix, layout):
    """[rows, columns] of 1, 2 or 4-byte bit patterns -> registers [register][lane] of 32 bits."""
    rows, columns = layout
    elements = np.ascontiguousarray(matrix[rows, columns])  # [lane, register, element]
    return np.ascontiguousarray(elements.view(np.uint32).reshape(rows.shape[:2]).T)


def unpack(registers, layout, kind, shape):
    rows, columns = layout
    matrix = np.zeros(shape, kind)
    elements = np.ascontiguousarray(registers.T).view(kind).reshape(rows.shape)
    matrix[rows, columns] = elements
    return matrix


# ---- Number formats


def to_bf16(values):
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_bits(values, kind):
    if kind == "f16":
        return np.asarray(values, np.float16).view(np.uint16)
    if kind == "bf16":
        return to_bf16(values)
    if kind in ("tf32", "f32"):
        return np.asarray(values, np.float32).view(np.uint32)
    return np.asarray(values).astype({"s8": np.int8, "u8": np.uint8, "s32": np.int32}[kind])


def to_double(bits, kind):
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "tf32":
        return (bits & 0xFFFFE000).view(np.float32).astype(np.float64)
    return bits.view(np.float32).astype(np.float64) if kind == "f32" else bits.astype(np.float64)


BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s8": 1, "u8": 1, "s32": 4, "e4m3": 1, "e5m2": 1}


def mma(k, d_kind, a_kind, b_kind, a, b, c, modifier="", guard=None):
    """D [16, 8] as bits, for bit patterns A [16, k], B [k, 8], C [16, 8]."""
    per = 4 // BYTES[a_kind]
    pack_c = layout_c(4 // BYTES[d_kind])
    fragments = [pack(a, layout_a(k, per)), pack(b, layout_b(k, per)), pack(c, pack_c)]
    names = {}
    loads = []
    for name, parameter, fragment in zip("abc", ("pa", "pb", "pc"), fragments, strict=True):
        names[name] = ", ".join(f"%{name}{i}" for i in range(len(fragment)))
        for i in range(len(fragment)):
            loads.append(f"ld.param.u64 %p, [{parameter}];\nadd.u64 %p, %p, %lane4;")
            loads.append(f"ld.global.b32 %{name}{i}, [%p+{128 * i}];")
    registers = len(fragments[2])
    d = ", ".join(f"%d{i}" for i in range(registers))
    stores = "\n".join(f"st.global.b32 [%p+{128 * i}], %d{i};" for i in range(registers))
    text = f"""{HEAD}.visible .entry test(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc) {{
        .reg .b32 %lane, %a<4>, %b<4>, %c<4>, %d<4>;
        .reg .b64 %p, %lane4;
        mov.u32 %lane, %tid.x;
        mul.wide.u32 %lane4, %lane, 4;
        {chr(10).join(loads)}
        mma.sync.aligned.m16n8k{k}.row.col{modifier}.{d_kind}.{a_kind}.{b_kind}.{d_kind}
            {{{d}}}, {{{names["a"]}}}, {{{names["b"]}}}, {{{names["c"]}}};
        ld.param.u64 %p, [pd];
        add.u64 %p, %p, %lane4;
        {stores}
        ret; }}"""
    result = run_ptx(text, "test", 1, 32, [np.full((registers, 32), 0x5A5A5A5A, np.uint32), *fragments]).check()
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32}[BYTES[d_kind]]
    return unpack(result.outputs[0], pack_c, kind, (16, 8))


FLOAT_FORMS = [
    (8, "f32", "f16"), (16, "f32", "f16"), (8, "f16", "f16"), (16, "f16", "f16"),
    (8, "f32", "bf16"), (16, "f32", "bf16"), (4, "f32", "tf32"), (8, "f32", "tf32"),
]  # fmt: skip


def random_operands(rng, k, d_kind, a_kind, scale=1.0):
    a = to_bits(rng.standard_normal((16, k)) * scale, a_kind)
    b = to_bits(rng.standard_normal((k, 8)), a_kind)
    return a, b, to_bits(rng.standard_normal((16, 8)) * scale, d_kind)


@pytest.mark.parametrize("k, d_kind, a_kind", FLOAT_FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_mma_of_random_numbers(k, d_kind, a_kind, seed):
    rng = np.random.default_rng(seed)
    a, b, c = random_operands(rng, k, d_kind, a_kind, scale=[1, 100, 0.01][seed])
    d = mma(k, d_kind, a_kind, a_kind, a, b, c)
    if not ON_GPU:  # older GPUs than Hopper add in other groups
        np.testing.assert_array_equal(d, matrix_product(a, b, c, a_kind, a_kind, d_kind))
    a, b, c, d_value = to_double(a, a_kind), to_double(b, a_kind), to_double(c, d_kind), to_double(d, d_kind)
    exact = a @ b + c
    # Every addition may lose one unit of float32's last place of the largest sum; f16 results round.
    magnitude = np.abs(a) @ np.abs(b) + np.abs(c)
    bound = (k + 1) * 2.0**-23 * magnitude + (np.abs(exact) * 2.0**-11 + 2.0**-24 if d_kind == "f16" else 0)
    assert (np.abs(d_value - exact) <= bound).all()


@pytest.mark.simulator_only
@pytest.mark.parametrize("k, d_kind, a_kind", [form for form in FLOAT_FORMS if form[2] in ("bf16", "tf32")])
@pytest.mark.parametrize("low, high", [(-152, -118), (118, 130), (-152, 128)])
def test_mma_of_products_that_float32_does_not_hold(k, d_kind, a_kind, low, high):
    """Products below 2^-126 or beyond 2^128 enter the sum exactly, on every CPU."""
    rng = np.random.default_rng(low % 1000 + high)
    exponents = rng.integers(low, high, (16, 8))
    a = rng.uniform(-2, 2, (16, k)) * 2.0 ** (exponents[:, :1] // 2)
    b = rng.uniform(-2, 2, (k, 8)) * 2.0 ** (exponents[:1, :] - exponents[:1, :] // 2)
    b[rng.random(b.shape) < 0.1] = 0
    c = rng.uniform(-2, 2, (16, 8)) * 2.0 ** rng.integers(max(low, -126), min(high, 126), (16, 8))
    a, b, c = to_bits(a, a_kind), to_bits(b, a_kind), to_bits(c, d_kind)
    np.testing.assert_array_equal(mma(k, d_kind, a_kind, a_kind, a, b, c), matrix_product(a, b, c, a_kind, a_kind))


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("d_kind", ["f32", "f16"])
@pytest.mark.parametrize("a_kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("b_kind", ["e4m3", "e5m2"])
@pytest.mark.simulator_only
def test_mma_of_8_bit_floats(k, d_kind, a_kind, b_kind):
    rng = np.random.default_rng(k)
    a, b = (rng.integers(0, 0x78, shape).astype(np.uint8) | rng.choice([0, 128], shape).astype(np.uint8)
            for shape in ((16, k), (k, 8)))  # fmt: skip
    c = to_bits(rng.standard_normal((16, 8)) * 1000, d_kind)
    got = mma(k, d_kind, a_kind, b_kind, a, b, c)
    np.testing.assert_array_equal(got, matrix_product(a, b, c, a_kind, b_kind, d_kind, "mma"))


@pytest.mark.parametrize("k, d_kind, a_kind", FLOAT_FORMS)
def test_mma_places_every_element(k, d_kind, a_kind):
    """A single one in A, at every place: D's row is then B's row, exactly."""
    rng = np.random.default_rng(5)
    values = rng.integers(-8, 8, (k, 8)).astype(float)
    zero = to_bits(np.zeros((16, 8)), d_kind)
    for row in (0, 3, 7, 8, 15):
        for column in range(k):
            a = np.zeros((16, k))
            a[row, column] = 1
            d = to_double(mma(k, d_kind, a_kind, a_kind, to_bits(a, a_kind), to_bits(values, a_kind), zero), d_kind)
            expected = np.zeros((16, 8))
            expected[row] = values[column]
            np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize("k, d_kind, a_kind", FLOAT_FORMS)
def test_mma_special_values(k, d_kind, a_kind):
    a, b, c = np.zeros((16, k)), np.zeros((k, 8)), np.zeros((16, 8))
    b[0] = 1
    a[0, 0], a[1, 0], a[2, 0] = np.inf, -np.inf, np.nan
    a[3, 0], c[3] = np.inf, -np.inf  # NaN
    a[4, 0], b[1] = 1, np.inf  # 0 times infinity in every row: NaN
    d = mma(k, d_kind, a_kind, a_kind, to_bits(a, a_kind), to_bits(b, a_kind), to_bits(c, d_kind))
    assert (d == (0x7FFF if d_kind == "f16" else 0x7FFFFFFF)).all()
    b[1] = 0
    d = to_double(mma(k, d_kind, a_kind, a_kind, to_bits(a, a_kind), to_bits(b, a_kind), to_bits(c, d_kind)), d_kind)
    assert (d[0] == np.inf).all() and (d[1] == -np.inf).all() and np.isnan(d[2]).all() and np.isnan(d[3]).all()
    assert (d[4] == 1).all() and (d[5:] == 0).all()


@pytest.mark.parametrize("k, d_kind", [(16, "f32"), (16, "f16"), (8, "f32")])
def test_mma_keeps_subnormal_halves(k, d_kind):
    a, b = np.zeros((16, k)), np.zeros((k, 8))
    a[:, 1], b[1] = 2.0**-24, 1
    a[:, 2], b[2] = 2.0**-24, 2
    d = to_double(
        mma(k, d_kind, "f16", "f16", to_bits(a, "f16"), to_bits(b, "f16"), to_bits(np.zeros((16, 8)), d_kind)), d_kind
    )
    np.testing.assert_array_equal(d, np.full((16, 8), 3 * 2.0**-24))


def test_tf32_ignores_the_low_13_bits():
    rng = np.random.default_rng(6)
    a, b, c = random_operands(rng, 8, "f32", "tf32")
    noisy = mma(8, "f32", "tf32", "tf32", a | 0x1FFF, b | 0x1FFF, c)
    clean = mma(8, "f32", "tf32", "tf32", a & 0xFFFFE000, b & 0xFFFFE000, c)
    np.testing.assert_array_equal(noisy, clean)


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("a_kind", ["s8", "u8"])
@pytest.mark.parametrize("b_kind", ["s8", "u8"])
@pytest.mark.parametrize("modifier", ["", ".satfinite"])
def test_mma_of_integers(k, a_kind, b_kind, modifier):
    rng = np.random.default_rng(k)
    ranges = {"s8": (-128, 128), "u8": (0, 256)}
    a = to_bits(rng.integers(*ranges[a_kind], (16, k)), a_kind)
    b = to_bits(rng.integers(*ranges[b_kind], (k, 8)), b_kind)
    c = rng.integers(-1000, 1000, (16, 8)).astype(np.int32)
    c[0], c[1] = 2**31 - 5, -(2**31) + 5
    d = mma(k, "s32", a_kind, b_kind, a, b, c, modifier).view(np.int32)
    exact = a.astype(np.int64) @ b.astype(np.int64) + c
    if modifier:
        expected = np.clip(exact, -(2**31), 2**31 - 1)
    else:
        expected = (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(d, expected)


# ---- ldmatrix, stmatrix, movmatrix


def load_kernel(count, trans="", row="%offset", generic=False, guard="", setup="", threads=32):
    """Fills 8192 bytes of shared memory from `in`, loads matrices with rows at address[lane], stores fragments."""
    registers = ", ".join(f"%r{i}" for i in range(count))
    stores = "\n".join(f"st.global.b32 [%out+{4 * threads * i}], %r{i};" for i in range(count))
    if generic:
        load = (
            f"cvta.shared.u64 %wide, %wide;\nldmatrix.sync.aligned.m8n8.x{count}{trans}.b16 {{{registers}}}, [%wide];"
        )
    else:
        load = f"{guard} ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [{row}];"
    return f"""{HEAD}.visible .entry test(.param .u64 pout, .param .u64 pin, .param .u64 paddress) {{
        .shared .align 128 .b8 tile[8192];
        .reg .b32 %lane, %i, %offset, %word, %r<4>;
        .reg .b64 %out, %in, %address, %lane4, %at, %wide;
        .reg .pred %p, %more;
        mov.u32 %lane, %tid.x;
        ld.param.u64 %out, [pout];
        ld.param.u64 %in, [pin];
        ld.param.u64 %address, [paddress];
        mul.wide.u32 %lane4, %lane, 4;
        add.u64 %out, %out, %lane4;
        add.u64 %address, %address, %lane4;
        mul.lo.u32 %i, %lane, 4;
        {"".join(f"mov.b32 %r{i}, 0;" for i in range(4))}
    FILL:
        cvt.u64.u32 %at, %i;
        add.u64 %at, %at, %in;
        ld.global.b32 %word, [%at];
        mov.u32 %offset, tile;
        add.u32 %offset, %offset, %i;
        st.shared.b32 [%offset], %word;
        add.u32 %i, %i, {4 * threads};
        setp.lt.u32 %more, %i, 8192;
        @%more bra FILL;
        bar.sync 0;
        ld.global.b32 %offset, [%address];
        mov.u32 %i, tile;
        add.u32 %offset, %offset, %i;
        cvt.u64.u32 %wide, %offset;
        setp.lt.u32 %p, %lane, 16;
        {setup}
        {load}
        {stores}
        ret; }}"""


def shared_contents():
    return np.arange(4096, dtype=np.uint16).view(np.uint32).copy()


def expected_load(offsets, count, trans):
    halves = shared_contents().view(np.uint16)
    out = np.zeros((count, 32, 2), np.uint16)
    for i in range(count):
        rows = np.stack([halves[o // 2 : o // 2 + 8] for o in offsets[8 * i : 8 * i + 8]])
        matrix = rows.T if trans else rows
        for lane in range(32):
            out[i, lane] = matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
    return out.view(np.uint32)[..., 0]


def run_load(text, offsets, count, block=32, **options):
    return run_ptx(text, "test", 1, block, [np.zeros((count, block), np.uint32), shared_contents(), offsets], **options)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("generic", [False, True])
def test_ldmatrix(count, trans, generic):
    rng = np.random.default_rng(count)
    offsets = (rng.permutation(512)[:32] * 16).astype(np.uint32)
    result = run_load(load_kernel(count, trans, generic=generic), offsets, count).check()
    np.testing.assert_array_equal(result.outputs[0], expected_load(offsets, count, trans))


def test_ldmatrix_address_forms():
    offsets = (np.arange(32) * 16).astype(np.uint32)
    result = run_load(load_kernel(4, row="%offset+1024"), offsets, 4).check()
    np.testing.assert_array_equal(result.outputs[0], expected_load(offsets + 1024, 4, ""))
    result = run_load(load_kernel(2, row="tile+48"), offsets, 2).check()
    np.testing.assert_array_equal(result.outputs[0], expected_load(np.full(32, 48), 2, ""))
    # The address register may be a destination: %r0 holds it here.
    text = load_kernel(4, row="%r0", setup="mov.b32 %r0, %offset;")
    result = run_load(text, offsets, 4).check()
    np.testing.assert_array_equal(result.outputs[0], expected_load(offsets, 4, ""))


def test_ldmatrix_reads_only_the_lanes_that_its_count_names():
    """Lanes 8 and up of an .x1 may hold anything in their address register."""
    offsets = np.where(LANES < 8, LANES * 16, 0x7FFFFF01).astype(np.uint32)
    result = run_load(load_kernel(1), offsets, 1).check()
    np.testing.assert_array_equal(result.outputs[0], expected_load(offsets[:8], 1, ""))


def counted(result, kind):
    (launch,) = result.report["launches"]
    return launch["shared"][kind]["wavefronts"], launch["shared"][kind]["ideal"]


CHUNK = np.arange(8)
SPREADS = {
    "rows of 16 bytes": (lambda row: row * 16, 1),
    "rows of 32 bytes": (lambda row: row * 32, 2),
    "rows of 64 bytes": (lambda row: row * 64, 4),
    "rows of 128 bytes": (lambda row: row * 128, 8),
    "rows of 256 bytes": (lambda row: row * 256 % 8192, 8),
    "rows of 128 bytes, swizzled": (lambda row: row * 128 + (row % 8) * 16, 1),
    "rows of 144 bytes, padded": (lambda row: row * 144, 1),
    "one row": (lambda row: row * 0, 1),
    "two rows of one bank group": (lambda row: row % 2 * 128, 2),
}


@pytest.mark.simulator_only
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_wavefronts(spread, count):
    place, wavefronts = SPREADS[spread]
    offsets = np.array([place(i) for i in range(32)], np.uint32)
    result = run_load(load_kernel(count), offsets, count, report=True).check()
    assert counted(result, "ldmatrix") == (wavefronts * count, count)


def store_kernel(count, trans=""):
    registers = ", ".join(f"%r{i}" for i in range(count))
    loads = "\n".join(f"ld.global.b32 %r{i}, [%in+{128 * i}];" for i in range(count))
    return f"""{HEAD}.visible .entry test(.param .u64 pout, .param .u64 pin, .param .u64 paddress) {{
        .shared .align 128 .b8 tile[8192];
        .reg .b32 %lane, %i, %offset, %word, %r<4>;
        .reg .b64 %out, %in, %address, %lane4, %at;
        .reg .pred %more;
        mov.u32 %lane, %tid.x;
        ld.param.u64 %out, [pout];
        ld.param.u64 %in, [pin];
        ld.param.u64 %address, [paddress];
        mul.wide.u32 %lane4, %lane, 4;
        add.u64 %in, %in, %lane4;
        add.u64 %address, %address, %lane4;
        mul.lo.u32 %i, %lane, 4;
        mov.u32 %word, 0;
    FILL:
        mov.u32 %offset, tile;
        add.u32 %offset, %offset, %i;
        st.shared.b32 [%offset], %word;
        add.u32 %i, %i, 128;
        setp.lt.u32 %more, %i, 8192;
        @%more bra FILL;
        bar.sync 0;
        {loads}
        ld.global.b32 %offset, [%address];
        mov.u32 %i, tile;
        add.u32 %offset, %offset, %i;
        stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%offset], {{{registers}}};
        bar.sync 0;
        mul.lo.u32 %i, %lane, 4;
    COPY:
        mov.u32 %offset, tile;
        add.u32 %offset, %offset, %i;
        ld.shared.b32 %word, [%offset];
        cvt.u64.u32 %at, %i;
        add.u64 %at, %at, %out;
        st.global.b32 [%at], %word;
        add.u32 %i, %i, 128;
        setp.lt.u32 %more, %i, 8192;
        @%more bra COPY;
        ret; }}"""


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix(count, trans):
    rng = np.random.default_rng(count)
    offsets = (rng.permutation(512)[:32] * 16).astype(np.uint32)
    fragments = rng.integers(0, 2**32, (count, 32), dtype=np.uint32)
    result = run_ptx(store_kernel(count, trans), "test", 1, 32, [np.zeros(2048, np.uint32), fragments, offsets]).check()
    expected = np.zeros((512, 8), np.uint16)
    for i in range(count):
        matrix = fragments[i].view(np.uint16).reshape(8, 8)
        for row in range(8):
            expected[offsets[8 * i + row] // 16] = (matrix.T if trans else matrix)[row]
    np.testing.assert_array_equal(result.outputs[0].view(np.uint16).reshape(512, 8), expected)


@pytest.mark.simulator_only
def test_stmatrix_wavefronts():
    for spread in ("rows of 256 bytes", "rows of 64 bytes", "rows of 16 bytes"):
        place, wavefronts = SPREADS[spread]
        offsets = np.array([place(i) for i in range(32)], np.uint32)
        arrays = [np.zeros(2048, np.uint32), np.zeros((4, 32), np.uint32), offsets]
        result = run_ptx(store_kernel(4), "test", 1, 32, arrays, report=True).check()
        assert counted(result, "stmatrix") == (wavefronts * 4, 4)


def test_movmatrix():
    text = f"""{HEAD}.visible .entry test(.param .u64 pd) {{
        .reg .b32 %r<2>; .reg .b64 %p, %lane4;
        mov.u32 %r0, %tid.x;
        mul.wide.u32 %lane4, %r0, 4;
        ld.param.u64 %p, [pd];
        add.u64 %p, %p, %lane4;
        ld.global.b32 %r1, [%p];
        movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;
        st.global.b32 [%p], %r1;
        ret; }}"""
    matrix = np.random.default_rng(1).integers(0, 2**16, (8, 8), dtype=np.uint16)
    result = run_ptx(text, "test", 1, 32, [matrix.copy()]).check()
    np.testing.assert_array_equal(result.outputs[0], matrix.T)


# ---- Mistakes


def the_hazard(result, kind):
    assert not result.ok
    assert [h["kind"] for h in result.hazards] == [kind], result.hazards
    return result.hazards[0]


@pytest.mark.simulator_only
def test_ldmatrix_addresses_are_checked():
    offsets = (LANES * 16).astype(np.uint32)
    bad = offsets.copy()
    bad[5] += 8
    hazard = the_hazard(run_load(load_kernel(4), bad, 4, report=True), "misaligned")
    assert hazard["lane"] == 5 and "16 bytes" in hazard["message"]
    bad = offsets.copy()
    bad[9] = 8192
    hazard = the_hazard(run_load(load_kernel(4), bad, 4, report=True), "out_of_bounds")
    assert hazard["lane"] == 9 and "8192" in hazard["message"]
    bad[9] = 0xFFFFFFF0
    assert the_hazard(run_load(load_kernel(4), bad, 4, report=True), "out_of_bounds")["lane"] == 9
    assert run_load(load_kernel(1), bad, 1).check()


@pytest.mark.simulator_only
def test_generic_address_outside_shared_memory():
    text = load_kernel(4, generic=True).replace("cvta.shared.u64 %wide, %wide;", "mov.u64 %wide, %out;")
    hazard = the_hazard(run_load(text, (LANES * 16).astype(np.uint32), 4, report=True), "invalid_address")
    assert "shared memory" in hazard["message"]


@pytest.mark.simulator_only
def test_all_lanes_must_take_part():
    offsets = (LANES * 16).astype(np.uint32)
    # Half of the warp branches round the instruction and exits.
    hazard = the_hazard(run_load(load_kernel(4, setup="@!%p ret;"), offsets, 4, report=True), "missing_lanes")
    assert "ldmatrix" in hazard["message"]
    # A block of 16 threads has no other half.
    text = load_kernel(1, threads=16)
    hazard = the_hazard(run_load(text, offsets, 1, block=16, report=True), "missing_lanes")
    assert "0xffff0000" in hazard["message"]
    # Guarded by a predicate that half of the lanes lack.
    the_hazard(run_load(load_kernel(4, guard="@%p"), offsets, 4, report=True), "missing_lanes")


@pytest.mark.simulator_only
def test_races_with_matrix_moves():
    """Two warps: the first loads rows that the second has filled. With the barrier it is right, without it a race."""
    text = load_kernel(4, threads=64)
    offsets = np.tile(LANES * 16, 2).astype(np.uint32)
    assert not run_load(text, offsets, 4, block=64, report=True).check().hazards
    hazard = the_hazard(run_load(text.replace("bar.sync 0;", ""), offsets, 4, block=64, report=True), "shared_race")
    assert "ldmatrix" in hazard["message"] or "st.shared" in hazard["message"]


@pytest.mark.simulator_only
def test_uninitialised_rows_are_reported():
    text = load_kernel(4).replace("@%more bra FILL;", "")
    the_hazard(run_load(text, (LANES * 16 + 512).astype(np.uint32), 4, report=True), "uninitialized_shared")


@pytest.mark.simulator_only
@pytest.mark.parametrize("text, words", [
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {a, a}, {b, b}, {a}, {a};", "m8n8k4"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a, a, a, a}, {a, a}, {a, a}, {a};", "A has 2 registers"),
    ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {a, b}, [a];", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8"),
    ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a, b}, [a];", "has 2 registers, not 4"),
])  # fmt: skip
def test_unknown_forms_are_named(text, words):
    kernel = f"{HEAD}.visible .entry test() {{ .reg .b32 a, b; .reg .f64 d0, d1; {text} ret; }}"
    result = run_ptx(kernel, "test", 1, 32)
    assert not result.ok
    assert words in result.error_string + result.stderr, result


@pytest.mark.parametrize("m, k", [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_mma_of_doubles(m, k):
    """A lane holds A[group + 8 i][thread + 4 j], B[thread + 4 j][group] and C[group + 8 i][2 thread + j]."""
    halves = m // 8
    rng = np.random.default_rng(m + k)
    a, b, c = rng.standard_normal((m, k)), rng.standard_normal((k, 8)), rng.standard_normal((m, 8))
    fragments = {
        "a": np.array([a[GROUP + 8 * (i % halves), THREAD + 4 * (i // halves)] for i in range(halves * k // 4)]),
        "b": np.array([b[THREAD + 4 * i, GROUP] for i in range(k // 4)]),
        "c": np.array([c[GROUP + 8 * (i // 2), 2 * THREAD + i % 2] for i in range(2 * halves)]),
    }
    loads, names = "", {"d": ", ".join(f"%d{i}" for i in range(2 * halves))}
    for name, fragment in fragments.items():
        names[name] = ", ".join(f"%{name}{i}" for i in range(len(fragment)))
        loads += f"ld.param.u64 %p, [p{name}]; add.u64 %p, %p, %lane8;"
        loads += "".join(f"ld.global.f64 %{name}{i}, [%p+{256 * i}];" for i in range(len(fragment)))
    stores = "".join(f"st.global.f64 [%p+{256 * i}], %d{i};" for i in range(2 * halves))
    text = f"""{HEAD}.visible .entry test(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc) {{
        .reg .b32 %lane;
        .reg .f64 %a<8>, %b<4>, %c<4>, %d<4>;
        .reg .b64 %p, %lane8;
        mov.u32 %lane, %tid.x;
        mul.wide.u32 %lane8, %lane, 8;
        {loads}
        mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64
            {{{names["d"]}}}, {{{names["a"]}}}, {{{names["b"]}}}, {{{names["c"]}}};
        ld.param.u64 %p, [pd]; add.u64 %p, %p, %lane8;
        {stores}
        ret; }}"""
    arrays = [np.zeros((2 * halves, 32)), *map(np.ascontiguousarray, fragments.values())]
    out = run_ptx(text, "test", 1, 32, arrays).check().outputs[0]
    got = np.zeros((m, 8))
    for i in range(2 * halves):
        got[GROUP + 8 * (i // 2), 2 * THREAD + i % 2] = out[i]
    bound = (k + 1) * 2.0**-53 * (abs(a) @ abs(b) + abs(c))
    assert (abs(got - (a @ b + c)) <= 2 * bound).all()
