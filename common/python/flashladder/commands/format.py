"""make format and make lint: ruff for Python, clang-format for C++ and CUDA."""

import subprocess

from flashladder.building import toolchain
from flashladder.core.console import say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT

SUFFIXES = (".cpp", ".h", ".cu", ".cuh")


def _sources() -> list[str]:
    # Those that git does not know yet, too: they are to be committed formatted.
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError("git ls-files failed: formatting works on the files of a git clone.")
    return [name for name in done.stdout.splitlines() if name.endswith(SUFFIXES)]


def run(check: bool) -> int:
    hint = "Install it with `pip install ruff clang-format`."
    ruff, clang_format = toolchain.require("ruff", hint), toolchain.require("clang-format", hint)
    python = ["common/python", "tests", "docs/site"]
    # The format may mend what the linter objects to, such as a long line: so the linter judges last.
    commands = [] if check else [[ruff, "check", "--quiet", "--fix-only", *python]]
    commands += [
        [ruff, "format", "--quiet", *(["--check"] if check else []), *python],
        [ruff, "check", "--quiet", *python],
    ]
    sources = _sources()
    if sources:
        commands.append([clang_format, *(["--dry-run", "--Werror"] if check else ["-i"]), *sources])
    failed = [command[0] for command in commands if subprocess.run(command, cwd=ROOT).returncode]
    if check and not failed:
        say("Format and lint: nothing to mend.")
    return 1 if failed else 0
