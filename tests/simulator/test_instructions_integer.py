"""Integer and bit instructions against Python's integers."""

import random

import pytest
from exact_arithmetic import INTEGERS, as_signed, clamp, integer, wrap
from instruction_forms import check, edge_integers, lanewise, packed_tuples, tuples

TYPES = ["u16", "s16", "u32", "s32", "u64", "s64"]
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def values(kind, extra=10):
    return edge_integers(INTEGERS[kind][0], extra)


def check_integers(text, kind, sources, function, result=None, operands=None, arch=90):
    """function gets Python integers of the types; its result is wrapped to `result`'s width."""
    result = result or kind
    names = "abcf"[: len(sources)]
    body = f"{text} {{d}}, " + ", ".join(f"{{{n}}}" for n in names)
    if operands is None:
        operands = tuples(*[values(k, 10 if len(sources) < 3 else 3) for k in sources])

    def expect(*bits):
        return wrap(function(*map(integer, bits, sources)), INTEGERS[result][0])

    check(body, [result], sources, operands, expect, arch)


def truncated_quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


TWO = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": min,
    "max": max,
    "mul.lo": lambda a, b: a * b,
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", TWO)
def test_two_operands(name, kind):
    check_integers(f"{name}.{kind}", kind, [kind, kind], TWO[name])


@pytest.mark.parametrize("kind", TYPES)
def test_mul_mad(kind):
    bits = INTEGERS[kind][0]
    check_integers(f"mul.hi.{kind}", kind, [kind] * 2, lambda a, b: a * b >> bits)
    check_integers(f"mad.lo.{kind}", kind, [kind] * 3, lambda a, b, c: a * b + c)
    check_integers(f"mad.hi.{kind}", kind, [kind] * 3, lambda a, b, c: (a * b >> bits) + c)


@pytest.mark.parametrize("kind", WIDER)
def test_wide(kind):
    wide = WIDER[kind]
    check_integers(f"mul.wide.{kind}", kind, [kind] * 2, lambda a, b: a * b, wide)
    check_integers(f"mad.wide.{kind}", kind, [kind, kind, wide], lambda a, b, c: a * b + c, wide)


def test_saturating():
    check_integers("add.sat.s32", "s32", ["s32"] * 2, lambda a, b: clamp(a + b, "s32"))
    check_integers("sub.sat.s32", "s32", ["s32"] * 2, lambda a, b: clamp(a - b, "s32"))
    check_integers("mad.hi.sat.s32", "s32", ["s32"] * 3, lambda a, b, c: clamp((a * b >> 32) + c, "s32"))


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bits(kind):
    def low24(x):
        return as_signed(x, 24) if kind == "s32" else wrap(x, 24)

    # The manual leaves the result open where an operand has more than 24 bits, but takes the low 24.
    small = [wrap(low24(v), 32) for v in values(kind)]
    two, three = tuples(small, small), tuples(small, small, values(kind, 3))
    check_integers(f"mul24.lo.{kind}", kind, [kind] * 2, lambda a, b: a * b, operands=two)
    check_integers(f"mul24.hi.{kind}", kind, [kind] * 2, lambda a, b: a * b >> 16, operands=two)
    check_integers(f"mad24.lo.{kind}", kind, [kind] * 3, lambda a, b, c: a * b + c, operands=three)
    check_integers(f"mad24.hi.{kind}", kind, [kind] * 3, lambda a, b, c: (a * b >> 16) + c, operands=three)
    if kind == "s32":
        check_integers(
            "mad24.hi.sat.s32",
            kind,
            [kind] * 3,
            lambda a, b, c: clamp(as_signed(a * b >> 16, 32) + c, kind),
            operands=three,
        )


@pytest.mark.parametrize("kind", TYPES)
def test_div_rem(kind):
    pairs = [(a, b) for a, b in tuples(values(kind), values(kind)) if integer(b, kind)]
    check_integers(f"div.{kind}", kind, [kind] * 2, truncated_quotient, operands=pairs)
    check_integers(f"rem.{kind}", kind, [kind] * 2, lambda a, b: a - b * truncated_quotient(a, b), operands=pairs)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64"])
def test_division_by_zero_is_no_error(kind):
    check(f"div.{kind} {{d}}, {{a}}, {{b}}", [kind], [kind] * 2, [(v, 0) for v in values(kind)], lambda a, b: None)


@pytest.mark.parametrize("kind", TYPES)
def test_sad(kind):
    check_integers(f"sad.{kind}", kind, [kind] * 3, lambda a, b, c: c + abs(a - b))


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_neg_abs(kind):
    check_integers(f"neg.{kind}", kind, [kind], lambda a: -a)
    check_integers(f"abs.{kind}", kind, [kind], abs)


@pytest.mark.parametrize("kind", ["u16x2", "s16x2"])
def test_packed_pairs(kind):
    element = kind[:3]
    operands = packed_tuples(kind, 2)
    names = {"add": lambda a, b: a + b, "min": min, "max": max}
    if kind == "s16x2":
        names["min.relu"] = lambda a, b: max(min(a, b), 0)
        names["max.relu"] = lambda a, b: max(a, b, 0)
    for name, function in names.items():
        expect = lanewise(lambda a, b, f=function: wrap(f(integer(a, element), integer(b, element)), 16))
        check(f"{name}.{kind} {{d}}, {{a}}, {{b}}", [kind], [kind] * 2, operands, expect)


def test_relu():
    check_integers("min.relu.s32", "s32", ["s32"] * 2, lambda a, b: max(min(a, b), 0))
    check_integers("max.relu.s32", "s32", ["s32"] * 2, lambda a, b: max(a, b, 0))


# ---- extended precision ----


@pytest.mark.parametrize("bits", [32, 64])
def test_carry_chains(bits):
    """Sums and differences of two words, with the carry between them, by every thread its own."""
    kind = f"u{bits}"
    operands = tuples(values(kind), values(kind), values(kind, 2), values(kind, 2))
    top = 1 << bits

    def words(value):
        return wrap(value, bits), wrap(value >> bits, bits)

    def wide(low, high):
        return low + high * top

    quad = [kind] * 4
    check(
        f"add.cc.{kind} {{d}}, {{a}}, {{b}}; addc.{kind} {{e}}, {{c}}, {{f}}",
        [kind] * 2,
        quad,
        operands,
        lambda a, b, c, f: words(wide(a, c) + wide(b, f)),
    )
    check(
        f"sub.cc.{kind} {{d}}, {{a}}, {{b}}; subc.{kind} {{e}}, {{c}}, {{f}}",
        [kind] * 2,
        quad,
        operands,
        lambda a, b, c, f: words(wide(a, c) - wide(b, f)),
    )
    check(
        f"mad.lo.cc.{kind} {{d}}, {{a}}, {{b}}, {{c}}; madc.hi.{kind} {{e}}, {{a}}, {{b}}, {{f}}",
        [kind] * 2,
        quad,
        operands,
        lambda a, b, c, f: words(a * b + wide(c, f)),
    )
    check(
        f"add.cc.{kind} {{d}}, {{a}}, {{b}}; addc.cc.{kind} {{d}}, {{c}}, {{f}}; addc.{kind} {{e}}, 0, 0",
        [kind] * 2,
        quad,
        operands,
        lambda a, b, c, f: words(c + f + (a + b >> bits)),
    )
    check(
        f"sub.cc.{kind} {{d}}, {{a}}, {{b}}; subc.cc.{kind} {{d}}, {{c}}, {{f}}; subc.{kind} {{e}}, 0, 0",
        [kind] * 2,
        quad,
        operands,
        lambda a, b, c, f: words(c - f - (a < b)),
    )
    check(
        f"mad.hi.cc.{kind} {{d}}, {{a}}, {{b}}, {{c}}; madc.lo.cc.{kind} {{d}}, {{a}}, {{b}}, {{f}}; "
        f"addc.{kind} {{e}}, 0, 0",
        [kind] * 2,
        quad,
        operands,
        lambda a, b, c, f: words(wrap(a * b, bits) + f + ((a * b >> bits) + c >> bits)),
    )


# ---- bits ----


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits):
    kind = f"u{bits}"
    mask = (1 << bits) - 1
    for name, function in {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}.items():
        check_integers(f"{name}.b{bits}", kind, [kind] * 2, function)
    check_integers(f"not.b{bits}", kind, [kind], lambda a: a ^ mask)
    check_integers(f"cnot.b{bits}", kind, [kind], lambda a: int(a == 0))


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_predicate_logic(name):
    function = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}[name]
    operands = [(a, b) for a in (0, 1) for b in (0, 1)] * 20
    check(f"{name}.pred {{d}}, {{a}}, {{b}}", ["pred"], ["pred"] * 2, operands, function)
    check("not.pred {d}, {a}", ["pred"], ["pred"], [(k & 1,) for k in range(64)], lambda a: 1 - a)


@pytest.mark.parametrize("kind", TYPES)
def test_shifts(kind):
    bits = INTEGERS[kind][0]
    amounts = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xFFFFFFFF]
    operands = tuples(values(kind), amounts)
    check_integers(f"shr.{kind}", kind, [kind, "u32"], lambda a, n: a >> min(n, 64), operands=operands)
    check_integers(f"shl.b{bits}", kind, [kind, "u32"], lambda a, n: a << min(n, 64), operands=operands)
    check_integers(f"shr.b{bits}", f"u{bits}", [f"u{bits}", "u32"], lambda a, n: a >> min(n, 64), operands=operands)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shift(mode):
    amounts = [0, 1, 5, 16, 31, 32, 33, 63, 64, 255, 0xFFFFFFFF]
    operands = tuples(values("u32", 3), values("u32", 3), amounts)

    def amount(n):
        return n & 31 if mode == "wrap" else min(n, 32)

    u32 = ["u32"] * 3
    check_integers(f"shf.l.{mode}.b32", "u32", u32, lambda a, b, n: (b << 32 | a) << amount(n) >> 32, operands=operands)
    check_integers(f"shf.r.{mode}.b32", "u32", u32, lambda a, b, n: (b << 32 | a) >> amount(n), operands=operands)


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits):
    kind = f"u{bits}"
    check_integers(f"popc.b{bits}", kind, [kind], lambda a: bin(a).count("1"), "u32")
    check_integers(f"clz.b{bits}", kind, [kind], lambda a: bits - a.bit_length(), "u32")
    check_integers(f"brev.b{bits}", kind, [kind], lambda a: int(f"{a:0{bits}b}"[::-1], 2))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfind(kind):
    bits = INTEGERS[kind][0]

    def position(a):
        return (~a if a < 0 else a).bit_length() - 1

    check_integers(f"bfind.{kind}", kind, [kind], position, "u32")
    check_integers(
        f"bfind.shiftamt.{kind}", kind, [kind], lambda a: bits - 1 - position(a) if position(a) >= 0 else -1, "u32"
    )


FIELDS = [0, 1, 2, 5, 8, 31, 32, 33, 40, 62, 63, 64, 65, 200, 255]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfe(kind):
    bits, is_signed = INTEGERS[kind]

    def field(a, position, length):
        if length == 0:
            return 0
        raw = wrap(a, bits)
        taken = raw >> position & ((1 << length) - 1)
        if is_signed and raw >> min(position + length - 1, bits - 1) & 1:
            taken |= -1 << max(0, min(length, bits - position))
        return taken

    check_integers(
        f"bfe.{kind}", kind, [kind, "u32", "u32"], field, operands=tuples(values(kind), FIELDS, FIELDS, limit=4000)
    )
    # Only the low eight bits of position and length count. (Not so for 64 bits as ptxas 13.0 compiles it, whatever the
    # manual says: an H200 takes a position of 256 for one beyond the end.)
    if bits == 64:
        return
    check_integers(
        f"bfe.{kind}",
        kind,
        [kind, "u32", "u32"],
        lambda a, p, n: field(a, p & 255, n & 255),
        operands=tuples(values(kind), [256, 260, 0x105], [264, 0x10000, 0xFFFFFFFF]),
    )


@pytest.mark.parametrize("bits", [32, 64])
def test_bfi(bits):
    kind = f"u{bits}"

    def insert(a, b, position, length):
        mask = wrap((1 << length) - 1 << position, bits)
        return b & ~mask | a << position & mask

    check_integers(
        f"bfi.b{bits}",
        kind,
        [kind, kind, "u32", "u32"],
        insert,
        operands=tuples(values(kind), values(kind), FIELDS, FIELDS, limit=4000),
    )


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_szext_bmsk(mode):
    amounts = [0, 1, 2, 8, 16, 31, 32, 33, 48, 0xFFFFFFFF]

    def amount(n):
        return n & 31 if mode == "wrap" else min(n, 32)

    def extend(a, n):
        n = amount(n)
        return as_signed(a, n) if n else 0

    operands = tuples(values("u32"), amounts)
    check_integers(f"szext.{mode}.u32", "u32", ["u32"] * 2, lambda a, n: wrap(a, amount(n)), operands=operands)
    check_integers(f"szext.{mode}.s32", "u32", ["u32"] * 2, extend, operands=operands)
    check_integers(
        f"bmsk.{mode}.b32",
        "u32",
        ["u32"] * 2,
        lambda a, n: (1 << amount(n)) - 1 << amount(a),
        operands=tuples(amounts, amounts),
    )


def test_fns():
    def find(mask, base, offset):
        if offset == 0:
            return base if mask >> base & 1 else -1
        step = 1 if offset > 0 else -1
        found = [p for p in (range(base, 32) if step > 0 else range(base, -1, -1)) if mask >> p & 1]
        return found[abs(offset) - 1] if abs(offset) <= len(found) else -1

    offsets = [wrap(k, 32) for k in (0, 1, 2, 3, 7, 31, 32, -1, -2, -5, -32)]
    check_integers(
        "fns.b32",
        "u32",
        ["u32", "u32", "s32"],
        find,
        operands=tuples(values("u32"), [0, 1, 5, 16, 30, 31], offsets),
    )


@pytest.mark.parametrize("table", [0x00, 0x01, 0x96, 0xE8, 0xCA, 0xEA, 0x80, 0xFE, 0x1D, 0x6A, 0x2B, 0xFF])
def test_lop3(table):
    def function(a, b, c):
        result = 0
        for row in range(8):
            if table >> row & 1:
                terms = [x if row >> k & 1 else ~x for x, k in ((a, 2), (b, 1), (c, 0))]
                result |= terms[0] & terms[1] & terms[2]
        return wrap(result, 32)

    body = f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x}"
    generator = random.Random(table)
    operands = [tuple(generator.getrandbits(32) for _ in range(3)) for _ in range(300)]
    check(body, ["u32"], ["u32"] * 3, operands, function)


@pytest.mark.parametrize("b_type", ["u32", "s32"])
@pytest.mark.parametrize("a_type", ["u32", "s32"])
def test_dot_products(a_type, b_type):
    def parts(x, bits, kind):
        pieces = [x >> k & ((1 << bits) - 1) for k in range(0, 32, bits)]
        return [as_signed(p, bits) for p in pieces] if kind == "s32" else pieces

    generator = random.Random(1)
    operands = tuples(values("u32"), values("u32"), [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
    operands += [tuple(generator.getrandbits(32) for _ in range(3)) for _ in range(500)]

    def dp4a(a, b, c):
        return wrap(c + sum(x * y for x, y in zip(parts(a, 8, a_type), parts(b, 8, b_type))), 32)

    def dp2a(first):
        def function(a, b, c):
            return wrap(c + sum(x * y for x, y in zip(parts(a, 16, a_type), parts(b, 8, b_type)[first:])), 32)

        return function

    u32 = ["u32"] * 3
    operand_text = "{d}, {a}, {b}, {c}"
    check(f"dp4a.{a_type}.{b_type} {operand_text}", ["u32"], u32, operands, dp4a)
    check(f"dp2a.lo.{a_type}.{b_type} {operand_text}", ["u32"], u32, operands, dp2a(0))
    check(f"dp2a.hi.{a_type}.{b_type} {operand_text}", ["u32"], u32, operands, dp2a(2))


def test_immediates_of_every_width():
    check("add.s32 {d}, {a}, -7", ["u32"], ["u32"], [(v,) for v in values("u32")], lambda a: wrap(a - 7, 32))
    check("add.s64 {d}, {a}, -7", ["u64"], ["u64"], [(v,) for v in values("u64")], lambda a: wrap(a - 7, 64))
    check("mul.lo.s16 {d}, {a}, -3", ["u16"], ["u16"], [(v,) for v in values("u16")], lambda a: wrap(a * -3, 16))
    check("xor.b64 {d}, {a}, -1", ["u64"], ["u64"], [(v,) for v in values("u64")], lambda a: wrap(~a, 64))
    check("shl.b64 {d}, {a}, 33", ["u64"], ["u64"], [(v,) for v in values("u64")], lambda a: wrap(a << 33, 64))


def test_destination_may_be_a_source():
    check(
        "mov.b32 {d}, {a}; add.s32 {d}, {d}, {b}; mad.lo.s32 {d}, {d}, {d}, {d}",
        ["u32"],
        ["u32"] * 2,
        tuples(values("u32"), values("u32")),
        lambda a, b: wrap((a + b) * (a + b) + a + b, 32),
    )
