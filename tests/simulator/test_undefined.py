"""Values that nobody wrote: reported where they matter, at the read that brought them; and nowhere else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cudart import PROGRAMS, run_program, run_ptx

KERNELS = PROGRAMS / "undefined" / "kernels.cu"
HERE = Path(__file__).parent

pytestmark = pytest.mark.simulator_only


def cases():
    """{kernel: [kind, words, line of the read, line where it matters]}"""
    found = {}
    name = None
    for number, line in enumerate(KERNELS.read_text().splitlines(), 1):
        if match := re.match(r"__global__ void (\w+)\(", line):
            name = match[1]
            found[name] = [None, [], None, None]
        match = re.search(r"//! ([a-z_]+): (.+)", line)
        if match and name:
            found[name] = [match[1], match[2].split(" | "), number, number]
        if "//~" in line and name:
            found[name][3] = number
    return found


CASES = cases()


def test_there_are_many():
    assert len(CASES) >= 20
    assert all(kind and use for kind, _, _, use in CASES.values()), "a kernel marks no read or no use"


@pytest.mark.parametrize("name", CASES)
def test_a_value_that_nobody_wrote_is_reported_where_it_matters(name):
    kind, words, read, use = CASES[name]
    result = run_program(KERNELS, args=[name], report=True)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    assert hazard["kind"] == kind, hazard
    assert (Path(hazard["file"]).name, hazard["line"]) == (KERNELS.name, read), hazard
    assert re.search(rf"its value .* at {KERNELS.name}:{use}\b", hazard["message"]), hazard["message"]
    for word in words:
        assert word in hazard["message"], hazard["message"]


@pytest.mark.parametrize("name", CASES)
def test_the_mended_kernel_is_clean(name):
    result = run_program(KERNELS, args=[name], flags=["-DMENDED"], report=True).check()
    assert result.stdout.endswith("cudaSuccess\n") and result.hazards == []


def test_off_reports_nothing():
    assert run_program(KERNELS, args=["store"], env={"WARPSIM_HAZARDS": "off"}, report=True).check().hazards == []


def test_warn_goes_on():
    result = run_program(KERNELS, args=["store"], env={"WARPSIM_HAZARDS": "warn"}, report=True).check()
    assert [h["kind"] for h in result.hazards] == ["uninitialized_shared"]


FILES = ["select", "video", "integer", "float", "convert", "tensor", "wmma", "atomics"]


@pytest.mark.parametrize("name", [FILES[0], *(pytest.param(name, marks=pytest.mark.long) for name in FILES[1:])])
def test_undefined_operands_change_no_result(name):
    """Every instruction form with undefined operands, which take the other way through the interpreter: the same bits."""
    settings = {"WARPSIM_TEST_SETTINGS": "WARPSIM_HAZARDS=warn WARPSIM_DISTRUST_MEMORY=1"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | settings
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long and not simulator_only"]
    done = subprocess.run(
        [*command, f"test_instructions_{name}.py"], cwd=HERE, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def lanes(body, **environment):
    """Runs one warp: in `body` %t is the lane, %o its output's address, and %r0 has been read from `tile`, which nobody
    wrote."""
    text = f""".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 p) {{
        .shared .align 16 .b8 tile[512];
        .reg .b32 %r<16>; .reg .b32 %t, %s; .reg .b64 %o, %w, %rd<8>; .reg .b16 %h<8>; .reg .pred %p<8>; .reg .f32 %f<8>;
        ld.param.u64 %o, [p];
        mov.u32 %t, %tid.x;
        mul.wide.u32 %w, %t, 4;
        add.u64 %o, %o, %w;
        mad.lo.u32 %s, %t, 4, tile;
        ld.shared.u32 %r0, [%s];
        {body}
        ret; }}"""
    return run_ptx(text, "test", 1, 32, [np.zeros(32, np.uint32)], report=True, env=environment)


# %r0 is undefined; what is stored is %r1.
PRODUCT = (  # of a B with an undefined column, the first: that of lanes 0 to 3, whose numbers of D %p1 says
    "mov.u32 %r2, 1; setp.lt.u32 %p1, %t, 4; @%p1 mov.u32 %r2, %r0; mov.u32 %r3, 0; mov.b32 %f5, 0; "
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r3,%r3}, {%r2}, {%f5,%f5,%f5,%f5}; "
    "and.b32 %r4, %t, 3; setp.eq.u32 %p1, %r4, 0; "
)
DEFINED = {
    "another column of a product": PRODUCT + "mov.b32 %r1, %f1; @%p1 mov.u32 %r1, 0;",
    "and with zero bits": "and.b32 %r1, %r0, 0;",
    "or with one bits": "or.b32 %r1, %r0, -1;",
    "xor with itself": "xor.b32 %r1, %r0, %r0;",
    "difference of itself": "sub.u32 %r1, %r0, %r0;",
    "sum less what was added": "add.u32 %r1, %r0, 5; sub.u32 %r1, %r1, %r0;",
    "sum of two less both": "ld.shared.u32 %r2, [tile]; add.u32 %r3, %r0, %r2; add.u32 %r3, %r3, %t; "
    "sub.u32 %r3, %r3, %r2; sub.u32 %r1, %r3, %r0;",
    "less itself through shared memory": "st.shared.u32 [%s], %r0; add.u32 %r2, %r0, 3; ld.shared.u32 %r3, [%s]; "
    "sub.u32 %r1, %r2, %r3;",
    "less itself from another lane": "shfl.sync.idx.b32 %r2, %r0, 3, 31, -1; add.u32 %r3, %r2, 9; sub.u32 %r1, %r3, %r2;",
    "register that nothing wrote less itself": "add.u32 %r1, %r9, 4; sub.u32 %r1, %r1, %r9;",
    "register that nothing wrote, stored, less itself": "st.shared.u32 [%s], %r9; ld.shared.u32 %r2, [%s]; "
    "add.u32 %r3, %r2, 4; sub.u32 %r1, %r3, %r2;",
    "negated and added": "neg.s32 %r2, %r0; add.s32 %r1, %r2, %r0;",
    "sum of 64 bits less what was added": "ld.shared.u64 %rd1, [tile]; add.u64 %rd2, %rd1, 7; "
    "sub.u64 %rd2, %rd2, %rd1; cvt.u32.u64 %r1, %rd2;",
    "low bits kept in a register": "or.b32 %r1, %r0, 0xffffff00; and.b32 %r1, %r1, 0xffffff00;",
    "shifted out": "shl.b32 %r1, %r0, 32;",
    "shifted out, upper bits": "and.b32 %r1, %r0, 0xff; shr.u32 %r1, %r1, 8;",
    "field of the defined bits": "and.b32 %r1, %r0, 0xff; bfe.u32 %r1, %r1, 8, 8;",
    "field replaced": "mov.u32 %r2, 5; bfi.b32 %r1, %r2, %r0, 0, 16; and.b32 %r1, %r1, 0xffff;",
    "bytes permuted": "mov.u32 %r2, 7; prmt.b32 %r1, %r0, %r2, 0x7654;",
    "not selected": "setp.lt.u32 %p1, %t, 99; selp.b32 %r1, 3, %r0, %p1;",
    "lop3 that ignores it": "lop3.b32 %r1, %r0, 1, 2, 0xcc;",
    "converted from the defined half": "and.b32 %r1, %r0, 0xffff0000; shr.u32 %r1, %r1, 16; "
    "and.b32 %r2, %r0, 0xffff0000; cvt.u32.u16 %r1, %r2;",
    "half of a pair": "mov.b32 {%h1, %h2}, %r0; mov.u16 %h1, 4; mov.b32 %r1, {%h1, %h1};",
    "predicate that decides alone": "setp.lt.u32 %p1, %t, 99; setp.lt.or.u32 %p2, %r0, 5, %p1; selp.b32 %r1, 1, 2, %p2;",
    "any, with one that is true": "setp.ne.u32 %p1, %r0, 7; setp.eq.u32 %p2, %t, 3; or.pred %p2, %p2, %p2; "
    "setp.lt.u32 %p3, %t, 4; and.pred %p4, %p1, %p3; or.pred %p4, %p4, %p2; "
    "vote.sync.any.pred %p5, %p4, -1; selp.b32 %r1, 1, 2, %p5;",
    "shuffled away": "setp.lt.u32 %p1, %t, 16; mov.u32 %r1, 9; @%p1 mov.u32 %r1, %r0; "
    "shfl.sync.idx.b32 %r1, %r1, 20, 31, -1;",
    "overwritten": "mov.u32 %r1, %r0; mov.u32 %r1, 1;",
    "exchanged": "atom.shared.exch.b32 %r2, [%s], 5; ld.shared.u32 %r1, [%s];",
}
UNDEFINED = {
    "column of a product": PRODUCT + "mov.u32 %r1, 0; @%p1 mov.b32 %r1, %f1;",
    "carry of a product": "add.cc.u32 %r2, %r0, 1; madc.lo.u32 %r1, %t, 2, 0;",
    "moved": "mov.u32 %r1, %r0;",
    "and with one bits": "and.b32 %r1, %r0, 1;",
    "carried upwards": "and.b32 %r1, %r0, 1; add.u32 %r1, %r1, 2; and.b32 %r1, %r1, 4;",
    "carry": "add.cc.u32 %r2, %r0, 1; addc.u32 %r1, %t, 0;",
    "shifted": "shl.b32 %r1, %r0, 31;",
    "shifted by": "shl.b32 %r1, %t, %r0;",
    "sign": "shr.s32 %r1, %r0, 31;",
    "sign of a byte": "mov.u32 %r1, 7; bfi.b32 %r2, %r0, %r1, 7, 1; cvt.s32.s8 %r1, %r2; shr.u32 %r1, %r1, 31;",
    "difference of two": "ld.shared.u32 %r2, [%s+128]; sub.u32 %r1, %r0, %r2;",
    "difference of a vector's elements": "ld.shared.v2.u32 {%r2, %r3}, [tile]; sub.u32 %r1, %r2, %r3;",
    "difference of two registers that nothing wrote": "sub.u32 %r1, %r9, %r10;",
    "twice less once": "add.u32 %r1, %r0, %r0; sub.u32 %r1, %r1, %r0;",
    "product less a factor": "mul.lo.u32 %r1, %r0, 3; sub.u32 %r1, %r1, %r0;",
    "less itself with another byte": "st.shared.u32 [%s], %r0; cvt.u16.u32 %h1, %t; st.shared.u8 [%s], %h1; "
    "ld.shared.u32 %r2, [%s]; sub.u32 %r1, %r2, %r0;",
    "selected": "setp.lt.u32 %p1, %t, 99; selp.b32 %r1, %r0, 3, %p1;",
    "selects": "setp.lt.u32 %p1, %r0, 99; selp.b32 %r1, 1, 3, %p1;",
    "guards a move": "setp.lt.u32 %p1, %r0, 99; mov.u32 %r1, 4; @%p1 mov.u32 %r1, 5;",
    "shuffled": "setp.eq.u32 %p1, %t, 20; mov.u32 %r1, 9; @%p1 mov.u32 %r1, %r0; shfl.sync.idx.b32 %r1, %r1, 20, 31, -1;",
    "permuted": "prmt.b32 %r1, %t, %r0, 0x4321;",
    "float": "mov.b32 %f1, %r0; mul.f32 %f1, %f1, 0f00000000; mov.b32 %r1, %f1;",
    "half of a pair": "mov.b32 {%h1, %h2}, %r0; mov.u16 %h1, 4; mov.b32 %r1, {%h1, %h2}; add.f16x2 %r1, %r1, %r1;",
    "64 bits": "cvt.u64.u32 %rd1, %r0; shl.b64 %rd1, %rd1, 32; mov.b64 {%r2, %r1}, %rd1;",
    "wide product": "mul.wide.u32 %rd1, %r0, 3; cvt.u32.u64 %r1, %rd1;",
    "all, with none that is false": "setp.ne.u32 %p1, %r0, 7; vote.sync.all.pred %p5, %p1, -1; selp.b32 %r1, 1, 2, %p5;",
    "reduced": "redux.sync.add.u32 %r1, %r0, -1;",
    "matched": "match.any.sync.b32 %r1, %r0, -1;",
    "through shared memory": "st.shared.u32 [%s+128], %r0; ld.shared.u32 %r1, [%s+128];",
    "added up in shared memory": "red.shared.add.u32 [%s], 5; ld.shared.u32 %r1, [%s];",
    "register that nothing wrote": "mov.u32 %r1, %r9;",
    "unknown to the table of rules": "popc.b32 %r1, %r0;",
}


@pytest.mark.parametrize("name", DEFINED)
def test_what_does_not_depend_on_an_undefined_value_is_defined(name):
    assert lanes(DEFINED[name] + " st.global.u32 [%o], %r1;").check().hazards == []


@pytest.mark.parametrize("name", UNDEFINED)
def test_what_depends_on_an_undefined_value_is_undefined(name):
    result = lanes(UNDEFINED[name] + " st.global.u32 [%o], %r1;")
    assert not result.ok and result.hazards[0]["kind"].startswith("uninitialized_"), result.hazards
    assert "is stored to global memory" in result.hazards[0]["message"]


def test_what_an_atomic_gives_back_is_defined_whatever_it_was_given():
    body = "mov.u32 %r1, %r9;\natom.global.exch.b32 %r1, [%o], %r0;\nst.global.u32 [%o], %r1;"
    (hazard,) = lanes(body, WARPSIM_HAZARDS="warn").check().hazards
    assert "stored" not in hazard["message"]
