"""What the tests of grading share: a small assignment, a sandbox of the best level that there is, and the simulator."""

from pathlib import Path

import pytest

from flashladder.classroom import isolation
from flashladder.classroom.assignment import Assignment, Item, Sizes
from flashladder.classroom.device_code import Sandbox
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, simulator_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages

SIMULATOR = Device("sim", None)


@pytest.fixture(scope="session")
def built():
    if not simulator_library().exists() or not (build_directory() / "compile_commands.json").exists():
        pytest.skip("the simulator is not built yet: run `make build`")


@pytest.fixture(scope="session")
def level(built) -> isolation.Level:
    try:
        return isolation.choose()
    except FlashLadderError as error:
        pytest.skip(f"no isolation here: {error}")


@pytest.fixture
def sandbox(level, tmp_path) -> Sandbox:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Sandbox(level, SIMULATOR, 1, scratch)


def assignment_for(stage: stages.Kernel, *names: str, sizes: tuple[Sizes, ...] = ()) -> Assignment:
    """An assignment of these exercises of a stage, by a public class and a hidden one."""
    launch = stage.data["launch"][-1]
    Br, Bc = launch.get("Br", 32), launch.get("Bc", 32)
    sizes = sizes or (
        Sizes("public", True, "normal", (Problem(Hq=2, Nq=Br, Nkv=2 * Bc, d_head=64),)),
        Sizes("hidden", False, "normal", (Problem(B=2, Hq=1, Nq=2 * Br, Nkv=3 * Bc, d_head=128, dtype="fp16"),)),
    )
    return Assignment(
        name="test",
        title="A test",
        deadline="never",
        text="",
        items=tuple(Item(stage.number, name, 100 / len(names)) for name in names),
        sizes=sizes,
        public_seeds=(1,),
        hidden_seeds=(2,),
        credit={"builds": 0.05, "correct": 0.5, "hazards": 0.2, "technique": 0.25},
        **_origin(),
    )


def _origin() -> dict:
    """Where an Assignment says that it is from."""
    fields = Assignment.__dataclass_fields__
    return {"source": "a test"} if "source" in fields else {"file": Path(__file__)}
