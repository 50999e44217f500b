"""Assignments: the ready ones, what a file may say, and the folder that students get."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from graded import assignment_text

from flashladder.classroom import assignment, check, exercise, handout, services
from flashladder.classroom.closure import closure
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory, headers
from flashladder.ladder import stages

READY = assignment.all_assignments()
NAMES = [one.name for one in READY]
FIRST = exercise.exercises(5)[0]


def solved(one: assignment.Assignment, number: int, only: tuple[str, ...] = ()) -> str:
    """The starter with the solutions (of these exercises alone, where some are named) between the marks."""
    text = handout.starter(one, number)
    for written in handout.chosen(one, number):
        if not only or written.name in only:
            marks = re.escape(written.opening), re.escape(written.closing)
            solution = f"{written.opening}\n{written.solution}\n{written.closing}"
            text = re.sub(f"{marks[0]}\n.*?{marks[1]}", lambda _, s=solution: s, text, flags=re.S)
    return text


@pytest.mark.parametrize("one", READY, ids=NAMES)
def test_a_ready_assignment_names_exercises_that_can_be_graded(one):
    for item in one.items:
        written = exercise.get(item.stage, item.name)
        assert written.checks and item.points > 0
    for number in one.stages:
        assert exercise.starter(number, list(one.names(number))), "its exercises do not share lines"
        limits = stages.get(number).data["launch"][-1]
        for sizes in one.sizes:
            for problem in sizes.problems:
                whole = problem.Nq % limits.get("Br", 1) == 0 and problem.Nkv % limits.get("Bc", 1) == 0
                assert whole or stages.get(number).data.get("masks"), (
                    f"stage {number:02d} refuses {problem} of '{sizes.name}'"
                )
    assert len([sizes for sizes in one.sizes if not sizes.public]) >= 2, "what is hidden is what is graded by"
    assert one.public_sizes


def test_the_ready_assignments_come_in_the_order_of_the_ladder():
    assert [one.stages for one in READY] == sorted(one.stages for one in READY)
    assert all(0 not in one.stages for one in READY), "host code is for the reader's own machine"


@pytest.mark.parametrize(
    "change, words",
    [
        (("points = 100", "points = 90"), "are 90 together and must be 100"),
        (("points = 100", "points = -1"), "more than 0 points"),
        (("correct = 0.5", "correct = 0.6"), "be 1 together"),
        (("correct = 0.5", "luck = 0.5"), "not luck"),
        (("public = true", "public = false"), "students could check nothing"),
        (("seeds = [2]", "seeds = []"), "at least one seed"),
        (('title = "Small"', ""), "it has no 'title'"),
        (("d_head = 128", "d_heat = 128"), "d_heat"),
        (('class = "whole tiles"', 'class = "whole tiles"\ninputs = "large"'), "public ones have"),
        (("stage = 5", "stage = 99"), "There is no stage '99'"),
        (("Nq = 128", "Nq = 100"), 'class "whole tiles": stage 05 does not take Nq = 100, no multiple of 128'),
        (("Nkv = 128", "Nkv = 100"), "does not take Nkv = 100, no multiple of 64"),
        (("d_head = 128", "d_head = 128, causal = true"), "does not take causal problems"),
        (("Hq = 1", "Hq = 2, Hkv = 1"), "does not take fewer heads of K and V than of Q"),
        (("[hidden]", "[hidden"), "is no valid assignment"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_words(change, words):
    text = assignment_text(f'stage = 5\nname = "{FIRST.name}"\npoints = 100')
    assignment.parse("small", text)
    assert change[0] in text
    with pytest.raises(FlashLadderError, match=re.escape(words)):
        assignment.parse("small", text.replace(*change))


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_bytes(assignment_text("").replace("Small", "Übung").encode("latin-1"))
    with pytest.raises(FlashLadderError, match="mine.toml is not UTF-8"):
        assignment.get(str(file))


def test_one_line_makes_another_assignment_of_it():
    """Another stage, or another head dimension: both are graded anew."""
    ready = assignment.get("tensor-cores")
    plain = re.sub(r"^stage = 4\n", "", ready.source, flags=re.M)
    other = assignment.parse("mine", f"stage = 4\nd_head = 64\n{plain}")
    assert other.stages == (4,) and {one.d_head for sizes in other.sizes for one in sizes.problems} == {64}
    assert other.digest != ready.digest
    text = assignment_text(f'name = "{FIRST.name}"\npoints = 100')
    assert assignment.parse("small", f"stage = 5\n{text}").stages == (5,)
    with pytest.raises(FlashLadderError, match="it has no 'stage'"):
        assignment.parse("small", text)


def test_an_unknown_assignment_lists_the_ready_ones(tmp_path):
    with pytest.raises(FlashLadderError, match=f"There is no assignment 'nothing'. Ready are: .*{NAMES[0]}"):
        assignment.get("nothing")
    file = tmp_path / "mine.toml"
    file.write_text(assignment_text(f'stage = 5\nname = "{FIRST.name}"\npoints = 100'))
    assert assignment.get(str(file)).name == "mine"


def normalised(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module", params=READY, ids=NAMES)
def given_folder(request, tmp_path_factory):
    """A ready assignment and its students' folder."""
    return request.param, handout.write(request.param, tmp_path_factory.mktemp(request.param.name) / "given")


def test_no_line_of_a_solution_is_anywhere_in_the_students_folder(given_folder):
    one, folder = given_folder
    texts = {file: normalised(file.read_text()) for file in folder.rglob("*") if file.is_file()}
    looked_for = 0
    stubs = [exercise.get(number, name).stub for number in one.stages for name in one.names(number)]
    for number in one.stages:
        given = normalised("\n".join([handout.starter(one, number), *stubs]))
        for name in one.names(number):
            for line in exercise.get(number, name).solution.splitlines():
                line = normalised(re.sub("//.*", "", line)).strip()
                # A brace tells nothing, nor does what a stub shows, or the same kernel outside of the marks; a line as
                # short as `x = 0;` is found in any program.
                if re.search(r"\w", line) and line not in given and len(line) > 12:
                    looked_for += 1
                    shown = [str(file.relative_to(folder)) for file, text in texts.items() if line in text]
                    assert not shown, f"{shown[0]} shows a line of {name}: {line}"
    assert looked_for, "nothing was looked for"


def test_the_students_folder_has_what_it_needs_and_no_more(given_folder):
    one, folder = given_folder
    files = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    for number in one.stages:
        assert assignment.file_name(number) in files
    assert {"README.md", "Makefile", ".gitignore", ".github/workflows/check.yml"} <= files
    kept = [name for name in files if re.search(r"lessons/|grading|isolation|notebooks|mistakes\.toml|docs/", name)]
    assert not kept, kept
    shipped = {name.split("/")[2] for name in files if name.startswith("harness/stages/")}
    assert shipped == {stages.get(number).name for number in one.stages}
    for seed in one.hidden_seeds:
        assert not [name for name in files if str(seed) in (folder / name).read_text()], "a hidden seed"
    for sizes in one.sizes:
        if not sizes.public:
            assert sizes.name not in (folder / "harness/assignment.json").read_text()
    included = {name for file in folder.rglob("*") if file.suffix in (".cu", ".cuh", ".cpp", ".h")
                for name in re.findall(r'#\s*include\s*"([^"/]+)"', file.read_text())}  # fmt: skip
    there = {Path(name).name for name in files if name.startswith("harness/common/include/")}
    known = {header.name: header for header in headers()}
    assert there == included & set(known), "headers that are included, and no others"
    # A header of what a stage teaches has its solutions.
    taught = [match[1] for match in (re.match(r"// Stage (\w+) ", known[name].read_text()) for name in there) if match]
    assert not {stages.get(name).number for name in taught} & set(one.stages)
    sheet = (folder / "README.md").read_text()
    for item in one.items:
        assert f"({item.points:g} points)" in sheet and exercise.get(item.stage, item.name).title in sheet


def test_what_is_to_be_written_in_one_stage_is_a_stub_in_the_others():
    one = assignment.get("async")
    later = handout.starter(one, 7)
    solution = exercise.get(6, "load_tile").solution.splitlines()[-1].strip()
    assert solution in exercise.starter(7) and solution not in later
    assert "// === load_tile: your answer in 06_cp_async.cu is put here by `make check` ===" in later
    assert "=== load_tile" not in handout.starter(one, 6), "there it has its points"


def test_a_stage_that_shows_what_another_one_asks_for_is_refused(tmp_path):
    """06's wait stands in two pieces of 07's kernel, of which nothing is blanked."""
    text = assignment_text('stage = 6\nname = "load"\npoints = 50', 'stage = 9\nname = "flip"\npoints = 50')
    with pytest.raises(FlashLadderError, match="09_double_buffering.cu:[0-9]+ shows a line of 06 load"):
        handout.write(assignment.parse("both", text), tmp_path / "given")


def test_nothing_is_written_over(small, tmp_path):
    (tmp_path / "given").mkdir()
    with pytest.raises(FlashLadderError, match="exists, and nothing is written over it"):
        handout.write(small, tmp_path / "given")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FlashLadderError, match="exists"):
        handout.write(small, tmp_path / "link")
    assert not list((tmp_path / "given").iterdir())


def test_a_folder_that_would_give_a_solution_away_is_not_written(small, tmp_path, monkeypatch):
    line = next(line for line in handout._bare_lines(FIRST.solution))
    monkeypatch.setattr(handout, "task_sheet", lambda *_: f"The answer:   {line}  // that is it\n")
    with pytest.raises(FlashLadderError, match=f"README.md:1 shows a line of 05 {FIRST.name}"):
        handout.write(small, tmp_path / "given")
    assert not list(tmp_path.iterdir()), "not even a part of it"


@pytest.mark.long
def test_the_stub_is_not_written_yet_and_gone_marks_are_told(small, tmp_path, capsys, monkeypatch):
    """In the folder itself, which needs no build for that."""
    folder = handout.write(small, tmp_path / "given")
    done = make(folder, "check")
    assert done.returncode and f"{FIRST.name}: not written yet" in done.stdout, done.stdout + done.stderr
    file = folder / "05_swizzle.cu"
    file.write_text(file.read_text().replace("// <<< end of", "// the end of"))
    done = make(folder, "check")
    assert done.returncode and f"<<< end of {FIRST.name}" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    done = make(folder, "hint", "NAME=nothing")
    assert done.returncode and f"make hint NAME=...`: {FIRST.name}" in done.stderr
    assert FIRST.hints[0][:30] in make(folder, "hint", f"NAME={FIRST.name}").stdout


def make(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    """make in a students' folder, as on a machine that has nothing else of this project."""
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("FLASHLADDER_", "WARPSIM_", "PYTHONPATH", "CCACHE_BASEDIR"))}  # fmt: skip
    env |= {name: os.environ[name] for name in ("FLASHLADDER_JOBS",) if name in os.environ} | environment
    command = ["make", f"PYTHON={sys.executable}", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def sources(folder: Path) -> dict[str, bytes]:
    """All that the compiler reads and CMake is told, by its path in the folder."""
    found = sorted(one for one in folder.rglob("*") if one.suffix in (".cpp", ".h", ".cuh", ".txt", ".map"))
    return {str(one.relative_to(folder)): one.read_bytes() for one in found}


@pytest.mark.long
def test_the_folder_builds_and_checks_alone(tmp_path):
    """The first ready assignment on a machine of its own: wrong in words, right once it is solved. Of the simulator it
    holds the sources that this build has compiled, byte for byte: their objects are taken from there."""
    one = READY[0]
    folder = handout.write(one, tmp_path / "given")
    assert sources(folder / "harness/common/simulator") == sources(ROOT / "common/simulator")
    given, headers = (sources(place / "common/include") for place in (folder / "harness", ROOT))
    assert given and given == {name: text for name, text in headers.items() if name in given}  # those that are included
    settings = {"CMAKE_CXX_COMPILER_LAUNCHER": str(ROOT / "tests/of_another_build")}
    settings |= {"COMPILED": "host", "BUILT": str(build_directory())}
    number = one.stages[0]
    file = folder / assignment.file_name(number)
    file.write_text(solved(one, number))
    done = make(folder, "check", **settings)
    assert done.returncode == 0 and "All public checks pass" in done.stdout, done.stdout + done.stderr
    stub = handout.chosen(one, number)[0]
    broken = handout.starter(one, number).replace(stub.closing, f"{stub.indent};\n{stub.closing}")
    file.write_text(broken)
    done = make(folder, "check", **settings)
    assert done.returncode and "FAILED" in done.stdout, done.stdout + done.stderr
    file.write_text(broken.replace(stub.closing, f"{stub.indent}this is no C++\n{stub.closing}"))
    done = make(folder, "check", **settings)
    assert done.returncode and re.search(rf"{file.name}:\d+: .*", done.stdout), done.stdout + done.stderr


def test_a_module_comes_with_what_it_imports():
    needed = closure("flashladder.classroom.check")
    assert {"flashladder", "flashladder.classroom", "flashladder.classroom.judge", "flashladder.core.paths"} <= set(
        needed
    )
    assert "warpsim.counters" in needed
    assert not [name for name in needed if name.startswith(("flashladder.lessons", "flashladder.commands"))]
    assert closure("flashladder.no_such_module") == {}


@pytest.mark.long
def test_gradescopes_autograder_holds_what_grades_and_nothing_of_this_machine(small, tmp_path):
    file = services.write("gradescope", small, tmp_path)
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        modes = {one.filename: one.external_attr >> 16 & 0o777 for one in archive.infolist()}
        archive.extractall(tmp_path / "source")
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert {"assignment.toml", "stages/05_swizzle/kernel.cu", "stages/05_swizzle/exercises.toml"} <= names
    assert file.stat().st_size < 5 << 20
    for script in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", tmp_path / "source" / script], check=True)
    assert not [name for name in names if str(ROOT) in (tmp_path / "source" / name).read_text(errors="replace")]
    programs = ", ".join(services.PROGRAMS)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "source/common/python")}
    done = subprocess.run([sys.executable, "-c", f"import {programs}"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = services.write("gradescope", small, tmp_path / "again")
    assert again.read_bytes() == file.read_bytes()
    with pytest.raises(FlashLadderError, match="exists"):
        services.write("gradescope", small, tmp_path)


def test_classroom_50s_autograder_holds_no_solution(small, tmp_path):
    file = services.write("classroom50", small, tmp_path)
    compile(file.read_text(), str(file), "exec")
    assert not [line for line in handout._bare_lines(FIRST.solution) if line in file.read_text()]
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode and "FLASHLADDER_HOME is not set" in done.stderr and not (tmp_path / "result.json").exists()
    with pytest.raises(FlashLadderError, match="choose gradescope or classroom50"):
        services.write("moodle", small, tmp_path)


def test_check_outside_of_a_students_folder_says_so(capsys):
    assert check.main([]) == 1
    assert "works in the folder of an assignment alone" in capsys.readouterr().err


@pytest.mark.parametrize("one", READY, ids=NAMES)
def test_a_starter_says_the_assignments_points_and_takes_answers(one):
    for number in one.stages:
        text = handout.starter(one, number)
        for written in handout.chosen(one, number):
            assert text.count(written.opening) == 1 and f"({written.points:g} point" in written.opening
        assert exercise.answers(number, text).keys() == set(one.names(number))
        filled = exercise.answers(number, solved(one, number))
        for name in one.names(number):
            assert filled[name] == exercise.get(number, name).solution
