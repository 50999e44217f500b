"""The launches of a stage as stage.toml gives them: whoever has its kernels can launch them without its host code.

autotune and shapes have a kernel with several instances, told apart by a configuration; their instances.h is the table
of what is built. stage.toml's launch is of one of them; of the others the same expressions give the launch.
"""

import re
from dataclasses import dataclass

from flashladder.core.errors import FlashLadderError
from flashladder.core.expression import evaluate
from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel

_TYPES = {  # C++, mangled
    "fp16": ("__half", "6__half"),
    "bf16": ("__nv_bfloat16", "13__nv_bfloat16"),
    "e4m3": ("e4m3", "4e4m3"),
}
_INSTANCE = re.compile(r'^INSTANCE\(\w+, \d+, "(\((\w+), (\d+), (\d+), (\d+), (\d+)\): [^"]+)", ([^)]+)\)', re.M)


@dataclass(frozen=True)
class Instance:
    """A line of a stage's instances.h."""

    configuration: str  # its short form
    dtype: str
    d_head: int
    Br: int
    Bc: int
    warps: int
    fields: tuple[str, ...]  # of the kernel's struct Configuration, as C++ writes them


def instances(stage: WithKernel) -> list[Instance]:
    """Those that are built of a stage whose kernel has several, in the table's order; none of another stage."""
    table = stage.folder / "instances.h"
    if not table.exists():
        return []
    return [
        Instance(short_form, dtype.lower(), *map(int, numbers), tuple(fields.split(", ")))
        for short_form, dtype, *numbers, fields in _INSTANCE.findall(table.read_text())
    ]


def configurations(stage: WithKernel, problem: Problem) -> list[str | None]:
    """The short forms of all instances that take a problem; [None] of a stage with one kernel."""
    whole_tiles = "boxes" not in stage.launch
    found = [
        one.configuration
        for one in instances(stage)
        if (one.dtype, one.d_head) == (problem.dtype, problem.d_head)
        and not (whole_tiles and (problem.Nq % one.Br or problem.Nkv % one.Bc))
    ]
    return found or [stage.configuration(problem)]


@dataclass(frozen=True)
class Launch:
    """One kernel launch for one problem; the kernel takes the FlashParams of attention.h, and with boxes
    the TensorMaps of tensor_maps.h behind them."""

    kernel: str
    template: tuple[str, ...]  # of "T" (the element type), "d_head", "Br" and "configuration"
    grid: tuple[int, int, int]
    threads: int
    shared_bytes: int  # dynamic
    boxes: tuple[int, int] | None = None  # rows that one copy of TMA brings, of Q and of K and V; None: no tensor maps
    resident: int = 0  # blocks for each multiprocessor, if there is work for them; 0: a block for each piece of work
    fields: tuple[str, ...] = ()  # of the configuration
    Br: int = 0  # rows of Q in a query tile, where the kernel's template takes them

    def instance(self, dtype: str, d_head: int) -> str:
        """As C++ names it: flash_kernel<__half, 64>."""
        words = {"T": _TYPES[dtype][0], "d_head": str(d_head), "Br": str(self.Br)}
        words["configuration"] = f"Configuration{{{', '.join(self.fields)}}}"
        return self.kernel + (f"<{', '.join(words[name] for name in self.template)}>" if self.template else "")

    def symbol(self, dtype: str, d_head: int) -> str:
        """As the compiler names it in the PTX (Itanium C++ ABI; a template's name has its return type)."""
        words = {"T": _TYPES[dtype][1], "d_head": f"Li{d_head}E", "Br": f"Li{self.Br}E"}
        words["configuration"] = f"Xtl13Configuration{''.join(map(_mangled, self.fields))}EE"
        arguments = f"I{''.join(words[name] for name in self.template)}Ev" if self.template else ""
        maps = "10TensorMaps" if self.boxes else ""
        return f"_Z{len(self.kernel)}{self.kernel}{arguments}11FlashParams{maps}"

    @property
    def parameters(self) -> str:
        """As C++ declares them."""
        return "FlashParams" + (", const __grid_constant__ TensorMaps" if self.boxes else "")


def _mangled(value: str) -> str:
    """A bool or an int of C++ as a template argument: Lb1E, Li24E."""
    return f"Lb{int(value == 'true')}E" if value in ("true", "false") else f"Li{value}E"


def for_problem(launch: dict, problem: Problem) -> dict:
    """An entry of stage.toml's [[launch]] as it is for a problem: [launch.d_head_64] has what differs at that head dim,
    [launch.d_head_64_full] what differs there without a causal mask."""
    at_head_dim = f"d_head_{problem.d_head}"
    full = {} if problem.causal else launch.get(f"{at_head_dim}_full", {})
    return launch | launch.get(at_head_dim, {}) | full


def _names(stage: WithKernel, problem: Problem, launch: dict, multiprocessors: int | None = None) -> dict[str, int]:
    names = {name: getattr(problem, name) for name in ("B", "Hq", "Hkv", "Nq", "Nkv", "d_head")}
    names |= {name: launch[name] for name in ("Br", "Bc") if name in launch}
    names["causal"] = int(getattr(problem, "causal", False))
    names["multiprocessors"] = multiprocessors or stage.data.get("simulated_multiprocessors", 132)
    for name, expression in stage.data.get("names", {}).items():
        if name in names:
            raise FlashLadderError(f"{stage.name}/stage.toml: [names] has '{name}', which stands for something else.")
        names[name] = evaluate(expression, names)
    return names


def _instance(stage: WithKernel, problem: Problem, configuration: str | None) -> Instance | None:
    """By its short form, or the one that stage.toml's launch is of; None of a stage with one kernel."""
    name, table = configuration or stage.configuration(problem), instances(stage)
    found = [one for one in table if one.configuration == name]
    if name and table and not found:
        raise FlashLadderError(f"{stage.name} has no instance '{name}': its instances.h does not build it.")
    return found[0] if found else None


def launches(
    stage: WithKernel, problem: Problem, multiprocessors: int | None = None, configuration: str | None = None
) -> list[Launch]:
    """What the stage's launcher queues for the problem, in order, on a device with so many multiprocessors: by default
    the one that the simulator plays for the stage.

    configuration: of a stage whose kernel has several instances, the short form of one; None: stage.toml's.
    FlashLadderError names a wrong expression, or a configuration that is not built.
    """
    instance = _instance(stage, problem, configuration)
    found = []
    for launch in stage.data["launch"]:
        launch = for_problem(launch, problem)
        names, threads, fields = _names(stage, problem, launch, multiprocessors), launch["threads"], ()
        if instance:
            threads, fields = 32 * instance.warps, instance.fields
            names |= {"Br": instance.Br, "Bc": instance.Bc}
            known = zip(launch["fields"], fields, strict=True)
            names |= {name: int(value) for name, value in known if value.isdecimal()}
        grid = tuple(evaluate(expression, names) for expression in launch["grid"])
        shared_bytes = evaluate(launch["shared_bytes"], names)
        boxes = tuple(evaluate(rows, names) for rows in launch["boxes"]) if "boxes" in launch else None
        resident = names.get("blocks", 1) if "multiprocessors" in launch["grid"][0] else 0
        template = tuple(launch["template"])
        found.append(
            Launch(launch["kernel"], template, grid, threads, shared_bytes, boxes, resident, fields, names.get("Br", 0))
        )
    return found


def own_names(stage: WithKernel, problem: Problem) -> dict[str, int]:
    """What stage.toml's [names] are for the problem and the main launch; `splits` is 1 where it has none."""
    names = _names(stage, problem, for_problem(stage.launch, problem))
    return {"splits": 1} | {name: names[name] for name in stage.data.get("names", {})}


def workspace_bytes(stage: WithKernel, problem: Problem, which: str = "bytes") -> int:
    """Scratch in device memory that the stage needs for the problem; "zeroed_bytes": how much of it is zeroed."""
    expression = stage.data.get("workspace", {}).get(which, "0")
    return evaluate(expression, _names(stage, problem, for_problem(stage.launch, problem)))
