"""cvt between all types, and cvt.pack, against exact arithmetic."""

import random
from fractions import Fraction

import pytest
from exact_arithmetic import (
    F32,
    FORMATS,
    INF,
    INTEGERS,
    NAN,
    clamp,
    decode,
    encode,
    flush,
    integer,
    limits,
    narrowed_nan,
    round_quotient,
    signed,
    wrap,
)
from instruction_forms import (
    check,
    edge_floats,
    edge_integers,
    halves,
    pack,
    tuples,
)

FLOATS = ["f16", "bf16", "f32", "f64"]
ALL_INTEGERS = list(INTEGERS)
INTEGER_ROUNDING = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def register_of(kind):
    """What an 8-bit value needs: a register of 16 bits, as no arithmetic register is narrower."""
    return "b16" if kind in ("u8", "s8") else None


def extended(value, kind):
    """A result narrower than its register is extended by its sign."""
    bits = max(16, INTEGERS[kind][0])
    return wrap(value, bits)


def one(values):
    return [(v,) for v in values]


# ---- integers ----


@pytest.mark.parametrize("source", ALL_INTEGERS)
@pytest.mark.parametrize("target", ALL_INTEGERS)
def test_integer_to_integer(target, source):
    bits = INTEGERS[source][0]
    operands = one(edge_integers(bits, 30))
    registers = {n: r for n, r in (("d", register_of(target)), ("a", register_of(source))) if r}

    def plain(a):
        low = wrap(integer(a, source), INTEGERS[target][0])
        return extended(integer(low, target), target)

    check(f"cvt.{target}.{source} {{d}}, {{a}}", [target], [source], operands, plain, registers=registers)
    low, high = limits(target)
    if limits(source)[0] < low or limits(source)[1] > high:  # else .sat would have nothing to do
        check(
            f"cvt.sat.{target}.{source} {{d}}, {{a}}",
            [target],
            [source],
            operands,
            lambda a: extended(clamp(integer(a, source), target), target),
            registers=registers,
        )


@pytest.mark.parametrize("kind", ["u8", "s8"])
def test_bytes_in_wide_registers(kind):
    operands = one(edge_integers(8, 20))
    for other in ("u16", "s32", "u64"):
        check(
            f"cvt.{other}.{kind} {{d}}, {{a}}",
            [other],
            [kind],
            operands,
            lambda a, o=other: wrap(integer(a, kind), INTEGERS[o][0]),
            registers={"a": "b32"},
        )
    wide = one(edge_integers(32, 20))
    check(
        f"cvt.{kind}.s32 {{d}}, {{a}}",
        [kind],
        ["s32"],
        wide,
        lambda a: wrap(integer(wrap(a, 8), kind), 32),
        registers={"d": "b32"},
    )
    check(
        f"cvt.sat.{kind}.s32 {{d}}, {{a}}",
        [kind],
        ["s32"],
        wide,
        lambda a: wrap(clamp(integer(a, "s32"), kind), 32),
        registers={"d": "b32"},
    )
    check(
        f"cvt.rn.f32.{kind} {{d}}, {{a}}",
        ["f32"],
        [kind],
        operands,
        lambda a: from_integer(integer(a, kind), "f32", "rn"),
        registers={"a": "b32"},
    )


def test_wide_registers():
    """The registers of cvt may be wider than its types."""
    check(
        "cvt.s32.s16 {d}, {a}",
        ["s32"],
        ["s32"],
        one(edge_integers(32, 20)),
        lambda a: wrap(integer(wrap(a, 16), "s16"), 32),
    )
    check(
        "cvt.s16.s64 {d}, {a}",
        ["s32"],
        ["s64"],
        one(edge_integers(64, 20)),
        lambda a: wrap(integer(wrap(a, 16), "s16"), 32),
    )
    check("cvt.u16.u32 {d}, {a}", ["u32"], ["u32"], one(edge_integers(32, 20)), lambda a: wrap(a, 16))


def from_integer(value, kind, mode):
    return encode(int(value < 0), Fraction(abs(value)), FORMATS[kind], mode)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", ALL_INTEGERS)
def test_integer_to_float(source, mode):
    bits = INTEGERS[source][0]
    generator = random.Random(bits)
    values = edge_integers(bits, 40)
    values += [generator.getrandbits(bits) & ~((1 << generator.randrange(bits)) - 1) for _ in range(60)]
    registers = {"a": "b16"} if bits == 8 else {}
    for target in ("f16", "f32", "f64", *(["bf16"] if mode == "rn" and bits > 8 else [])):
        check(
            f"cvt.{mode}.{target}.{source} {{d}}, {{a}}",
            [target],
            [source],
            one(values),
            lambda a, t=target: from_integer(integer(a, source), t, mode),
            registers=registers,
        )


def to_integer(bits, source, target, mode):
    sign, value = decode(bits, FORMATS[source])
    width = INTEGERS[target][0]
    if value == NAN:
        # 0, or the top bit alone where a 64-bit type takes part.
        return 1 << (width - 1) if source == "f64" or width == 64 else 0
    if value == INF:
        return limits(target)[0 if sign else 1]
    return clamp(signed(sign, round_quotient(value, mode, sign)), target)


# PTX has no conversions between bf16 and 8-bit integers.
TO_INTEGER = [(t, s) for t in ALL_INTEGERS for s in FLOATS if (s, INTEGERS[t][0]) != ("bf16", 8)]


@pytest.mark.parametrize("mode", INTEGER_ROUNDING)
@pytest.mark.parametrize("target,source", TO_INTEGER)
def test_float_to_integer(target, source, mode):
    width = INTEGERS[target][0]
    generator = random.Random(width)
    values = edge_floats(source, 40)
    for _ in range(150):  # around the limits of the integer, and halves
        near = generator.choice([0, *limits(target)]) + generator.randint(-3, 3)
        near = 2 * near + generator.choice([-1, 0, 1])
        values.append(from_halves(near, source))
    registers = {"d": "b16"} if width == 8 else {}

    def expect(a):
        want = to_integer(a, source, target, INTEGER_ROUNDING[mode])
        if decode(a, FORMATS[source])[1] == NAN and width < 32:
            return None  # the manual's rule is written for 32 and 64 bits
        return extended(want, target)

    check(f"cvt.{mode}.{target}.{source} {{d}}, {{a}}", [target], [source], one(values), expect, registers=registers)


def from_halves(twice, kind):
    return encode(int(twice < 0), Fraction(abs(twice), 2), FORMATS[kind])


def test_float_to_integer_flushes():
    check(
        "cvt.rpi.ftz.s32.f32 {d}, {a}",
        ["s32"],
        ["f32"],
        one(edge_floats("f32", 20)),
        lambda a: wrap(to_integer(flush(a, F32), "f32", "s32", "rp"), 32),
    )


# ---- floats ----


def convert(bits, source, target, mode="rn", integral=False, ftz=False, sat=False, relu=False, satfinite=False):
    if ftz and source == "f32":
        bits = flush(bits, F32)
    sign, value = decode(bits, FORMATS[source])
    if integral and value not in (NAN, INF):
        value = Fraction(round_quotient(value, mode, sign))
    if sat:
        if value == NAN or sign:
            sign, value = 0, 0
        elif value == INF or value > 1:
            value = 1
    if relu and sign and value != NAN:
        sign, value = 0, 0
    if value in (0, 1):
        value = Fraction(value)
    result = encode(sign, value, FORMATS[target], mode, satfinite)
    return flush(result, F32) if ftz and target == "f32" and result != NAN else result


def conversion(source, target, mode="rn", **flags):
    def expect(a):
        want = convert(a, source, target, mode, **flags)
        exact = decode(a, FORMATS[source])[1]
        if exact == NAN and source == "f64" and target != "f64" and not flags.get("sat"):
            return narrowed_nan(a, FORMATS[target])
        if exact == NAN and not flags.get("sat"):
            # bf16 to f32 only shifts, so it may keep a NaN's payload.
            return NAN if source == "bf16" or target == "f64" else want
        return want

    return expect


def values_for(source, target):
    """Edges of the source, and numbers around the target's ties and limits."""
    values = edge_floats(source, 60)
    fmt, narrow = FORMATS[source], FORMATS[target]
    if fmt.precision > narrow.precision:
        generator = random.Random(source + target)
        for bits in edge_floats(target, 100):
            sign, value = decode(bits, narrow)
            if value in (NAN, INF):
                continue
            base = encode(sign, value, fmt)
            drop = fmt.precision - narrow.precision
            values += [base, base | 1 << fmt.shift, base + (1 << drop - 1), base + (1 << drop - 1) + 1]
            values += [base + (1 << drop - 1) - 1, base + (1 << drop) - 1, base - 1 if base else 0]
            values.append(base + generator.getrandbits(drop))
    mask = (1 << fmt.bits) - 1
    return [v & mask for v in values]


WIDENING = [("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("f32", "f64")]


@pytest.mark.parametrize("source,target", WIDENING)
def test_widening(source, target):
    check(
        f"cvt.{target}.{source} {{d}}, {{a}}",
        [target],
        [source],
        one(edge_floats(source, 200)),
        conversion(source, target),
    )


NARROWING = [("f64", "f32", m) for m in ("rn", "rz", "rm", "rp")]
NARROWING += [("f64", "f16", m) for m in ("rn", "rz", "rm", "rp")]
NARROWING += [("f32", "f16", m) for m in ("rn", "rz", "rm", "rp")]
NARROWING += [("f32", "bf16", m) for m in ("rn", "rz", "rm", "rp")]
NARROWING += [("f64", "bf16", "rn"), ("f16", "bf16", "rn"), ("bf16", "f16", "rn")]


@pytest.mark.parametrize("source,target,mode", NARROWING)
def test_narrowing(source, target, mode):
    check(
        f"cvt.{mode}.{target}.{source} {{d}}, {{a}}",
        [target],
        [source],
        one(values_for(source, target)),
        conversion(source, target, mode),
    )


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_relu_and_packing(target):
    operands = one(values_for("f32", target))
    packed = f"{target}x2"
    pairs = [(a, b) for (a,), (b,) in zip(operands, reversed(operands))]
    for mode in ("rn", "rz"):
        for names, flags in ((), {}), (("relu",), {"relu": True}), (("satfinite",), {"satfinite": True}):
            convert_one = conversion("f32", target, mode, **flags)
            if "satfinite" in names and target == "f16" and mode == "rz":
                continue
            text = ".".join(["cvt", mode, *names])
            if "satfinite" not in names:
                check(f"{text}.{target}.f32 {{d}}, {{a}}", [target], ["f32"], operands, convert_one)
                check(
                    f"{text}.{packed}.f32 {{d}}, {{a}}, {{b}}",
                    [packed],
                    ["f32"] * 2,
                    pairs,
                    lambda a, b, f=convert_one: pack(f(b), f(a)),
                )


@pytest.mark.parametrize("mode", INTEGER_ROUNDING)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_round_to_integral(kind, mode):
    values = one(edge_floats(kind, 60) + [from_halves(k, kind) for k in range(-20, 21)])
    check(
        f"cvt.{mode}.{kind}.{kind} {{d}}, {{a}}",
        [kind],
        [kind],
        values,
        conversion(kind, kind, INTEGER_ROUNDING[mode], integral=True),
    )


def test_saturate_and_flush():
    values = one(edge_floats("f32", 100))
    check("cvt.sat.f32.f32 {d}, {a}", ["f32"], ["f32"], values, conversion("f32", "f32", sat=True))
    check("cvt.ftz.f32.f32 {d}, {a}", ["f32"], ["f32"], values, conversion("f32", "f32", ftz=True))
    check("cvt.ftz.sat.f32.f32 {d}, {a}", ["f32"], ["f32"], values, conversion("f32", "f32", ftz=True, sat=True))
    check("cvt.ftz.f64.f32 {d}, {a}", ["f64"], ["f32"], values, conversion("f32", "f64", ftz=True))
    check("cvt.rn.ftz.f16.f32 {d}, {a}", ["f16"], ["f32"], values, conversion("f32", "f16", ftz=True))
    check("cvt.rn.sat.f16.f32 {d}, {a}", ["f16"], ["f32"], values, conversion("f32", "f16", sat=True))
    check(
        "cvt.sat.f32.f16 {d}, {a}", ["f32"], ["f16"], one(edge_floats("f16", 100)), conversion("f16", "f32", sat=True)
    )
    check(
        "cvt.ftz.f32.f16 {d}, {a}", ["f32"], ["f16"], one(edge_floats("f16", 100)), conversion("f16", "f32", ftz=True)
    )
    wide = one(values_for("f64", "f32"))

    def ftz_narrow(a):
        want = conversion("f64", "f32", ftz=True)(a)
        # What rounds up to the smallest normal number may be flushed before or after that.
        return (lambda got: got in (want, want & 0x80000000)) if want & 0x7FFFFFFF == 0x00800000 else want

    check("cvt.rn.ftz.f32.f64 {d}, {a}", ["f32"], ["f64"], wide, ftz_narrow)


def test_tf32():
    values = one(values_for("f32", "tf32"))

    # The bits below tf32's are open: what reads it ignores them.
    def upper(function):
        def expect(a):
            want = function(a)
            if decode(a, F32)[1] == NAN:
                # A payload that lies in those bits alone may be lost, which leaves an infinity.
                lost = a & 0x7FE000 == 0
                return lambda got: decode(got, F32)[1] == NAN or lost and decode(got, F32)[1] == INF
            return lambda got: got & ~0x1FFF == want

        return expect

    check("cvt.rna.tf32.f32 {d}, {a}", ["b32"], ["f32"], values, upper(conversion("f32", "tf32", "rna")))
    check("cvt.rn.tf32.f32 {d}, {a}", ["b32"], ["f32"], values, upper(conversion("f32", "tf32", "rn")))
    check("cvt.rz.tf32.f32 {d}, {a}", ["b32"], ["f32"], values, upper(conversion("f32", "tf32", "rz")))
    check("cvt.rn.relu.tf32.f32 {d}, {a}", ["b32"], ["f32"], values, upper(conversion("f32", "tf32", "rn", relu=True)))


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_eight_bit_floats(kind):
    packed = f"{kind}x2"
    singles = values_for("f32", kind)
    pairs = list(zip(singles, reversed(singles)))
    for names, flags in ((), {}), (("relu",), {"relu": True}):
        one_value = conversion("f32", kind, satfinite=True, **flags)
        text = ".".join(["cvt.rn.satfinite", *names, packed])
        check(
            f"{text}.f32 {{d}}, {{a}}, {{b}}",
            [packed],
            ["f32"] * 2,
            pairs,
            lambda a, b, f=one_value: f(b) | f(a) << 8,
        )
        half = conversion("f16", kind, satfinite=True, **flags)
        values = values_for("f16", kind)
        check(
            f"{text}.f16x2 {{d}}, {{a}}",
            [packed],
            ["f16x2"],
            one(map(pack, values, reversed(values))),
            lambda a, f=half: f(halves(a)[0]) | f(halves(a)[1]) << 8,
        )
    every = [(a | b << 8,) for a, b in zip(range(256), reversed(range(256)))]
    back = conversion(kind, "f16")
    check(
        f"cvt.rn.f16x2.{packed} {{d}}, {{a}}",
        ["f16x2"],
        [packed],
        every,
        lambda a: pack(back(a & 0xFF), back(a >> 8)),
    )
    positive = conversion(kind, "f16", relu=True)
    check(
        f"cvt.rn.relu.f16x2.{packed} {{d}}, {{a}}",
        ["f16x2"],
        [packed],
        every,
        lambda a: pack(positive(a & 0xFF), positive(a >> 8)),
    )


def test_cvt_pack():
    operands = tuples(edge_integers(32, 10), edge_integers(32, 10))
    for kind in ("s16", "u16"):
        check(
            f"cvt.pack.sat.{kind}.s32 {{d}}, {{a}}, {{b}}",
            ["u32"],
            ["s32"] * 2,
            operands,
            lambda a, b, k=kind: pack(*[wrap(clamp(integer(v, "s32"), k), 16) for v in (b, a)]),
        )
    three = tuples(edge_integers(32), edge_integers(32), edge_integers(32), limit=800)
    for kind in ("s8", "u8"):

        def expect(a, b, c, k=kind):
            low = [wrap(clamp(integer(v, "s32"), k), 8) for v in (b, a)]
            return wrap(low[0] | low[1] << 8 | c << 16, 32)

        check(f"cvt.pack.sat.{kind}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}}", ["u32"], ["s32", "s32", "u32"], three, expect)
