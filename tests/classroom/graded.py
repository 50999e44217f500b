"""What the tests of grading share: a small assignment, and kernels that are no attention."""

import json
from dataclasses import asdict

from flashladder.classroom.assignment import Assignment, Item, Sizes
from flashladder.classroom.grading import Grade
from flashladder.core.device import Device
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.launches import instances

SIMULATOR = Device("sim", None)


def as_json(grade: Grade) -> str:
    return json.dumps(asdict(grade), indent=2, sort_keys=True)


def tile(number: int) -> tuple[int, int]:
    """(Br, Bc) of a stage; lengths that are ragged where a stage has no tile."""
    launch = stages.get(number).data["launch"][-1]
    return launch.get("Br", 25), launch.get("Bc", 35)


def ragged(number: int) -> tuple[Sizes, ...]:
    """A class of masks, lengths and grouped heads where a stage takes them, and of what runs on other instances."""
    stage = stages.get(number)
    if not (stage.data.get("masks") or instances(stage)):
        return ()
    given = [{name: entry[name] for name in entry if name != "configuration"} for entry in stage.data["judged_by"]]
    problems = dict.fromkeys(Problem(**{"d_head": 128 if instances(stage) else 64} | fields) for fields in given)
    return (Sizes("masks and lengths", False, "normal", tuple(problems)),)


def assignment_for(number: int, *names: str, sizes: tuple[Sizes, ...] = ()) -> Assignment:
    """An assignment of these exercises of a stage; without sizes by a public class and hidden ones."""
    Br, Bc = tile(number)
    sizes = sizes or (
        Sizes("public", True, "normal", (Problem(Hq=2, Nq=Br, Nkv=2 * Bc, d_head=64),)),
        Sizes("hidden", False, "normal", (Problem(B=2, Hq=1, Nq=2 * Br, Nkv=3 * Bc, d_head=128, dtype="fp16"),)),
        *ragged(number),
    )
    return Assignment(
        name="test",
        title="A test",
        deadline="never",
        text="",
        items=tuple(Item(number, name, 100 / len(names)) for name in names),
        sizes=sizes,
        hidden_seeds=(2,),
        hints=0,
        credit={"builds": 0.05, "correct": 0.5, "hazards": 0.2, "technique": 0.25},
        source=repr((number, names, sizes)),
    )


def tiny(body: str, before: str = "", after: str = "") -> str:
    """A kernel.cu that compiles in half a second and is launched as stage 05's, with this text in its kernel's body."""
    return f"""#include "launch.h"
{before}
template <typename T, int d_head>
__global__ void flash_kernel(const FlashParams params) {{
    const int64_t row = blockIdx.x * 128 + threadIdx.x;  // of Q and O
    T *O = static_cast<T *>(params.O.data) + blockIdx.z * params.O.stride_batch +
           blockIdx.y * params.O.stride_head + row * params.O.stride_row;
    {body}
}}
{after}
"""


ZEROS = "for (int x = 0; x < d_head; ++x) O[x] = T(0.0f);"


def assignment_text(*items: str, sizes: str = "") -> str:
    """The text of an assignment with these [[exercise]]s."""
    written = "\n".join(f"[[exercise]]\n{item}" for item in items)
    return f"""
title = "Small"
deadline = "Friday"
{written}
[[sizes]]
class = "whole tiles"
public = true
problems = [{{ Hq = 1, Nq = 128, Nkv = 128, d_head = 128 }}]
{sizes}
[hidden]
seeds = [2]
[credit]
builds = 0.1
correct = 0.5
hazards = 0.2
technique = 0.2
"""
