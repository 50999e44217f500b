"""Floating-point instructions of all formats against exact rational arithmetic, rounded once. Approximations:
test_instructions_approximate.py."""

import random
from fractions import Fraction

import pytest
from exact_arithmetic import F32, FORMATS, NAN, arithmetic, decode, encode, extremum, flush
from instruction_forms import check, edge_tuples, lanewise, packed_tuples

ROUNDINGS = ["rn", "rz", "rm", "rp"]
WIDE = ["f32", "f64"]
HALVES = ["f16", "bf16"]
# f16 and bf16 arithmetic other than fma: what sm_90 has.
OPERANDS = {1: "{a}", 2: "{a}, {b}", 3: "{a}, {b}, {c}"}


def near_ties(name, count):
    """Triples a, b, c whose a * b + c is hard to round: c cancels the product, or breaks its ties from afar."""
    fmt = FORMATS[name]
    generator = random.Random(name)
    hidden = 1 << (fmt.precision - 1)
    bias = (1 << (fmt.exponent_bits - 1)) - 1
    triples = []
    for _ in range(count):
        a, b = (
            generator.getrandbits(1) << fmt.bits - 1
            | (bias - 4 + generator.getrandbits(3)) * hidden
            | generator.getrandbits(fmt.precision - 1)
            for _ in range(2)
        )
        product = arithmetic("mul", fmt, [a, b])
        sign = 1 << (fmt.bits - 1)
        tiny = generator.choice([1, hidden, (bias - 3 * fmt.precision) % (1 << fmt.exponent_bits - 1) * hidden + 1])
        triples.append((a, b, product ^ sign))
        triples.append((a, b, tiny | generator.getrandbits(1) << fmt.bits - 1))
        # A power of two and a half-way significand: a * 1.5 or a * 0.5 meets ties often.
        half_way = bias * hidden + generator.choice([hidden // 2, 0, -hidden, hidden // 4])
        triples.append((a, half_way, tiny | generator.getrandbits(1) << fmt.bits - 1))
    return triples


def operands_for(name, count, limit=1600):
    return edge_tuples(name, count, limit) + (near_ties(name, 300) if count == 3 else [])


def expectation(operation, name, mode="rn", **flags):
    fmt = FORMATS[name]
    return lambda *bits: arithmetic(operation, fmt, bits, mode, **flags)


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma", "div", "rcp", "sqrt"])
def test_rounding(operation, mode, kind):
    count = {"fma": 3, "rcp": 1, "sqrt": 1}.get(operation, 2)
    check(
        f"{operation}.{mode}.{kind} {{d}}, {OPERANDS[count]}",
        [kind],
        [kind] * count,
        operands_for(kind, count),
        expectation(operation, kind, mode),
    )


@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_rounding_to_nearest_is_the_default(operation):
    for kind in WIDE:
        check(
            f"{operation}.{kind} {{d}}, {{a}}, {{b}}",
            [kind],
            [kind] * 2,
            operands_for(kind, 2, 600),
            expectation(operation, kind),
        )


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_flush_and_saturate(operation, mode):
    count = 3 if operation == "fma" else 2
    for flags in ("ftz", "sat"), ("ftz",), ("sat",):
        text = ".".join([operation, mode, *flags, "f32"])
        check(
            f"{text} {{d}}, {OPERANDS[count]}",
            ["f32"],
            ["f32"] * count,
            operands_for("f32", count, 800),
            rounding_at_the_border(
                expectation(operation, "f32", mode, **{flag: True for flag in flags}), "ftz" in flags
            ),
        )


def rounding_at_the_border(function, ftz):
    """With .ftz, a result just below the smallest normal number that rounds up to it may be flushed or not."""
    if not ftz:
        return function
    smallest = 0x00800000

    def expect(*bits):
        want = function(*bits)
        if want != NAN and want & 0x7FFFFFFF == smallest:
            return lambda got: got in (want, want & 0x80000000)
        return want

    return expect


@pytest.mark.parametrize("operation", ["div", "rcp", "sqrt"])
def test_flushing_division(operation):
    count = 2 if operation == "div" else 1
    for mode in ROUNDINGS:
        check(
            f"{operation}.{mode}.ftz.f32 {{d}}, {OPERANDS[count]}",
            ["f32"],
            ["f32"] * count,
            operands_for("f32", count, 600),
            rounding_at_the_border(expectation(operation, "f32", mode, ftz=True), True),
        )


def test_mad_rounds_once():
    for kind in WIDE:
        check(
            f"mad.rn.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
            [kind],
            [kind] * 3,
            operands_for(kind, 3, 300),
            expectation("fma", kind),
        )


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_packed_f32(operation):
    count = 3 if operation == "fma" else 2
    low = operands_for("f32", count, 600)
    high = list(low)
    random.Random(3).shuffle(high)
    packed = [tuple(x | y << 32 for x, y in zip(a, b)) for a, b in zip(low, high)]
    one = expectation(operation, "f32")

    def expect(*bits):
        return one(*[v & 0xFFFFFFFF for v in bits]) | one(*[v >> 32 for v in bits]) << 32

    check(f"{operation}.rn.f32x2 {{d}}, {OPERANDS[count]}", ["f32x2"], ["f32x2"] * count, packed, expect, arch=100)


# ---- f16 and bf16 ----


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_half(operation, kind):
    count = 3 if operation == "fma" else 2
    variants = [((), {})]
    if operation == "fma":
        variants.append((("relu",), {"relu": True}))
    if kind == "f16":
        variants += [(("ftz",), {"ftz": True}), (("sat",), {"sat": True}), (("ftz", "sat"), {"ftz": True, "sat": True})]
        if operation == "fma":
            variants.append((("ftz", "relu"), {"ftz": True, "relu": True}))
    for names, flags in variants:
        expect = expectation(operation, kind, **flags)
        if flags.get("relu"):
            expect = zero_of_any_sign(expect)
        text = ".".join([operation, "rn", *names, kind])
        check(f"{text} {{d}}, {OPERANDS[count]}", [kind], [kind] * count, operands_for(kind, count), expect)
        if not flags.get("relu"):
            packed = [v for v in packed_tuples(kind, count)]
            check(f"{text}x2 {{d}}, {OPERANDS[count]}", [f"{kind}x2"], [f"{kind}x2"] * count, packed, lanewise(expect))


def zero_of_any_sign(function):
    def expect(*bits):
        want = function(*bits)
        return (lambda got: got & 0x7FFF == 0) if want & 0x7FFF == 0 else want

    return expect


@pytest.mark.parametrize("kind", HALVES)
def test_half_relu_packed(kind):
    one = expectation("fma", kind, relu=True)

    def expect(*bits):
        halves = [(lambda v: v & 0xFFFF), (lambda v: v >> 16)]
        wants = [one(*map(part, bits)) for part in halves]

        def matches(got):
            return all(part(got) == want or part(got) & 0x7FFF == want == 0 for part, want in zip(halves, wants))

        return matches

    check(
        f"fma.rn.relu.{kind}x2 {{d}}, {{a}}, {{b}}, {{c}}",
        [f"{kind}x2"],
        [f"{kind}x2"] * 3,
        packed_tuples(kind, 3),
        expect,
    )


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("name", ["neg", "abs"])
def test_half_sign(name, kind):
    # The sign of a NaN is open.
    fmt = FORMATS[kind]

    def expect(bits):
        if decode(bits, fmt)[1] == NAN:
            return NAN
        return bits ^ 0x8000 if name == "neg" else bits & 0x7FFF

    check(f"{name}.{kind} {{d}}, {{a}}", [kind], [kind], operands_for(kind, 1), expect)
    numbers = [(a,) for (a,) in packed_tuples(kind, 1) if all(decode(h, fmt)[1] != NAN for h in (a & 0xFFFF, a >> 16))]
    check(f"{name}.{kind}x2 {{d}}, {{a}}", [f"{kind}x2"], [f"{kind}x2"], numbers, lanewise(expect))


# ---- sign, min, max ----


@pytest.mark.parametrize("kind", WIDE)
def test_sign(kind):
    top = 1 << (FORMATS[kind].bits - 1)
    fmt = FORMATS[kind]

    def unless_nan(function):
        return lambda *bits: NAN if any(decode(b, fmt)[1] == NAN for b in bits) else function(*bits)

    check(f"abs.{kind} {{d}}, {{a}}", [kind], [kind], operands_for(kind, 1), unless_nan(lambda a: a & ~top))
    check(f"neg.{kind} {{d}}, {{a}}", [kind], [kind], operands_for(kind, 1), unless_nan(lambda a: a ^ top))
    if kind == "f32":
        check("abs.ftz.f32 {d}, {a}", [kind], [kind], operands_for(kind, 1), unless_nan(lambda a: flush(a & ~top, fmt)))
        check("neg.ftz.f32 {d}, {a}", [kind], [kind], operands_for(kind, 1), unless_nan(lambda a: flush(a ^ top, fmt)))
    check(
        f"copysign.{kind} {{d}}, {{a}}, {{b}}",
        [kind],
        [kind] * 2,
        operands_for(kind, 2),
        lambda a, b: NAN if decode(b, fmt)[1] == NAN else a & top | b & ~top,
    )


EXTREMA = [
    ((), {}),
    (("NaN",), {"nan": True}),
    (("xorsign", "abs"), {"xorsign": True}),
    (("NaN", "xorsign", "abs"), {"nan": True, "xorsign": True}),
]


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_min_max(name, kind):
    fmt = FORMATS[kind]
    for modifiers, flags in EXTREMA if kind != "f64" else EXTREMA[:1]:
        for ftz in (False, True) if kind in ("f32", "f16") else (False,):
            text = ".".join([name, *(["ftz"] if ftz else []), *modifiers, kind])

            def expect(*bits, flags=flags, ftz=ftz):
                return extremum(name, fmt, bits, ftz, **flags)

            check(f"{text} {{d}}, {{a}}, {{b}}", [kind], [kind] * 2, operands_for(kind, 2), expect)
            if kind in HALVES:
                check(
                    f"{text}x2 {{d}}, {{a}}, {{b}}",
                    [f"{kind}x2"],
                    [f"{kind}x2"] * 2,
                    packed_tuples(kind, 2),
                    lanewise(expect),
                )


@pytest.mark.parametrize("name", ["min", "max"])
def test_min_max_of_three(name):
    for modifiers, flags in EXTREMA[:2]:
        for absolute in (False, True):
            text = ".".join([name, *modifiers, *(["abs"] if absolute else []), "f32"])

            def expect(*bits, flags=flags, absolute=absolute):
                return extremum(name, F32, bits, magnitudes=absolute, **flags)

            check(
                f"{text} {{d}}, {{a}}, {{b}}, {{c}}",
                ["f32"],
                ["f32"] * 3,
                operands_for("f32", 3, 800),
                expect,
                arch=100,
            )


@pytest.mark.not_on_gpu("CUDA 13.0 compiles a guarded testp into one that is not guarded for some values")
@pytest.mark.parametrize("kind", WIDE)
def test_testp(kind):
    fmt = FORMATS[kind]
    smallest = 1 << (fmt.precision - 1)

    def magnitude(bits):
        return bits & ~(1 << fmt.bits - 1)

    tests = {
        "finite": lambda a: magnitude(a) < fmt.infinity,
        "infinite": lambda a: magnitude(a) == fmt.infinity,
        "number": lambda a: magnitude(a) <= fmt.infinity,
        "notanumber": lambda a: magnitude(a) > fmt.infinity,
        "normal": lambda a: smallest <= magnitude(a) < fmt.infinity,
        "subnormal": lambda a: 0 < magnitude(a) < smallest,
    }
    for name, function in tests.items():
        check(
            f"testp.{name}.{kind} {{d}}, {{a}}",
            ["pred"],
            [kind],
            operands_for(kind, 1),
            lambda a, f=function: int(f(a)),
        )


def test_contraction_does_not_happen():
    """mul then add rounds twice, where fma would round once."""
    a = encode(0, Fraction(1) + Fraction(1, 2**12), F32)

    def expect(x, y, z):
        return arithmetic("add", F32, [arithmetic("mul", F32, [x, y]), z])

    check(
        "mul.rn.f32 {d}, {a}, {b}; add.rn.f32 {d}, {d}, {c}",
        ["f32"],
        ["f32"] * 3,
        [(a, a, encode(1, Fraction(1), F32))] + operands_for("f32", 3, 200),
        expect,
    )
