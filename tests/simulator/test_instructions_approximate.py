"""Floating-point approximations (.approx, .full): held to the manual's error bounds, so that the same tests run on a GPU."""

import math
import random
from fractions import Fraction

import pytest
from exact_arithmetic import F32, FORMATS, INF, NAN, decode, encode, flush, to_float
from instruction_forms import check, edge_floats, edge_tuples, packed_tuples


def within(want, ulps=0.0, absolute=0.0, relative=0.0, kind="f32"):
    """Accepts bits close to the float `want`: by ulps of the format there, an absolute or a relative error.

    Infinities, NaN and zeros must be met (a zero with its sign), unless the bound lets another number through.
    """
    fmt = FORMATS[kind]

    def matches(got):
        value = to_float(got, kind)
        if math.isnan(want):
            return math.isnan(value)
        if math.isinf(want):
            return value == want
        exact = Fraction(want)
        if exact == 0 and not absolute:
            return value == 0 and math.copysign(1, value) == math.copysign(1, want)
        sign, largest = int(want < 0), to_float(fmt.largest, kind)
        if math.isinf(value):
            return decode(encode(sign, abs(exact), fmt, "rp" if not sign else "rm"), fmt)[1] == INF or (
                abs(want) > largest * (1 - 2.0**-20)
            )
        exponent = max(math.frexp(want)[1] - 1, fmt.least_exponent) if want else fmt.least_exponent
        bound = ulps * 2.0 ** (exponent - fmt.precision + 1) + absolute + relative * abs(want)
        return abs(Fraction(value) - exact) <= Fraction(bound)

    return matches


def flushed_inputs(function):
    """The expectation with .ftz: subnormal inputs count as zero, subnormal results may be flushed."""

    def expect(*bits):
        want = function(*[flush(b, F32) for b in bits])
        return lambda got: want(got) or (got & 0x7FFFFFFF == 0 and any(want(got ^ 1 ^ k) for k in (0, 0x7FFFFF)))

    return expect


def f32_value(bits):
    return to_float(bits, "f32")


def quotient(x, y):
    if math.isnan(x) or math.isnan(y) or (x == 0 and y == 0) or (math.isinf(x) and math.isinf(y)):
        return math.nan
    sign = math.copysign(1, x) * math.copysign(1, y)
    if math.isinf(x) or y == 0:
        return sign * math.inf
    return x / y if not math.isinf(y) else math.copysign(0.0, sign)


def near_border(value):
    """True where a result rounds to the subnormal range, in which the bounds do not hold."""
    return 0 < abs(value) < 2.0**-125


def check_unary(text, function, operands=None, skip=lambda x: False, **bound):
    def expect(bits):
        x = f32_value(bits)
        return None if skip(x) else within(function(x), **bound)

    check(f"{text} {{d}}, {{a}}", ["f32"], ["f32"], operands or edge_tuples("f32", 1) + random_floats(), expect)


def random_floats(count=600, least=-20, most=20):
    generator = random.Random(count)
    out = []
    for _ in range(count):
        value = math.ldexp(generator.uniform(1, 2), generator.randint(least, most)) * generator.choice([-1, 1])
        out.append((encode(int(value < 0), Fraction(abs(value)), F32),))
    return out


def checked(function):
    """math functions that raise where PTX gives NaN or infinity."""

    def safe(x):
        if math.isnan(x):
            return math.nan
        return function(x)

    return safe


def exp2(x):
    if math.isinf(x):
        return math.inf if x > 0 else 0.0
    return 2.0**x if abs(x) < 1000 else (math.inf if x > 0 else 0.0)


def log2(x):
    if x < 0:
        return math.nan
    return -math.inf if x == 0 else math.log2(x)


def reciprocal_root(x):
    if x < 0:
        return math.nan
    if x == 0:
        return math.copysign(math.inf, x)
    return 1 / math.sqrt(x)


def square_root(x):
    return math.nan if x < 0 else math.sqrt(x)


def is_subnormal(x):
    return 0 < abs(x) < 2.0**-126


def test_rcp_sqrt_rsqrt_approx():
    check_unary("rcp.approx.f32", lambda x: quotient(1.0, x), skip=lambda x: near_border(quotient(1.0, x)), ulps=1.01)
    check_unary("sqrt.approx.f32", checked(square_root), relative=2.0**-22, ulps=0.5)
    check_unary("rsqrt.approx.f32", checked(reciprocal_root), relative=2.0**-22, ulps=0.5)


def test_approximations_with_flush():
    def flushed(function):
        return lambda x: function(math.copysign(0.0, x) if is_subnormal(x) else x)

    check_unary(
        "rcp.approx.ftz.f32",
        flushed(lambda x: quotient(1.0, x)),
        skip=lambda x: near_border(quotient(1.0, x)),
        ulps=1.01,
    )
    check_unary("sqrt.approx.ftz.f32", flushed(checked(square_root)), relative=2.0**-22, ulps=0.5)
    check_unary("rsqrt.approx.ftz.f32", flushed(checked(reciprocal_root)), relative=2.0**-22, ulps=0.5)
    check_unary("ex2.approx.ftz.f32", flushed(checked(exp2)), skip=lambda x: x < -125.9, ulps=2.5)
    check("ex2.approx.ftz.f32 {d}, {a}", ["f32"], ["f32"], [(0xC3000000,), (0xC3100000,)], lambda a: 0)
    check_unary("lg2.approx.ftz.f32", flushed(checked(log2)), absolute=2.0**-21, relative=2.0**-21)


def test_ex2_lg2():
    check_unary("ex2.approx.f32", checked(exp2), ulps=2.5)
    check_unary("ex2.approx.f32", checked(exp2), operands=random_floats(2000, -10, 7), ulps=2.5)
    check_unary("lg2.approx.f32", checked(log2), absolute=2.0**-21, relative=2.0**-21)


def test_ex2_of_integers_is_exact():
    # Subnormal results are not exact on GPUs: 2^-127 comes out one too small on an H200.
    operands = [(encode(int(k < 0), Fraction(abs(k)), F32),) for k in range(-126, 128)]
    check(
        "ex2.approx.f32 {d}, {a}",
        ["f32"],
        ["f32"],
        operands,
        lambda a: encode(0, Fraction(2) ** int(f32_value(a)), F32),
    )


def test_sin_cos_tanh():
    def bounded(function):
        return lambda x: math.nan if math.isinf(x) or math.isnan(x) else function(x)

    small = random_floats(800, -30, 1)
    edges = [(0,), (0x80000000,), (F32.infinity,), (F32.infinity | 0x80000000,), (F32.nan,)]
    check_unary("sin.approx.f32", bounded(math.sin), operands=small + edges, absolute=2.0**-20)
    check_unary("cos.approx.f32", bounded(math.cos), operands=small + edges, absolute=2.0**-20)
    check_unary("tanh.approx.f32", checked(math.tanh), operands=random_floats(800, -30, 6) + edges, relative=2.0**-10)


def division_operands():
    pairs = edge_tuples("f32", 2)
    generator = random.Random(5)
    singles = random_floats(900)
    return pairs + [(a, generator.choice(singles)[0]) for (a,) in singles]


def test_div_approx():
    def expect(a, b):
        x, y = f32_value(a), f32_value(b)
        want = quotient(x, y)
        if abs(y) > 2.0**126 and not math.isinf(y) and not math.isnan(x):
            if abs(y) < 2.0**126 * (1 + 2.0**-20):
                return None
            return within(math.nan if math.isinf(x) else want * 0.0)
        # Outside [2^-126, 2^126] and for tiny or huge quotients and dividends the bound of 2 ulp does not hold.
        if is_subnormal(y) or is_subnormal(x) or near_border(want) or (not math.isinf(want) and abs(want) > 2.0**127):
            return None
        return within(want, ulps=2.01)

    check("div.approx.f32 {d}, {a}, {b}", ["f32"], ["f32"] * 2, division_operands(), expect)


def test_div_full():
    def expect(a, b):
        want = quotient(f32_value(a), f32_value(b))
        if near_border(want) or is_subnormal(want) or abs(want) > 2.0**127 and not math.isinf(want):
            return None
        return within(want, ulps=2.01)

    check("div.full.f32 {d}, {a}, {b}", ["f32"], ["f32"] * 2, division_operands(), expect)


def test_f64_seeds():
    """Gross approximations: the lower half of the result is zero, subnormals count as zero."""
    generator = random.Random(64)
    values = edge_floats("f64") + [generator.getrandbits(64) for _ in range(300)]

    def seed(function):
        def expect(bits):
            x = to_float(flush(bits, FORMATS["f64"]), "f64")
            want = function(x)
            if want != want or math.isinf(want) or want == 0:
                return within(want, kind="f64")
            close = within(want, relative=2.0**-18, kind="f64")
            return lambda got: (
                got & 0xFFFFFFFF == 0 and (close(got) or abs(want) < 2.0**-1021 and got << 1 & (1 << 64) - 1 == 0)
            )

        return expect

    # Of the input only the upper 32 bits count: values whose lower bits make a difference of kind are left out.
    plain = [(v,) for v in values if v >> 32 << 33 & (1 << 64) - 1 or v & 0xFFFFFFFF == 0]
    plain = [(v,) for (v,) in plain if decode(v, FORMATS["f64"])[1] != NAN or v >> 32 & 0xFFFFF]
    check("rcp.approx.ftz.f64 {d}, {a}", ["f64"], ["f64"], plain, seed(lambda x: quotient(1.0, x)))
    check("rsqrt.approx.ftz.f64 {d}, {a}", ["f64"], ["f64"], plain, seed(checked(reciprocal_root)))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_half_functions(kind):
    values = [(v,) for v in edge_floats(kind, 200)]

    # The manual's bounds for f16: ex2 2^-9.9, tanh 2^-10.987 (absolute); for bf16: 2^-7 and 2^-8.
    ex2 = {"relative": 2.0**-9.9} if kind == "f16" else {"relative": 2.0**-7}
    tanh = {"absolute": 2.0**-10.98} if kind == "f16" else {"absolute": 2.0**-8}
    text = "ex2.approx.f16" if kind == "f16" else "ex2.approx.ftz.bf16"

    def expect_ex2(bits):
        want = checked(exp2)(to_float(bits, kind))
        close = within(want, ulps=1, kind=kind, **ex2)
        return lambda got: close(got) or kind == "bf16" and want < 2.0**-125 and got == 0

    def expect_tanh(bits):
        x = to_float(bits, kind)
        close = within(checked(math.tanh)(x), ulps=1, kind=kind, **tanh)
        return close

    check(f"{text} {{d}}, {{a}}", [kind], [kind], values, expect_ex2)
    check(f"tanh.approx.{kind} {{d}}, {{a}}", [kind], [kind], values, expect_tanh)
    packed = packed_tuples(kind, 1)

    def both(one):
        def expect(bits):
            low, high = one(bits & 0xFFFF), one(bits >> 16)
            return lambda got: low(got & 0xFFFF) and high(got >> 16)

        return expect

    check(f"{text}x2 {{d}}, {{a}}", [f"{kind}x2"], [f"{kind}x2"], packed, both(expect_ex2))
    check(f"tanh.approx.{kind}x2 {{d}}, {{a}}", [f"{kind}x2"], [f"{kind}x2"], packed, both(expect_tanh))
