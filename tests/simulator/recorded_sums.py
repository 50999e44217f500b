"""Sums of tensor cores on hard operands: one mma.sync or wgmma for each case, on a GPU to record, here to compare.

    FLASHLADDER_DEVICE=gpu python recorded_sums.py FILE       runs all cases and writes each one's bits of D

Operands are made from a case's name with whole numbers alone (splitmix64, begun with the name's FNV-1a hash), so that
they are the same everywhere and for ever. D's bits, rows of 8 columns, little-endian, are packed by zlib and base85.
VERSION changes with the operands of any case: a record of another version cannot be compared.
"""

import base64
import json
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from exact_arithmetic import FORMATS
from test_instructions_tensor import mma
from wgmma_kernels import BITS, NUMPY, Tile, wgmma

VERSION = 1
COLUMNS = 8
INTEGERS = ("s8", "u8")
# (k, D, A, B) of mma.sync m16n8.
MMA = [
    (8, "f32", "f16", "f16"), (16, "f32", "f16", "f16"), (8, "f16", "f16", "f16"), (16, "f16", "f16", "f16"),
    (8, "f32", "bf16", "bf16"), (16, "f32", "bf16", "bf16"), (4, "f32", "tf32", "tf32"), (8, "f32", "tf32", "tf32"),
    (16, "f32", "e4m3", "e4m3"), (32, "f32", "e4m3", "e4m3"), (32, "f32", "e5m2", "e5m2"),
    (32, "f32", "e4m3", "e5m2"), (32, "f16", "e4m3", "e4m3"), (32, "f16", "e5m2", "e5m2"), (32, "s32", "s8", "s8"),
    (32, "s32", "u8", "s8"),
]  # fmt: skip
# (D, A, B) of wgmma m64n8.
WGMMA = [
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
    ("f32", "e4m3", "e4m3"), ("f32", "e5m2", "e5m2"), ("f32", "e5m2", "e4m3"), ("f16", "e4m3", "e4m3"),
    ("f16", "e5m2", "e5m2"), ("s32", "s8", "s8"), ("s32", "u8", "s8"),
]  # fmt: skip


class Numbers:
    """A stream of 64-bit numbers that depends on a name alone."""

    def __init__(self, name):
        self.state = 0xCBF29CE484222325
        for byte in name.encode():
            self.state = (self.state ^ byte) * 0x100000001B3 % 2**64

    def bits(self, shape):
        count = int(np.prod(shape))
        with np.errstate(over="ignore"):
            z = np.uint64(self.state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            self.state = (self.state + count * 0x9E3779B97F4A7C15) % 2**64
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return (z ^ (z >> np.uint64(31))).reshape(shape)

    def between(self, low, high, shape):
        """Whole numbers from low to high, both included."""
        return (self.bits(shape) >> np.uint64(8)).astype(np.int64) % (high - low + 1) + low

    def often(self, percent, shape):
        return self.between(0, 99, shape) < percent


def number(kind, sign, exponent, fraction):
    """Bits of (-1)^sign * 1.fraction * 2^exponent, the exponent held within the format's; `fraction`: any bits."""
    fmt = FORMATS[kind]
    top = fmt.least_exponent + (1 << fmt.exponent_bits) - (3 if fmt.has_infinity else 2)
    field = np.clip(exponent, fmt.least_exponent, top) - fmt.least_exponent + 1
    fraction = fraction & ((1 << (fmt.precision - 1)) - 1)
    magnitude = field << (fmt.precision - 1) | fraction
    if not fmt.has_infinity:
        magnitude = np.where(magnitude == fmt.nan, magnitude - 1, magnitude)
    return (sign << (fmt.bits - 1) | magnitude) << fmt.shift


def random_numbers(numbers, kind, low, high, shape):
    """Of either sign, with exponents from low to high."""
    exponent = numbers.between(low, high, shape)
    return number(kind, numbers.between(0, 1, shape), exponent, numbers.between(0, 2**30, shape))


def tiny_numbers(numbers, kind, shape):
    """Subnormal ones, a few the least normal ones."""
    fmt = FORMATS[kind]
    magnitude = numbers.between(1, (1 << (fmt.precision - 1)) + 1, shape)
    magnitude >>= numbers.between(0, fmt.precision - 1, shape)
    return (numbers.between(0, 1, shape) << (fmt.bits - 1) | magnitude) << fmt.shift


def special_numbers(numbers, kind, shape):
    """Zeros, ones, infinities, NaN quiet and signalling, the largest and the least, of either sign."""
    fmt = FORMATS[kind]
    one = -fmt.least_exponent + 1 << (fmt.precision - 1)
    magnitudes = [
        0,
        0,
        one,
        one,
        fmt.largest,
        1,
        fmt.infinity,
        fmt.infinity | 1,
        fmt.infinity | 1 << (fmt.precision - 2),
    ]
    if not fmt.has_infinity:
        magnitudes[-3:] = [fmt.nan, one + 1, one - 1]
    chosen = np.array(magnitudes, np.int64)[numbers.between(0, len(magnitudes) - 1, shape)]
    return (numbers.between(0, 1, shape) << (fmt.bits - 1) | chosen) << fmt.shift


def negated(bits, kind):
    fmt = FORMATS[kind]
    return bits ^ 1 << (fmt.bits - 1 + fmt.shift)


def parts(bits, kind):
    """(sign, exponent, significand with its hidden bit) of normal numbers."""
    fmt = FORMATS[kind]
    bits = bits >> fmt.shift
    fraction, hidden = bits & ((1 << (fmt.precision - 1)) - 1), 1 << (fmt.precision - 1)
    field = bits >> (fmt.precision - 1) & ((1 << fmt.exponent_bits) - 1)
    return bits >> (fmt.bits - 1) & 1, field - 1 + fmt.least_exponent, fraction | hidden


def minus_product(a, b, a_kind, b_kind, d_kind):
    """-a * b as a number of D's kind, cut to its fraction."""
    (a_sign, a_exponent, x), (b_sign, b_exponent, y) = parts(a, a_kind), parts(b, b_kind)
    fraction_bits = FORMATS[a_kind].precision + FORMATS[b_kind].precision - 2
    product = x * y
    carry = product >> (fraction_bits + 1) & 1
    fraction = product << 24 >> (fraction_bits + carry)  # 1.fraction with 24 bits
    fraction >>= 25 - FORMATS[d_kind].precision
    return number(d_kind, 1 - (a_sign ^ b_sign), a_exponent + b_exponent + carry, fraction)


@dataclass(frozen=True)
class Case:
    instruction: str  # mma or wgmma
    k: int
    d: str
    a: str
    b: str
    what: str  # of FAMILIES

    @property
    def form(self):
        return f"{self.instruction} m{self.rows}n{COLUMNS}k{self.k} {self.d} {self.a} {self.b}"

    @property
    def name(self):
        return f"{self.form}, {self.what}"

    @property
    def rows(self):
        return 16 if self.instruction == "mma" else 64

    @property
    def cut(self):
        """Bits below the largest exponent that wgmma keeps."""
        return 13 if self.a in ("e4m3", "e5m2") else 25

    def operands(self):
        """Bits of A [rows, k], B [8, k] (its columns) and D [rows, 8] as it is before."""
        numbers = Numbers(f"{VERSION} {self.name}")
        shapes = (self.rows, self.k), (COLUMNS, self.k), (self.rows, COLUMNS)
        made = FAMILIES[self.what](self, numbers, *shapes)
        for kind, matrix in zip((self.a, self.b), made, strict=False):
            if kind == "tf32":  # of whose low bits nothing may depend, but where they make an infinity a NaN
                matrix |= numbers.between(0, 2**13 - 1, matrix.shape)
        kinds = (self.a, self.b, self.d)
        return tuple(matrix.astype(NUMPY[BITS[kind]]) for matrix, kind in zip(made, kinds, strict=True))

    def run(self):
        """D's bits as the instruction leaves them, on the simulator or, with FLASHLADDER_DEVICE=gpu, on a GPU."""
        a, b, d = self.operands()
        if self.instruction == "mma":
            return mma(self.k, self.d, self.a, self.b, a, np.ascontiguousarray(b.T), d)
        return wgmma(a, b, d, self.a, self.b, self.d, Tile(1024, 0), Tile(32768, 0))


def one_size(case, numbers, a, b, d):
    return [
        random_numbers(numbers, kind, -1, 1, shape)
        for kind, shape in zip((case.a, case.b, case.d), (a, b, d), strict=True)
    ]


def far_apart(case, numbers, a, b, d):
    """Products from far above to far below where the largest's terms are cut."""
    return [
        random_numbers(numbers, case.a, -15, 15, a),
        random_numbers(numbers, case.b, -15, 15, b),
        random_numbers(numbers, case.d, -30, 30, d),
    ]


def at_the_cut(case, numbers, a, b, d):
    """One product leads, all others end about the last bit that counts beside it."""
    half = case.cut // 2
    factors = []
    for kind, shape in ((case.a, a), (case.b, b)):
        made = random_numbers(numbers, kind, -half - 1, 2 - half, shape)
        made[:, :1] = random_numbers(numbers, kind, 0, 2, (shape[0], 1))
        factors.append(made)
    return [*factors, random_numbers(numbers, case.d, -2 * half - 2, 4 - 2 * half, d)]


def cancelling(case, numbers, a, b, d):
    """Each product beside its negative, some with another last bit."""
    first = random_numbers(numbers, case.a, -4, 4, a)
    other = random_numbers(numbers, case.b, -4, 4, b)
    last = numbers.often(40, first[:, 1::2].shape).astype(np.int64) << FORMATS[case.a].shift
    first[:, 1::2] = negated(first[:, ::2], case.a) ^ last
    other[:, 1::2] = other[:, ::2]
    if case.a == "e4m3":
        first = np.where(first & 0x7F == 0x7F, first - 1, first)
    return [first, other, random_numbers(numbers, case.d, -30, -5, d)]


def large_addend(case, numbers, a, b, d):
    return [
        random_numbers(numbers, case.a, -3, 1, a),
        random_numbers(numbers, case.b, -3, 1, b),
        random_numbers(numbers, case.d, case.cut - 14, case.cut + 3, d),
    ]


def small_addend(case, numbers, a, b, d):
    return [
        random_numbers(numbers, case.a, 0, 3, a),
        random_numbers(numbers, case.b, 0, 3, b),
        random_numbers(numbers, case.d, -case.cut - 2, 6 - case.cut, d),
    ]


def addend_cancels(case, numbers, a, b, d):
    """D is minus the first product; the others are small, or zero."""
    first, other = at_the_cut(case, numbers, a, b, d)[:2]
    first[:, 1:][numbers.often(50, first[:, 1:].shape)] = 0
    pairs = minus_product(first[:, :1], other[:, 0][None, :], case.a, case.b, case.d)
    return [first, other, pairs]


def subnormals(case, numbers, a, b, d):
    """A's numbers are subnormal, some of B's, some of D's."""
    second = random_numbers(numbers, case.b, -2, 4, b)
    second = np.where(numbers.often(20, b), tiny_numbers(numbers, case.b, b), second)
    addend = np.where(
        numbers.often(50, d), tiny_numbers(numbers, case.d, d), random_numbers(numbers, case.d, -152, -10, d)
    )
    return [tiny_numbers(numbers, case.a, a), second, addend]


def near_the_largest(case, numbers, a, b, d):
    """Sums that overflow, or just do not."""

    def largest(kind):
        fmt = FORMATS[kind]
        return fmt.least_exponent + (1 << fmt.exponent_bits) - (3 if fmt.has_infinity else 2)

    top = largest(case.d)
    first = min(largest(case.a), top) - 3
    return [
        random_numbers(numbers, case.a, first, first + 3, a),
        random_numbers(numbers, case.b, top - first - 7, top - first - 4, b),
        random_numbers(numbers, case.d, top - 3, top, d),
    ]


def ties(case, numbers, a, b, d):
    """Few bits in each product, about half of the addend's last place."""
    place = FORMATS[case.d].precision
    made = [
        number(kind, numbers.between(0, 1, shape), numbers.between(-1, 0, shape), np.zeros(shape, np.int64))
        for kind, shape in ((case.a, a), (case.b, b))
    ]
    for matrix in made:
        matrix[numbers.often(40, matrix.shape)] = 0
    return [*made, random_numbers(numbers, case.d, place - 1, place + 1, d)]


def specials(case, numbers, a, b, d):
    """Infinities, NaN, zeros of both signs: everywhere in some rows, one or none in others."""
    made = []
    for kind, shape in ((case.a, a), (case.b, b), (case.d, d)):
        matrix = random_numbers(numbers, kind, -2, 2, shape)
        percent = np.array([0, 3, 10, 60])[np.arange(shape[0]) % 4][:, None]
        chosen = numbers.between(0, 99, shape) < percent
        made.append(np.where(chosen, special_numbers(numbers, kind, shape), matrix))
    return made


def zeros(case, numbers, a, b, d):
    """Zeros of both signs, whole rows of them, and few other numbers."""
    made = []
    for kind, shape, percent in ((case.a, a, 90), (case.b, b, 50), (case.d, d, 70)):
        fmt = FORMATS[kind]
        zero = numbers.between(0, 1, shape) << (fmt.bits - 1 + fmt.shift)
        made.append(np.where(numbers.often(percent, shape), zero, random_numbers(numbers, kind, -1, 1, shape)))
    made[0][::3] &= 1 << (FORMATS[case.a].bits - 1 + FORMATS[case.a].shift)
    return made


def whole_numbers(case, numbers, a, b, d):
    """Integers; some addends at the ends of their range."""
    made = [numbers.between(0, 255, shape) for shape in (a, b)] + [numbers.between(0, 2**32 - 1, d)]
    made[2][::4], made[2][1::4] = 2**31 - 5, 2**31 + 5
    return made


FAMILIES = {
    "one size": one_size,
    "far apart": far_apart,
    "at the cut": at_the_cut,
    "cancelling": cancelling,
    "large addend": large_addend,
    "small addend": small_addend,
    "addend cancels": addend_cancels,
    "subnormals": subnormals,
    "near the largest": near_the_largest,
    "ties": ties,
    "specials": specials,
    "zeros": zeros,
    "whole numbers": whole_numbers,
}


def all_cases():
    forms = [("mma", *form) for form in MMA] + [("wgmma", 256 // BITS[a], d, a, b) for d, a, b in WGMMA]
    return [
        Case(*form, what) for form in forms for what in FAMILIES if (what == "whole numbers") == (form[3] in INTEGERS)
    ]


def packed(bits):
    little = bits.astype(bits.dtype.newbyteorder("<"))
    return base64.b85encode(zlib.compress(little.tobytes(), 9)).decode()


def unpacked(text, case):
    little = np.dtype(NUMPY[BITS[case.d]]).newbyteorder("<")
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), little).reshape(case.rows, COLUMNS)


def main():
    record = {"operands": VERSION, "failed": {}, "sums": {}}
    for case in all_cases():
        try:
            record["sums"][case.name] = packed(case.run())
        except AssertionError as error:  # a launch that failed; the others are worth having
            record["failed"][case.name] = str(error)[:500]
    Path(sys.argv[1]).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
