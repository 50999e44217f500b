"""API pages of the headers, made of their own comments (headers.py) for Sphinx's domains of C and C++."""

import re
import textwrap
from dataclasses import dataclass

from flashladder.core.paths import ROOT
from flashladder.site import headers


@dataclass(frozen=True)
class Page:
    title: str
    intro: str
    files: tuple[str, ...]
    domain: str  # "c" or "cpp"
    namespace: str = ""
    kinds: tuple[str, ...] = ("struct", "enum", "function")


PAGES = {
    "api/attention.rst": Page(
        "attention.h: the C ABI of a stage",
        "Each stage is a shared library, ``build/lib/libstage_NN.so``, that exports these three functions. "
        "``flashladder.core.abi`` mirrors the structures for Python.",
        ("common/include/attention.h",),
        "c",
    ),
    "api/ptx.rst": Page(
        "ptx.cuh: one function per instruction",
        "What the kernels call in place of inline PTX; all are functions of the device.",
        ("common/include/ptx.cuh",),
        "cpp",
        "ptx",
    ),
    "api/ptx_hopper.rst": Page(
        "ptx_hopper.cuh and wgmma.cuh: Hopper's instructions",
        "What the kernels from stage tma on call: mbarriers, tensor maps, wgmma and what goes with them.",
        ("common/include/ptx_hopper.cuh", "common/include/wgmma.cuh"),
        "cpp",
        "ptx",
    ),
    "api/report.rst": Page(
        "The simulator's report",
        "What warpsim counts for each launch, and the kinds of hazards. ``WARPSIM_REPORT=file`` writes it as JSON, "
        "``report/json.cpp`` says in which order; counters that belong together stand in an object, as "
        "``instructions`` with ``total`` and ``by_class``. Instructions are PTX's. From Python: :doc:`python`.",
        ("common/simulator/core/statistics.h", "common/simulator/core/hazard_kind.h"),
        "cpp",
        "warpsim",
        ("struct", "enum"),
    ),
}
_DIRECTIVES = {"struct": "struct", "enum": "enum", "value": "enumerator", "member": "member", "function": "function"}
# Names of the code in a comment: in backticks, with an underscore, in capitals, or called.
_NAME = re.compile(r"`([^`\n]+)`|(?<![\w`.])(\w+\(\)|[A-Za-z][\w.]*_\w+(?:\.\w+)?|[A-Z]{2,}_[A-Z_]+)(?![\w`])")


def pages() -> dict[str, str]:
    return {place: page(one) for place, one in PAGES.items()}


def page(one: Page) -> str:
    parts = [f"{one.title}\n{'=' * len(one.title)}", one.intro]
    for name in one.files:
        text = (ROOT / name).read_text()
        parts.append(f"Declared in ``{name}``: {prose(_head(text))}")
        if one.namespace:
            parts.append(f".. {one.domain}:namespace:: {one.namespace}")
        parts += [directive(entry, one.domain) for entry in headers.read(text) if entry.kind in one.kinds]
    return "\n\n".join(parts) + "\n"


def _head(text: str) -> str:
    """The comment at the top of a header."""
    lines = text.split("#pragma once")[0].splitlines()
    return " ".join(line.removeprefix("//").strip() for line in lines)


def prose(comment: str) -> str:
    """A comment as reStructuredText: names as code, nothing else taken for a mark."""
    parts, end = [], 0
    for name in _NAME.finditer(comment):
        parts += [_plain(comment[end : name.start()]), f"``{name[1] or name[2]}``"]
        end = name.end()
    return "".join([*parts, _plain(comment[end:])])


def _plain(words: str) -> str:
    return re.sub(r"([\\*`|_])", r"\\\1", words)


def directive(entry: headers.Declaration, domain: str) -> str:
    start = f".. {domain}:{_DIRECTIVES[entry.kind]}:: "
    parts = [start + f"\n{' ' * len(start)}".join(entry.names)]
    if entry.comment:
        parts.append(textwrap.indent(prose(entry.comment), "   "))
    parts += [textwrap.indent(directive(member, domain), "   ") for member in entry.members]
    return "\n\n".join(parts)
