"""make check-report FILE=... [TAKE=1]: what is wrong with the report of a GPU; and a report that is right, taken in."""

import datetime
import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path

from flashladder.core.console import plural, say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import RECORDED, ROOT
from flashladder.measuring import recorded, report_check


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


def taken(report: report_check.Report) -> list[str]:
    """Has the records of a report ship; returns their places. Without its provenance none does, whoever wants it."""
    lacking = {name: found for name, record in report.records.items() if (found := recorded.lacking(record))}
    if lacking:
        said = "; ".join(f"{printable(name)} has no {', '.join(found)}" for name, found in lacking.items())
        raise FlashLadderError(f"Not taken in: {said}. Without them nobody knows what was measured: measure again.")
    places = []
    with tempfile.TemporaryDirectory(prefix="flashladder-report-") as folder:
        for name, record in sorted(report.records.items()):
            file = Path(folder) / name
            file.write_text(json.dumps(record))
            # Bits that the simulator's tests replay are no result for readers.
            place = ROOT / "tests/simulator/recorded" if name.endswith("-sums.json") else RECORDED
            places.append(os.path.relpath(recorded.take(file, place), ROOT))
    return places


def run(name: str, take: bool = False) -> int:
    """take: also what is not a whole report, such as that of some stages, or has errors: whoever takes it has read
    them."""
    if not name:
        raise FlashLadderError("Name the report: `make check-report FILE=H200-gpu-report.zip`.")
    if at_commit("HEAD", "") is None:
        raise FlashLadderError("A report is held against the project's history, and this folder is no git clone.")
    file = Path(name)
    report = report_check.read(file)
    today = datetime.datetime.now(datetime.timezone.utc).date()
    found = report_check.check(report, at_commit, today)
    for word, sentences in (("error", found.errors), ("remark", found.remarks)):
        for sentence in sentences:
            say(f"{word}: {printable(sentence)}")
    if take:
        say(f"\nTaken in: {', '.join(taken(report))}. Next: `make results`, then `make test`.")
        return 0
    if found.errors:
        say(f"\n{file}: {plural(len(found.errors), 'error')}: not to be recorded as it is.")
        return 1
    say(f"\n{file}: nothing is wrong with {plural(len(report.records), 'record')}. To record them:")
    say(f"  make check-report FILE={printable(str(file))} TAKE=1, then `make results` and `make test`")
    return 0
