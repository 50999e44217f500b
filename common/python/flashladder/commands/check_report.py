"""make check-report FILE=...: what is wrong with the report of a reader's GPU, and how to record one that is right."""

import datetime
import functools
import os
import subprocess
from pathlib import Path

from flashladder.core.console import plural, say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import RECORDED, ROOT
from flashladder.measuring import report_archive, report_check


@functools.cache
def at_commit(commit: str, path: str) -> bytes | None:
    """A file of this project as it was; with path "" whether there is such a commit. None: there is none."""
    if path:
        words = ["show", f"{commit}:{path}"]
    else:
        words = ["rev-parse", "--quiet", "--verify", f"{commit}^{{commit}}"]
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True)
    return done.stdout if done.returncode == 0 else None


def printable(text: str) -> str:
    """Without what a terminal would take for a command: the words are of whoever made the file."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:600]


def run(name: str) -> int:
    if not name:
        raise FlashLadderError("Name the report: `make check-report FILE=H200-gpu-report.zip`.")
    if at_commit("HEAD", "") is None:
        raise FlashLadderError("A report is held against the project's history, and this folder is no git clone.")
    file = Path(name)
    report = report_archive.read(file)
    today = datetime.datetime.now(datetime.timezone.utc).date()
    found = report_check.check(report, at_commit, today)
    for word, sentences in (("error", found.errors), ("remark", found.remarks)):
        for sentence in sentences:
            say(f"{word}: {printable(sentence)}")
    if found.errors:
        say(f"\n{file}: {plural(len(found.errors), 'error')}: not to be recorded as it is.")
        return 1
    say(f"\n{file}: nothing is wrong with {plural(len(report.records), 'record')}. To record them:")
    there = [record for record in report.records if (RECORDED / record).exists()]
    where = os.path.relpath(RECORDED)
    say(f"  copy {printable(', '.join(sorted(report.records)))} to {where}, then `make results` and `make test`")
    if there:
        say(f"  ({', '.join(sorted(there))} {'is' if len(there) == 1 else 'are'} there already, and would be replaced)")
    return 0
