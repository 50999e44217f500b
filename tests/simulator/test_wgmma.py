"""wgmma: where operands and results lie, and every bit of the sums, against whole numbers."""

import numpy as np
import pytest
from cudart import run_ptx
from tensor_sums import matrix_product
from test_instructions_tensor import to_bits
from wgmma_kernels import BITS, HEAD, Tile, wgmma, wgmma_of_image


def random_bits(rng, shape, kind, spread=0):
    """Normal numbers, times powers of two up to 2^spread either way; 8-bit floats: any finite bits."""
    if kind in ("e4m3", "e5m2"):
        bits = rng.integers(0, 256, shape)
        return np.where(bits & 0x7F >= {"e4m3": 0x7F, "e5m2": 0x7C}[kind], 0x21, bits).astype(np.uint8)
    if kind in ("s8", "u8"):
        return rng.integers(0, 256, shape).astype(np.uint8)
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    return to_bits(values, kind)


def operands(rng, n, a_kind, b_kind, d_kind, spread=0):
    k = 256 // BITS[a_kind]
    a, b = random_bits(rng, (64, k), a_kind, spread), random_bits(rng, (n, k), b_kind, spread)
    if d_kind == "s32":
        return a, b, rng.integers(0, 2**32, (64, n), np.uint32)
    return a, b, random_bits(rng, (64, n), d_kind, 2 * spread)


def check(a, b, d, a_kind, b_kind, d_kind, a_tile, b_tile, adds=1, **more):
    got = wgmma(a, b, d, a_kind, b_kind, d_kind, a_tile, b_tile, adds, **more)
    np.testing.assert_array_equal(got, matrix_product(a, b.T, d if adds else None, a_kind, b_kind, d_kind))


@pytest.mark.parametrize("row_bytes", [128, 64, 32, 0])
@pytest.mark.parametrize("a_mn", [False, True])
@pytest.mark.parametrize("b_mn", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
def test_layouts(row_bytes, a_mn, b_mn, padding):
    """Each of the eight layouts of A and of B; padding makes the strides other than the packed ones."""
    rng = np.random.default_rng(row_bytes + 2 * a_mn + b_mn)
    a, b, d = operands(rng, 24, "bf16", "bf16", "f32")
    a_tile = Tile(1024, row_bytes, a_mn, padding)
    check(a, b, d, "bf16", "bf16", "f32", a_tile, Tile(33792, row_bytes, b_mn, padding))


@pytest.mark.parametrize("start", [128, 256, 512, 896])
@pytest.mark.parametrize("step", [0, 32, 64, 96])
def test_swizzles_act_on_the_address(start, step):
    """Tiles away from multiples of 1,024 bytes, whose pattern begins with them, and the next k inside the row."""
    rng = np.random.default_rng(start + step)
    a, b, d = operands(rng, 8, "f16", "f16", "f32")
    base = start >> 7
    a_tile = Tile(start + step, 128, base_offset=base)
    check(a, b, d, "f16", "f16", "f32", a_tile, Tile(32768 + start + step, 128, base_offset=base))


# On an H100: a tile B of eight rows of so many bytes begins in that row behind a multiple of 1,024 bytes, with that base
# offset. Which 16 bytes hold the first eight k of each row, and which the second, counted from that multiple on.
RECORDED = [
    (128, 0, 0, (0, 9, 18, 27, 36, 45, 54, 63), (1, 8, 19, 26, 37, 44, 55, 62)),
    (128, 0, 3, (5, 14, 23, 24, 33, 42, 51, 60), (4, 15, 22, 25, 32, 43, 50, 61)),
    (128, 1, 0, (9, 18, 27, 36, 45, 54, 63, 64), (8, 19, 26, 37, 44, 55, 62, 65)),
    (128, 1, 1, (8, 17, 26, 35, 44, 53, 62, 71), (9, 16, 27, 34, 45, 52, 63, 70)),
    (128, 5, 5, (40, 49, 58, 67, 76, 85, 94, 103), (41, 48, 59, 66, 77, 84, 95, 102)),
    (128, 5, 6, (47, 48, 57, 66, 75, 84, 93, 102), (46, 49, 56, 67, 74, 85, 92, 103)),
    (64, 0, 1, (3, 7, 8, 12, 17, 21, 26, 30), (2, 6, 9, 13, 16, 20, 27, 31)),
    (64, 3, 1, (12, 17, 21, 26, 30, 35, 39, 40), (13, 16, 20, 27, 31, 34, 38, 41)),
    (64, 5, 2, (20, 25, 29, 34, 38, 43, 47, 48), (21, 24, 28, 35, 39, 42, 46, 49)),
    (32, 0, 1, (1, 3, 5, 7, 8, 10, 12, 14), (0, 2, 4, 6, 9, 11, 13, 15)),
    (32, 5, 3, (10, 12, 14, 17, 19, 21, 23, 24), (11, 13, 15, 16, 18, 20, 22, 25)),
]


@pytest.mark.simulator_only
@pytest.mark.parametrize(("row_bytes", "row", "base", "first", "second"), RECORDED)
def test_base_offsets_as_an_h100_takes_them(row_bytes, row, base, first, second):
    """The numbers are the GPU's whether the base offset is right or not; where it is not, that is reported."""
    tile = Tile(16384 + row * row_bytes, row_bytes, base_offset=base)
    identity = to_bits(np.eye(64, 16), "f16")
    values = to_bits(np.repeat(np.arange(256.0), 8), "f16").view(np.uint8)
    got, hazards = wgmma_of_image(identity, values, 16384, 8, tile)
    np.testing.assert_array_equal(got[0], first)
    np.testing.assert_array_equal(got[8], second)
    right = row * row_bytes % (8 * row_bytes) == (base << 7) % (8 * row_bytes)
    assert [hazard["kind"] for hazard in hazards] == ([] if right else ["misaligned"])


@pytest.mark.long
@pytest.mark.parametrize("n", [*range(8, 72, 8), 128, 136, 248, 256])
@pytest.mark.parametrize("registers", [False, True])
def test_all_widths(n, registers):
    rng = np.random.default_rng(n)
    a, b, d = operands(rng, n, "bf16", "bf16", "f32")
    check(a, b, d, "bf16", "bf16", "f32", None if registers else Tile(1024, 128), Tile(16384, 64))


FORMS = [
    ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
    *[(a, b, d) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f32", "f16")],
]  # fmt: skip


@pytest.mark.parametrize(("a_kind", "b_kind", "d_kind"), FORMS)
@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("adds", [0, 1])
@pytest.mark.parametrize("spread", [0, 5])
def test_types(a_kind, b_kind, d_kind, registers, adds, spread):
    rng = np.random.default_rng(spread)
    a, b, d = operands(rng, 40, a_kind, b_kind, d_kind, spread)
    check(a, b, d, a_kind, b_kind, d_kind, None if registers else Tile(1024, 0), Tile(16384, 32), adds)


@pytest.mark.parametrize(("a_kind", "low", "high"), [("bf16", -150, -90), ("bf16", 100, 127), ("tf32", -150, 127)])
@pytest.mark.parametrize("seed", range(3))
def test_exponents_near_the_ends(a_kind, low, high, seed):
    """Products, sums and addends that are subnormal, or overflow."""
    rng = np.random.default_rng(seed)
    k = 256 // BITS[a_kind]
    each = rng.integers(low, high, (64, 1)) // 2, rng.integers(low, high, (16, 1)) // 2
    a = to_bits(rng.uniform(-2, 2, (64, k)) * 2.0 ** each[0] * 2.0 ** rng.integers(-3, 4, (64, k)), a_kind)
    b = to_bits(rng.uniform(-2, 2, (16, k)) * 2.0 ** each[1], a_kind)
    a[rng.random(a.shape) < 0.1] = 0
    d = to_bits(rng.uniform(-2, 2, (64, 16)) * 2.0 ** rng.integers(max(low, -149), min(high, 127), (64, 16)), "f32")
    check(a, b, d, a_kind, a_kind, "f32", Tile(1024, 128), Tile(16384, 128))


@pytest.mark.parametrize("a_kind", ["bf16", "tf32"])
@pytest.mark.parametrize(("low", "high"), [(100, 160), (140, 200), (190, 250)])
@pytest.mark.parametrize("adds", [0, 1])
def test_products_beyond_fp32(a_kind, low, high, adds):
    """Sums that reach infinity of either sign, such terms that cancel or nearly do, and D of all sorts."""
    rng = np.random.default_rng(low)
    k, n = 256 // BITS[a_kind], 40
    a = rng.uniform(-2, 2, (64, k)) * 2.0 ** rng.integers(low // 2, high // 2, (64, 1))
    b = rng.uniform(-2, 2, (n, k)) * 2.0 ** rng.integers(low // 2, high // 2, (n, 1))
    a[:, 1::2], b[::2, 1::2] = a[:, ::2], -b[::2, ::2]
    a[3::4] *= 2.0 ** rng.integers(-60, 1, a[3::4].shape)
    b[5::8], a[5::16] = 0, 0
    a[:, 0] *= rng.choice([1, 1.5], 64)
    d = to_bits(rng.uniform(-2, 2, (64, n)) * 2.0 ** rng.integers(-149, 127, (64, n)), "f32")
    ends = np.array([0, 0x80000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001], np.uint32)
    d[:, ::3] = rng.choice(ends, d[:, ::3].shape)
    bits = to_bits(a, a_kind), to_bits(b, a_kind)
    want = matrix_product(bits[0], bits[1].T, d if adds else None, a_kind, a_kind)
    kinds = {0x7F800000, 0xFF800000, 0} | ({0x7FFFFFFF} if adds else set())
    assert kinds <= set(want.flat), "no sum is infinite, or none cancels"
    check(*bits, d, a_kind, a_kind, "f32", Tile(1024, 128), Tile(16384, 128), adds)


@pytest.mark.parametrize("a_kind", ["bf16", "tf32"])
@pytest.mark.parametrize("power", [74, 83, 120])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("of_b", [0, 3])
def test_one_huge_factor_of_each(a_kind, power, sign, of_b):
    """One element of A and one of B are huge, with the same k (of_b 0) or not; all others are normal numbers."""
    rng = np.random.default_rng(power)
    k, n = 256 // BITS[a_kind], 40
    a, b = rng.standard_normal((64, k)), rng.standard_normal((n, k))
    a[17, 2], b[11, 2 + of_b] = 1.25 * 2.0**power, sign * 1.5 * 2.0**power
    d = random_bits(rng, (64, n), "f32", 5)
    a, b = to_bits(a, a_kind), to_bits(b, a_kind)
    check(a, b, d, a_kind, a_kind, "f32", Tile(1024, 128), Tile(16384, 128))


@pytest.mark.parametrize("a_kind", ["bf16", "tf32"])
@pytest.mark.parametrize("spread", [20, 45, 70])
@pytest.mark.parametrize("seed", range(2))
def test_factors_far_apart(a_kind, spread, seed):
    """Products in one sum up to 2^140 apart, many zeros, whole rows and columns of them; D 0, subnormal, or anything."""
    rng = np.random.default_rng(spread + seed)
    k, n = 256 // BITS[a_kind], 40

    def factors(rows):
        values = rng.uniform(-2, 2, (rows, k)) * 2.0 ** rng.integers(-spread, 1, (rows, k))
        return to_bits(np.where(rng.random((rows, k)) < rng.choice([0.05, 0.9]), 0, values), a_kind)

    a, b = factors(64), factors(n)
    a[5::9], b[3::8] = 0, 0
    d = to_bits(rng.uniform(-2, 2, (64, n)) * 2.0 ** rng.integers(-149, 20, (64, n)), "f32")
    d[:, ::3] = rng.choice(np.array([0, 0x80000000, 1], np.uint32), d[:, ::3].shape)
    check(a, b, d, a_kind, a_kind, "f32", Tile(1024, 128), Tile(16384, 128))


def test_special_values():
    """Infinities, NaN, zeros of both signs, in A, B and D; sums of the largest significands fill 31 bits."""
    rng = np.random.default_rng(3)
    special = np.array([0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x3F80, 0x3FFF, 0xBFFF, 0x0001, 0x7F7F], np.uint16)
    a, b = rng.choice(special, (64, 16)), rng.choice(special, (16, 16))
    a[:16] = rng.choice(special[[0, 1, 5, 6]], (16, 16))
    b[:8] = rng.choice(special[[0, 1, 5, 7]], (8, 16))
    a[16:20], b[8:10] = 0x3FFF, 0x3FFF
    d = rng.choice(np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0x40FFFFFF, 1], np.uint32), (64, 16))
    check(a, b, d, "bf16", "bf16", "f32", Tile(1024, 128), Tile(16384, 128))


@pytest.mark.parametrize("scales", [(1, -1), (-1, 1), (-1, -1)])
def test_negated_factors(scales):
    rng = np.random.default_rng(7)
    a, b, d = operands(rng, 16, "f16", "f16", "f32")
    got = wgmma(a, b, d, "f16", "f16", "f32", Tile(1024, 128), Tile(16384, 128), scales=scales)
    sign = np.uint16(0x8000 if scales[0] * scales[1] < 0 else 0)
    np.testing.assert_array_equal(got, matrix_product(a ^ sign, b.T, d, "f16", "f16"))


@pytest.mark.parametrize("a_kind", ["s8", "u8"])
@pytest.mark.parametrize("b_kind", ["s8", "u8"])
@pytest.mark.parametrize("tail", ["", ".satfinite"])
@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("n", "adds"), [(8, 1), (24, 1), (96, 0)])
def test_integers(a_kind, b_kind, tail, registers, n, adds):
    rng = np.random.default_rng(n)
    a, b, d = operands(rng, n, a_kind, b_kind, "s32")
    d[:8], d[8:16] = 2**31 - 5, 2**31 + 5
    got = wgmma(a, b, d, a_kind, b_kind, "s32", None if registers else Tile(1024, 128), Tile(16384, 0), adds, tail=tail)
    wide = [x.view(np.int8 if kind == "s8" else np.uint8).astype(np.int64) for x, kind in ((a, a_kind), (b, b_kind))]
    exact = wide[0] @ wide[1].T + (d.view(np.int32) if adds else 0)
    want = np.clip(exact, -(2**31), 2**31 - 1) if tail else exact
    np.testing.assert_array_equal(got, (want & 0xFFFFFFFF).astype(np.uint32))


@pytest.mark.simulator_only
@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("m64n12k16.f32.f16.f16 <6>, d1, d2, p, 1, 1, 0, 0", "n is a multiple of 8"),
        ("m64n40k32.s32.s8.s8 <20>, d1, d2, p", "n is 8, 16, 24, 32"),
        ("m64n8k8.f32.f16.f16 <4>, d1, d2, p, 1, 1, 0, 0", "k is 16 for these types"),
        ("m64n8k16.f16.bf16.bf16 <2>, d1, d2, p, 1, 1, 0, 0", "no such type of D"),
        ("m64n8k16.f32.bf16.f16 <4>, d1, d2, p, 1, 1, 0, 0", "do not go together"),
        ("m64n8k16.f32.bf16.bf16 <4>, d1, d2, p, 2, 1, 0, 0", "imm-scale-a is 1 or -1"),
        ("m64n8k16.f32.bf16.bf16 <4>, d1, d2, p, 1, 1, 0", "it has 7 operands, not 8"),
        ("m64n8k8.f32.tf32.tf32 <4>, d1, d2, p, 1, 1, 0, 0", "it has 8 operands, not 6"),
        ("m64n8k16.f32.bf16.bf16 <3>, d1, d2, p, 1, 1, 0, 0", "D has 3 registers, not 4"),
        ("m64n8k16.f32.bf16.bf16 <4>, <2>, d2, p, 1, 1, 0", "A has 2 registers, not 4"),
        ("m64n8k16.f32.bf16.bf16.satfinite <4>, d1, d2, p, 1, 1, 0, 0", "only sums of integers"),
    ],
)
def test_what_is_no_form_is_refused(form, why):
    for count in (2, 3, 4, 6, 20):
        form = form.replace(f"<{count}>", "{" + ", ".join(f"r{i}" for i in range(count)) + "}")
    text = f"""{HEAD}.visible .entry test() {{ .reg .b32 r<20>; .reg .b64 d<3>; .reg .pred p;
        wgmma.mma_async.sync.aligned.{form}; ret; }}"""
    result = run_ptx(text, "test", 1, 128, [])
    assert not result.ok and why in result.stderr, result.stderr
