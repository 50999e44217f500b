"""The four tools of compute-sanitizer: what is called, and what its output says.

A tool takes seconds to start, and has nothing to say of most mistakes. So it is asked of several of a stage in one
process: a report names the library that launched the kernel, and what no report names has none. What does not come to
its end is asked about alone, and so is what that leaves open.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Callable

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
MOST_REPORTS = 300  # that a tool prints (--print-limit)
MORE_SECONDS = 15  # that a tool has for more reports, after its first
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_HEAD = re.compile(
    r"^========= (?=\S)(?!COMPUTE-SANITIZER|(?:ERROR|RACECHECK|LEAK) SUMMARY|Target |Error: process)([^\n]{1,120})",
    re.M,
)
_FAILED_CALL = "on CUDA API call"
# Behind the words that say of which kind a report is stands where.
_WHERE = re.compile(r" (?:at __|at 0x|in block|between|by thread|of size|on CUDA API) ?")


def version() -> str:
    """ "" where there is no compute-sanitizer."""
    if not shutil.which("compute-sanitizer"):
        return ""
    said = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"[Vv]ersion (\S+)", said)
    return found[1] if found else said.strip().splitlines()[-1]


def command(tool: str, backtrace: str = "no") -> list[str]:
    """backtrace: "host" has reports name libraries, which takes a while."""
    words = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99", "--show-backtrace", backtrace]
    words += ["--print-limit", str(MOST_REPORTS)]
    return words + (["--racecheck-report", "all"] if tool == "racecheck" else [])


def _found(heads: list[str], count: int, more: bool = False) -> dict:
    """more: than so many, but that is all that is known."""
    kinds = list(dict.fromkeys(_WHERE.split(head)[0] for head in heads))
    said = {"said": heads[0], "kinds": kinds} if heads else {}
    return {"outcome": "found", "reports": count} | said | ({"more": True} if more else {})


def enough() -> Callable[[str], bool]:
    """For signals.run_for: whether a tool has printed all that it prints, or its first report some seconds ago. Then it
    has noticed, and with many reports it takes minutes."""
    first: list[float] = []

    def asked(text: str) -> bool:
        reports = len(_HEAD.findall(text))
        if reports and not first:
            first.append(time.monotonic())
        return reports >= MOST_REPORTS or bool(first) and time.monotonic() > first[0] + MORE_SECONDS

    return asked


def cell(tool: str, status: int, text: str, seconds: float) -> dict:
    """Of a run that had so many seconds."""
    heads, summary = _HEAD.findall(text), _SUMMARY.search(text)
    if status == 124 and heads:
        return _found(heads, len(heads), more=True)
    if status == 124:
        return {"outcome": "limit", "seconds": round(seconds, 1)}
    if not summary:
        return {"outcome": "failed", "said": f"status {status}: {text.strip()[-120:]}"}
    count = int(summary[1])
    if count == 0:
        return {"outcome": "nothing"}
    return _found(heads, count, more=tool == "racecheck" and count >= MOST_REPORTS)  # it counts what it prints


def told_apart(text: str, names: list[str], ended: list[bool]) -> dict[str, dict]:
    """cell() of each library of which it is known, of those that ran in this order under a tool; {} of one that did
    not end, and of which no report was printed.

    ended: which of them came to their end. Where a report names no library or two, nothing is known; where more were
    found than are printed, or the tool was ended, nothing of those behind the last that is named."""
    summary, found = _SUMMARY.search(text), list(_HEAD.finditer(text))
    reports = [text[one.start() : two.start()] for one, two in zip(found, found[1:], strict=False)]
    if summary and found:
        reports.append(text[found[-1].start() : summary.start()])
    heads: dict[str, list[str]] = {}
    for head, report in zip(found, reports, strict=False):
        named = [name for name in names if name in report]
        if not named and heads and _FAILED_CALL in report:  # what such an error is noticed by
            named = list(heads)[-1:]
        if len(named) != 1:
            return {}
        heads.setdefault(named[0], []).append(head[1])
    whole = bool(summary) and int(summary[1]) == len(reports) < MOST_REPORTS
    last = max((names.index(name) for name in heads), default=-1)
    known = {}
    for at, (name, ran) in enumerate(zip(names, ended, strict=True)):
        if name in heads:
            known[name] = _found(heads[name], len(heads[name]), more=not whole and at == last)
        elif ran and (whole or at < last):
            known[name] = {"outcome": "nothing"}
        elif not ran:
            known[name] = {}
        if not ran:  # then none behind it has had a turn
            break
    return known
