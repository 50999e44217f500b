"""The launches of a stage as stage.toml gives them: whoever has its kernels can launch them without its host code."""

from dataclasses import dataclass

from flashladder.core.errors import FlashLadderError
from flashladder.core.expression import evaluate
from flashladder.core.problem import Problem
from flashladder.ladder.kernels import Kernel

_TYPES = {  # C++, mangled
    "fp16": ("__half", "6__half"),
    "bf16": ("__nv_bfloat16", "13__nv_bfloat16"),
    "e4m3": ("e4m3", "4e4m3"),
}


@dataclass(frozen=True)
class Launch:
    """One kernel launch for one problem; the kernel takes the FlashParams of attention.h, and with boxes
    the TensorMaps of tensor_maps.h behind them."""

    kernel: str
    template: tuple[str, ...]  # of "T" (the element type) and "d_head"
    grid: tuple[int, int, int]
    threads: int
    shared_bytes: int  # dynamic
    boxes: tuple[int, int] | None = None  # rows that one copy of TMA brings, of Q and of K and V; None: no tensor maps
    resident: bool = False  # as many blocks as there are multiprocessors, if there is work for them

    def instance(self, dtype: str, d_head: int) -> str:
        """As C++ names it: flash_kernel<__half, 64>. FlashLadderError where the template has other arguments, too."""
        words = {"T": _TYPES[dtype][0], "d_head": str(d_head)}
        others = [name for name in self.template if name not in words]
        if others:
            raise FlashLadderError(
                f"{self.kernel} has the template argument {others[0]}, for which stage.toml gives no C++: a stage with "
                "such a kernel cannot be graded."
            )
        return self.kernel + (f"<{', '.join(words[name] for name in self.template)}>" if self.template else "")

    def symbol(self, dtype: str, d_head: int) -> str:
        """As the compiler names it in the PTX (Itanium C++ ABI; a template's name has its return type). Of the same
        templates as instance()."""
        words = {"T": _TYPES[dtype][1], "d_head": f"Li{d_head}E"}
        arguments = f"I{''.join(words[name] for name in self.template)}Ev" if self.template else ""
        maps = "10TensorMaps" if self.boxes else ""
        return f"_Z{len(self.kernel)}{self.kernel}{arguments}11FlashParams{maps}"

    @property
    def parameters(self) -> str:
        """As C++ declares them."""
        return "FlashParams" + (", const __grid_constant__ TensorMaps" if self.boxes else "")


def for_head_dim(launch: dict, d_head: int) -> dict:
    """An entry of stage.toml's [[launch]] as it is at a head dim: [launch.d_head_64] has what differs at 64."""
    return launch | launch.get(f"d_head_{d_head}", {})


def _names(problem: Problem, launch: dict) -> dict[str, int]:
    names = {name: getattr(problem, name) for name in ("B", "Hq", "Hkv", "Nq", "Nkv", "d_head")}
    return names | {name: launch[name] for name in ("Br", "Bc") if name in launch}


def launches(stage: Kernel, problem: Problem, multiprocessors: int | None = None) -> list[Launch]:
    """What the stage's launcher queues for the problem, in order, on a device with so many multiprocessors: by default
    the one that the simulator plays for the stage. FlashLadderError names a wrong expression."""
    found = []
    for launch in stage.data["launch"]:
        launch = for_head_dim(launch, problem.d_head)
        names = _names(problem, launch)
        names |= {"multiprocessors": multiprocessors or stage.data.get("simulated_multiprocessors", 132)}
        grid = tuple(evaluate(expression, names) for expression in launch["grid"])
        shared_bytes = evaluate(launch["shared_bytes"], names)
        boxes = tuple(evaluate(rows, names) for rows in launch["boxes"]) if "boxes" in launch else None
        resident = "multiprocessors" in launch["grid"][0]
        template = tuple(launch["template"])
        found.append(Launch(launch["kernel"], template, grid, launch["threads"], shared_bytes, boxes, resident))
    return found


def workspace_bytes(stage: Kernel, problem: Problem) -> int:
    """Scratch in device memory that the stage needs for the problem."""
    expression = stage.data.get("workspace", {}).get("bytes", "0")
    return evaluate(expression, _names(problem, for_head_dim(stage.data["launch"][-1], problem.d_head)))
