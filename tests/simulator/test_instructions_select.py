"""mov, prmt, selp, slct, set, setp, cvta and isspacep against Python's integers and the manual's rules."""

import random

import pytest
from exact_arithmetic import F32, FORMATS, INF, INTEGERS, NAN, decode, flush, integer, signed
from instruction_forms import SENTINEL, check, edge_floats, edge_integers, execute, lanewise, packed_tuples, tuples


def one(values):
    return [(v,) for v in values]


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


@pytest.mark.not_on_gpu("CUDA 13.0: the compiler crashes")
def test_setp_pair():
    operands = tuples(edge_integers(32), edge_integers(32))
    check("setp.lt.u32 {d}|{e}, {a}, {b}", ["pred"] * 2, ["u32"] * 2, operands, lambda a, b: (int(a < b), int(a >= b)))
    check("setp.lt.u32 _|{d}, {a}, {b}", ["pred"], ["u32"] * 2, operands, lambda a, b: int(a >= b))


@pytest.mark.not_on_gpu("CUDA 13.0: a guarded set converts the old value of lanes that the guard leaves out")
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


@pytest.mark.not_on_gpu("CUDA 13.0: a guarded set converts the old value of lanes that the guard leaves out")
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
