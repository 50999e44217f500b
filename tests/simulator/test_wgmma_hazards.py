"""Faults with wgmma are named with kind, line and words, the mended kernels are clean; what ptxas repairs is a note."""

import re
from pathlib import Path

import pytest
from cudart import run_program
from fault_marks import HOPPER_A, cases, check_fault, check_mended, marks

PROGRAM = Path(__file__).parent / "programs" / "wgmma" / "faults.cu"
MANY_READS, FEW_LANES = PROGRAM.with_name("many_reads.cu"), PROGRAM.with_name("few_lanes.cu")

pytestmark = pytest.mark.simulator_only
NOTES = re.findall(r"//[?] (\w+) [a-z_]+:", PROGRAM.read_text())  # hazards with WARPSIM_HAZARDS=strict alone
STRICT = {"WARPSIM_HAZARDS": "strict"}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", cases(PROGRAM))
def test_fault_and_mended_twin(name, seed):
    check_twins(PROGRAM, name, seed)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_read_is_not_forgotten_behind_many_others(seed):
    check_twins(MANY_READS, "refilled_after_many_reads", seed)


@pytest.mark.parametrize("name", ["one_warp_does_not_fence", "operand_overwritten_by_one_lane"])
def test_what_a_few_threads_do_wrong(name):
    check_twins(FEW_LANES, name, 0)


def check_twins(program, name, seed):
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    strict = env | STRICT
    hazard, lines = check_fault(program, name, strict if name in NOTES else env, HOPPER_A)
    for line in lines if name != "threads_missing" else ():
        assert f"{program.name}:{line}" in hazard["message"], hazard["message"]
    assert check_mended(program, name, strict, HOPPER_A)[0]["notes"] == []


@pytest.mark.parametrize("name", NOTES)
def test_what_ptxas_repairs_is_a_note(name):
    result = run_program(PROGRAM, [name, 0], report=True, architecture=HOPPER_A).check()
    kinds, words, lines = marks(PROGRAM, name)
    note = result.report["launches"][0]["notes"][0]
    assert result.hazards == [] and note["kind"] in kinds and note["line"] in lines
    assert any(word in note["message"] for word in words[0])
    assert "warpsim: note:" in result.stderr


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 3, 7])
def test_correct_kernels_are_clean_and_counted(seed):
    program = PROGRAM.with_name("pipelines.cu")
    env = STRICT | ({"WARPSIM_SCHEDULE": seed} if seed else {})
    result = run_program(program, env=env, report=True, architecture=HOPPER_A)
    assert result.check().stdout == "OK\n" and result.hazards == []
    for launch in result.report["launches"]:
        assert launch["notes"] == []
        # 64 rows of A and 8 of B, of 32 bytes: 18 times 128 bytes.
        assert launch["wgmma"] == {"m64n8k16.f32.bf16.bf16": {"count": 6, "wavefronts": 6 * 18}}
        assert sum(line.get("wgmma_wavefronts", 0) for line in launch["lines"]) == 6 * 18
        assert launch["instructions"]["by_class"]["tensor"] == 4 * 6, "one for each warp"


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 5])
def test_a_matrix_product_is_right_and_clean(seed):
    """512 x 512 x 512, by TMA and two consuming warpgroups."""
    env = STRICT | ({"WARPSIM_SCHEDULE": seed} if seed else {})
    result = run_program(PROGRAM.with_name("gemm.cu"), env=env, report=True, architecture=HOPPER_A)
    assert result.check().stdout == "OK\n" and result.hazards == []
    (launch,) = result.report["launches"]
    # 16 blocks, 8 steps of 4, two warpgroups; each reads 64 rows of A and 128 of B, of 32 bytes.
    assert launch["notes"] == []
    assert launch["wgmma"] == {"m64n128k16.f32.bf16.bf16": {"count": 1024, "wavefronts": 1024 * 48}}
    assert launch["tensor_copies"]["load"]["bytes"] == 16 * 8 * 2 * 128 * 128


@pytest.mark.parametrize("offset", [128, 384, 896])
def test_boxes_need_not_begin_where_the_swizzle_does(offset):
    """TMA and wgmma swizzle by the address both. (Of tiles that threads have written: test_wgmma.py, base offsets.)"""
    result = run_program(PROGRAM.with_name("gemm.cu"), [offset], env=STRICT, report=True, architecture=HOPPER_A)
    assert result.check().stdout == "OK\n" and result.hazards == []
    assert result.report["launches"][0]["notes"] == []
