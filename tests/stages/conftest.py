"""Every test here runs for every stage, or for the one that `make stage-NN test` names (FLASHLADDER_STAGE)."""

import os

import pytest
from chosen import chosen_stages, e4m3_stages, masking_stages

from flashladder.core.paths import stage_library
from flashladder.ladder import stages

# A stage that takes whole tiles alone has nothing to do with these, one of 16-bit types nothing with that.
collect_ignore_glob = [] if masking_stages() else ["test_masking*.py"]
collect_ignore_glob += [] if e4m3_stages() else ["test_e4m3.py"]


# Stages that change one thing of a kernel whose neighbours are tested in `make test`: their longer tests are among the
# long ones, but in `make stage-NN test`, where all of the stage's tests are wanted.
BETWEEN = (
    "swizzle", "eager_kv", "fragment_tiles", "fast_softmax", "lean_addressing", "warp_specialization",
    "tile_scheduler", "ping_pong", "overlap", "no_gap",
)  # fmt: skip
LONGER = (
    "test_masking", "test_masking_properties", "test_correctness", "test_refusals", "test_lengths", "test_lost_bets",
)  # fmt: skip
OF_EACH_STAGE = ("test_types_and_head_dims",)


@pytest.hookimpl(tryfirst=True)  # before those of another length are left out
def pytest_collection_modifyitems(items):
    for item in items if not os.environ.get("FLASHLADDER_STAGE") else ():
        stage = getattr(item, "callspec", None) and item.callspec.params.get("stage")
        longer = item.module.__name__.split(".")[-1] in LONGER and item.originalname not in OF_EACH_STAGE
        if stage and stage.slug in BETWEEN and longer:
            item.add_marker(pytest.mark.long)


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
