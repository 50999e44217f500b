"""Runs a command that works on text of unknown origin: in a file system, a network and limits of its own.

What there is of isolation is data (LEVELS, the best one first); a report names the level by which a submission was
graded. Below all of them is "none", which must be asked for.
"""

import functools
import math
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.signals import kill_group

INSIDE = Path("/submission")  # what the work folder is called inside, wherever it lies
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
DIES_WITH_US = ("--pdeathsig", "KILL")  # else a grader that is killed would leave its commands behind
PYTHONS = (os.path.realpath(sys.executable), "/usr/bin/python3")  # what we run inside needs no packages
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")  # programs and libraries, for every user to read


@dataclass(frozen=True)
class Limits:
    """What one command may use; None: no limit of its own."""

    seconds: float = 60  # by the wall
    processor_seconds: float | None = None  # of each process; default: four times the seconds, for several threads
    memory_bytes: int | None = 4 << 30  # of addresses, each process
    file_bytes: int = 256 << 20  # of each file that is written
    output_bytes: int = 1 << 20  # of stdout and stderr together; more ends the command
    processes: int = 64  # of the user that the command runs as, where that is a user of its own
    files: int = 256  # open at once


@dataclass(frozen=True)
class Box:
    """Where a command runs: one folder to write to, and paths that it may read besides SYSTEM."""

    folder: Path
    readable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()  # e.g. /dev/nvidia0, for a run on a GPU
    processes: bool = False  # /proc of the processes inside, which a GPU's driver reads

    def paths(self) -> list[Path]:
        """What is to be seen inside, as links or folders, each once; nothing below another one."""
        wanted = [Path(path) for path in SYSTEM if os.path.lexists(path)]
        for path in sorted({Path(os.path.abspath(path)) for path in self.readable}):
            if not any(path.is_relative_to(known) for known in wanted):
                wanted.append(path)
        return wanted


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int  # as subprocess's returncode
    output: str  # stdout and stderr, up to Limits.output_bytes
    ended: str  # "time", "processor" or "output" where a limit ended it, else ""
    seconds: float


@dataclass(frozen=True)
class Level:
    """One way to isolate. needs: programs; wrap: the command that runs another one in a box."""

    name: str
    says: str  # what it keeps away, for a report
    needs: tuple[str, ...]
    wrap: Callable[[Box, list[str]], list[str]]
    moves: bool = True  # the work folder is INSIDE; else it stays where it is
    root_only: bool = False
    another_user: bool = True  # when started by root

    def folder(self, box: Box) -> Path:
        """The work folder as the command sees it."""
        return INSIDE if self.moves else box.folder

    def missing(self) -> str:
        """Why this level cannot be had here, "" where it can."""
        absent = [program for program in self.needs if not _program(program)]
        if absent:
            return f"{', '.join(absent)} not found"
        if self.root_only and os.geteuid():
            return "only root can start a program as another user"
        interpreter, said = _tried(self)
        return "" if interpreter else f"it does not work here: {said}"

    @property
    def python(self) -> list[str]:
        """A Python to be run inside, without packages."""
        return [_tried(self)[0] or PYTHONS[0], "-S"]


@functools.cache
def _tried(level: Level) -> tuple[str, str]:
    """The first of PYTHONS that starts at this level and can write to its work folder, "" where none does; and what the
    last one said that does not."""
    said = ""
    for python in PYTHONS:
        with tempfile.TemporaryDirectory(prefix="flashladder-isolation-") as folder:
            box = Box(Path(folder), python_paths(python))
            done = run(level, [python, "-S", "-c", "import json; open('tried', 'w')"], box, Limits(seconds=60))
            if done.status == 0 and (Path(folder) / "tried").exists():
                return python, said
            said = done.output.strip()[-200:] or f"status {done.status}"
    return "", said


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/sbin:/bin:/sbin")


def _bubblewrap(box: Box, command: list[str]) -> list[str]:
    root = os.geteuid() == 0
    apart = [f"--unshare-{kind}" for kind in ("ipc", "pid", "net", "uts")] if root else ["--unshare-all"]
    words = [_program("bwrap"), *apart, "--die-with-parent", "--new-session", "--hostname", "grader"]
    devices = [*map(Path, DEVICES), *box.devices]
    folders = {parent for path in (*box.paths(), *devices) for parent in path.parents[:-1]}
    for parent in sorted(folders):  # else they would be root's alone
        words += ["--perms", "0755", "--dir", str(parent)]
    for path in box.paths():
        words += ["--symlink", os.readlink(path), str(path)] if path.is_symlink() else ["--ro-bind", *[str(path)] * 2]
    for device in devices:
        words += ["--dev-bind", str(device), str(device)]
    words += ["--proc", "/proc"] if box.processes else []
    words += ["--bind", str(box.folder), str(INSIDE)]
    if root:  # setpriv, which comes next, becomes another user and gives all of them up
        for capability in ("SETUID", "SETGID", "SETPCAP", "SYS_RESOURCE"):
            words += ["--cap-add", f"CAP_{capability}"]
    return [*words, "--", *command]


def _namespaces(box: Box, command: list[str]) -> list[str]:
    """By util-linux: what is seen inside is mounted into an empty folder, which becomes the root."""
    quoted, root = shlex.quote, f"{box.folder}.root"
    script = ["set -e", f"mkdir -p {quoted(root)}", f"mount -t tmpfs -o size=1m,mode=755 tmpfs {quoted(root)}"]

    def show(path: Path, inside: Path, writable: bool = False) -> None:
        place, make = quoted(f"{root}{inside}"), "mkdir -p" if path.is_dir() else ": >"
        script.append(f"mkdir -p {quoted(os.path.dirname(f'{root}{inside}'))}; {make} {place}")
        script.append(f"mount --bind {quoted(str(path))} {place}")
        if not writable:
            script.append(f"mount -o remount,bind,ro,nosuid {place}")

    for path in box.paths():
        if path.is_symlink():
            script.append(f"ln -s {quoted(os.readlink(path))} {quoted(f'{root}{path}')}")
        else:
            show(path, path)
    for device in (*map(Path, DEVICES), *box.devices):
        show(device, device, writable=True)
    show(box.folder, INSIDE, writable=True)
    if box.processes:
        script.append(f"mkdir {quoted(root)}/proc; mount -t proc proc {quoted(root)}/proc")
    script.append(f"exec {_program('chroot')} {quoted(root)} {shlex.join(command)}")
    mapped = ["--user", "--map-root-user"] if os.geteuid() else []
    kinds = ["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]
    return [_program("unshare"), *mapped, *kinds, "/bin/sh", "-c", "\n".join(script)]


def _as_it_is(box: Box, command: list[str]) -> list[str]:
    return command


LEVELS = (
    Level(
        "bubblewrap",
        "bubblewrap: no network, no files but the toolkit's, an empty work folder, limits",
        ("bwrap", "prlimit", "setpriv"),
        _bubblewrap,
    ),
    Level(
        "namespaces",
        "Linux namespaces: no network, no files but the toolkit's, an empty work folder, limits",
        ("unshare", "mount", "chroot", "prlimit", "setpriv"),
        _namespaces,
    ),
    Level(
        "user",
        "another user: an empty work folder, limits; files that every user may read can be read",
        ("prlimit", "setpriv"),
        _as_it_is,
        moves=False,
        root_only=True,
    ),
)
NONE = Level(
    "none",
    "NO ISOLATION: limits alone, as the user who grades",
    ("prlimit", "setpriv"),
    _as_it_is,
    moves=False,
    another_user=False,
)
NAMES = ("auto", *(level.name for level in LEVELS), NONE.name)


def choose(name: str = "auto") -> Level:
    """The level of that name; "auto": the best one that this machine has. FlashLadderError where there is none, and
    what to do about it."""
    if name == NONE.name:
        return NONE
    if name not in NAMES:
        raise FlashLadderError(f"isolation '{name}': choose one of {', '.join(NAMES)}.")
    reasons = []
    for level in LEVELS:
        if name in ("auto", level.name):
            why_not = level.missing()
            if not why_not:
                return level
            reasons.append(f"{level.name}: {why_not}")
    raise FlashLadderError(
        "Submissions are graded in isolation, and this machine has none to offer.\n  "
        + "\n  ".join(reasons)
        + "\nInstall bubblewrap (`sudo apt install bubblewrap`), or grade in a container or virtual machine that holds "
        "nothing else and say so: --isolation none."
    )


def _user() -> int:
    """A user of no other running command of ours: by the thread that waits for it, of which there is one a command."""
    return 20000 + threading.get_native_id() % 40000


def _limited(level: Level, box: Box, limits: Limits, command: list[str]) -> list[str]:
    """The command in its folder behind its limits and, where root starts it, as another user without any rights."""
    other = level.another_user and os.geteuid() == 0
    caps = [f"--fsize={limits.file_bytes}", f"--nofile={limits.files}", "--core=0"]
    seconds = limits.processor_seconds or 4 * limits.seconds
    caps.append(f"--cpu={math.ceil(seconds)}:{math.ceil(seconds) + 1}")
    if limits.memory_bytes is not None:
        caps.append(f"--as={limits.memory_bytes}")
    if other:
        caps.append(f"--nproc={limits.processes}")
    words = [_program("prlimit"), *caps, "--"]
    if level.another_user:
        rights = [f"--reuid={_user()}", f"--regid={_user()}", "--clear-groups"] if other else []
        # Who is root of a user namespace alone could leave the new root folder as easily as root could.
        rights += ["--inh-caps=-all", "--bounding-set=-all"] if other or level.name == "namespaces" else []
        words += [_program("setpriv"), *rights, *DIES_WITH_US, "--no-new-privs", "--"]
    return [*words, "/usr/bin/env", "-C", str(level.folder(box)), *command]


def run(level: Level, command: list[str], box: Box, limits: Limits, environment: dict[str, str] | None = None) -> Done:
    """Runs the command with the box's folder as its working directory and TMPDIR, nothing of this process's
    environment but what `environment` says, and no input. The box's folder is given to another user while it runs.
    """
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "TMPDIR": str(level.folder(box))}
    own = level.another_user and os.geteuid() == 0
    if own:
        for path in (box.folder, *box.folder.iterdir()):
            os.chown(path, _user(), _user(), follow_symlinks=False)
    words = [_program("setpriv"), *DIES_WITH_US, "--", *level.wrap(box, _limited(level, box, limits, command))]
    started = time.monotonic()
    process = subprocess.Popen(
        words,
        env=env | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    kept, ended = bytearray(), []
    reader = threading.Thread(target=_read, args=(process, kept, limits.output_bytes, ended), daemon=True)
    reader.start()
    try:
        process.wait(limits.seconds)
    except subprocess.TimeoutExpired:
        ended.append("time")
    finally:
        kill_group(process)
        process.wait()
        if own and not level.moves:  # what has left the session is still that user's
            subprocess.run([_program("setpriv"), f"--reuid={_user()}", "--clear-groups", "/bin/sh", "-c", "kill -9 -1"])
        reader.join(10)
        if level.name == "namespaces":
            Path(f"{box.folder}.root").rmdir()
    took = time.monotonic() - started
    if not ended and _out_of_processor_time(process.returncode, took, limits):
        ended.append("processor")
    return Done(process.returncode, kept.decode(errors="replace"), (ended or [""])[0], took)


def _out_of_processor_time(status: int, took: float, limits: Limits) -> bool:
    """By the signal itself, or as a shell and unshare tell of it. The first process of a namespace is deaf to all but
    SIGKILL, which comes a second later."""
    killed = status in (-signal.SIGKILL, 128 + signal.SIGKILL)
    late = limits.processor_seconds is not None and took >= limits.processor_seconds
    return status in (-signal.SIGXCPU, 128 + signal.SIGXCPU) or killed and late


def _read(process: subprocess.Popen, kept: bytearray, limit: int, ended: list[str]) -> None:
    """Collects the output, and ends the command that writes too much."""
    while piece := process.stdout.read1(1 << 16):
        kept += piece[: limit - len(kept)]
        if len(kept) >= limit and not ended:
            ended.append("output")
            kill_group(process)
    process.stdout.close()


class Unreadable(FlashLadderError):
    """A file is not what may be read, in words."""


def take(file: Path, limit: int) -> bytes:
    """The content of a file that somebody else has written. Unreadable where it is no regular file (a link, a
    pipe, a device, a folder) or has more than `limit` bytes: nothing else of it is looked at."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Unreadable(f"there is no {file.name}") from None
    except OSError as error:
        kind = "a link" if os.path.islink(file) else f"nothing that can be read ({error.strerror})"
        raise Unreadable(f"{file.name} is {kind}: hand in the file itself") from error
    try:
        what = stat.S_IFMT(os.fstat(handle).st_mode)
        if what != stat.S_IFREG:
            kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
            raise Unreadable(f"{file.name} is {kinds.get(what, 'a device')}: hand in a plain file")
        with open(handle, "rb", closefd=False) as stream:
            content = stream.read(limit + 1)
    finally:
        os.close(handle)
    if len(content) > limit:
        raise Unreadable(f"{file.name} has more than {limit} bytes")
    return content


def python_paths(python: str) -> tuple[Path, ...]:
    """What an interpreter reads, besides SYSTEM."""
    own = (Path(sys.base_prefix),) if python == PYTHONS[0] else ()
    return (*own, Path(python).parent)
