"""Number formats and IEEE arithmetic on bit patterns in exact rational arithmetic: what the instruction tests expect.

Nothing here shares code or method with the simulator: values are Fractions, and every result is rounded once.
"""

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    precision: int  # bits of the significand, the hidden one included
    exponent_bits: int
    nan: int  # canonical
    has_infinity: bool = True
    shift: int = 0  # unused low bits (tf32)

    @property
    def bits(self):
        return self.precision + self.exponent_bits

    @property
    def least_exponent(self):
        return 2 - (1 << (self.exponent_bits - 1))

    @property
    def infinity(self):
        return ((1 << self.exponent_bits) - 1) << (self.precision - 1)

    @property
    def largest(self):
        return self.infinity - 1 if self.has_infinity else self.nan - 1


F16 = Format(11, 5, 0x7FFF)
BF16 = Format(8, 8, 0x7FFF)
F32 = Format(24, 8, 0x7FFFFFFF)
F64 = Format(53, 11, None)  # any NaN: GPUs keep payloads
TF32 = Format(11, 8, 0x7FFFFFFF, shift=13)
E4M3 = Format(4, 4, 0x7F, has_infinity=False)
E5M2 = Format(3, 5, 0x7F)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64, "tf32": TF32, "e4m3": E4M3, "e5m2": E5M2}

INF = "inf"
NAN = "nan"


def decode(bits, fmt):
    """(sign, value): sign 0 or 1, value a Fraction >= 0, INF or NAN."""
    bits >>= fmt.shift
    fraction = bits & ((1 << (fmt.precision - 1)) - 1)
    exponent = bits >> (fmt.precision - 1) & ((1 << fmt.exponent_bits) - 1)
    sign = bits >> (fmt.bits - 1) & 1
    magnitude = bits & ((1 << (fmt.bits - 1)) - 1)
    if magnitude > fmt.infinity and fmt.has_infinity or magnitude == fmt.nan:
        return sign, NAN
    if magnitude == fmt.infinity and fmt.has_infinity:
        return sign, INF
    if exponent:
        fraction += 1 << (fmt.precision - 1)
    return sign, Fraction(*times_power(fraction, 1, max(exponent, 1) + fmt.least_exponent - fmt.precision))


def times_power(numerator, denominator, power):
    """numerator / denominator * 2^power as such a pair, not reduced: without the cost of a Fraction's power."""
    return (numerator << power, denominator) if power >= 0 else (numerator, denominator << -power)


def round_quotient(value, mode, sign=0):
    """A Fraction >= 0 to an integer; mode rn, rna, rz, rm, rp (rm, rp by the sign)."""
    return round_ratio(value.numerator, value.denominator, mode, sign)


def round_ratio(numerator, denominator, mode, sign=0):
    whole, rest = divmod(numerator, denominator)
    if rest == 0:
        return whole
    twice = 2 * rest
    if mode == "rn":
        up = twice > denominator or twice == denominator and whole & 1
    elif mode == "rna":
        up = twice >= denominator
    else:
        up = mode == ("rm" if sign else "rp")
    return whole + bool(up)


def encode(sign, value, fmt, mode="rn", satfinite=False):
    """Rounds once; bits of the format, or NAN where the format's canonical NaN is not fixed (f64)."""
    top = sign << (fmt.bits - 1)
    if value == NAN:
        return NAN if fmt.nan is None else fmt.nan
    if value == INF:
        return (top | (fmt.largest if satfinite else fmt.infinity if fmt.has_infinity else fmt.nan)) << fmt.shift
    if value == 0:
        return top << fmt.shift
    exponent = max(floor_log2(value), fmt.least_exponent)
    scaled = times_power(value.numerator, value.denominator, fmt.precision - 1 - exponent)
    magnitude = ((exponent - fmt.least_exponent) << (fmt.precision - 1)) + round_ratio(*scaled, mode, sign)
    if magnitude > fmt.largest:
        stays = satfinite or mode == "rz" or mode == "rm" and not sign or mode == "rp" and sign
        magnitude = fmt.largest if stays else (fmt.infinity if fmt.has_infinity else fmt.nan)
    return (top | magnitude) << fmt.shift


def floor_log2(value):
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    numerator, denominator = times_power(value.numerator, value.denominator, -guess)
    return guess if denominator <= numerator else guess - 1


def signed(sign, value):
    return -value if sign else value


def flush(bits, fmt):
    """.ftz: a subnormal becomes a zero of its sign."""
    magnitude = bits & ((1 << (fmt.bits - 1)) - 1)
    return bits if magnitude >= 1 << (fmt.precision - 1) else bits & 1 << (fmt.bits - 1)


def exact(operation, fmt, operands, mode="rn"):
    """(sign, value) of an operation on bits before rounding. operation: add sub mul fma div rcp sqrt.

    sqrt's value is a Fraction that rounds like the irrational root.
    """
    parts = [decode(bits, fmt) for bits in operands]
    if any(value == NAN for _, value in parts):
        return 0, NAN
    if operation == "rcp":
        return divide((0, Fraction(1)), parts[0])
    if operation == "div":
        return divide(*parts)
    if operation == "mul":
        return multiply(*parts)
    if operation == "sqrt":
        return root(*parts[0], fmt)
    if operation == "fma":
        return add(multiply(parts[0], parts[1]), parts[2], mode)
    if operation == "sub":
        parts[1] = (1 - parts[1][0], parts[1][1])
    return add(*parts, mode)


def add(a, b, mode):
    if NAN in (a[1], b[1]):
        return 0, NAN
    if a[1] == INF or b[1] == INF:
        if a[1] == b[1] and a[0] != b[0]:
            return 0, NAN
        return a if a[1] == INF else b
    total = signed(*a) + signed(*b)
    if total == 0:
        both = a[0] == b[0] and a[1] == b[1] == 0
        return (a[0] if both else int(mode == "rm")), Fraction(0)
    return int(total < 0), abs(total)


def multiply(a, b):
    sign = a[0] ^ b[0]
    if INF in (a[1], b[1]):
        return (0, NAN) if 0 in (a[1], b[1]) else (sign, INF)
    return sign, a[1] * b[1]


def divide(a, b):
    sign = a[0] ^ b[0]
    if a[1] == INF:
        return (0, NAN) if b[1] == INF else (sign, INF)
    if b[1] == INF:
        return sign, Fraction(0)
    if b[1] == 0:
        return (0, NAN) if a[1] == 0 else (sign, INF)
    return sign, a[1] / b[1]


def root(sign, value, fmt):
    if value == 0:
        return sign, value
    if sign:
        return 0, NAN
    if value == INF:
        return 0, INF
    # Enough bits that the rest is only a sticky bit: a root of a p-bit number is never near a tie.
    scale = 2 * (2 * fmt.precision + 1200)
    scaled = value * 2**scale
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    inexact = whole * whole != scaled
    return 0, Fraction(2 * whole + inexact, 2 ** (scale // 2 + 1))


def arithmetic(operation, fmt, operands, mode="rn", ftz=False, sat=False, relu=False):
    """Bits of the result as the PTX manual has it, or NAN for any NaN."""
    if ftz:
        operands = [flush(bits, fmt) for bits in operands]
    sign, value = exact(operation, fmt, operands, mode)
    if sat and (value == NAN or sign):
        return 0
    if sat and (value == INF or value > 1):
        sign, value = 0, Fraction(1)
    if relu and sign and value != NAN:
        return 0
    if ftz and fmt is F16:
        return encode(sign, Fraction(0) if value not in (NAN, INF, 0) and is_tiny(value, fmt) else value, fmt, mode)
    result = encode(sign, value, fmt, mode)
    return flush(result, fmt) if ftz and result != NAN else result


def is_tiny(value, fmt):
    """Below the smallest normal number after rounding to nearest with an exponent that is not bounded below."""
    unit = Fraction(2) ** (floor_log2(value) - fmt.precision + 1)
    return round_quotient(value / unit, "rn") * unit < Fraction(2) ** fmt.least_exponent


def narrowed_nan(bits, fmt):
    """What GPUs make of a NaN of f64 in a narrower format: sign and top of the payload stay, and it becomes quiet."""
    payload = (bits & ((1 << 52) - 1)) >> (53 - fmt.precision) | 1 << (fmt.precision - 2)
    return bits >> 63 << (fmt.bits - 1) | fmt.infinity | payload


def extremum(name, fmt, operands, ftz=False, nan=False, xorsign=False, magnitudes=False):
    """min or max of bits; -0 < +0. A NaN loses, or wins with nan=True; the magnitudes compared with xorsign."""
    if ftz:
        operands = [flush(bits, fmt) for bits in operands]
    top = 1 << (fmt.bits - 1)
    sign = 0
    for bits in operands:
        sign ^= bits & top
    if xorsign or magnitudes:
        operands = [bits & ~top for bits in operands]
    numbers = [bits for bits in operands if decode(bits, fmt)[1] != NAN]
    if not numbers or nan and len(numbers) < len(operands):
        return NAN if fmt.nan is None else fmt.nan
    result = (min if name == "min" else max)(numbers, key=lambda bits: order(bits, fmt))
    return result | sign if xorsign else result


def order(bits, fmt):
    """Sorts numbers, -0 before +0."""
    top = 1 << (fmt.bits - 1)
    return -(bits & ~top) - 1 if bits & top else bits


def to_float(bits, name):
    """The Python float of f16, bf16, f32 or f64 bits."""
    sign, value = decode(bits, FORMATS[name])
    if value == NAN:
        return math.nan
    return math.copysign(math.inf if value == INF else float(value), -1 if sign else 1)


# ---- integers ----

INTEGERS = {f"{kind}{bits}": (bits, kind == "s") for kind in "us" for bits in (8, 16, 32, 64)}


def wrap(value, bits):
    return value & ((1 << bits) - 1)


def as_signed(value, bits):
    value = wrap(value, bits)
    return value - (1 << bits) if value >> (bits - 1) else value


def integer(bits_value, name):
    """The integer that a register's low bits mean as type `name`."""
    bits, is_signed = INTEGERS[name]
    return as_signed(bits_value, bits) if is_signed else wrap(bits_value, bits)


def limits(name):
    bits, is_signed = INTEGERS[name]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)


def clamp(value, name):
    low, high = limits(name)
    return min(max(value, low), high)
