"""The tests are tested: every classic mistake, planted in a kernel, is caught by verification or by the simulator."""

import collections
import re
import shutil
from pathlib import Path

import pytest
from chosen import of_chosen
from queued import each
from shares import share

from flashladder.building import build
from flashladder.core.paths import build_directory, stage_library
from flashladder.ladder import kernels, mistakes, stages
from flashladder.measuring import planted, recorded
from flashladder.measuring.planted import Subject
from flashladder.running.job import StageError

# These run in `make test`. Of each verdict `make test-long` tries one of twenty, at least one.
QUICK = {("02", "no_rescale"), ("02", "missing_barrier_after_load"), ("09", "missing_wait")}


def parameters() -> list:
    alike = collections.defaultdict(list)
    for mistake in (one for stage in stages.all_parts() for one in mistakes.of_lesson(stage)):
        marks = () if (mistake.stage.id, mistake.name) in QUICK else pytest.mark.long
        case = pytest.param(mistake, id=f"{mistake.stage.id}-{mistake.name}", marks=marks)
        alike[mistake.caught_by].append(case)
    return [case for cases in alike.values() for case in share(cases, 20)]


@pytest.mark.parametrize("mistake", parameters())
def test_mistake_is_caught(mistake):
    verdict = mistakes.run(mistake)
    told = f"{mistake.id} ({mistake.mistake})"
    assert verdict.caught, f"{told} went unnoticed: {verdict.message}"
    assert verdict.by == mistake.caught_by, (
        f"{told} was caught by {verdict.by}, mistakes.toml says {mistake.caught_by}: {verdict.message}"
    )
    assert mistake.message in verdict.message, (
        f"{told} was caught, but not in the words of mistakes.toml, '{mistake.message}': {verdict.message}"
    )
    if isinstance(mistake.stage, kernels.Kernel) and verdict.by not in ("verification", "error"):
        first = verdict.message.splitlines()[0]
        assert re.search(r" at (kernel\.cu|\w+\.cuh):\d+: ", first), f"{told}: no hazard in the first line: {first}"


def others() -> list:
    """Mistakes that no lesson shows, with what is recorded of them: one of sixty."""
    said = {(row["stage"], row["mistake"]): row for row in recorded.first(kind="judged")["planted"]}
    known = [Subject(one.stage, one) for one in mistakes.everything() if not one.caught_by]
    cases = [
        pytest.param(one, said[one.key], id=f"{one.stage.id}-{one.name}", marks=pytest.mark.long)
        for one in known
        if one.key in said
    ]
    return share(cases, 60)


@pytest.mark.parametrize("subject, row", others())
def test_a_mistake_in_no_lesson_is_judged_as_recorded(subject, row):
    if subject.digest() != row["digest"]:
        pytest.skip("its stage has changed since")
    assert planted.judged(subject)["by"] == row["by"]


@pytest.mark.long
def test_another_order_of_execution_shows_what_the_first_one_does_not():
    """Which docs/detections.md says of a mistake that never ends on a GPU."""
    stage = stages.entry("deterministic")
    mistake = next(one for one in mistakes.mistakes(stage) if one.name == "not_waited_for_the_turn")
    library, (problem, _) = kernels.compile_kernel(mistake.source(), stage), stage.judged_by()[0]
    options = {"device": "sim", "library": library, "repeat": stage.RUNS}
    stage.run(problem, **options)
    with pytest.raises(StageError, match="deadlock"):
        stage.run(problem, **options, environment={"WARPSIM_SCHEDULE": "2"})


@each(of_chosen(stages.with_kernel()))
def test_the_kernel_itself_passes(one):
    """A verdict means something only if the kernel itself is clean on the problems that judge changed ones."""
    if isinstance(one, kernels.Kernel) and "judged_by" not in one.data:
        pytest.skip("judged by the problems that test_correctness runs")
    verdict = kernels.judge(one, stage_library(one.number))
    assert not verdict.caught, f"{one.name} as it is, is wrong at {verdict.problem}: {verdict.message}"


@pytest.mark.parametrize("number", [2, 9, *(pytest.param(number, marks=pytest.mark.long) for number in (40, 50, 60))])
def test_the_kernel_itself_passes_built_like_a_mistake(number):
    stage = stages.entry(number)
    folder = build_directory() / "break" / f"{stage.id}_as_it_is"
    folder.mkdir(parents=True, exist_ok=True)
    library = kernels.compile_kernel(Path(shutil.copy(stage.kernel, folder)), stage)
    verdict = kernels.judge(stage, library)
    told = f"{stage.name} as it is, built like a mistake, is wrong at {verdict.problem}: {verdict.message}"
    assert not verdict.caught, told


def test_a_changed_kernel_is_compiled_as_its_stage_is(stage):
    """Word by word the build's own options, native code apart; what is added is named here."""
    built, own = build.compile_command(stage.kernel), kernels.stage_flags(stage)
    assert f"--generate-code=arch=compute_{stage.min_compute},code=[compute_{stage.min_compute}]" in own
    added = [word for word in own if word not in built]
    assert not added, f"options that the build does not have: {' '.join(added)}"
    left_out = {"-c", "-o", "-x", "cu", str(stage.kernel)}
    lost = [word for word in built if word not in own and word not in left_out]
    lost = [word for word in lost if not ("_EXPORTS" in word or word.endswith(".o") or "code=[sm_" in word)]
    assert not lost, f"options of the build that a changed kernel is not compiled with: {' '.join(lost)}"


@pytest.mark.long
def test_two_changes_of_a_kernel_share_the_launchers_objects(tmp_path):
    stage = stages.get(2)

    def compiled(text: str) -> tuple[Path, set[tuple[str, int]]]:
        """The library, and the objects of the launcher with their ages."""
        (tmp_path / "kernel.cu").write_text(stage.kernel.read_text() + text)
        library = kernels.compile_kernel(tmp_path / "kernel.cu", stage)
        return library, {(file.name, file.stat().st_mtime_ns) for file in (build_directory() / "launcher").glob("*.o")}

    first, objects = compiled("// one\n")
    second, after = compiled("// two\n")
    assert first != second and objects and objects <= after
    assert not kernels.judge(stage, second).caught
