"""wgmma's warpgroups, and setmaxnreg: who must come, and what registers there are."""

import numpy as np
import pytest
from cudart import run_ptx
from wgmma_kernels import COMMIT, FENCE, HEAD, WAIT, Tile, kernel, mma_text

pytestmark = pytest.mark.simulator_only


def run(body, threads=128, before="", directives=""):
    text = kernel("\n".join([FENCE, body, COMMIT, WAIT]), 8, "f32", threads=threads)
    text = text.replace("bar.sync 0;", "bar.sync 0;" + before).replace(") {\n", ") " + directives + "{\n", 1)
    arguments = [
        np.zeros((6, 128), np.uint32), np.zeros((6, 128), np.uint32), np.zeros(49152, np.uint8),
        np.uint64(Tile(1024, 128).descriptor(64, 2)), np.uint64(Tile(16384, 128).descriptor(8, 2)), np.uint32(1),
    ]  # fmt: skip
    return run_ptx(text, "test", 1, threads, arguments, report=True)


MMA = mma_text(8, "f32", "bf16", "bf16")


def hazard(result, kind, *words):
    assert not result.ok
    found = result.hazards[0]
    assert found["kind"] == kind, found
    for word in words:
        assert word in found["message"], found["message"]


def test_two_warpgroups():
    assert run(MMA, 256).ok


def test_part_of_a_warpgroup():
    hazard(run(MMA, 96), "missing_lanes", "warps 0 to 3: the block has 96 threads")
    hazard(run(MMA, 192), "missing_lanes", "warps 4 to 7: the block has 192 threads")


def test_threads_that_have_exited():
    before = ".reg .pred %q; setp.ge.u32 %q, %t, 100; @%q exit;"
    hazard(run(MMA, 128, before), "missing_lanes", "or")


def test_a_branch_that_some_threads_do_not_take():
    before = ".reg .pred %q; setp.lt.u32 %q, %t, 100; @!%q bra after;"
    hazard(run(MMA + " after: bar.sync 1;", 128, before), "missing_lanes", "no thread of the block can go on",
           "waits for all lanes of warp 3: all 128 threads")  # fmt: skip


def test_warps_at_different_instructions():
    before = ".reg .pred %q; setp.lt.u32 %q, %t, 64; @%q bra other;"
    body = f"{MMA} bra done; other: {MMA} done:"
    hazard(run(body, 128, before), "missing_lanes", "must execute the same instruction", "wgmma.mma_async")


def test_operands_that_differ_between_threads():
    before = "{ .reg .b64 %x8; cvt.u64.u32 %x8, %t; add.u64 %db, %db, %x8; }"
    hazard(run(MMA, 128, before), "wgmma", "another descriptor of B in thread 1 than in thread 0")
    before = "setp.lt.u32 %p, %t, 64;"
    hazard(run(MMA, 128, before), "wgmma", "scale-d true in 64 of its 128 threads")


@pytest.mark.parametrize(
    ("add", "kind", "words"),
    [
        (3 << 30, "out_of_bounds", "leads out of the block's 49152 bytes of shared memory"),
        (1, "misaligned", "begins 16 bytes off"),
        (1 << 49, "misaligned", "its base offset 1 says something else"),
    ],
)
def test_descriptors(add, kind, words):
    add = {3 << 30: 2048}.get(add, add)
    hazard(run(MMA, 128, f"add.u64 %db, %db, {add};"), kind, "descriptor of B", words)


def registers(body, threads=384, directives=".maxntid 384 .minnctapersm 1", head=HEAD, env=None):
    text = f"""{head}.visible .entry test() {directives} {{ .reg .b32 %t; .reg .pred %p, %q;
        mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 128; {body} ret; }}"""
    return run_ptx(text, "test", 1, threads, [], report=True, env=env or {})


INC = "setmaxnreg.inc.sync.aligned.u32 {};"
DEC = "setmaxnreg.dec.sync.aligned.u32 {};"


def test_registers_move_between_warpgroups():
    """168 for each of 384 threads: 40 + 232 + 232 are three times 168, and consumers wait for the producer."""
    body = f"@%p bra producer; {INC.format(232)} bra done; producer: {DEC.format(40)} done:"
    assert registers(body).ok
    body = f"@%p bra producer; {INC.format(240)} bra done; producer: {DEC.format(40)} done:"
    hazard(registers(body), "deadlock", "setmaxnreg.inc", "waits for registers: it needs 240 for each of 128 threads, "
           "which have 168, and the block's pool of 64512 has 7168 left")  # fmt: skip


def test_registers_in_the_wrong_direction():
    hazard(registers(INC.format(160)), "illegal_instruction", "a thread has 168: 160 is fewer")
    hazard(registers(DEC.format(176)), "illegal_instruction", "a thread has 168: 176 is more")


LEFT_OUT = "setmaxnreg ignored; unable to determine register count at entry"


@pytest.mark.parametrize("directives", ["", ".maxntid 384", ".reqntid 384", ".minnctapersm 1"])
def test_setmaxnreg_that_ptxas_leaves_out_is_a_note(directives):
    """Only both numbers of the launch bounds, or .maxnreg, tell ptxas how many registers there are at the start."""
    result = registers(INC.format(240), directives=directives)
    assert result.ok and result.hazards == []
    (note,) = result.report["launches"][0]["notes"]
    assert note["kind"] == "setmaxnreg" and LEFT_OUT in note["message"] and "__launch_bounds__" in note["message"]
    strict = registers(INC.format(240), directives=directives, env={"WARPSIM_HAZARDS": "strict"})
    hazard(strict, "setmaxnreg", "does nothing: ptxas leaves it out", LEFT_OUT)


@pytest.mark.parametrize("directives", [".maxntid 384 .minnctapersm 1", ".reqntid 384 .minnctapersm 1", ".maxnreg 168"])
def test_setmaxnreg_that_ptxas_takes(directives):
    """(168 is the number that each of these gives a thread.)"""
    result = registers(DEC.format(40), directives=directives, env={"WARPSIM_HAZARDS": "strict"})
    assert result.ok and result.report["launches"][0]["notes"] == []


def test_setmaxnreg_with_a_debugger_or_calls_through_pointers():
    for head, body, words in (
        (HEAD.replace("sm_90a", "sm_90a, debug"), "", "to allow debugging"),
        (
            HEAD + ".visible .func f() { ret; }\n",
            ".reg .b64 %f; mov.u64 %f, f; { prototype: .callprototype _ (); call %f, (), prototype; }",
            "to maintain compatibility into 'extern' call",
        ),
    ):
        result = registers(DEC.format(40) + body, head=head)
        assert result.ok and words in result.report["launches"][0]["notes"][0]["message"]


@pytest.mark.parametrize("count", [16, 28, 264])
def test_counts_of_registers_that_do_not_exist(count):
    result = registers(INC.format(count))
    assert not result.ok and "a multiple of 8 from 24 to 256" in result.stderr
