"""What a stage does not support it refuses, with a message that names the limit and the value given; what it says
that it supports it computes; and it writes nothing but O."""

from functools import cache

import pytest
from calls import Call, verified
from refused import INVALID, OK, TOO_OLD, UNSUPPORTED, answers, check_refusal

from flashladder.core.abi import DTYPES
from flashladder.core.problem import Problem
from flashladder.ladder.run import describe, run_problem
from flashladder.running.job import StageError
from flashladder.tuning import instances

SCALES = (0.0, -0.0, -0.5)


def patches_of(stage, problem: Problem) -> dict[str, dict]:
    """What of the problem's parameters each test below changes, by its own words."""
    bytes_ = problem.dtype == "e4m3"
    found = {"as it is": {}} | {what: patch for what, (patch, _) in WRONG.items()}
    found |= {"scales": {"K_scales": 0 if bytes_ else 16}, "no float for V_scales": {"V_scales": 6}}
    found |= {"another type": {"dtype": 1 if bytes_ else 2}, "far too long": {"B": 4, "Nq": 2**30, "Nkv": 2**30}}
    found |= {f"scale {scale:g}": {"scale": scale} for scale in SCALES}
    found |= {"log_sum_exp": {"log_sum_exp": 6 if describe(stage)["supports_log_sum_exp"] else 16}}
    found |= {"a configuration 'fast'": {"configuration": "fast"}, "too many keys": {"Nkv": 2**30 + 64}}
    launch = stage.data["launch"][-1]
    if "Nq" in launch["grid"][1] + launch["grid"][2]:
        found |= {"too many queries": {"Nq": 65535 * launch["Br"] + 1}}
    return found | ({"a workspace of 16 bytes": {"workspace_bytes": 16}} if "workspace" in stage.data else {})


@cache
def answered(stage, problem: Problem) -> dict[str, dict]:
    """What the stage answers to the problem with each of these patches."""
    return answers(stage, problem, patches_of(stage, problem))


@pytest.fixture
def small(stage, tile) -> Problem:
    return stage.own(Problem(Hq=2, Nq=tile[0], Nkv=tile[1], d_head=64))


def test_only_the_output_is_written(stage, small):
    answer = answered(stage, small)["as it is"]
    assert answer["code"] == OK, f"stage {stage.id} refused {small}: {answer['message']}"
    wrong = ", ".join(answer["touched"])
    assert not wrong, f"stage {stage.id}, {small}: wrote into its inputs, or before or behind the tensor: {wrong}"


WRONG = {
    "null pointer": ({"Q.data": 0}, "Q is a null pointer"),
    "misaligned": ({"K.data": {"add": 8}}, "K must be 16-byte aligned"),
    "odd stride": ({"V.stride_row": {"add": 4}}, "V's row stride must be a non-negative multiple of {piece} elements"),
    "negative stride": ({"O.stride_head": -64}, "O's head stride must be a non-negative multiple of 8"),
    "no batches": ({"B": 0}, "B must be positive; it is 0"),
    "dtype": ({"dtype": 7}, "dtype must be 0 (fp16), 1 (bf16) or 2 (e4m3); it is 7"),
    "causal": ({"causal": 3}, "causal must be 0 or 1; it is 3"),
    "heads": ({"Hq": 3}, "Hq must be a multiple of Hkv; they are 3 and 2"),
    "scale": ({"scale": float("inf")}, "scale must be finite; it is inf"),
}


def test_wrong_arguments(stage, small):
    piece = 16 if small.dtype == "e4m3" else 8  # elements of Q, K and V in 16 bytes
    for what, (_, words) in WRONG.items():
        words, answer = words.format(piece=piece), answered(stage, small)[what]
        check_refusal(stage, f"a wrong argument ({what})", answer, INVALID, words)


def test_types(stage, small):
    """e4m3 goes with scales, the other types without; a stage takes the one or the others."""
    got = answered(stage, small)
    if small.dtype == "e4m3":
        wrong = "K_scales is a null pointer; e4m3 needs a scale for each head"
        other = f"stage '{stage.title}' takes e4m3 only; dtype is 1 (bf16)"
    else:
        wrong = f"K_scales must be null: scales go with e4m3 alone; dtype is {DTYPES[small.dtype]}"
        other = f"stage '{stage.title}' takes fp16 and bf16; dtype is 2 (e4m3)"
    check_refusal(stage, "scales", got["scales"], INVALID, wrong)
    no_float = got["no float for V_scales"]
    assert no_float["code"] == INVALID, f"stage {stage.id} takes a pointer to no float for V_scales"
    check_refusal(stage, "another type", got["another type"], UNSUPPORTED, other)


def refused(stage, problem: Problem, words: str) -> None:
    """The stage says that the problem is beyond its limits, with these words."""
    problem = stage.own(problem)
    try:
        run_problem(stage, problem)
    except StageError as error:
        check_refusal(stage, str(problem), {"code": error.code, "message": str(error)}, UNSUPPORTED, words)
    else:
        pytest.fail(f"stage {stage.id} does not refuse {problem}: its message should say '{words}'")


def test_more_scores_than_size_t_counts(stage, small):
    answer = answered(stage, small)["far too long"]
    words = "B * Hq * Nq * Nkv must be at most 2^60; it is 9.22e+18"
    check_refusal(stage, "far too long sequences", answer, UNSUPPORTED, words)


def test_head_dim(stage, tile):
    refused(stage, Problem(Nq=tile[0], Nkv=tile[1], d_head=96), "supports d_head 64 and 128; it is 96")


# What flash_describe() says is what the stage does: where it names a limit it refuses what is beyond, and where it
# names none it gives the right result.


def test_lengths(stage, tile):
    Br, Bc = tile
    limits = describe(stage)
    for name, length in (("Nq", Br + 8), ("Nkv", Bc - 1)):
        problem = Problem(Hq=1, d_head=64, **({"Nq": Br, "Nkv": Bc} | {name: length}))
        multiple = limits[f"multiple_{name}"]
        if stage.slug == instances.STAGE:  # described is its choice; what no instance's tiles divide the first refuses
            built = [one for one in instances.configurations_built() if (one.dtype, one.d_head) == ("bf16", 64)]
            multiple = {"Nq": built[0].Br, "Nkv": built[0].Bc}[name]
        if length % multiple:
            refused(stage, problem, f"needs {name} to be a multiple of {multiple}; it is {length}")
        else:
            verified(stage, Call(problem, note=f"flash_describe() announces {name} as a multiple of {multiple}"))


def test_causal(stage, tile):
    Br, Bc = tile
    note = "flash_describe() announces causal"
    problems = [Problem(Hq=1, Nq=2 * Br, Nkv=rows, d_head=64, causal=True) for rows in (2 * Br, 2 * Br + 3 * Bc)]
    if describe(stage)["supports_causal"]:
        verified(stage, *(Call(problem, note=note) for problem in problems))
    else:
        refused(stage, problems[0], "no causal masking")


def test_scale_that_is_not_positive(stage, small):
    """Refused where flash_describe() announces it; else taken (test_scales verifies a negative one)."""
    for scale in map("{:g}".format, SCALES):
        answer = answered(stage, small)[f"scale {scale}"]
        if describe(stage)["positive_scale"]:
            words = f"needs a scale above 0; it is {scale}"
            check_refusal(stage, f"scale {scale}", answer, UNSUPPORTED, words)
        else:
            assert answer["code"] == OK, f"stage {stage.id} refused scale {scale}: {answer['message']}"


def test_grouped_heads(stage, tile):
    Br, Bc = tile
    problems = [Problem(Nq=Br, Nkv=Bc, Hq=4, Hkv=heads, d_head=64) for heads in (2, 1)]
    if describe(stage)["supports_gqa"]:
        verified(stage, *(Call(problem, note="flash_describe() announces grouped heads") for problem in problems))
    else:
        refused(stage, problems[0], "Hq is 4 and Hkv is 2")


def test_log_sum_exp(stage, small):
    """A stage that does not write it says so; one that does refuses a pointer to no float. (What it writes, every
    test here that verifies a result looks at.)"""
    if describe(stage)["supports_log_sum_exp"]:
        wanted, words = INVALID, "log_sum_exp must be 4-byte aligned; its address is 0x6"
    else:
        wanted, words = UNSUPPORTED, f"stage '{stage.title}' does not write the log-sum-exp; log_sum_exp must be null"
    answer = answered(stage, small)["log_sum_exp"]
    check_refusal(stage, "a wrong argument (log_sum_exp)", answer, wanted, words)


def test_configuration(stage, small):
    """One that is not built in is refused, with a list of those that are; a stage with one kernel takes none."""
    own = describe(stage, small)["configuration"]
    words = "has no instance 'fast' for bf16 with d_head 64. Those built:\n    " if own else "has one kernel and no"
    answer = answered(stage, small)["a configuration 'fast'"]
    check_refusal(stage, "a configuration 'fast'", answer, UNSUPPORTED, words)
    check_refusal(stage, "a configuration 'fast'", answer, UNSUPPORTED, own or "")


def test_lengths_beyond_int(stage, small):
    """Far more rows than any memory has: sums of two lengths stay within int, and a grid within its limits."""
    answer = answered(stage, small)["too many keys"]
    words = f"Nkv must be at most 2^30; it is {2**30 + 64}"
    check_refusal(stage, "too many keys", answer, UNSUPPORTED, words)


def test_grid_of_query_tiles(stage, small):
    """Where the query tiles lie along the grid's z, which ends at 65,535, more are refused before the launch is."""
    x, y, z = stage.data["launch"][-1]["grid"]
    if "Nq" not in y + z:
        pytest.skip("the query tiles lie along the grid's x, which has room for all lengths")
    Br = stage.data["launch"][-1]["Br"]
    answer = answered(stage, small)["too many queries"]
    words = f"needs Nq to be at most {65535 * Br}; it is {65535 * Br + 1}"
    check_refusal(stage, "too many queries", answer, UNSUPPORTED, words)


def test_workspace(stage, small):
    if "workspace" not in stage.data:
        pytest.skip("this stage needs no workspace")
    answer = answered(stage, small)["a workspace of 16 bytes"]
    for words in ("needs a workspace of", "16 given"):
        check_refusal(stage, "a workspace of 16 bytes", answer, INVALID, words)


def test_old_device(stage, small):
    """A simulated device below the stage's minimum: 7.5 for the stages that need 8.0 or more."""
    if stage.min_compute <= 75:
        pytest.skip("this stage runs on every simulated device")
    with pytest.raises(StageError) as caught:
        run_problem(stage, small, device="sim", environment={"WARPSIM_DEVICE": "sm_75"})
    words = f"needs compute capability {stage.min_compute / 10} or newer; this device has 7.5"
    words += " (the simulator runs it without WARPSIM_DEVICE)"
    answer = {"code": caught.value.code, "message": str(caught.value)}
    check_refusal(stage, "a device of compute capability 7.5", answer, TOO_OLD, words)
