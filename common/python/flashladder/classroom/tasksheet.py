"""The task sheet of an assignment: README.md of the students' folder, made from the exercises' own descriptions."""

from flashladder.classroom.assignment import Assignment, file_name
from flashladder.classroom.exercise import Exercise
from flashladder.classroom.marks import number as points_text
from flashladder.ladder import stages, technique, tiles
from flashladder.ladder.launches import instances

CREDIT = {
    "builds": "it compiles",
    "correct": "the result is right, in equal parts for each class of sizes",
    "hazards": "no race, no missing wait, no access out of bounds",
    "technique": "the technique is really used: the simulator counts",
    "throughput": "its speed on a GPU, beside the reference solution in the same run",
}


def task_sheet(assignment: Assignment, exercises: dict[int, list[Exercise]]) -> str:
    """exercises: by stage, with the assignment's points."""
    files = [f"`{file_name(number)}`" for number in assignment.stages]
    lines = [f"# {assignment.title}", "", f"Hand in: {' and '.join(files)}. Deadline: {assignment.deadline}.", ""]
    lines += [assignment.text, ""] if assignment.text else []
    lines += ["| file | exercise | | points |", "| --- | --- | --- | ---: |"]
    for number, every in exercises.items():
        lines += [f"| `{file_name(number)}` | {one.name} | {one.title} | {points_text(one.points)} |" for one in every]
    lines += _tile(assignment)
    lines += ["", _HOW_TO_WORK, *([_SEVERAL_FILES] if len(exercises) > 1 else []), ""]
    for number, every in exercises.items():
        for one in every:
            lines += [f"## {one.title} ({points_text(one.points)} points)", "", f"In `{file_name(number)}`, between"]
            lines += [f"`{one.opening.strip()}` and `{one.closing.strip()}`.", "", one.task, ""]
    lines += [*_sizes(assignment), *_expected(assignment, exercises), *_points(assignment), ""]
    return "\n".join(lines)


_HOW_TO_WORK = """
    make check            # builds your files and tries them; nothing of it leaves your machine
    make hint NAME=...    # a hint for an exercise

Write between the marks, and leave the marks and all other lines as they are: only what stands between them is graded.
`make check` takes it as the grader does, and refuses what the grader refuses.
Linux, Python 3.10 or newer, make and a C++20 compiler (GCC 11 or newer) are needed, and no GPU: kernels run on the
simulator in `harness/`. The first `make check` installs what is missing into `harness/.venv` and builds the simulator,
which takes some minutes. `make PYTHON=python3 check` uses that interpreter with what it has and installs nothing.
""".strip("\n")


def _tile(assignment: Assignment) -> list[str]:
    """What is not as in the lesson, where the assignment has a tile of its own."""
    said = []
    for number in assignment.stages if assignment.tile else ():
        here, lesson = (tiles.tile_of(one) for one in (assignment.kernel(number), stages.get(number)))
        if here != lesson:
            words = [", ".join(f"`{name} = {value}`" for name, value in one.items()) for one in (here, lesson)]
            said += ["", f"The tile of `{file_name(number)}` is {words[0]}; in the lesson, and in what the file's"]
            said += [f"comments say of rows by number, it is {words[1]}."]
    return said


def _late(assignment: Assignment) -> list[str]:
    policy, grace = assignment.late, ""
    if policy.grace:
        grace = f", after {policy.grace.total_seconds() / 60:g} minutes of grace"
    return [
        f"Handed in late it costs {policy.cost_per_day:g} points for each day that has begun{grace}; after "
        f"{policy.most_days} days nothing is accepted."
    ]


_INSTANCES = (
    "The kernel is built for several configurations, as `instances.h` beside it lists them. Each problem is tried with",
    "every one of its type and head dimension.",
    "",
)

_SEVERAL_FILES = """
What is to be written in one file and stands in another one, too, is a stub there (`// === NAME: your answer in ...`),
and `make check` puts your answer in its place. It is graded where it has its points.
""".rstrip()


def _sizes(assignment: Assignment) -> list[str]:
    lines = ["## What `make check` tries", "", "| class of sizes | problem |", "| --- | --- |"]
    lines += [f"| {sizes.name} | {problem} |" for sizes in assignment.public_sizes for problem in sizes.problems]
    hidden = len(assignment.sizes) - len(assignment.public_sizes)
    classes = "a class" if hidden == 1 else f"{hidden} classes"
    words = "Q, K and V are random. It is graded with other numbers"
    return [
        *lines,
        "",
        f"{words}, and in {classes} of sizes that you do not see." if hidden else f"{words}.",
        "",
        *(_INSTANCES if any(map(instances, map(stages.get, assignment.stages))) else ()),
    ]


def _expected(assignment: Assignment, exercises: dict[int, list[Exercise]]) -> list[str]:
    """The technique that is asked for, in stage.toml's words."""
    lines = []
    for number in exercises:
        lines += [f"- stage {stages.get(number).id}: {one.says}" for one in technique.expectations(number)]
    return ["## The technique", "", "What the simulator's counters must show:", "", *lines, ""] if lines else []


def _points(assignment: Assignment) -> list[str]:
    lines = ["## How points are given", "", "| share of an exercise's points | for |", "| ---: | --- |"]
    lines += [f"| {100 * share:g} % | {CREDIT[name]} |" for name, share in assignment.credit.items() if share]
    return [
        *lines,
        "",
        "What an exercise does not ask for is divided among what it asks for. An answer that does no more than the "
        "stub has no points. Where some hazards are left, part of their points is given for those that are gone; the "
        "report says what the next points need.",
        *(["", *_late(assignment)] if assignment.late else []),
    ]
