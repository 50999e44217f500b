"""SIMD video instructions against a plain restatement of the manual's rules, and the intrinsics that become them."""

import numpy as np
import pytest
from cudart import run_program, run_ptx

COMPUTE = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
}


def part(both, index, bits, sign):
    value = both >> index * bits & ((1 << bits) - 1)
    return value - (1 << bits) if sign and value >> (bits - 1) else value


def restated(what, parts, types, flag, mask, selectors, a, b, c):
    bits, both, result = 32 // parts, b << 32 | a, c
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if types[0] == "s32" else (0, (1 << bits) - 1)
    for i in range(parts):
        if str(i) not in mask:
            continue
        x, y = (part(both, int(s[-1 - i]), bits, t == "s32") for s, t in zip(selectors, types[1:], strict=True))
        value = COMPUTE[what](x, y)
        if flag == "sat":
            value = max(low, min(high, value))
        if flag == "add":
            result += value
        else:
            place = ((1 << bits) - 1) << i * bits
            result = result & ~place | value << i * bits & place
    return result & 0xFFFFFFFF


def run(instructions, a, b, c):
    """One instruction after the other on 32 triples of numbers; [instruction][lane]."""
    body = "".join(
        f"{text.format(d='%d', a='%a', b='%b', c='%c')}; st.global.u32 [%o+{128 * i}], %d;\n"
        for i, text in enumerate(instructions)
    )
    loads = "".join(
        f"ld.param.u64 %p, [p{n}]; add.u64 %p, %p, %lane4; ld.global.u32 %{n}, [%p];\n" for n in ("a", "b", "c")
    )
    text = f""".version 8.7\n.target sm_90\n.address_size 64
        .visible .entry test(.param .u64 po, .param .u64 pa, .param .u64 pb, .param .u64 pc) {{
        .reg .b32 %a, %b, %c, %d, %lane; .reg .b64 %p, %o, %lane4;
        mov.u32 %lane, %tid.x; mul.wide.u32 %lane4, %lane, 4;
        {loads} ld.param.u64 %o, [po]; add.u64 %o, %o, %lane4;
        {body} ret; }}"""
    out = np.zeros((len(instructions), 32), np.uint32)
    return run_ptx(text, "test", 1, 32, [out, a, b, c]).check().outputs[0]


EDGES = [0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x80008000, 0x7FFF7FFF, 0x01FE00FF, 0x00010001]


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("what", COMPUTE)
def test_video(what, parts):
    rng = np.random.default_rng(parts)
    a, b, c = (rng.integers(0, 2**32, 32, dtype=np.uint32) for _ in range(3))
    a[:8], b[:8], b[8:16], a[8:16] = EDGES, EDGES[::-1], EDGES, EDGES
    letter, masks = ("b", ("3210", "2", "31")) if parts == 4 else ("h", ("10", "1"))
    usual = ("3210", "7654") if parts == 4 else ("10", "32")
    mixed = ("7016", "4435") if parts == 4 else ("30", "11")
    compares = not what.startswith("v")
    instructions, expected = [], []
    for signs in range(4 if compares else 8):
        types = ["s32" if signs >> k & 1 else "u32" for k in (2, 0, 1)]
        for flag in ("", "add") if compares else ("", "sat", "add"):
            for mask in masks:
                for selectors in (usual, mixed):
                    opcode = (
                        f"vset{parts}.{types[1]}.{types[2]}.{what}" if compares else f"{what}{parts}.{'.'.join(types)}"
                    )
                    suffixes = [f".{letter}{mask}", *(f".{letter}{s}" for s in selectors)]
                    if mask == masks[0] and selectors == usual:
                        suffixes = ["", "", ""]  # the defaults
                    d, x, y = (f"{{{name}}}{suffix}" for name, suffix in zip("dab", suffixes, strict=True))
                    instructions.append(f"{opcode}{flag and '.' + flag} {d}, {x}, {y}, {{c}}")
                    expected.append(
                        [restated(what, parts, types, flag, mask, selectors, *map(int, v)) for v in zip(a, b, c)]
                    )
    got = run(instructions, a, b, c)
    for text, have, want in zip(instructions, got, expected, strict=True):
        assert list(have) == want, text


@pytest.mark.simulator_only
@pytest.mark.parametrize("text", ["vadd4.u32.u32.u32.b {d}, {a}, {b}, {c}", "vadd2.u32.u64.u32 {d}, {a}, {b}, {c}"])
def test_unknown_forms_are_refused(text):
    with pytest.raises(AssertionError, match="not supported"):
        run([text], *(np.zeros(32, np.uint32) for _ in range(3)))


INTRINSICS = """
#include <cstdio>
__global__ void run(unsigned *out, unsigned a, unsigned b) {
    out[0] = __vabsdiffu4(a, b);
    out[1] = __vabsdiffs2(a, b);
    out[2] = __vsadu4(a, b);
    out[3] = __vsads2(a, b);
    out[4] = __vavgu4(a, b);
}
int main() {
    unsigned *out;
    cudaMallocManaged(&out, 20);
    run<<<1, 1>>>(out, 0x01ff8040, 0x0300ff41);
    cudaDeviceSynchronize();
    for (int i = 0; i < 5; ++i) printf("%x ", out[i]);
}
"""


def test_intrinsics():
    """0x01ff8040 and 0x0300ff41: the bytes differ by 2, 255, 127 and 1, the signed halves by 257 and 32513."""
    assert run_program(INTRINSICS).check().stdout == "2ff7f01 1017f01 181 8002 280c041 "
