"""Which stages the tests here run for: every one, or the one that `make stage-NN test` names (FLASHLADDER_STAGE)."""

import os

from flashladder.classroom.exercise import exercises
from flashladder.ladder import stages


def tried(of: int) -> int:
    """For shares.share(): each of-th case; each one where `make stage-NN test` runs all of a stage's tests."""
    return 1 if os.environ.get("FLASHLADDER_STAGE") else of


def chosen_stages() -> list[stages.Stage]:
    """Of those with a kernel: a program such as stage 00 has tests of its own, and none of these."""
    return of_chosen(stages.all_stages())


def of_chosen(every) -> list[stages.Stage]:
    only = os.environ.get("FLASHLADDER_STAGE")
    return [stage for stage in every if not only or stage == stages.entry(only)]


def stages_with_exercises() -> list[stages.Stage]:
    """Those of chosen_stages(), and of the other parts those that have some."""
    return chosen_stages() + of_chosen([stage for stage in stages.other_parts() if exercises(stage)])


def masking_stages() -> list[stages.Stage]:
    """Those that take causal problems, any lengths and groups of heads; test_description holds them to it."""
    return [stage for stage in chosen_stages() if stage.data.get("masks")]


def e4m3_stages() -> list[stages.Stage]:
    return [stage for stage in chosen_stages() if "e4m3" in stage.dtypes]
