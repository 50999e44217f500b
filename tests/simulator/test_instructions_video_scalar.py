"""Scalar video instructions against a plain restatement of the manual's pseudocode."""

import numpy as np
import pytest
from test_instructions_video import COMPUTE, EDGES, run

PARTS = {"": (0, 32), "b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16)}


def part(word, selector, kind):
    place, bits = PARTS[selector]
    value = word >> place & ((1 << bits) - 1)
    return value - (1 << bits) if kind == "s32" and value >> (bits - 1) else value


def clamp(value, bits, sign):
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, value)) if sign else max(0, min((1 << bits) - 1, value))


def finish(value, c, signed, sat, second, selector):
    """Saturates to the destination's part, then puts the result into c or combines it with c."""
    place, bits = PARTS[selector]
    if sat:
        value = clamp(value, bits, signed)
    other = c - (1 << 32) if signed and c >> 31 else c
    value = {"": value, "add": value + other, "min": min(value, other), "max": max(value, other)}[second]
    ones = ((1 << bits) - 1) << place
    return (value << place & ones) | (c & ~ones if selector else 0)


def shift(what, mode, a, b):
    by = b & 31 if mode == "wrap" else min(b, 32)
    return a << by if what == "vshl" else a >> by


def operands(seed):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(0, 2**32, 32, dtype=np.uint32) for _ in range(3))
    a[:8], b[:8], b[8:16], a[8:16] = EDGES, EDGES[::-1], EDGES, EDGES
    return a, b, c


def check(instructions, expected, a, b, c):
    for text, have, want in zip(instructions, run(instructions, a, b, c), expected, strict=True):
        assert [hex(x) for x in have] == [hex(x) for x in want], text


def dotted(*names):
    return ".".join(name for name in names if name)


# Without saturation a result may need 33 bits, of which min and max with c see more than the manual's 32-bit words do.
ENDS = [("", "", ""), ("", "add", ""), ("sat", "", ""), ("sat", "add", ""), ("sat", "min", ""), ("sat", "max", "")]
ENDS += [(sat, "", selector) for sat in ("", "sat") for selector in ("b0", "b2", "h1")]
SELECTORS = [("", ""), ("b3", "h0"), ("h1", "b1"), ("", "b2")]


@pytest.mark.parametrize("what", ["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"])
def test_scalar_video(what):
    a, b, c = operands(1)
    b[16:] %= 40  # distances of shifts
    shifts = what in ("vshl", "vshr")
    instructions, expected = [], []
    for signs in range(8):
        types = ["s32" if signs >> k & 1 else "u32" for k in range(3)]
        if shifts and types[2] == "s32":
            continue
        for mode in ("clamp", "wrap") if shifts else ("",):
            for sat, second, to in ENDS:
                for of_a, of_b in SELECTORS:
                    third = ", {c}" if second or to else ""
                    instructions.append(
                        f"{dotted(what, *types, sat, mode, second)} {dotted('{d}', to)}, {dotted('{a}', of_a)}, "
                        f"{dotted('{b}', of_b)}{third}"
                    )
                    row = []
                    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist()):
                        x, y = part(x, of_a, types[1]), part(y, of_b, types[2])
                        value = shift(what, mode, x, y) if shifts else COMPUTE[what](x, y)
                        row.append(finish(value, z, types[0] == "s32", sat, second, to))
                    expected.append(row)
    check(instructions, expected, a, b, c)


def test_scalar_vset():
    a, b, c = operands(2)
    b[20:26] = a[20:26]
    instructions, expected = [], []
    for compare in ("eq", "ne", "lt", "le", "gt", "ge"):
        for signs in range(4):
            types = ["s32" if signs >> k & 1 else "u32" for k in range(2)]
            for second, to in (("", ""), ("add", ""), ("min", ""), ("max", ""), ("", "b1"), ("", "h0")):
                for of_a, of_b in SELECTORS:
                    third = ", {c}" if second or to else ""
                    instructions.append(
                        f"{dotted('vset', *types, compare, second)} {dotted('{d}', to)}, {dotted('{a}', of_a)}, "
                        f"{dotted('{b}', of_b)}{third}"
                    )
                    expected.append([
                        finish(
                            COMPUTE[compare](part(x, of_a, types[0]), part(y, of_b, types[1])), z, False, "", second, to
                        )
                        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist())
                    ])  # fmt: skip
    check(instructions, expected, a, b, c)


def vmad(types, po, minus, scale, sat, a, b, c):
    """minus: of a, b and c. The result's sign follows from the operands, whatever the first type says."""
    minus_product = minus[0] != minus[1]
    signed = "s32" in types[1:] or minus_product or minus[2]
    product, one = a * b, int(po)
    if minus_product:
        product, one = ~product, 1
    elif minus[2]:
        c, one = ~c & 0xFFFFFFFF, 1
    product += (c - (1 << 32) if signed and c >> 31 else c) + one
    result = product >> {"": 0, "shr7": 7, "shr15": 15}[scale] & (1 << 64) - 1
    if signed and result >> 63:
        result -= 1 << 64
    return (clamp(result, 32, signed) if sat else result) & 0xFFFFFFFF


def test_vmad():
    a, b, c = operands(3)
    signs = [
        (False, False, False),
        (True, False, False),
        (False, True, False),
        (True, True, False),
        (False, False, True),
    ]
    instructions, expected = [], []
    for kinds in range(8):
        types = ["s32" if kinds >> k & 1 else "u32" for k in range(3)]
        for po, minus in [(True, signs[0])] + [(False, m) for m in signs]:
            for scale in ("", "shr7", "shr15"):
                for sat in ("", "sat"):
                    for of_a, of_b in SELECTORS[:3]:
                        x_text, y_text, z_text = ("-" * m + "{" + n + "}" for m, n in zip(minus, "abc", strict=True))
                        instructions.append(
                            f"{dotted('vmad', *types, 'po' * po, sat, scale)} {{d}}, {dotted(x_text, of_a)}, "
                            f"{dotted(y_text, of_b)}, {z_text}"
                        )
                        expected.append([
                            vmad(types, po, minus, scale, sat, part(x, of_a, types[1]), part(y, of_b, types[2]), z)
                            for x, y, z in zip(a.tolist(), b.tolist(), c.tolist())
                        ])  # fmt: skip
    check(instructions, expected, a, b, c)


@pytest.mark.simulator_only
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("vadd.u32.u32.u32.add {d}, {a}, {b}", "it needs a third source"),
        ("vadd.u32.u32.u32.add {d}.b0, {a}, {b}, {c}", "not both"),
        ("vadd.u32.u32.u32 {d}, -{a}, {b}", "without a sign"),
        ("vadd.u32.u32.u32 {d}, {a}.b10, {b}", "the selector .b10"),
        ("vmad.u32.u32.u32.po {d}, -{a}, {b}, {c}", "no source is negated with .po"),
        ("vmad.u32.u32.u32 {d}, -{a}, {b}, -{c}", "negated both"),
        ("vmad.u32.u32.u32 {d}.b0, {a}, {b}, {c}", "without .b0"),
        ("vshl.u32.u32.u32 {d}, {a}, {b}", "it needs .clamp or .wrap"),
        ("add.s32 {d}, {a}.b0, {b}", "without .b0"),
        ("add.s32 {d}, -{a}, {b}", "without a sign"),
    ],
)
def test_what_is_no_form_is_refused(text, why):
    with pytest.raises(AssertionError, match=why):
        run([text], *(np.zeros(32, np.uint32) for _ in range(3)))
