"""Every test here runs for every stage, or for the one that `make stage-NN test` names (FLASHLADDER_STAGE)."""

import collections
import os
import random
from pathlib import Path

import pytest
from chosen import chosen_stages, e4m3_stages, masking_stages, stages_with_exercises
from kernels_built import Built
from shares import WHOLE, drawn, kernels

from flashladder.core.paths import stage_library
from flashladder.ladder import stages

# A stage that takes whole tiles alone has nothing to do with these, one of 16-bit types nothing with that.
collect_ignore_glob = [] if masking_stages() else ["test_masking*.py"]
collect_ignore_glob += [] if e4m3_stages() else ["test_e4m3.py"]
OTHER_PARTS = ["test_backward.py", "test_decode.py"]
collect_ignore_glob += OTHER_PARTS if os.environ.get("FLASHLADDER_STAGE") and chosen_stages() else []


# What `make test` runs of these tests; a new stage follows without an edit. Of each stage all cases of OF_EACH_STAGE,
# and what only reads its files. Of all other tests of a file one case for each of FEW stages, which the file's name
# draws; and one case of each of ALIKE, whose cases are of one stage and differ in little. The others are long.
FEW = 2
OF_EACH_STAGE = (
    "test_types_head_dims_and_masks", "test_gradients_twice_over_one_workspace", "test_twice_over_one_workspace",
    "test_a_stage_is_found_by_its_name_and_by_its_number", "test_one_file_of_readable_length", "test_changes_one_thing",
    "test_a_changed_kernel_is_compiled_as_its_stage_is", "test_every_stage_expects_something_that_its_runs_show",
    "test_what_is_asked", "test_what_is_included_is_for_kernels",
)  # fmt: skip
ALIKE = (
    "test_offsets_beyond_32_bits", "test_a_kernel_that_multiplies_in_32_bits_is_noticed",
    "test_an_instance_of_the_table_is_right", "test_causal_each_block_has_what_the_model_says",
    "test_with_a_stages_flags_it_counts_and_computes_as_that_stage",
    "test_what_ptxas_repairs_it_says", "test_what_ptxas_does_with_registers_it_says",
    "test_the_kernel_itself_passes_built_like_a_mistake",
)  # fmt: skip

# Of the long ones `make test-long` runs all of these stages, the first of their kind or the last of a part. Of the
# others, which change one thing of a neighbour, it draws one case of six; but not of the files that are about what
# each stage has of its own, beyond what FEW has left of them.
IN_FULL = ("naive", "tensor_cores", "masking", "wgmma", "shapes", "fp8")
ITS_OWN = ("test_exercises", "test_mistakes", "test_technique")
# And one of so many cases of these, of whatever stage: they compile for seconds.
SELDOM = {"test_stubs_compile_and_are_not_right": 8, "test_the_shipped_source_is_right": 16}


def _stage_of(item):
    """The stage of whatever part that the test runs for; None where that is no parameter of it."""
    params = item.callspec.params if getattr(item, "callspec", None) else {}
    found = params.get("stage") or params.get("one") or params.get("c")
    found = found.stage if isinstance(found, Built) else found
    return found if hasattr(found, "slug") else None


def _chosen_by(name: str, some: list, few: int) -> list:
    """So many of them, the same ones for the same name in whatever process."""
    return random.Random(name).sample(some, min(few, len(some)))


def _quick(items: list) -> set[int]:
    """The id() of those of one file that are neither OF_EACH_STAGE nor long."""
    of_stages, alike = collections.defaultdict(list), collections.defaultdict(list)
    for item in items:
        if stage := _stage_of(item):
            of_stages[stage.slug].append(item)
        else:
            alike[item.originalname].append(item)
    found = [item for name, own in alike.items() for item in (_chosen_by(name, own, 1) if name in ALIKE else own)]
    for slug in _chosen_by(items[0].path.stem, list(of_stages), FEW):
        cases = collections.defaultdict(list)
        for item in of_stages[slug]:
            cases[item.originalname].append(item)
        found += [random.Random(name + slug).choice(own) for name, own in cases.items()]
    return {id(item) for item in found}


@pytest.hookimpl(tryfirst=True)  # before those of another length are left out
def pytest_collection_modifyitems(config, items):
    """Which tests are long, and which are left out of both unless FLASHLADDER_WHOLE is set. `make stage-NN test` runs
    all of a stage."""
    if os.environ.get("FLASHLADDER_STAGE"):
        return
    files, between = collections.defaultdict(list), collections.defaultdict(list)
    for item in items:
        if item.path.parent == Path(__file__).parent and getattr(item, "originalname", None) not in OF_EACH_STAGE:
            files[item.path.stem].append(item)
    for name, own in files.items():
        swift = [item for item in own if not item.get_closest_marker("long")]
        quick = _quick(swift) if swift else set()
        left = {id(item) for item in swift} - quick
        for item in own:
            if id(item) in left:
                item.add_marker(pytest.mark.long)
            stage = _stage_of(item)
            drawn_from = id(item) in left or name not in ITS_OWN and id(item) not in quick
            if stage and item.originalname in SELDOM:
                between["", item.originalname].append(item)
            elif stage and stage.slug not in IN_FULL and drawn_from:
                between[name, item.originalname].append(item)
    if not WHOLE:
        tried = (drawn(kernels() + name, own, SELDOM.get(name, 6)) for (_, name), own in between.items())
        tried = set().union(*tried)
        gone = {id(item) for own in between.values() for item in own} - tried
        config.hook.pytest_deselected(items=[item for item in items if id(item) in gone])
        items[:] = [item for item in items if id(item) not in gone]


def pytest_generate_tests(metafunc):
    if "stage" in metafunc.fixturenames:
        name = metafunc.module.__name__
        which = masking_stages if name.startswith("test_masking") else chosen_stages
        which = {"test_e4m3": e4m3_stages, "test_exercises": stages_with_exercises}.get(name, which)
        metafunc.parametrize("stage", which(), ids=lambda stage: stage.name)


@pytest.fixture(autouse=True)
def built(request):
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if stage := params.get("stage") or params.get("one"):
        assert stage_library(stage.number).exists(), f"stage {stage.id} is not built: run `make stage-{stage.id}`"


@pytest.fixture
def tile(stage) -> tuple[int, int]:
    """(Br, Bc) of the stage; what its lengths must be multiples of. 16 where a stage has no tile."""
    launch = stage.data["launch"][-1]
    return launch.get("Br", 16), launch.get("Bc", 16)


@pytest.fixture
def any_stage() -> stages.Stage:
    """For a test that needs one stage and not each of them."""
    return chosen_stages()[0]
