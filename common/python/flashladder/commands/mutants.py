"""Mutants: the stages' planted mistakes (ladder/mistakes.py), which the stages' own tests must notice.

A stage with a mistake is compiled with the stage's own flags, takes its place in a copy of the build folder, and meets
the tests that `make stage-NN test` runs.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

from flashladder.building import build
from flashladder.commands import testing
from flashladder.core.console import coloured, progress, remark, say, table
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, STAGES, build_directory, place, write
from flashladder.core.signals import kill_group
from flashladder.ladder import stages
from flashladder.ladder.change import where
from flashladder.ladder.mistakes import CLASSES, REASONS, Mistake, everything, mistakes

TIMEOUT = 1200  # seconds for the tests of one mutant, of which few need one minute
# These look at other things than the stage's own and never meet a mutant of it.
OTHER_BUILDS = ("test_ablations.py", "test_adversarial.py", "test_mistakes.py", "test_configurations_drawn.py")


@dataclass(frozen=True)
class Verdict:
    killed: bool
    by: str  # the test that failed; of one that lives how many passed
    message: str  # the first line of what that test said
    seconds: float
    cached: bool = False


# ---- building, and what runs meanwhile ----


_running: set[subprocess.Popen] = set()
_lock = threading.Lock()
_stopped = threading.Event()


def _finish(command: list[str] | str, timeout: float | None = None, **options) -> subprocess.CompletedProcess:
    """subprocess.run in a process group of its own, which _stop() and a timeout end as a whole."""
    if _stopped.is_set():
        raise FlashLadderError("interrupted")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options
    ) as process:
        with _lock:
            _running.add(process)
            if _stopped.is_set():
                kill_group(process)
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException:
            kill_group(process)
            raise
        finally:
            with _lock:
                _running.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output)


def _stop() -> None:
    """Ends what other threads have started, and has them start nothing more."""
    _stopped.set()
    with _lock:
        for process in _running:
            kill_group(process)


def _sha(*parts: bytes | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:20]


def _contents(*patterns: str, without: Path | None = None) -> list[bytes]:
    files = sorted(file for pattern in patterns for file in ROOT.glob(pattern) if file.is_file() and file != without)
    return [part for file in files for part in (str(file.relative_to(ROOT)).encode(), file.read_bytes())]


def product(stage: stages.Stage, text: str) -> Path:
    """What the stage's source goes into, of this text in its place."""
    return stage.compiled(place("mutants", f"{stage.id}-{_sha(text)}", stage.source.name, text))


def copy_of_build(copy: Path, stage: stages.Stage, built: Path) -> None:
    """Makes the folder `copy` the build folder again, as links, with what product() has built in its place.

    The programs of bin are copies: a link to one would find its libraries beside the file that it points at.
    """
    original, own = build_directory(), copy / stage.product
    for folder in ("lib", "bin"):
        (copy / folder).mkdir()
        for file in (original / folder).iterdir():
            if copy / folder / file.name == own:
                shutil.copy2(built, own)
            elif folder == "lib":
                (copy / folder / file.name).symlink_to(file)
            elif file.name.startswith("stage_"):
                shutil.copy2(file, copy / folder)
    for entry in original.iterdir():
        if entry.name not in ("lib", "bin", "break", "mutants", "tests"):
            (copy / entry.name).symlink_to(entry)


# ---- judging ----


def _first_failure(report: Path) -> tuple[str, str, int]:
    """The first test that failed and the first line of its message, and how many passed."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    for case in cases:
        failure = case.find("failure")
        failure = case.find("error") if failure is None else failure
        if failure is not None:
            message = failure.get("message", "").strip() or (failure.text or "").strip()
            test = f"{case.get('classname', '').split('.')[-1]}.py::{case.get('name')}".lstrip(":")
            return test, message.splitlines()[0] if message else "(no message)", 0
    return "", "", sum(case.find("skipped") is None for case in cases)


def _all_that_counts(stage: stages.Stage, built: Path, binaries: list[Path]) -> str:
    """A hash of what a verdict depends on: what was built, the stage, its tests, the package and other programs."""
    sources = _contents("tests/stages/*.py", "common/python/flashladder/**/*.py", without=Path(__file__))
    sources += _contents(f"stages/{stage.name}/stage.toml", f"stages/{stage.name}/{stage.source.name}")
    return _sha(
        built.parent.name, built.name, *sources, *(file.read_bytes() if file.exists() else b"" for file in binaries)
    )


def judge(stage: stages.Stage, text: str) -> Verdict:
    """Builds text in the place of the stage's source and runs the stage's quick tests up to the first that fails.

    Cached by all that goes into the verdict.
    """
    started = time.monotonic()
    binaries = [build_directory() / "simulator/libcudart.so.13"]
    if stage not in stages.other_parts():  # which have no program of their own
        binaries.append(build_directory() / "bin" / f"stage_{stage.id}")
    binaries += sorted(file for pattern in stage.libraries for file in build_directory().glob(pattern))
    missing = [str(file) for file in binaries if not file.exists()]
    if missing:
        raise FlashLadderError(f"{missing[0]} does not exist: run `make build`.")
    built = product(stage, text)
    digest = _all_that_counts(stage, built, binaries)
    kept = build_directory() / "mutants" / "verdicts" / f"{digest}.json"
    if kept.exists():
        return Verdict(**json.loads(kept.read_text()), cached=True)
    with tempfile.TemporaryDirectory(prefix=".copy-", dir=build_directory() / "mutants") as name:
        folder = Path(name)
        copy_of_build(folder, stage, built)
        killed, by, message = _run_tests(stage, folder)
    if _all_that_counts(stage, built, binaries) != digest:  # a test may have failed for that
        raise FlashLadderError(f"stage {stage.id}, its tests or the package changed while they ran: judge it again.")
    verdict = Verdict(killed, by, message, round(time.monotonic() - started, 1))
    values = asdict(verdict)
    del values["cached"]
    write(kept, json.dumps(values))
    return verdict


def _run_tests(stage: stages.Stage, folder: Path) -> tuple[bool, str, str]:
    """Whether a quick test of the stage as it is built in `folder` failed; which one, and the first line it said."""
    report = folder / "report.xml"
    env = {key: value for key, value in testing.tool_environment().items() if not key.startswith("PYTEST_")}
    env |= {"FLASHLADDER_BUILD": str(folder), "WARPSIM_BUILD": str(folder), "FLASHLADDER_DEVICE": "sim"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["FLASHLADDER_STAGE"] = stage.id
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += ["-m", "not long", *stage.tests, *(f"--ignore=tests/stages/{name}" for name in OTHER_BUILDS)]
    try:
        done = _finish(command, timeout=TIMEOUT, cwd=ROOT, env=env)
    except subprocess.TimeoutExpired as error:
        raise FlashLadderError(f"the tests of a mutant of stage {stage.id} did not end in {TIMEOUT} s") from error
    if done.returncode not in (0, 1) or not report.exists():  # 0: all passed, 1: some failed; others: no verdict
        raise FlashLadderError(f"pytest ended with status {done.returncode}:\n{done.stdout[-3000:]}")
    by, message, passed = _first_failure(report)
    return done.returncode == 1, by or f"{passed} tests passed", message


def complaint(mutant: Mistake, verdict: Verdict) -> str:
    """What is wrong where a verdict is not what the mutant's entry says; "" where it is."""
    file = where(mutant.stage, mutant.FILE)
    if verdict.killed and mutant.lives:
        return f"{mutant.id} is killed now, by {verdict.by}: take `lives` out of its entry in {file}."
    if not verdict.killed and not mutant.lives:
        return (
            f"{mutant.id} lives: {mutant.mistake} {verdict.by} all the same. Add a test to tests/stages that fails "
            f"with it (`make mutants ARGS={mutant.id}` judges it again)."
        )
    return ""


# ---- which ----


def seed() -> str:
    """FLASHLADDER_MUTANTS_SEED, or a hash of stages and tests: other mutants after each change of them."""
    own = (file for file in (*STAGES.glob("*/*"), *(ROOT / "tests").glob("*/*")) if file.is_file())
    sources = sorted(file for file in own if file.suffix in (".cu", ".cpp", ".h", ".py", ".toml"))
    return os.environ.get("FLASHLADDER_MUTANTS_SEED") or _sha(*(file.read_bytes() for file in sources))[:8]


def sample(size: int, from_seed: str) -> list[Mistake]:
    """Mutants of as many stages as there are, drawn by the seed, of those that must be killed."""
    dice = random.Random(from_seed)
    piles = [[one for one in mistakes(stage) if not one.lives] for stage in stages.all_parts()]
    for pile in piles:
        dice.shuffle(pile)
    dice.shuffle(piles)
    rounds = [pile[i] for i in range(max(map(len, piles))) for pile in piles if i < len(pile)]
    return sorted(rounds[:size], key=lambda mutant: mutant.id)


def chosen(names: Iterable[str]) -> list[Mistake]:
    """ "05" or "swizzle" for all of a stage, "05-scale_left_out" or "swizzle-scale_left_out" for one; all of them where
    nothing is named."""
    found = everything()
    picked = []
    for name in names:
        which, _, mistake = name.partition("-")
        matching = [one for one in found if which in (one.stage.id, one.stage.slug) and mistake in ("", one.name)]
        if not matching:
            raise FlashLadderError(
                f"There is no mutant '{name}': name a stage such as swizzle, or one such as {found[0].id}."
            )
        picked += matching
    return picked or found


# ---- all of them ----


def run(names: list[str] = (), size: int = 0) -> int:
    """Judges mutants (those named, a sample, or all) and their stages as they are; 1 where a verdict surprises."""
    drawn = sample(size, seed()) if size else chosen(names)
    if size:
        say(f"{size} mutants drawn by FLASHLADDER_MUTANTS_SEED={seed()}")
    texts = {mutant: mutant.text() for mutant in drawn}  # an edit that does not fit is told before anything runs
    build.build()
    jobs: list = [(stage, None, stage.source.read_text()) for stage in dict.fromkeys(one.stage for one in drawn)]
    jobs += [(mutant.stage, mutant, text) for mutant, text in texts.items()]
    verdicts: dict[Mistake, Verdict] = {}
    complaints = []
    _stopped.clear()
    pool = ThreadPoolExecutor(build.jobs())
    started = time.monotonic()
    try:
        futures = {pool.submit(judge, job[0], job[2]): job for job in jobs}
        for future in progress(as_completed(futures), "mutants", len(futures)):
            stage, mutant, _ = futures[future]
            name = mutant.id if mutant else f"{stage.id} as it is"
            try:
                verdict = future.result()
            except FlashLadderError as error:
                complaints.append(f"{name}: {error}")
                remark(coloured(f"{name}: no verdict: {str(error).splitlines()[0]}", "red"))
                continue
            if mutant:
                verdicts[mutant] = verdict
                wrong = complaint(mutant, verdict)
            else:
                wrong = f"{name} fails {verdict.by}: {verdict.message}" if verdict.killed else ""
            complaints += [wrong] if wrong else []
            spent = "cached" if verdict.cached else f"{verdict.seconds:.0f} s"
            words = f"killed by {verdict.by}: {verdict.message}" if verdict.killed else f"lives, {verdict.by}"
            remark(coloured(f"{name} ({spent}): {words}", "red" if wrong else "green"))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        _stop()
    show(verdicts)
    say(f"\n{len(verdicts)} mutants in {(time.monotonic() - started) / 60:.1f} minutes.")
    for wrong in complaints:
        say(coloured(wrong, "red"))
    return 1 if complaints else 0


def show(verdicts: dict[Mistake, Verdict]) -> None:
    """The score, killed of all, by stage and class; then those that live, with their reasons."""

    def score(some: list[Mistake]) -> str:
        return f"{sum(verdicts[one].killed for one in some)}/{len(some)}" if some else "-"

    rows = []
    for stage in sorted({one.stage.id for one in verdicts}):
        own = [one for one in verdicts if one.stage.id == stage]
        rows.append([stage, *(score([one for one in own if one.kind == kind]) for kind in CLASSES), score(own)])
    whole = [score([one for one in verdicts if one.kind == kind]) for kind in CLASSES]
    rows.append(["all", *whole, score(list(verdicts))])
    say()
    table("Mutants killed", ["stage", *CLASSES.values(), "all"], rows, right=range(1, len(CLASSES) + 2))
    for mutant, verdict in sorted(verdicts.items(), key=lambda item: item[0].id):
        if not verdict.killed:
            words = mutant.lives.partition(": ")[2] or REASONS.get(mutant.reason, "it should not")
            say(f"  {mutant.id} lives: {mutant.mistake} ({words})")
