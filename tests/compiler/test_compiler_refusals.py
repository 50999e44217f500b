"""What the compiler does not do it names, with the line of the source; and it never crashes on damaged IR."""

import random

import pytest
from run_programs import HERE, translate

HEAD = """target triple = "nvptx64-nvidia-cuda"
@table = addrspace(1) global ptr @f
declare void @f(ptr)
declare i32 @printf(ptr, ...)
declare float @llvm.sin.f32(float)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define ptx_kernel void @k(ptr %p, i32 %n, float %x, i64 %m) #0 !dbg !1 {
  BODY, !dbg !3
  ret void, !dbg !3
}
attributes #0 = { "target-cpu"="sm_90a" "target-features"="+ptx87" }
!1 = distinct !DISubprogram(name: "k", file: !2, line: 1)
!2 = !DIFile(filename: "kernel.cu", directory: "/there")
!3 = !DILocation(line: 12, column: 5, scope: !1)
"""

REFUSED = {
    "%a = zext i32 %n to i128": "an integer of 128 bits",
    "%a = frem float %x, 2.0": "the remainder of floating-point numbers",
    "%a = call float @llvm.sin.f32(float %x)": "the function llvm.sin.f32",
    "call void %p(i32 %n)": "a call through a pointer",
    "%a = call i32 (ptr, ...) @printf(ptr %p, i32 %n)": "any number of arguments: printf",
    "store ptr @f, ptr %p, align 8": "the address of the function f",
    "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 %m, i1 false)": "a copy of memory of a size",
    "%a = atomicrmw fmax ptr %p, float %x monotonic, align 4": "atomicrmw fmax of float",
    '%a = atomicrmw add ptr %p, i32 %n syncscope("wavefront") monotonic, align 4': "the scope 'wavefront'",
    '%a = call i32 asm "mov.b32 $0, $1;", "=x,r"(i32 %n)': "the constraint '=x'",
    '%a = call i32 asm "mov.b32 $0, $7;", "=r,r"(i32 %n)': "an operand that is not understood",
    '%a = call i32 asm "mov.b32 $0, $1;", "=r,r"(float %x)': "an operand of type float for 'r'",
    "%a = load i32, ptr %p, align 2": "a load that is not aligned",
    "%a = load i24, ptr %p, align 4": "a load of i24",
}


@pytest.mark.parametrize("body", REFUSED)
def test_it_is_refused_with_its_line(body):
    done = translate(HEAD.replace("@table = addrspace(1) global ptr @f\n", "").replace("BODY", body))
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("error: /there/kernel.cu:12: ") and REFUSED[body] in done.stderr


@pytest.mark.parametrize(
    "body, words",
    (
        ("indirectbr ptr %p, []", "line 8 of the IR: the instruction 'indirectbr' is not supported"),
        ("%a = va_arg ptr %p, i32", "line 8 of the IR: the instruction 'va_arg' is not supported"),
        ("%a = add i32 %n, 1x", "line 8 of the IR: '1x' is no i32"),
        ("%a = add i32 %n, 1", "a variable whose first value is an address"),
    ),
)
def test_what_is_no_ir_or_has_no_line_is_refused_too(body, words):
    done = translate(HEAD.replace("BODY", body))
    assert done.returncode == 1 and words in done.stderr


@pytest.mark.parametrize("name", ("control", "calls", "assembly"))
def test_damaged_ir_is_refused_or_compiled(name):
    """Lines left out, doubled or cut: an error in words, or PTX; no crash."""
    lines = (HERE / f"recorded/{name}.ll").read_text().splitlines()
    draw = random.Random(name)
    for _ in range(40):
        damaged = lines.copy()
        at = draw.randrange(len(lines))
        cut = draw.randrange(len(lines[at]) + 1)
        damaged[at : at + 1] = draw.choice(([], [lines[at]] * 2, [lines[at][:cut]], [lines[at][cut:]]))
        done = translate("\n".join(damaged))
        assert done.returncode in (0, 1), (at, cut, lines[at])
        assert done.returncode == 0 or done.stderr.startswith("error: "), done.stderr


CLUSTER = """@.str = private unnamed_addr constant [21 x i8] c"cluster_dims SIZE\\00", section "llvm.metadata"
@.str1 = private unnamed_addr constant [10 x i8] c"kernel.cu\\00", section "llvm.metadata"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr }
    { ptr @k, ptr @.str, ptr @.str1, i32 217, ptr null }], section "llvm.metadata"
"""


def test_the_size_of_a_cluster_is_in_an_annotation():
    """clang drops its own attribute of that name; a size that is a name is no longer known there."""
    head = HEAD.replace("@table = addrspace(1) global ptr @f\n", CLUSTER).replace("BODY", "%a = add i32 %n, 1")
    done = translate(head.replace("SIZE", "1, 2, 1"))
    assert done.returncode == 0 and "\n.explicitcluster\n.reqnctapercluster 1, 2, 1\n" in done.stdout, done.stderr
    done = translate(head.replace("[21 x", "[18 x").replace("SIZE", "size"))
    assert done.returncode == 1 and "__cluster_dims__(size)" in done.stderr
