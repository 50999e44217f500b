"""The exercises of the page in which they are written (docs/site/write.md): of each stage its tasks, hints and
starters, and what an answer is judged by, as classroom/judge.py does it: the problems with their launches and inputs,
and what the stage expects of its counters.
"""

from dataclasses import asdict
from itertools import groupby

import numpy as np

from flashladder.classroom.cases import SEED, Case
from flashladder.classroom.exercise import CHECKS, Exercise, Mend, exercises, mends
from flashladder.classroom.judge import REPAIRED, all_cases, same_instance
from flashladder.core import dtypes
from flashladder.core.abi import FlashTensor
from flashladder.core.expression import is_counted, tree
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages, technique
from flashladder.ladder.backward import Backward
from flashladder.ladder.kernels import Kernel, WithKernel
from flashladder.ladder.ring import Ring
from flashladder.ladder.stage import Stage
from flashladder.running.job import KINDS
from flashladder.site import page_calls, page_kernels
from flashladder.site.page_kernels import Offered

# Why the page does not judge the exercises of some stages.
OF_THE_HOST = "a program of the host, and this page runs only kernels"
SEVERAL_GPUS = "their calls queue work on several devices, and this page has one"


def offered() -> list[WithKernel]:
    """The stages whose exercises the page has, in order."""
    return [one for one in _with_exercises() if not _why_not(one)]


def _with_exercises() -> list[Stage]:
    return [one for one in stages.all_parts() if exercises(one)]


def _why_not(stage: Stage) -> str:
    """Empty where it does."""
    if not isinstance(stage, WithKernel):
        return OF_THE_HOST
    return SEVERAL_GPUS if isinstance(stage, Ring) else ""


def elsewhere() -> list[str]:
    """What the page says of the stages that it has no exercises of, and of those that have none: sentences."""
    found: dict[str, list[Stage]] = {}
    for stage in _with_exercises():
        found.setdefault(_why_not(stage), []).append(stage)
    found.pop("", None)
    told = [_where_else(why, some) for why, some in found.items()]
    without = [one for one in stages.all_parts() if not exercises(one)]
    if without:
        told.append(f"Stages without exercises: {_in_words(without)}. Their lessons are read and run.")
    return told


def _in_words(some: list[Stage]) -> str:
    """Their numbers, such as "46, 47, 60 to 63"."""
    rows = [[one.id for _, one in row] for _, row in groupby(enumerate(some), lambda pair: pair[1].number - pair[0])]
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 2 else ", ".join(row) for row in rows)


def _where_else(why: str, some: list[Stage]) -> str:
    first, *more = (one.id for one in some)
    if more:
        judges = f"`make exercise-{first}` and its like judge them, and so do the lessons"
        return f"Stages {first} to {more[-1]}: {why}. {judges}."
    return f"Stage {first}: {why}. `make exercise-{first}` judges it, and so does the lesson in JupyterLab."


def index() -> dict:
    """What the page shows before an exercise is chosen."""
    return {
        "stages": [
            {
                "id": stage.id,
                "slug": stage.slug,
                "title": stage.title,
                "exercises": [
                    {"name": one.name, "title": one.title, "points": one.points, "optional": _is_optional(one)}
                    for one in (*exercises(stage), *mends(stage))
                ],
            }
            for stage in offered()
        ],
        "elsewhere": elsewhere(),
    }


def _is_optional(one: Exercise | Mend) -> bool:
    return isinstance(one, Exercise) and one.optional


def stage_file(stage: WithKernel) -> dict:
    """What the page loads when one of the stage's exercises is chosen."""
    cases = all_cases(stage, CHECKS)
    requests = _requests(stage, cases)
    launched = page_kernels.launched(requests)
    expected = technique.expectations(stage)
    return {
        "id": stage.id,
        "slug": stage.slug,
        "title": stage.title,
        "kind": stage.KIND,
        "outputs": _outputs(stage),
        "source": stage.source.read_text(),
        "exercises": [_exercise(one) for one in (*exercises(stage), *mends(stage))],
        "cases": [_case(stage, *pair, same_instance(pair[0], cases[0])) for pair in zip(cases, requests)],
        "generators": _generators(stage, cases),
        "instances": {symbol: name for name, symbol in page_kernels.instances(stage) if symbol in launched},
        "expected": [_expectation(one) for one in expected],
        "tile": {"Br": stage.launch.get("Br", 64), "Bc": stage.launch.get("Bc", 64)},
        "bounds": {dtype: bounds(dtype) for dtype in stage.dtypes},
        "repaired": REPAIRED,
    }


def _outputs(stage: WithKernel) -> list[str]:
    """What a run writes; the earlier of the stages that compute attention have no sums."""
    kind = KINDS[stage.KIND]
    has_sums = not isinstance(stage, Kernel) or stage.data.get("log_sum_exp")
    return [*kind.outputs, *(kind.sums if has_sums else ())]


def _requests(stage: WithKernel, cases: list[Case]) -> list[str]:
    library = stage_library(stage.number)
    if not isinstance(stage, Kernel):
        return page_calls.requests(stage, library, cases)
    ptx = page_kernels.ptx_of(library)
    return [request(stage, (library, ptx), one) for one in cases]


def _generators(stage: WithKernel, cases: list[Case]) -> dict[str, dict]:
    """By seed; of gradients that of dO besides, as running/gradients.py draws it."""
    found = {str(number): generator(number) for number in sorted({seed(stage, one) for one in cases})}
    return found | ({"dO": generator((SEED, 1))} if isinstance(stage, Backward) else {})


def _exercise(one: Exercise | Mend) -> dict:
    found = {name: getattr(one, name) for name in ("name", "title", "task", "hints", "points")}
    if isinstance(one, Mend):
        return found | {"kind": "mend", "start": one.starter()}
    others = [other.name for other in exercises(one.stage) if other.name != one.name]
    marks = {"opening": one.opening.strip(), "closing": one.closing.strip()}
    lines = {"first": one.first, "last": one.last, "stub": one.stub}
    return found | {"kind": "write", "start": one.starter(others)} | marks | lines


def seed(stage: WithKernel, one: Case) -> int:
    return 0 if one.counted and isinstance(stage, Kernel) else SEED


def request(stage: Kernel, built: tuple, one: Case) -> str:
    """common/browser/request.h: the launches of the stage's own library, and where the tensors lie."""
    of_stage = Offered(stage.id, stage, "stage", stage.title)
    lines = [page_kernels.request(of_stage, *built, one.problem, one.configuration)]
    for name in "QKVO":
        lines.append(f"tensor {name} {' '.join(map(str, strides(one.problem, name)))}\n")
    return "".join(lines)


def strides(problem: Problem, name: str) -> list[int]:
    """Elements from one batch (or page), head and row of a tensor to the next."""
    tensor = problem.tensor(name, 0)
    return [getattr(tensor, field) for field, _ in FlashTensor._fields_ if field.startswith("stride_")]


def case(stage: WithKernel, one: Case) -> dict:
    """What the page draws the inputs of a run by, and where they lie."""
    kind = KINDS[stage.KIND]
    found = {
        "problem": asdict(one.problem),
        "strides": {name: strides(one.problem, name) for name in (*kind.inputs, *kind.outputs)},
        "inputs": one.counted.inputs if one.counted else one.inputs,
        "seed": seed(stage, one),
    }
    if getattr(one.problem, "page_size", 0):
        found["block_table"] = one.problem.block_table(SEED).ravel().tolist()
    return found


def _case(stage: WithKernel, one: Case, asked_for: str, alone: bool) -> dict:
    """alone: it is run by the instance of the kernel that is compiled first."""
    found = {"says": str(one), "request": asked_for, "alone": alone} | case(stage, one)
    if one.counted:
        names = technique.namespace(stage, one.problem)
        expected = technique.expectations(stage)
        run = one.counted
        known = [at for at, each in enumerate(expected) if run.traced or not each.traced]
        asked = [at for at in known if expected[at].holds_for(names, run.inputs, run.own_choice)]
        found["counted"] = {"names": names, "asked": asked, "traced": run.traced}
    return found


def generator(number: int | tuple[int, ...]) -> dict[str, str]:
    """NumPy's default generator of that seed, in decimal: JSON's numbers have too few bits."""
    state = np.random.default_rng(number).bit_generator.state["state"]
    return {"state": str(state["state"]), "increment": str(state["inc"])}


def _expectation(one: technique.Expectation) -> dict:
    return {
        "name": one.name,
        "says": one.says,
        "left": tree(one.left),
        "relation": one.relation,
        "right": tree(one.right),
        "compares": is_counted(one.right),
        "failure": one.failure,
        "unshown": technique.unshown(one),
    }


def bounds(dtype: str) -> dict[str, float]:
    """What an output of the type may be off by (common/host/bounds.h)."""
    return {
        "unit_roundoff": dtypes.UNIT_ROUNDOFF[dtype],
        "half_smallest": dtypes.HALF_SMALLEST[dtype],
        "half_smallest_output": dtypes.HALF_SMALLEST[dtypes.OUTPUT[dtype]],
        "weight": dtypes.LEAST_WEIGHT[dtype],
        "element": dtypes.ELEMENT_LIMIT[dtype],
        "frobenius": dtypes.FROBENIUS_LIMIT[dtype],
        "room": dtypes.ROOM[dtype],
        "score_unit": dtypes.SCORE_ERROR_UNIT,
        "score_group": dtypes.SCORE_GROUP,
        "sum_error_unit": dtypes.SUM_ERROR_UNIT,
        "log_sum_exp_unit": dtypes.LOG_SUM_EXP_UNIT,
    }
