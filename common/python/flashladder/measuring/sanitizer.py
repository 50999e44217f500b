"""The four tools of compute-sanitizer: what is called, and what its output says.

A tool takes seconds to start, and has nothing to say of most mistakes. So it is asked of several of a stage in one
process: a report names the library that launched the kernel, and what no report names has none. What is named, or does
not come to its end, is asked about alone, and so is what that leaves open.
"""

import re
import shutil
import subprocess

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
MOST_REPORTS = 100  # that a tool prints (--print-limit)
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_REPORT = re.compile(r"^=========[ \t]+(?!COMPUTE-SANITIZER|Saved host)(\S[^\n]{0,119})", re.M)
_HEAD = re.compile(
    r"^========= (?=\S)(?!COMPUTE-SANITIZER|(?:ERROR|RACECHECK|LEAK) SUMMARY|Target |Error: process)", re.M
)
_FAILED_CALL = "on CUDA API call"


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
    return words + (["--racecheck-report", "all"] if tool == "racecheck" else [])


def cell(status: int, text: str, seconds: float) -> dict:
    """Of a run that had so many seconds."""
    report, summary = _REPORT.search(text), _SUMMARY.search(text)
    first = {"said": report[1]} if report else {}
    if status == 124:
        return {"outcome": "limit", "seconds": round(seconds, 1)} | first
    if not summary:
        return {"outcome": "failed", "said": f"status {status}: {text.strip()[-120:]}"}
    if summary[1] == "0":
        return {"outcome": "nothing"}
    return {"outcome": "found", "reports": int(summary[1])} | first


def told_apart(text: str, names: list[str], ended: list[bool]) -> tuple[set[str], set[str]]:
    """Of libraries that ran in this order under a tool: those of which it surely has nothing to report, and those of
    which it has, or that did not end. Of others it is not known.

    ended: which of them came to their end. Where a report names no library or two, nothing is known; where more were
    found than are printed, nothing of those behind the last that is named."""
    summary = _SUMMARY.search(text)
    if not summary:
        return set(), set()
    starts = [found.start() for found in _HEAD.finditer(text)] + [summary.start()]
    spoken: list[str] = []
    for begin, end in zip(starts, starts[1:], strict=False):
        report = text[begin:end]
        named = [name for name in names if name in report]
        if not named and spoken and _FAILED_CALL in report:  # what such an error is noticed by
            named = spoken[-1:]
        if len(named) != 1:
            return set(), set()
        spoken += named
    whole = int(summary[1]) == len(spoken) < MOST_REPORTS
    last = max((names.index(name) for name in spoken), default=-1)
    silent = {
        name
        for at, (name, ran) in enumerate(zip(names, ended, strict=True))
        if ran and name not in spoken and (whole or at < last)
    }
    return silent, {*spoken, *[name for name, ran in zip(names, ended, strict=True) if not ran][:1]}
