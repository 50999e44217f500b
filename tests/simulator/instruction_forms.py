"""Runs one PTX instruction on many operands: a kernel of its own, one thread for each set of operands.

Each kernel executes the instruction twice: by all threads, and guarded by a predicate that some threads lack, whose
destinations must keep their value.
"""

import itertools
import os
import random

import cudart
import numpy as np
import pytest
from exact_arithmetic import FORMATS, NAN, decode

BLOCK = 128
SENTINEL = 0x5A5A5A5A5A5A5A5A
WIDTH = {
    "pred": 4,
    "f16x2": 4,
    "bf16x2": 4,
    "u16x2": 4,
    "s16x2": 4,
    "f32x2": 8,
    "tf32": 4,
    "b128": 16,
    "e4m3": 1,
    "e5m2": 1,
    "e4m3x2": 2,
    "e5m2x2": 2,
}
COMPUTE = int(os.environ.get("FLASHLADDER_TEST_COMPUTE", "90"))  # of the GPU, where the tests run on one


def width(kind):
    return WIDTH.get(kind) or int(kind.lstrip("abcdefsux")) // 8


def register(kind):
    return kind if kind == "pred" else f"b{8 * max(2, width(kind))}"


def array(kind, values):
    size = width(kind)
    if size == 16:
        return np.array([[v & (1 << 64) - 1, v >> 64] for v in values], np.uint64)
    return np.array([v & (1 << 8 * size) - 1 for v in values], f"u{size}")


def load(kind, name, address):
    if kind == "pred":
        return f"ld.global.u32 %t32, [{address}];\n    setp.ne.u32 {name}, %t32, 0;"
    if kind == "b128":
        return f"ld.global.v2.u64 {{%t0, %t1}}, [{address}];\n    mov.b128 {name}, {{%t0, %t1}};"
    if width(kind) == 1:
        return f"ld.global.u8 {name}, [{address}];"
    return f"ld.global.{register(kind)} {name}, [{address}];"


def store(kind, name, address):
    if kind == "pred":
        return f"selp.u32 %t32, 1, 0, {name};\n    st.global.u32 [{address}], %t32;"
    if kind == "b128":
        return f"mov.b128 {{%t0, %t1}}, {name};\n    st.global.v2.u64 [{address}], {{%t0, %t1}};"
    return f"st.global.{register(kind)} [{address}], {name};"


def preset(kind, name):
    if kind == "pred":
        return f"setp.eq.u32 {name}, 0, 0;"
    if kind == "b128":
        return f"mov.b64 %t0, {SENTINEL};\n    mov.b128 {name}, {{%t0, %t0}};"
    return f"mov.{register(kind)} {name}, {SENTINEL & (1 << 8 * max(2, width(kind))) - 1};"


def module(body, dsts, sources, arch=90, registers=None, scoped=False):
    """PTX of a kernel that runs `body`: lines with {d} {e} (destinations) and {a} {b} {c} {f} (sources).

    registers: {name: type} of registers declared wider than their operand's type. scoped: the body has declarations, so
    it stands in braces and runs unguarded both times.
    """
    registers = registers or {}
    names = dict(zip("abcf", sources)) | dict(zip("de", dsts))
    declared = {n: registers.get(n) or register(k) for n, k in names.items()}
    declarations = "\n    ".join(f".reg .{kind} %{n};" for n, kind in declared.items())
    parameters = ", ".join(f".param .u64 p{k}" for k in range(len(sources) + 2 * len(dsts)))
    operands = {n: f"%{n}" for n in names}
    lines = [line.strip() + ";" for line in body.format(**operands).split(";") if line.strip()]
    if scoped:
        lines = ["{", *lines, "}"]
    out = []

    def address(k, size):
        return [
            f"ld.param.u64 %ptr, [p{k}];",
            "cvta.to.global.u64 %ptr, %ptr;",
            f"mad.wide.u32 %ptr, %i, {size}, %ptr;",
        ]

    for k, (name, kind) in enumerate(zip("abcf", sources)):
        out += [*address(k, width(kind)), load(kind, f"%{name}", "%ptr")]

    def results(first):
        for k, (name, kind) in enumerate(zip("de", dsts)):
            size = max(2, width(kind)) if declared[name] == register(kind) else width(declared[name])
            stored = kind if declared[name] == register(kind) else declared[name]
            out.extend([*address(first + k, size), store(stored, f"%{name}", "%ptr")])

    def presets():
        for name, kind in zip("de", dsts):
            out.append(preset(kind if declared[name] == register(kind) else declared[name], f"%{name}"))

    presets()
    out += lines
    results(len(sources))
    presets()
    out += ["and.b32 %t32, %i, 5;", "setp.ne.u32 %guard, %t32, 1;"]
    out += lines if scoped else [f"@%guard {line}" for line in lines]
    results(len(sources) + len(dsts))
    text = "\n    ".join(out)
    version = "8.8" if arch > 90 else "8.3"
    return f""".version {version}
.target sm_{arch}{"a" if arch > 90 else ""}
.address_size 64
.visible .entry test({parameters})
{{
    .reg .b32 %i, %t32, %block;
    .reg .b64 %ptr, %t0, %t1;
    .reg .pred %guard;
    {declarations}
    mov.u32 %i, %tid.x;
    mov.u32 %block, %ctaid.x;
    mad.lo.u32 %i, %block, {BLOCK}, %i;
    {text}
    ret;
}}
"""


def guarded(i):
    return i & 5 != 1


def execute(body, dsts, sources, operands, arch=90, registers=None, scoped=False):
    """Runs the body on `operands` (tuples of bits); returns two lists of tuples: of the plain and the guarded run."""
    if cudart.ON_GPU and arch > COMPUTE:
        pytest.skip(f"needs sm_{arch}")
    ptx = module(body, dsts, sources, arch, registers, scoped)
    count = len(operands)
    padded = list(operands) + [operands[-1]] * (-count % BLOCK)
    arrays = [array(kind, [values[k] for values in padded]) for k, kind in enumerate(sources)]
    kinds = [(registers or {}).get(n) or k for n, k in zip("de", dsts)] * 2
    sizes = [max(2, width(kind)) for kind in kinds]
    outputs = [np.zeros((len(padded), 2) if size == 16 else len(padded), f"u{min(size, 8)}") for size in sizes]
    result = cudart.run_ptx(ptx, "test", len(padded) // BLOCK, BLOCK, [*arrays, *outputs]).check()
    read = result.outputs[len(sources) :]
    columns = [[int(row[0]) | int(row[1]) << 64 for row in out] if out.ndim == 2 else out.tolist() for out in read]
    half = len(dsts)
    plain = list(zip(*columns[:half]))[:count]
    under_guard = list(zip(*columns[half:]))[:count]
    return plain, under_guard


def matches(got, want, kind):
    """want: bits, NAN for any NaN of the type, None for anything, or a function of the bits."""
    if want is None:
        return True
    if callable(want):
        return want(got)
    if want == NAN:
        return decode(got, FORMATS[kind])[1] == NAN
    return got == want


def check(body, dsts, sources, operands, expect, arch=90, registers=None):
    """Asserts that every result is expect(*operands): one value, or a tuple for several destinations."""
    plain, under_guard = execute(body, dsts, sources, operands, arch, registers)
    bad = []
    for i, values in enumerate(operands):
        wanted = expect(*values)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for name, got in (("", plain[i]), ("guarded ", under_guard[i] if guarded(i) else None)):
            if got is not None and not all(map(matches, got, wanted, dsts)):
                bad.append(f"{name}{describe(values)} -> {describe(got)}, not {describe(wanted)}")
        kept = tuple(
            1 if k == "pred" else SENTINEL & ((1 << 8 * max(2, width((registers or {}).get(n) or k))) - 1)
            for n, k in zip("de", dsts)
        )
        kept = tuple(v | v << 64 if k == "b128" else v for v, k in zip(kept, dsts))
        if not guarded(i) and under_guard[i] != kept:
            bad.append(f"guarded off {describe(values)} -> {describe(under_guard[i])}, not {describe(kept)}")
    assert not bad, f"{body}: {len(bad)} of {len(operands)} wrong:\n" + "\n".join(bad[:20])


def describe(values):
    return ", ".join(f"{v:#x}" if isinstance(v, int) else str(v) for v in values)


# ---- operand values ----


def edge_integers(bits, extra=0):
    """Limits, powers of two and their neighbours, and `extra` random ones."""
    top = 1 << (bits - 1)
    values = {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 127, 128, 255, 0x5555, 0xAAAA}
    values |= {top, top - 1, top + 1, 2 * top - 1, 2 * top - 2, 2 * top - 3, top // 2, 2 * top - 32}
    values |= {1 << k for k in range(0, bits, 5)}
    values = {v & (2 * top - 1) for v in values}
    generator = random.Random(bits)
    return sorted(values) + [generator.getrandbits(bits) for _ in range(extra)]


def edge_floats(name, extra=0):
    """Zeros, subnormals, limits, numbers around one and around powers of two, infinities, NaNs; of both signs."""
    fmt = FORMATS[name]
    hidden = 1 << (fmt.precision - 1)
    bias = (1 << (fmt.exponent_bits - 1)) - 1
    one = bias * hidden
    values = [0, 1, 2, hidden - 1, hidden // 2, hidden, hidden + 1, one, one + 1, one - 1, one + hidden // 2]
    values += [
        one + hidden,
        one + hidden + hidden // 2 + 1,
        one - hidden,
        one - hidden + 1,
        fmt.largest,
        fmt.largest - 1,
    ]
    values += [one + 3 * hidden + hidden // 4, one + (fmt.precision - 1) * hidden, one + fmt.precision * hidden + 1]
    values += [one - fmt.precision * hidden, one + hidden * (bias // 2) + 3]
    if fmt.has_infinity:
        values += [fmt.infinity, fmt.infinity + hidden // 2, fmt.infinity + 1]
    top = 1 << (fmt.bits - 1)
    values = [v << fmt.shift for sign in (0, top) for v in [value | sign for value in values]]
    generator = random.Random(name)
    return values + [generator.getrandbits(fmt.bits) << fmt.shift for _ in range(extra)]


def tuples(*columns, limit=2000):
    """All combinations, or a fixed random choice of `limit` of them."""
    total = 1
    for column in columns:
        total *= len(column)
    if total <= limit:
        return list(itertools.product(*columns))
    generator = random.Random(total)
    return [tuple(generator.choice(column) for column in columns) for _ in range(limit)]


def edge_tuples(name, count, limit=1600):
    """Operands of `count` floats of a format, its border cases among them."""
    return tuples(*[edge_floats(name, 12)] * count, limit=limit)


def pack(low, high, bits=16):
    return low | high << bits


def halves(value):
    return value & 0xFFFF, value >> 16


def lanewise(function):
    """Of both halves of packed operands."""

    def both(*values):
        low = function(*[v & 0xFFFF for v in values])
        high = function(*[v >> 16 for v in values])
        return pack(low, high)

    return both


def packed_tuples(name, count, limit=2000):
    """Operands of a packed 16-bit type whose halves are independent."""
    values = edge_floats(name, 20) if name in FORMATS else edge_integers(16, 10)
    low = tuples(*[values] * count, limit=limit)
    high = list(low)
    random.Random(7).shuffle(high)
    return [tuple(map(pack, a, b)) for a, b in zip(low, high)]
