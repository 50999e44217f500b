"""Every test here runs for every stage, or for the one that `make stage-NN test` names (FLASHLADDER_STAGE)."""

import collections
import os
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


# Of these stages, the first of their kind or the last of a part, all tests that are not marked long are in `make test`.
# Of the others, which change one thing of a neighbour, `make test-long` draws cases of the files below.
IN_FULL = ("naive", "tensor_cores", "masking", "wgmma", "shapes", "fp8")
LONGER = (
    "test_masking", "test_masking_properties", "test_correctness", "test_refusals", "test_lengths", "test_ptxas_notes",
)  # fmt: skip
OF_EACH_STAGE = ("test_types_and_head_dims", "test_sizes_one_after_another", "test_what_ptxas_repairs_it_says")
# Of these tests' cases, which differ in little, one of so many is in `make test`.
QUICK = {
    "test_groups_of_heads": 4, "test_every_pair_of_lengths": 4, "test_the_future_changes_nothing": 4,
    "test_small_problems": 4, "test_adversarial_inputs_behind_a_mask": 4, "test_sizes_one_after_another": 3,
    "test_long_rows": 3, "test_strides": 2, "test_adversarial_inputs": 2, "test_types_and_head_dims": 2,
    "test_the_technique_is_used": 3, "test_the_stage_before_lacks_it": 3, "test_the_kernel_itself_passes": 4,
    "test_the_kernel_itself_passes_built_like_a_mistake": 2, "test_mistake_is_caught": 2, "test_right_result": 3,
    "test_launch_data": 4, "test_what_ptxas_repairs_it_says": 5,
    "test_a_kernel_that_multiplies_in_32_bits_is_noticed": 3, "test_offsets_beyond_32_bits": 3,
    "test_some_stubs_compile_and_are_not_right": 2,
    "test_the_shipped_kernel_has_no_note_and_no_spill": 3,
}  # fmt: skip
OF_INSTANCES = 6  # of the tests of each instance that a kernel chooses from


def _only_some_are_quick(items, of: int, seed: str) -> None:
    """Marks all but each of-th of the items that are not long as long."""
    swift = [item for item in items if not item.get_closest_marker("long")]
    quick = drawn(seed, swift, of)
    for item in swift:
        if id(item) not in quick:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(tryfirst=True)  # before those of another length are left out
def pytest_collection_modifyitems(config, items):
    """Which tests are long, and which are left out of both unless FLASHLADDER_WHOLE is set. `make stage-NN test` runs
    all of a stage."""
    if os.environ.get("FLASHLADDER_STAGE"):
        return
    between, instances, named = (collections.defaultdict(list) for _ in range(3))
    for item in items:
        params = item.callspec.params if getattr(item, "callspec", None) else {}
        longer = item.module.__name__.split(".")[-1] in LONGER and item.originalname not in OF_EACH_STAGE
        if "stage" in params and params["stage"].slug not in IN_FULL and longer:
            between[item.originalname].append(item)
            item.add_marker(pytest.mark.long)
        if isinstance(params.get("c"), Built):
            instances[item.originalname].append(item)
        elif getattr(item, "originalname", None) in QUICK and item.path.parent == Path(__file__).parent:
            named[item.originalname].append(item)
    for name, own in instances.items():
        _only_some_are_quick(own, OF_INSTANCES, name)
    for name, own in named.items():
        _only_some_are_quick(own, QUICK[name], name)
    if not WHOLE:
        tried = set().union(*(drawn(kernels() + name, own, 3) for name, own in between.items()))
        left_out = [item for own in between.values() for item in own if id(item) not in tried]
        config.hook.pytest_deselected(items=left_out)
        gone = {id(item) for item in left_out}
        items[:] = [item for item in items if id(item) not in gone]


def pytest_generate_tests(metafunc):
    if "stage" in metafunc.fixturenames:
        name = metafunc.module.__name__
        which = masking_stages if name.startswith("test_masking") else chosen_stages
        which = {"test_e4m3": e4m3_stages, "test_exercises": stages_with_exercises}.get(name, which)
        metafunc.parametrize("stage", which(), ids=lambda stage: stage.name)


@pytest.fixture(autouse=True)
def built(request):
    if "stage" in request.fixturenames:
        stage = request.getfixturevalue("stage")
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
