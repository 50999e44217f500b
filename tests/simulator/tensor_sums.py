"""Sums of products as Hopper's tensor cores form them, in whole numbers of any size: what mma and wgmma are held to.

E is the largest exponent among the products (each the sum of its factors') and the addend; zeros do not count. Each
term is cut toward zero to a multiple of 2^(E - 25), of 8-bit floats 2^(E - 13), and the terms are added exactly. For a
result of f32 the sum is cut toward zero to fp32, of 8-bit floats to 13 fraction bits; for one of f16 it is rounded to
nearest even, nothing having been cut.

Of 8-bit floats that is wgmma alone. For mma.sync, Hopper's machine code widens the factors to f16 and multiplies twice,
by k = 0, 1, 4, 5, 8, 9, ... and then, onto that, by the other k; C is added last, rounded to nearest.
"""

from fractions import Fraction

from exact_arithmetic import F16, FORMATS, INF, NAN, arithmetic, decode, encode, signed

NARROW = ("e4m3", "e5m2")


class Factor:
    """A number of a format: its value, where it is finite also as signed * 2^unit with whole numbers, and its exponent,
    the format's least one where it is subnormal."""

    def __init__(self, bits, kind):
        fmt = FORMATS[kind]
        self.sign, self.value = decode(int(bits), fmt)
        self.special = self.value in (INF, NAN)
        if not self.special:  # the denominator is a power of two
            self.signed, self.unit = signed(self.sign, self.value.numerator), 1 - self.value.denominator.bit_length()
        field = int(bits) >> fmt.shift >> (fmt.precision - 1) & ((1 << fmt.exponent_bits) - 1)
        self.exponent = max(field, 1) - 1 + fmt.least_exponent


def factors(matrix, kind):
    """Of all elements of an array of bit patterns, each pattern decoded once."""
    known = {}
    return [[known.setdefault(int(bits), None) or known.update({int(bits): Factor(bits, kind)}) or known[int(bits)]
             for bits in row] for row in matrix]  # fmt: skip


def cut(number, by):
    """number * 2^by, cut toward zero to a whole number."""
    if by >= 0:
        return number << by
    return -(-number >> -by) if number < 0 else number >> -by


def tensor_sum(row, column, addend, d_kind="f32", narrow=False):
    """Bits of addend + sum of row[i] * column[i], of Factors; addend may be None."""
    terms, special = [], []
    for a, b in zip(row, column, strict=True):
        if a.special or b.special:
            nan = NAN in (a.value, b.value) or 0 in (a.value, b.value)
            special.append(NAN if nan else (-1) ** (a.sign ^ b.sign))
        elif a.signed and b.signed:
            terms.append((a.signed * b.signed, a.unit + b.unit, a.exponent + b.exponent))
    if addend is not None and addend.special:
        special.append(NAN if addend.value == NAN else (-1) ** addend.sign)
    elif addend is not None and addend.signed:
        terms.append((addend.signed, addend.unit, addend.exponent))
    fmt = FORMATS[d_kind]
    if special:
        return encode(0, NAN, fmt) if len(set(special)) > 1 or NAN in special else encode(special[0] < 0, INF, fmt)
    if not terms:
        return 0
    last = max(exponent for _, _, exponent in terms) - (13 if narrow else 25)
    total = sum(cut(number, unit - last) for number, unit, _ in terms)
    whole = abs(total)
    if narrow and d_kind != "f16":
        fewer = max(whole.bit_length() - 14, 0)
        whole = whole >> fewer << fewer
    value = whole * Fraction(2) ** last
    if d_kind == "f16":
        return encode(total < 0, value, fmt) if total else 0
    bits = encode(0, value, fmt, "rz")
    if value >= Fraction(2) ** 128:
        bits = fmt.infinity
    return bits | (1 << 31 if total < 0 and bits else 0) if bits or total >= 0 else 1 << 31


def matrix_product(a, b, c, a_kind, b_kind, d_kind="f32", instruction="wgmma"):
    """Bits of C + A B for arrays of bit patterns; c may be None. instruction: wgmma or mma, for mma.sync."""
    import numpy as np

    if instruction == "mma" and a_kind in NARROW:
        return product_by_halves(a, b, c, a_kind, b_kind, d_kind)
    rows, columns = factors(a, a_kind), factors(np.asarray(b).T, b_kind)
    addends = None if c is None else factors(c, d_kind)
    narrow = a_kind in NARROW
    return np.array(
        [[tensor_sum(row, column, addends and addends[i][j], d_kind, narrow) for j, column in enumerate(columns)]
         for i, row in enumerate(rows)],
        np.uint16 if d_kind == "f16" else np.uint32,
    )  # fmt: skip


def product_by_halves(a, b, c, a_kind, b_kind, d_kind):
    """matrix_product() of 8-bit floats by mma.sync."""
    import numpy as np

    wide = []
    for matrix, kind in ((a, a_kind), (b, b_kind)):
        table = np.array([encode(*decode(bits, FORMATS[kind]), F16) for bits in range(256)], np.uint16)
        wide.append(table[matrix])
    first = np.arange(a.shape[1]) % 4 < 2
    product = None
    for k in (first, ~first):
        product = matrix_product(wide[0][:, k], wide[1][k], product, "f16", "f16", d_kind)
    fmt = FORMATS[d_kind]
    for place, addend in np.ndenumerate(c):
        total = arithmetic("add", fmt, [int(addend), int(product[place])])
        product[place] = fmt.nan if total == NAN else total
    return product
