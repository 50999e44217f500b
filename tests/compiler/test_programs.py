"""Recorded IR of small kernels: its PTX does on the simulator what nvcc's does, to the last bit, and ptxas takes it.

Each file of programs/ has its IR in recorded/, as clang's WebAssembly wrote it (record.py). So no clang is needed here.
"""

import re

import pytest
import run_programs
from run_programs import HERE, PROGRAMS, ir_to_ptx, nvcc_ptx


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_nvccs_does(name, tmp_path):
    ptx = ir_to_ptx((HERE / f"recorded/{name}.ll").read_text())
    assert not run_programs.ptxas_refuses(ptx, tmp_path)
    theirs = nvcc_ptx(HERE / f"programs/{name}.cu")
    for words in run_programs.inputs():
        ours, wanted = run_programs.run(ptx, words), run_programs.run(theirs, words)
        wrong = [(at // 16, at % 16) for at in range(len(wanted)) if ours[at] != wanted[at]]
        assert not wrong, f"threads and words {wrong[:5]}"


def test_a_threads_array_is_local_memory_whatever_the_index():
    """An access that names no space counts as one that may be to global memory."""
    ptx = ir_to_ptx((HERE / "recorded/memory.ll").read_text())
    assert len(re.findall(r"ld\.local\.b32 %r\d+, \[%rd\d+\]", ptx)) == 2
    assert len(re.findall(r"st\.local\.b32 \[%rd\d+\]", ptx)) == 1 and "cvta.local" not in ptx


def test_lines_lead_to_the_source_and_through_inlined_calls():
    """control.cu is recorded with lines: the loop of greatest_divisor() is charged to the call in the kernel."""
    ptx = ir_to_ptx((HERE / "recorded/control.ll").read_text())
    source = (HERE / "programs/control.cu").read_text().splitlines()
    remainder = 1 + next(at for at, line in enumerate(source) if "a % b" in line)
    call = 1 + next(at for at, line in enumerate(source) if "greatest_divisor(a >>" in line)
    file = re.search(r'\.file (\d+) "[^"]*/control\.cu"', ptx)[1]
    place = rf"\.loc {file} {remainder} \d+, function_name (\S+), inlined_at {file} {call} \d+\n"
    label = re.search(place + r"(?:.*\n){0,3}rem\.u32", ptx)[1]
    name = re.search(rf"^{re.escape(label)}:\n((?:\.b8 [\d,]+\n)+)", ptx, re.M)[1]
    codes = [int(number) for number in re.findall(r"\d+", name.replace(".b8", ""))]
    assert bytes(codes) == b"greatest_divisor\0"
    assert re.search(rf"\.loc {file} {call} \d+\n", ptx)


REPLACED = """target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr addrspace(1) %out, i32 %count) #0 {
entry:
  %first = tail call i32 asm sideeffect "first $0;", "=r"()
  %none = icmp slt i32 %count, 1
  br i1 %none, label %exit, label %body
body:
  %value = phi i32 [ %first, %entry ], [ %next, %body ]
  %i = phi i32 [ 0, %entry ], [ %more, %body ]
  tail call void asm sideeffect "reads $0;", "r"(i32 %value)
  %next = tail call i32 asm sideeffect "writes $0;", "=r"()
  %more = add i32 %i, 1
  %goes_on = icmp slt i32 %more, %count
  br i1 %goes_on, label %body, label %exit
exit:
  %last = phi i32 [ %first, %entry ], [ %next, %body ]
  store i32 %last, ptr addrspace(1) %out, align 4
  ret void
}
attributes #0 = { "target-cpu"="sm_90a" "target-features"="+ptx87" }
"""


def test_a_variable_that_a_loop_replaces_has_one_register():
    """Also where its last value is asked for after the loop: what is written while wgmma reads the value before is
    written to the register that it reads."""
    ptx = ir_to_ptx(REPLACED)
    registers = {word: re.search(rf"{word} (%r\d+);", ptx)[1] for word in ("first", "reads", "writes")}
    assert len(set(registers.values())) == 1, ptx
