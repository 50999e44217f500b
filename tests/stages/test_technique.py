"""Right is not enough: the simulator's counters show that a stage's technique is used (stage.toml's `[[expected]]`)."""

import pytest
from chosen import chosen_stages

from flashladder.commands import mutants
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import place, stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import kernels, stages, technique
from flashladder.ladder.run import run_problem
from flashladder.measuring import profile


@pytest.mark.parametrize("d_head, dtype", ((128, "bf16"), (64, "fp16")), ids=("128-bf16", "64-fp16"))
def test_the_technique_is_used(stage, d_head, dtype):
    found = technique.judge(stage, d_head=d_head, dtype=dtype)
    assert not found, f"stage {stage.id} is right, but {'; '.join(found)}"


@pytest.mark.long
def test_larger_problems(stage, tile):
    """More batches, heads and tiles, and the other layout: expressions hold for all of them."""
    Br, Bc = tile
    for problem in (
        Problem(B=2, Hq=3, Nq=2 * Br, Nkv=Bc, d_head=64),
        Problem(B=1, Hq=1, Nq=Br, Nkv=6 * Bc, d_head=128, dtype="fp16", layout="bnhd"),
    ):
        problem = stage.own(problem)
        report = run_problem(stage, problem, device="sim", configuration=stage.configuration(problem)).report
        found = [one.words for one in technique.outcomes(stage, report, technique.Run(problem)) if not one.met]
        assert not found, f"stage {stage.id}, {problem}: {'; '.join(found)}"


def test_every_stage_expects_something_that_its_runs_show(stage):
    known = technique.expectations(stage)
    assert known, f"{stage.folder / 'stage.toml'} has no [[expected]]: what do the counters show of its technique?"
    names = [one.name for one in known]
    assert len(set(names)) == len(names), f"stage {stage.id} expects something twice: {names}"
    asked = {one.name for run in technique.runs(stage) for one in known if _judged(stage, one, run)}
    assert asked == set(names), f"stage {stage.id}: no run of its own shows {', '.join(sorted(set(names) - asked))}"


def test_the_stage_before_lacks_it(stage):
    """Else a stage's expectations would say nothing of what it adds."""
    before = stages.previous_of(stage)
    own = [entry["name"] for entry in stage.data.get("expected", [])]
    if not before or not own or stage.slug == "masking" or before.dtypes != stage.dtypes:
        pytest.skip("no stage before that takes its problems, or nothing that it adds")
    found = technique.judge(stage, stage_library(before.number), own, built_from=before)
    assert found, f"stage {before.id} meets all that stage {stage.id} expects of its own: {', '.join(own)}"


def _judged(stage, one, run) -> bool:
    return one.holds_for(technique.namespace(stage, run.problem), run.inputs, run.own_choice)


def planted(name: str):
    """A mutant's stage and its library with bf16 and d_head 128."""
    (mutant,) = mutants.chosen([name])
    source = place("technique", mutant.id, "kernel.cu", mutant.text())
    return mutant.stage, kernels.compile_kernel(source, mutant.stage)


# One counter each: wavefronts, order. All others are judged by `make mutants`, which runs this file on them.
@pytest.mark.parametrize(
    "mutant, words",
    (
        pytest.param(
            "05-plain_addresses", "ldmatrix takes 122,880 wavefronts where 15,360 would do", marks=pytest.mark.long
        ),
        ("07-requests_made_late", "tensor instructions run while a copy of their warp is under way where 10,240 would"),
    ),
)
def test_right_without_the_technique_says_so(mutant, words):
    stage, library = planted(mutant)
    assert not kernels.judge(stage, library).caught, f"{mutant} is to be right"
    found = technique.judge(stage, library)
    assert words in found[0], f"{mutant}: {found}"


@pytest.fixture
def described(tmp_path):
    """described(text) -> stage 05 with this text behind its stage.toml."""

    def write(text: str, top: str = "") -> stages.Kernel:
        folder = tmp_path / "05_swizzle"
        folder.mkdir(exist_ok=True)
        plain = (stages.get(5).folder / "stage.toml").read_text().split("keeps = [")[0]
        launch = (stages.get(4).folder / "stage.toml").read_text().split("\n[[launch]]")[1].split("\n# ")[0]
        (folder / "stage.toml").write_text(f"{plain}{top}\n[[launch]]{launch}\n{text}")
        return stages.read(folder, stages.Kernel)

    return write


LAUNCH = {
    "instructions": {"total": 3, "by_class": {"fp32": 3}},
    "shared": {"load": {"wavefronts": 2, "ideal": None}},
    "global": {"load": {"sectors": 4, "ideal": 4, "bytes": 128}},
    "tensor_copies": {"load": {"copies": 2, "bytes": 2048, "sectors": 64}},
    "mbarriers": {"waits": 4, "waited": 1},
    "barriers": 1,
    "divergent_branches": 0,
    "order": {"tensor_during_copies": 1, "ldmatrix_in_a_row": 5, "first_block": 7, "last_block": 8},
}
ENTRY = """[[expected]]
name = "n"
says = "s"
left = "{left}"
relation = "{relation}"
right = "1"
failure = "{{left}}!"
"""


@pytest.mark.parametrize(
    "text, top, words",
    (
        ('[[expected]]\nname = "n"\nsays = "s"', "", "05_swizzle/stage.toml, expected 'n': an entry has failure, left"),
        (ENTRY.format(left="1", relation="!="), "", "relation is one of ==, <=, >=, <, >"),
        (ENTRY.format(left="1", relation="==") + 'inputs = "zero"', "", "inputs of random, largest_first"),
        ("", 'keeps = ["tensor_cores.no_such"]', "keeps 'tensor_cores.no_such', which no earlier stage expects"),
        (
            "",
            'keeps = ["cp_async.none_through_registers"]',
            "keeps 'cp_async.none_through_registers', which no earlier stage",
        ),
    ),
)
def test_a_wrong_entry_says_what_is_wrong(described, text, top, words):
    with pytest.raises(FlashLadderError) as caught:
        technique.expectations(described(text, top))
    assert words in str(caught.value)


@pytest.mark.skipif(5 not in [one.number for one in chosen_stages()], reason="the profile is of stage 05")
def test_a_profile_shows_what_is_expected(described):
    stage = described(ENTRY.format(left="launches", relation="=="))
    problem = Problem(Hq=1, Nq=128, Nkv=64, d_head=64)
    report = run_problem(5, problem, device="sim").report
    assert profile.technique_of(stage, report, problem) == [["s", "1", "== 1", "yes"]]
    report["launches"] *= 2
    assert profile.technique_of(stage, report, problem) == [["s", "2", "== 1", "NO"]]


def test_what_happened_nowhere_is_not_shown(described):
    """Two counters that are both 0 say nothing of the technique, a count that is to be 0 does."""
    stage = described(ENTRY.format(left="shared.ldmatrix.wavefronts", relation="==") + ENTRY.format(
        left="shared.ldmatrix.wavefronts", relation="<=").replace('"n"', '"m"'))  # fmt: skip
    text = (stage.folder / "stage.toml").read_text()
    (stage.folder / "stage.toml").write_text(text.replace('right = "1"', 'right = "shared.ldmatrix.ideal"', 1))
    stage = stages.read(stage.folder, stages.Kernel)
    (run,) = technique.runs(stage)
    launch = dict(LAUNCH)
    assert technique.all_failures(stage, [(run, {"launches": [launch]})]) == [
        "nothing shows this: s (shared.ldmatrix.wavefronts and shared.ldmatrix.ideal are both 0)"
    ]
    more = launch | {"shared": {"ldmatrix": {"wavefronts": 1, "ideal": 1}}}
    assert not technique.all_failures(stage, [(run, {"launches": [launch]}), (run, {"launches": [more]})])


@pytest.mark.parametrize(
    "left, relation, right, met",
    (
        ("shared.ldmatrix.wavefronts", "==", "shared.ldmatrix.ideal", False),  # no ldmatrix has no conflicts
        ("shared.cp_async.wavefronts", "<=", "shared.cp_async.ideal", False),
        ("instructions.load_global", "==", "0", True),  # absence is what is asked for
        ("shared.load.wavefronts", "==", "shared.load.ideal", True),
        ("0 * B", ">=", "barriers", False),
    ),
)
def test_where_both_sides_are_0_nothing_is_shown(described, left, relation, right, met):
    """A naive kernel, which has no ldmatrix, does not have it without conflicts."""
    launch = {
        "instructions": {"total": 3, "by_class": {}},
        "shared": {"load": {"wavefronts": 2, "ideal": 2}},
        "barriers": 0,
        "divergent_branches": 0,
        "order": {"tensor_during_copies": 0, "ldmatrix_in_a_row": 0, "first_block": 1, "last_block": 1},
    }
    entry = ENTRY.format(left=left, relation=relation).replace('right = "1"', f'right = "{right}"')
    run = technique.Run(Problem(Hq=1, Nq=128, Nkv=64))
    words = technique.all_failures(described(entry), [(run, {"launches": [launch]})])
    assert words == ([] if met else [f"nothing shows this: s ({left} and {right} are both 0)"])


def test_names_of_expectations():
    assert [one.name for one in technique.chosen(5, ["no_store_conflicts"])] == ["no_store_conflicts"]
    with pytest.raises(FlashLadderError, match="Stage 05 has no technique 'no_such': no_ldmatrix_conflicts, "):
        technique.chosen(5, ["no_such"])


def test_a_counter_that_was_not_counted_is_0_and_a_name_that_is_none_is_an_error(described):
    report = {"launches": [LAUNCH, LAUNCH]}
    problem = Problem(Hq=1, Nq=128, Nkv=64)
    counted = technique.namespace(stages.get(5), problem, report)
    assert (counted["instructions.fp32"], counted["instructions.tensor"], counted["shared.load.ideal"]) == (6, 0, 0)
    assert (counted["tensor_copies.load.sectors"], counted["tensor_copies.store.bytes"]) == (128, 0)
    assert (counted["bulk.load.copies"], counted["mbarriers.waits"]) == (0, 8)
    assert (counted["launches"], counted["order.ldmatrix_in_a_row"], counted["order.first_block"]) == (2, 5, 7)
    assert (counted["blocks"], counted["warps"], counted["whole"]) == (1, 4, 1)
    assert not technique.namespace(stages.get(5), Problem(Nq=128, Nkv=65))["whole"]
    run = technique.Run(problem)
    (one,) = technique.outcomes(described(ENTRY.format(left="global.load.bytes", relation="==")), report, run)
    assert not one.met and one.words == "256!"
    with pytest.raises(FlashLadderError, match="there is no 'barrier'; there are B, Hq"):
        technique.outcomes(described(ENTRY.format(left="barrier", relation="==")), report, run)
