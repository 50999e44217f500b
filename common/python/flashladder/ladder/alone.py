"""One instance of a stage whose kernel is built as a table of them, as a stage with one kernel: a whole kernel that
somebody writes for such a stage is judged so."""

import re
from dataclasses import replace

from flashladder.core.problem import Problem
from flashladder.ladder import technique
from flashladder.ladder.kernels import Kernel
from flashladder.ladder.launches import instances

D_HEAD = 128


def alone(stage: Kernel) -> Kernel:
    """The instance of stage.toml's launch, bf16 at d_head 128. A kernel.cu may be of this instance alone, or have the
    stage's table, of which then this line is built (`only_instance`)."""
    name = stage.configuration(Problem(d_head=D_HEAD, dtype="bf16"))
    instance = next(one for one in instances(stage) if one.configuration == name)
    *others, launch = stage.data["launch"]
    values = {name: value for name, value in zip(launch["fields"], instance.fields) if value.isdecimal()}
    values = {name: value for name, value in values.items() if name not in launch}  # Br and Bc keep their names
    kept = {name: value for name, value in launch.items() if name not in ("configuration", "fields")}
    kept |= {
        "template": ["T", "d_head"],
        "shared_bytes": _with(launch["shared_bytes"], values),
        "grid": [_with(one, values).replace("min(1 * ", "min(") for one in launch["grid"]],
    }
    return replace(
        stage,
        data=stage.data
        | {
            "launch": [*others, kept],
            "dtypes": ["bf16"],
            "d_heads": [D_HEAD],
            "judged_build": f"BF16_{D_HEAD}",
            "judged_by": [_plain(one) for one in stage.data["judged_by"] if _is_of(one, name)],
            "expected": [one for one in stage.data["expected"] if not one.get("own_choice")],
            "keeps": [one for one in stage.data["keeps"] if not _own_choice(one)],
            "only_instance": name,
        },
    )


def _with(expression: str, values: dict[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda word: values.get(word[0], word[0]), expression)


def _is_of(entry: dict, name: str) -> bool:
    return entry.get("d_head", D_HEAD) == D_HEAD and entry.get("configuration", name) == name


def _plain(entry: dict) -> dict:
    return {name: value for name, value in entry.items() if name != "configuration"}


def _own_choice(kept: str) -> bool:
    """Whether an expectation is of runs that choose an instance."""
    slug, _, name = kept.partition(".")
    return any(one.own_choice for one in technique.expectations(slug) if one.name == name)
