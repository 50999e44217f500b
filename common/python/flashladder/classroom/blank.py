"""A whole kernel from a blank page: what of it can be judged one by one, and what the page holds at first.

stages/NN_name/exercises.toml describes the subgoals; the page is made of stage.toml and the stage's own source, so that
nothing is written twice. With `give`, the lines of the first subgoals are on it, as the stage has them.
"""

import re
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path

from flashladder.classroom.exercise import entries, place
from flashladder.classroom.shown import KINDS
from flashladder.core.errors import FlashLadderError, named
from flashladder.core.paths import work_directory
from flashladder.core.problem import Problem
from flashladder.ladder import source, stages, technique
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


WHOLE = "whole"  # the last subgoal's name: O is right, nothing races, the technique is used
_SUBGOAL = {"name", "title", "minutes", "shows", "task", "lines", "shown", "mistake", "one_instance"}


@dataclass(frozen=True)
class Lines:
    """Lines of the stage's source that a subgoal is about; `stub` stands in for them where they are not given."""

    first: int
    last: int
    stub: str = ""


@dataclass(frozen=True)
class Mistake:
    """For the tests: what makes the subgoal fail, as a change of text in the stage's source."""

    before: str
    after: str


@dataclass(frozen=True)
class Subgoal:
    name: str
    title: str
    minutes: int
    task: str
    shows: tuple[str, ...]  # of shown.KINDS; empty: of the whole
    lines: tuple[Lines, ...] = field(repr=False)
    shown: tuple[tuple[str, str], ...] = field(repr=False)  # (a text of the line before which they stand, lines)
    mistake: Mistake = field(repr=False)


@dataclass(frozen=True)
class Page:
    stage: Kernel
    subgoals: tuple[Subgoal, ...]  # the last one is the whole

    @property
    def minutes(self) -> int:
        return sum(one.minutes for one in self.subgoals)

    def subgoal(self, name: str) -> Subgoal:
        return named(self.subgoals, name, f"Stage {self.stage.id}", "subgoal")

    @property
    def file(self) -> Path:
        """Where `make new` writes it, unless a file is named."""
        return work_directory() / self.stage.id / "kernel.cu"


_ONLY_WHOLE = Subgoal(
    name=WHOLE,
    title="O",
    minutes=240,
    task="The whole is judged at several sizes, by both types and head dims, for hazards, and by what the stage's "
    "technique must show of itself.",
    shows=(),
    lines=(),
    shown=(),
    mistake=Mistake("", ""),
)


def has_page(stage: stages.Stage) -> bool:
    return bool(entries(stage, "subgoal"))


def pages() -> list[Page]:
    return [page(stage) for stage in stages.every_stage() if has_page(stage)]


def page(which: stages.Stage | int | str) -> Page:
    """What exercises.toml says; of a kernel without subgoals a page with the whole alone. FlashLadderError says what is
    wrong with the file, or that the stage is no kernel."""
    stage = stages.entry(which)
    if not isinstance(stage, Kernel):
        what = getattr(stage, "WHAT", "is a program of the host and no kernel")
        instead = f" Lines of it are: `make exercise-{stage.id}`." if entries(stage, "exercise") else ""
        raise FlashLadderError(f"Stage {stage.id} {what}: it is not asked for as a whole kernel.{instead}")
    described = entries(stage, "subgoal")
    if not described:
        return Page(stage, (_ONLY_WHOLE,))
    try:
        stage = alone(stage) if any(entry.get("one_instance") for entry in described) else stage
        found = tuple(_subgoal(stage, entry) for entry in described)
    except (KeyError, TypeError) as error:
        raise FlashLadderError(f"{place(stage)}: {error!r}") from error
    if found[-1].name != WHOLE or any(one.shows == () for one in found[:-1]):
        raise FlashLadderError(f"{place(stage)}: the last subgoal is '{WHOLE}', all others show something.")
    return Page(stage, found)


def _subgoal(stage: Kernel, entry: dict) -> Subgoal:
    where = f"{place(stage)}, {entry.get('name', '?')}"
    if set(entry) - _SUBGOAL or not {"name", "title", "minutes", "task", "mistake"} <= set(entry):
        raise FlashLadderError(
            f"{where}: a subgoal has {', '.join(sorted(_SUBGOAL))}; shows, lines, shown, one_instance may be left out."
        )
    unknown = set(entry.get("shows", ())) - set(KINDS)
    if unknown:
        raise FlashLadderError(f"{where}: '{sorted(unknown)[0]}' is nothing to show: {', '.join(KINDS)}.")
    return Subgoal(
        name=entry["name"],
        title=entry["title"],
        minutes=entry["minutes"],
        task=entry["task"].strip(),
        shows=tuple(entry.get("shows", ())),
        lines=tuple(_lines(stage, one, where) for one in entry.get("lines", ())),
        shown=tuple((one["before"], one["text"].strip("\n")) for one in entry.get("shown", ())),
        mistake=Mistake(entry["mistake"]["from"], entry["mistake"]["to"]),
    )


def _lines(stage: Kernel, entry: dict, where: str) -> Lines:
    """A part of the source, whole; or within it from the line with the text `first` to the next one with `last`, or to
    the one before that with `until`."""
    if set(entry) - {"part", "first", "last", "until", "stub"}:
        raise FlashLadderError(f"{where}: lines have part, and perhaps first, last or until, and stub; these: {entry}.")
    part = source.find(stage.source, entry["part"])
    lines, first, last = stage.source.read_text().splitlines(), part.first, part.last
    if "first" in entry:
        first = _line_with(lines, entry["first"], part.first, part.last, where)
    if "last" in entry:
        last = _line_with(lines, entry["last"], first, part.last, where, only=False)
    if "until" in entry:
        last = _line_with(lines, entry["until"], first + 1, part.last, where, only=False) - 1
    return Lines(first, last, entry.get("stub", "").strip("\n"))


def _line_with(lines: list[str], text: str, first: int, last: int, where: str, only: bool = True) -> int:
    found = [number for number in range(first, last + 1) if text in lines[number - 1]]
    if not found or only and len(found) > 1:
        many = f"stands in lines {', '.join(map(str, found))}" if found else "stands in no line"
        raise FlashLadderError(f"{where}: {text!r} {many} of kernel.cu from {first} to {last}: it must be in one.")
    return found[0]


# ---- what the page holds ----


def skeleton(one: Page, give: str = "") -> str:
    """A file that compiles and writes nothing yet: signature and launch; or, with the name of a subgoal, the stage's
    source up to it, and the calls that show it."""
    head = _heading(one, give)
    return head + (_given(one, give) if give else _empty(one.stage))


def _heading(one: Page, give: str) -> str:
    command, place = f"make check STAGE={one.stage.id}", f"work/{one.stage.id}/kernel.cu"
    said = [
        f"Stage {one.stage.id}, {one.stage.title}, from a blank page: {one.stage.technique}.",
        f"`{command}` judges {place}, with KERNEL=FILE another file, with PART=NAME one of these parts:",
    ]
    if "only_instance" in one.stage.data:
        said += [
            "",
            f"Of the stage's instances this is {one.stage.data['only_instance']}. It is judged by bf16 at d_head 128 "
            "alone: what differs between instances is not asked for.",
        ]
    given = [part.name for part in one.subgoals[: 1 + [part.name for part in one.subgoals].index(give)]] if give else []
    for part in one.subgoals:
        there = " (given)" if part.name in given else ""
        said += ["", f"{part.name}{there}: {part.title}, about {part.minutes} minutes."]
        said += [] if there else part.task.splitlines()
    said += ["", "What the technique must show, by the simulator's counters:"]
    asked = technique.expectations(one.stage)
    one_instance = "only_instance" in one.stage.data  # then there is nothing to choose
    said += [f"- {expected.says}" for expected in asked if not (one_instance and expected.own_choice)]
    wrapped = (textwrap.wrap(line, 116, break_long_words=False, break_on_hyphens=False) or [""] for line in said)
    return "".join(f"// {line}".rstrip() + "\n" for lines in wrapped for line in lines) + "\n"


def given(text: str) -> set[str]:
    """The names of the subgoals that a page's heading says are given."""
    return set(re.findall(r"^// (\w+) \(given\):", text, re.M))


def _empty(stage: Kernel) -> str:
    """Nothing but what the launch has to know."""
    if len(stage.data["launch"]) > 1 or "configuration" in stage.data["launch"][-1]:
        many = "a table of instances" if "configuration" in stage.data["launch"][-1] else "several kernels"
        there = ", ".join(one.stage.id for one in pages())
        raise FlashLadderError(
            f"Stage {stage.id} has {many}: no page is written for it, though `make check` judges a file of yours that "
            f"has all of it. Stages {there} have pages with parts."
        )
    text, launch = stage.source.read_text(), stage.data["launch"][-1]
    includes = [line for line in re.findall(r"^#include \S+", text, re.M) if line not in _OF_A_TABLE]
    constants = [f"constexpr int {name} = {launch[name]};" for name in ("Br", "Bc", "threads") if name in launch]
    return "\n".join(
        [
            *includes,
            '#include "show.cuh"',
            "",
            *constants,
            "",
            f"// grid: ({', '.join(launch['grid'])})",
            f"// dynamic shared memory: {launch['shared_bytes']} bytes",
            _signature(stage, text),
            "    // Your kernel.",
            "}",
            "",
            _launcher(stage),
        ]
    )


_OF_A_TABLE = ('#include "configured.h"', '#include "instances.h"')


def _signature(stage: Kernel, text: str) -> str:
    kernel = stage.data["launch"][-1]["kernel"]
    if "only_instance" in stage.data:
        parameters = "const FlashParams params, const __grid_constant__ TensorMaps maps"
        bounds = f"void __launch_bounds__(threads, 1)\n    {kernel}({parameters}) {{"
        return f"template <typename T, int d_head>\n__global__ {bounds}"
    found = re.search(rf"^template [^\n]*\n__global__[^{{]*?{kernel}\([^{{]*\{{", text, re.M)
    return found[0].replace(", int Br>", ">").replace("threads<Br>", "threads")  # a page has one Br, a constant


def _launcher(stage: Kernel) -> str:
    """The part "launch" of the source, with the plan as stage.toml has it: the source's speaks of the solution."""
    text, launch = source.find(stage.source, "launch").text, stage.data["launch"][-1]
    fields = {
        "kernel": f"{launch['kernel']}<{', '.join(one for one in launch['template'] if one != 'Br')}>",
        "grid": _grid(launch["grid"]),
        "threads": "threads",
        "shared_bytes": f"size_t({_in_cpp(launch['shared_bytes'])})",
    }
    if "boxes" in launch:
        fields |= dict(zip(("Q_box_rows", "KV_box_rows"), map(_in_cpp, launch["boxes"])))
    lines = ",\n".join(f"            .{name} = {value}" for name, value in fields.items())
    table = "only_instance" in stage.data
    choose = _CHOOSE if table else re.search(r"return (flash::choose\w*\(params, \[&\]<[^>]*>\(\) \{)", text)[1]
    plan = f"""static flash::Launch plan(const FlashParams &params) {{
    return {choose}
        return flash::Launch{{
{lines}}};
    }});
}}"""
    if table:
        limits = re.search(r"^constexpr flash::Limits limits = \{.*?\};[^\n]*", text, re.M | re.S)[0]
        limits = re.sub(r"(\n *)(\.min_compute = \d+,)", r"\1\2\1.Br = Br,\1.Bc = Bc,", limits)
        return f"// ---- launch ----\n\n{limits}\n\n{plan}\n\n{_ENTRIES}"
    of_several_Br = r"^template [^\n]*\nstatic flash::Launch plan_for.*?^\}\n(\n//[^\n]*)*\n"
    text = re.sub(of_several_Br, "", text, flags=re.M | re.S)
    return re.sub(r"^static flash::Launch plan\(.*?^\}", lambda _: plan, text, flags=re.M | re.S) + "\n"


# The launcher of a kernel that has no table, where the stage's has one.
_CHOOSE = "flash::choose(params, [&]<typename T, int d_head>() {"
_ENTRIES = """extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    const FlashStatus status = flash::check(params, limits);
    return status == FLASH_OK ? flash::launch(plan(*params), *params, stream) : status;
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits);
    return status == FLASH_OK ? flash::describe(limits, plan(*params), 0, description) : status;
}
"""


def _grid(expressions: list[str]) -> str:
    persistent = re.fullmatch(r"min\(multiprocessors, (.*)\)", expressions[0])
    if persistent:
        return f"flash::persistent({_in_cpp(persistent[1])})"
    grid = ", ".join(map(_in_cpp, expressions))
    return f"dim3({grid.replace('multiprocessors', 'int(flash::persistent(1 << 30).x)')})"


def _in_cpp(expression: str) -> str:
    """An expression of stage.toml in the launcher: sizes are the parameters', whole numbers divide alike."""
    return re.sub(r"\b(B|Hq|Hkv|Nq|Nkv)\b", r"params.\1", expression)


def _given(one: Page, give: str) -> str:
    """The stage's source without the lines of the subgoals behind `give`, and what shows the others."""
    names = [part.name for part in one.subgoals]
    given = one.subgoals[: 1 + names.index(one.subgoal(give).name)]
    lines = one.stage.source.read_text().splitlines()
    left_out: dict[int, tuple[Subgoal, Lines]] = {}
    for part in reversed(one.subgoals[len(given) :]):  # the next one's stub stands for what comes after it, too
        for piece in part.lines:
            left_out |= {number: (part, piece) for number in range(piece.first, piece.last + 1)}
    calls: dict[int, list[str]] = {}
    for part in given:
        for before, text in part.shown:
            number = _line_with(lines, before, 1, len(lines), f"{place(one.stage)}, {part.name}")
            if number not in left_out or not left_out[number][1].stub:  # a stub has its own calls
                calls.setdefault(number, []).extend(text.splitlines())
    kernel = next(number for number, line in enumerate(lines, 1) if line.startswith("__global__"))
    last_include = max(number for number, line in enumerate(lines[:kernel], 1) if line.startswith("#include"))
    found = []
    first_code = next(number for number, line in enumerate(lines, 1) if not line.startswith("//"))
    told: set[Lines] = set()
    for number, line in enumerate(lines, 1):
        if number < first_code:  # the stage's own heading speaks of all of it
            continue
        found += calls.get(number, [])
        if number not in left_out:
            found.append(line)
        else:
            part, piece = left_out[number]
            if piece not in told:
                indent = re.match(r"\s*", line)[0]
                found.append(f"{indent}// Yours: {part.name}.")
                found += piece.stub.splitlines()
                told.add(piece)
        if number == last_include:
            found.append('#include "show.cuh"')
    return "\n".join(found).strip("\n") + "\n"
