"""Judges the lines that a reader wrote for a puzzle: compiled to PTX, run once on the simulator, compared with what the
solution computes from the same numbers, and with what the counters should say. Lines are the reader's own."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flashladder.building import build, toolchain
from flashladder.classroom.judge import NOT_WRITTEN, Finding, Judgement, Lines, compiler_words, in_short
from flashladder.classroom.puzzles import Puzzle
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.expression import RELATIONS, evaluate
from flashladder.core.paths import ROOT, build_directory, headers, place, simulator_library
from flashladder.ladder.technique import counted
from warpsim import counters

SECONDS = 10  # a puzzle's kernel takes a few milliseconds
MOST = 3  # hazards that are told
WIDTH = 60  # characters of a given line that is named
_PLACE = re.compile(r"\bpuzzle\.cu:(?P<line>\d+)")


@dataclass(frozen=True)
class Run:
    stopped: str  # why there is no output, else ""
    hazards: tuple[str, ...]
    output: np.ndarray | None
    report: dict | None


class CompileError(Exception):
    """Its text is all that the compiler said."""


def judge(puzzle: Puzzle, text: str, line: Lines = "line {}".format) -> Judgement:
    """line: words for a line of the text, numbered from 1."""
    if puzzle.is_stub(text):
        return NOT_WRITTEN
    build.build(["warpsim_cudart"])
    first, many = puzzle.first_line, max(1, len(text.rstrip().splitlines()))

    def words(number: int) -> str:
        return (
            line(number - first + 1)
            if first <= number < first + many
            else f"the given line {_given(puzzle, text, number)}"
        )

    try:
        found = run(puzzle, puzzle.kernel(text))
    except CompileError as error:
        return Judgement((Finding("builds", False, tuple(compiler_words(str(error), "puzzle.cu", words))),))
    told = tuple(_PLACE.sub(lambda match: words(int(match["line"])), hazard) for hazard in found.hazards)
    findings = [Finding("builds", True), Finding("hazards", not told, told[:MOST])]
    if found.stopped:
        if told:  # that is why
            return Judgement((*findings, Finding("correct", False, ("stopped there: there is no result",))))
        stopped = _PLACE.sub(lambda match: words(int(match["line"])), found.stopped)
        return Judgement((*findings, Finding("correct", False, (f"stopped: {stopped}",))))
    wrong = _wrong(puzzle, found.output)
    findings.append(Finding("correct", not wrong, (wrong,) if wrong else ()))
    if not wrong and not told:
        failed = _failures(puzzle, found.report)
        findings += [Finding("technique", not failed, tuple(failed))] if puzzle.expected else []
    return Judgement(tuple(findings))


def _given(puzzle: Puzzle, text: str, number: int) -> str:
    """A line of the kernel around the reader's lines, as it stands there, or how it begins."""
    lines = puzzle.kernel(text).splitlines()
    words = lines[number - 1].partition("//")[0].strip() if 0 < number <= len(lines) else str(number)
    return f"`{words}`" if len(words) <= WIDTH else f"`{words[:WIDTH]} ...`"


def run(puzzle: Puzzle, kernel: str) -> Run:
    """Compiles and runs a whole kernel. CompileError where it does not compile."""
    with tempfile.TemporaryDirectory(prefix="flashladder-puzzle-") as name:
        folder = Path(name)
        (folder / "kernel.ptx").write_bytes(_ptx(puzzle, kernel))
        (folder / "in").write_bytes(inputs(puzzle).tobytes())
        job = {"cudart": str(simulator_library()), "threads": puzzle.threads, "output_bytes": 4 * puzzle.output}
        (folder / "job.json").write_text(json.dumps(job))
        environment = for_python(dict(os.environ)) | {
            "WARPSIM_REPORT": "report.json",
            "WARPSIM_HAZARDS": "warn",
            "WARPSIM_TIMEOUT_S": str(SECONDS),
        }
        command = [sys.executable, "-m", "flashladder.classroom.puzzle_worker"]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=4 * SECONDS,
            )
        except subprocess.TimeoutExpired:
            return Run(f"the kernel does not end within {4 * SECONDS} s", (), None, None)
        report_file = folder / "report.json"
        report = json.loads(report_file.read_text()) if report_file.exists() else None
        found = [in_short(hazard["message"]) for hazard in counters.hazards(report)] if report else []
        hazards = tuple(dict.fromkeys(found))
        if not (folder / "result.json").exists():
            raise FlashLadderError(
                f"The puzzle's process ended (status {done.returncode}): {done.stderr.strip()[-500:]}"
            )
        result = json.loads((folder / "result.json").read_text())
        if result["status"] != "ok":
            said = re.search(r"^warpsim: (.+)\n {4}(.+)\n?", done.stdout + done.stderr, re.M)
            return Run(in_short(f"{said[1]}: {said[2]}") if said else result["message"], hazards, None, report)
        return Run("", hazards, np.frombuffer((folder / "out").read_bytes(), np.float32), report)


def inputs(puzzle: Puzzle) -> np.ndarray:
    generator = np.random.default_rng(1)
    return (puzzle.input_scale * generator.standard_normal(puzzle.input)).astype(np.float32)


def _ptx(puzzle: Puzzle, kernel: str) -> bytes:
    nvcc = str(toolchain.require_nvcc())
    command = [nvcc, "-ptx", "-std=c++20", "-O3", "-lineinfo", f"-arch=compute_{puzzle.arch}"]
    command += [f"-I{ROOT / 'common/include'}", "-o", "puzzle.ptx", "puzzle.cu"]
    with tempfile.TemporaryDirectory(prefix="flashladder-puzzle-") as name:
        folder = Path(name)
        (folder / "puzzle.cu").write_text(kernel)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
        if done.returncode:
            toolchain.refuse_ended(done)
            raise CompileError(done.stdout + done.stderr)
        return (folder / "puzzle.ptx").read_bytes()


def _expected(puzzle: Puzzle) -> np.ndarray:
    """What the solution computes; kept in build/puzzles by the hash of what it follows from."""
    kernel = puzzle.kernel(puzzle.solution)
    digest = hashlib.sha256(
        f"{puzzle.arch} {puzzle.threads} {puzzle.output}\n{kernel}".encode() + inputs(puzzle).tobytes()
    )
    for file in (*headers(), simulator_library()):
        digest.update(file.read_bytes())
    kept = build_directory() / "puzzles" / puzzle.name / f"{digest.hexdigest()[:16]}.json"
    try:
        return np.array(json.loads(kept.read_text()), np.float32)
    except (OSError, ValueError):
        found = run(puzzle, kernel)
        if found.stopped or found.hazards:
            raise FlashLadderError(
                f"The solution of {puzzle.name} stopped: {found.stopped or found.hazards[0]}"
            ) from None
        place("puzzles", puzzle.name, kept.name, json.dumps([float(one) for one in found.output]))
        return found.output


def _wrong(puzzle: Puzzle, output: np.ndarray) -> str:
    expected = _expected(puzzle)
    with np.errstate(invalid="ignore"):
        right = np.abs(output - expected) <= puzzle.tolerance * np.abs(expected)
    if right.all():
        return ""
    first, many = int((~right).argmax()), f"{int((~right).sum()):,} of {right.size:,} numbers are wrong"
    return f"{many}; out[{first}] is {output[first]:.6g}, and should be {expected[first]:.6g}"


def _failures(puzzle: Puzzle, report: dict) -> list[str]:
    names, failed = counted(report), []
    for one in puzzle.expected:
        left, right = evaluate(one.left, names), evaluate(one.right, names)
        if not RELATIONS[one.relation](left, right):
            failed.append(f"right, but {one.failure.format(left=f'{left:,}', right=f'{right:,}')}")
    return failed
