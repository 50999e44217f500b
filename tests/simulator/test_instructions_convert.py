"""cvt, mov, prmt, selp, slct, set, setp, cvta and isspacep against exact arithmetic and Python's integers."""

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
    round_quotient,
    signed,
    wrap,
)
from instruction_forms import (
    SENTINEL,
    check,
    edge_floats,
    edge_integers,
    execute,
    halves,
    lanewise,
    pack,
    packed_tuples,
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
        want = convert(a, "f64", "f32", ftz=True)
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
                return lambda got: decode(got, F32)[1] == NAN
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


# ---- mov, prmt, selp, slct ----


def test_mov():
    for kind in ("b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"):
        bits = int(kind[1:])
        check(f"mov.{kind} {{d}}, {{a}}", [kind], [kind], one(edge_integers(bits, 10)), lambda a: a)
    check("mov.pred {d}, {a}", ["pred"], ["pred"], [(k & 1,) for k in range(40)], lambda a: a)
    big = one([0, 1, 1 << 127, (1 << 128) - 1, 0x0123456789ABCDEF0011223344556677, 1 << 64])
    check("mov.b128 {d}, {a}", ["b128"], ["b128"], big, lambda a: a)


def test_mov_immediates():
    nothing = one([1])
    check("mov.f32 {d}, 0f3FC00000", ["f32"], ["u32"], nothing, lambda a: 0x3FC00000)
    check("mov.f32 {d}, 1.5", ["f32"], ["u32"], nothing, lambda a: 0x3FC00000)
    check("mov.f64 {d}, 0d3FF8000000000000", ["f64"], ["u32"], nothing, lambda a: 0x3FF8000000000000)
    check("mov.b32 {d}, -1", ["b32"], ["u32"], nothing, lambda a: 0xFFFFFFFF)
    check("mov.u64 {d}, 0xFFFFFFFF00000001", ["u64"], ["u32"], nothing, lambda a: 0xFFFFFFFF00000001)
    check("mov.b16 {d}, 0x8000", ["b16"], ["u32"], nothing, lambda a: 0x8000)


def test_mov_pack_unpack():
    pairs16 = tuples(edge_integers(16, 5), edge_integers(16, 5), limit=300)
    pairs32 = tuples(edge_integers(32, 5), edge_integers(32, 5), limit=300)
    check("mov.b32 {d}, {{{a}, {b}}}", ["b32"], ["b16"] * 2, pairs16, lambda a, b: a | b << 16)
    check("mov.b64 {d}, {{{a}, {b}}}", ["b64"], ["b32"] * 2, pairs32, lambda a, b: a | b << 32)
    check(
        "mov.b64 {d}, {{{a}, {b}, {c}, {f}}}",
        ["b64"],
        ["b16"] * 4,
        tuples(*[edge_integers(16)] * 4, limit=300),
        lambda a, b, c, f: a | b << 16 | c << 32 | f << 48,
    )
    check(
        "mov.b32 {{{d}, {e}}}, {a}", ["b16"] * 2, ["b32"], one(edge_integers(32, 20)), lambda a: (a & 0xFFFF, a >> 16)
    )
    check(
        "mov.b64 {{{d}, {e}}}, {a}",
        ["b32"] * 2,
        ["b64"],
        one(edge_integers(64, 20)),
        lambda a: (a & 0xFFFFFFFF, a >> 32),
    )
    check("mov.b64 {{_, {d}}}, {a}", ["b32"], ["b64"], one(edge_integers(64, 20)), lambda a: a >> 32)
    check(
        "mov.b64 {{_, {d}, _, {e}}}, {a}",
        ["b16"] * 2,
        ["b64"],
        one(edge_integers(64, 20)),
        lambda a: (a >> 16 & 0xFFFF, a >> 48),
    )
    check(
        "mov.b128 {d}, {{{a}, {b}}}",
        ["b128"],
        ["b64"] * 2,
        tuples(edge_integers(64), edge_integers(64), limit=200),
        lambda a, b: a | b << 64,
    )
    check(
        "mov.b128 {d}, {{{a}, {b}, {c}, {f}}}",
        ["b128"],
        ["b32"] * 4,
        tuples(*[edge_integers(32)] * 4, limit=200),
        lambda a, b, c, f: a | b << 32 | c << 64 | f << 96,
    )


def permute(pair, digits):
    result = 0
    for place, digit in enumerate(digits):
        byte = pair >> 8 * (digit & 7) & 0xFF
        if digit & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * place
    return result


def test_prmt():
    generator = random.Random(2)
    operands = [tuple(generator.getrandbits(32) for _ in range(3)) for _ in range(600)]
    check(
        "prmt.b32 {d}, {a}, {b}, {c}",
        ["b32"],
        ["b32"] * 3,
        operands,
        lambda a, b, c: permute(b << 32 | a, [c >> 4 * k & 15 for k in range(4)]),
    )
    for selector in (0x5410, 0x7632, 0x3210, 0x0123, 0x7777, 0x4440, 0xBA98, 0x8180, 0x1054, 0x6420):
        check(
            f"prmt.b32 {{d}}, {{a}}, {{b}}, {selector:#x}",
            ["b32"],
            ["b32"] * 2,
            [v[:2] for v in operands[:100]],
            lambda a, b, c=selector: permute(b << 32 | a, [c >> 4 * k & 15 for k in range(4)]),
        )


# The manual's tables: the bytes for places 3, 2, 1, 0 by the selector's two low bits.
PERMUTE_MODES = {
    "f4e": ["3210", "4321", "5432", "6543"],
    "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"],
    "rc16": ["1010", "3232", "1010", "3232"],
}


@pytest.mark.parametrize("mode", PERMUTE_MODES)
def test_prmt_modes(mode):
    generator = random.Random(3)
    operands = [tuple(generator.getrandbits(32) for _ in range(3)) for _ in range(300)]

    def expect(a, b, c):
        return permute(b << 32 | a, [int(digit) for digit in reversed(PERMUTE_MODES[mode][c & 3])])

    check(f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}}", ["b32"], ["b32"] * 3, operands, expect)


@pytest.mark.parametrize("kind", ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"])
def test_selp_slct(kind):
    bits = int(kind[1:])
    pairs = tuples(edge_integers(bits, 4), edge_integers(bits, 4), limit=300)
    generator = random.Random(bits)
    chosen = [(a, b, generator.getrandbits(1)) for a, b in pairs]
    check(
        f"selp.{kind} {{d}}, {{a}}, {{b}}, {{c}}", [kind], [kind, kind, "pred"], chosen, lambda a, b, p: a if p else b
    )
    by_integer = [(a, b, generator.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])) for a, b in pairs]
    check(
        f"slct.{kind}.s32 {{d}}, {{a}}, {{b}}, {{c}}",
        [kind],
        [kind, kind, "s32"],
        by_integer,
        lambda a, b, c: a if c < 1 << 31 else b,
    )
    floats = edge_floats("f32")

    def by_float(ftz):
        def expect(a, b, c):
            sign, value = decode(flush(c, F32) if ftz else c, F32)
            return a if value != NAN and (not sign or value == 0) else b

        return expect

    operands = [(a, b, generator.choice(floats)) for a, b in pairs]
    for ftz in ("", ".ftz"):
        check(
            f"slct{ftz}.{kind}.f32 {{d}}, {{a}}, {{b}}, {{c}}",
            [kind],
            [kind, kind, "f32"],
            operands,
            by_float(bool(ftz)),
        )


# ---- comparisons ----

ORDER = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare_floats(name, kind, ftz=False):
    fmt = FORMATS[kind]

    def function(a, b):
        parts = [decode(flush(v, fmt) if ftz else v, fmt) for v in (a, b)]
        unordered = any(value == NAN for _, value in parts)
        if name in ("num", "nan"):
            return int(unordered == (name == "nan"))
        if unordered:
            return int(len(name) == 3)
        x, y = [signed(sign, 10**400 if value == INF else value) for sign, value in parts]
        return int(ORDER[name[:2]](x, y))

    return function


FLOAT_COMPARISONS = [*ORDER, *[name + "u" for name in ORDER], "num", "nan"]


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_setp_integer(kind):
    bits = INTEGERS[kind][0]
    operands = tuples(edge_integers(bits, 5), edge_integers(bits, 5)) + [(v, v) for v in edge_integers(bits)]
    names = {name: name for name in ORDER} | (UNSIGNED if kind[0] == "u" else {})
    for name, meaning in names.items():
        check(
            f"setp.{name}.{kind} {{d}}, {{a}}, {{b}}",
            ["pred"],
            [kind] * 2,
            operands,
            lambda a, b, m=meaning: int(ORDER[m](integer(a, kind), integer(b, kind))),
        )
    for name in ("eq", "ne"):
        check(
            f"setp.{name}.b{bits} {{d}}, {{a}}, {{b}}",
            ["pred"],
            [kind] * 2,
            operands,
            lambda a, b, m=name: int(ORDER[m](a, b)),
        )


@pytest.mark.parametrize("name", FLOAT_COMPARISONS)
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_setp_float(kind, name):
    values = edge_floats(kind, 4)
    operands = tuples(values, values, limit=1500) + [(v, v) for v in values]
    for ftz in (False, True) if kind in ("f32", "f16") else (False,):
        check(
            f"setp.{name}{'.ftz' if ftz else ''}.{kind} {{d}}, {{a}}, {{b}}",
            ["pred"],
            [kind] * 2,
            operands,
            compare_floats(name, kind, ftz),
        )


@pytest.mark.parametrize("name", FLOAT_COMPARISONS)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_setp_packed(kind, name):
    function = compare_floats(name, kind)
    check(
        f"setp.{name}.{kind}x2 {{d}}|{{e}}, {{a}}, {{b}}",
        ["pred"] * 2,
        [f"{kind}x2"] * 2,
        packed_tuples(kind, 2, 800),
        lambda a, b: (function(a & 0xFFFF, b & 0xFFFF), function(a >> 16, b >> 16)),
    )


COMBINE = {"and": lambda t, c: t & c, "or": lambda t, c: t | c, "xor": lambda t, c: t ^ c}


@pytest.mark.parametrize("operator", COMBINE)
@pytest.mark.parametrize("negated", [False, True])
def test_setp_combined(operator, negated):
    combine = COMBINE[operator]
    generator = random.Random(4)
    for kind, name, values, function in (
        ("s32", "lt", edge_integers(32), lambda a, b: int(integer(a, "s32") < integer(b, "s32"))),
        ("f32", "leu", edge_floats("f32"), compare_floats("leu", "f32")),
        ("f16", "gt", edge_floats("f16"), compare_floats("gt", "f16")),
        ("u64", "ne", edge_integers(64), lambda a, b: int(a != b)),
    ):
        operands = [(a, b, generator.getrandbits(1)) for a, b in tuples(values, values, limit=500)]
        c = "!{c}" if negated else "{c}"

        def both(a, b, p, function=function):
            t = function(a, b)
            return combine(t, p ^ negated), combine(1 - t, p ^ negated)

        sources = [kind, kind, "pred"]
        if kind != "f16":  # has no second destination
            text = f"setp.{name}.{operator}.{kind} {{d}}|{{e}}, {{a}}, {{b}}, {c}"
            check(text, ["pred"] * 2, sources, operands, both)
        check(
            f"setp.{name}.{operator}.{kind} {{d}}, {{a}}, {{b}}, {c}",
            ["pred"],
            sources,
            operands,
            lambda *v, f=both: f(*v)[0],
        )


def test_setp_pair():
    operands = tuples(edge_integers(32), edge_integers(32))
    check("setp.lt.u32 {d}|{e}, {a}, {b}", ["pred"] * 2, ["u32"] * 2, operands, lambda a, b: (int(a < b), int(a >= b)))
    check("setp.lt.u32 _|{d}, {a}, {b}", ["pred"], ["u32"] * 2, operands, lambda a, b: int(a >= b))


@pytest.mark.parametrize("target", ["u32", "s32", "f32"])
def test_set(target):
    true = 0x3F800000 if target == "f32" else 0xFFFFFFFF
    for kind, names, values, compare in (
        ("s32", ["lt", "ge", "ne"], edge_integers(32, 5), None),
        ("u16", ["hi", "eq"], edge_integers(16, 5), None),
        ("u64", ["lt"], edge_integers(64, 5), None),
        ("f32", ["lt", "geu", "num"], edge_floats("f32"), compare_floats),
        ("f64", ["eq", "neu"], edge_floats("f64"), compare_floats),
        ("f16", ["gt", "nan"], edge_floats("f16"), compare_floats),
        ("bf16", ["le", "ltu"], edge_floats("bf16"), compare_floats),
    ):
        if kind in ("f16", "bf16") and target == "f32":
            continue
        operands = tuples(values, values, limit=700)
        for name in names:
            function = (
                compare(name, kind)
                if compare
                else (lambda a, b, n=name, k=kind: int(ORDER[UNSIGNED.get(n, n)](integer(a, k), integer(b, k))))
            )
            check(
                f"set.{name}.{target}.{kind} {{d}}, {{a}}, {{b}}",
                [target],
                [kind] * 2,
                operands,
                lambda a, b, f=function: true if f(a, b) else 0,
            )
    generator = random.Random(5)
    operands = [(a, b, generator.getrandbits(1)) for a, b in tuples(edge_integers(32), edge_integers(32), limit=300)]
    check(
        f"set.lt.xor.{target}.u32 {{d}}, {{a}}, {{b}}, !{{c}}",
        [target],
        ["u32", "u32", "pred"],
        operands,
        lambda a, b, p: true if (a < b) != (not p) else 0,
    )


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_set_half(kind):
    one_bits = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
    values = edge_floats(kind)
    for name in ("lt", "equ", "num"):
        function = compare_floats(name, kind)
        operands = tuples(values, values, limit=700)
        check(
            f"set.{name}.{kind}.{kind} {{d}}, {{a}}, {{b}}",
            [kind],
            [kind] * 2,
            operands,
            lambda a, b, f=function: one_bits if f(a, b) else 0,
        )
        check(
            f"set.{name}.u16.{kind} {{d}}, {{a}}, {{b}}",
            ["u16"],
            [kind] * 2,
            operands,
            lambda a, b, f=function: 0xFFFF if f(a, b) else 0,
        )
        packed = packed_tuples(kind, 2, 700)
        for target, true in (f"{kind}x2", one_bits), ("u32", 0xFFFF):
            check(
                f"set.{name}.{target}.{kind}x2 {{d}}, {{a}}, {{b}}",
                [target],
                [f"{kind}x2"] * 2,
                packed,
                lanewise(lambda a, b, f=function, t=true: t if f(a, b) else 0),
            )


# ---- address spaces ----


def test_address_spaces():
    """A generic address goes back to the one it came from, and each space knows its own."""
    body = (
        ".reg .b64 %s, %g, %r; .reg .pred %q; .shared .align 8 .b8 buffer[64]; "
        "mov.u64 %s, buffer; add.u64 %s, %s, {a}; cvta.shared.u64 %g, %s; cvta.to.shared.u64 %r, %g; "
        "sub.u64 {d}, %r, %s; isspacep.shared %q, %g; selp.u32 {e}, 1, 0, %q"
    )
    expect_plain(body, lambda a: (0, 1), ["u64", "u32"])
    body = (
        ".reg .b64 %s, %g, %r; .reg .pred %q; .local .align 8 .b8 buffer[64]; "
        "mov.u64 %s, buffer; add.u64 %s, %s, {a}; cvta.local.u64 %g, %s; cvta.to.local.u64 %r, %g; "
        "sub.u64 {d}, %r, %s; isspacep.local %q, %g; selp.u32 {e}, 1, 0, %q"
    )
    expect_plain(body, lambda a: (0, 1), ["u64", "u32"])
    for space in ("shared", "local"):
        body = f".reg .pred %q; .reg .b64 %g; mov.u64 %g, %ptr; isspacep.{space} %q, %g; selp.u32 {{d}}, 1, 0, %q"
        expect_plain(body, lambda a: (0,), ["u32"])
    body = ".reg .pred %q; .reg .b64 %g; cvta.global.u64 %g, %ptr; isspacep.global %q, %g; selp.u32 {d}, 1, 0, %q"
    expect_plain(body, lambda a: (1,), ["u32"])


def expect_plain(body, expect, dsts):
    """For bodies with declarations, which no guard can stand before: in a scope of their own, unguarded."""
    operands = one([0, 8, 16, 63])
    results, _ = execute(body, dsts, ["u64"], operands, scoped=True)
    assert results == [expect(*v) for v in operands]


def test_sentinel_survives():
    """The guard of instruction_forms really switches the instruction off."""
    _, under_guard = execute("mov.b32 {d}, {a}", ["u32"], ["u32"], one(range(64)))
    assert [v for (v,) in under_guard].count(SENTINEL & 0xFFFFFFFF) == sum(k & 5 == 1 for k in range(64))
