"""Every test here runs for every stage, or for the one that `make stage-NN test` names (FLASHLADDER_STAGE)."""

import collections
import os

import pytest
from chosen import chosen_stages, e4m3_stages, masking_stages
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


@pytest.hookimpl(tryfirst=True)  # before those of another length are left out
def pytest_collection_modifyitems(config, items):
    """Which tests are long, and which are left out of both unless FLASHLADDER_WHOLE is set. `make stage-NN test` runs
    all of a stage."""
    if os.environ.get("FLASHLADDER_STAGE"):
        return
    between, instances = collections.defaultdict(list), collections.defaultdict(list)
    for item in items:
        params = item.callspec.params if getattr(item, "callspec", None) else {}
        longer = item.module.__name__.split(".")[-1] in LONGER and item.originalname not in OF_EACH_STAGE
        if "stage" in params and params["stage"].slug not in IN_FULL and longer:
            between[item.originalname].append(item)
            item.add_marker(pytest.mark.long)
        if isinstance(params.get("c"), Built):
            instances[item.originalname].append(item)
    for name, own in instances.items():
        quick = drawn(name, own, 3)
        for item in own:
            if id(item) not in quick:
                item.add_marker(pytest.mark.long)
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
        which = e4m3_stages if name == "test_e4m3" else which
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
