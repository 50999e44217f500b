"""Where things lie in the project's folder. FLASHLADDER_BUILD names another build folder, FLASHLADDER_WORK another
work/. A package that was installed elsewhere (`pip install .`) looks for a project's folder, see project_folder()."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flashladder.core.errors import FlashLadderError

PACKAGE = Path(__file__).resolve().parents[1]
_IN_PROJECT = Path("common/python/flashladder")


def is_project(folder: Path) -> bool:
    return (folder / _IN_PROJECT / "core/paths.py").is_file() and (folder / "stages").is_dir()


def project_folder(package: Path = PACKAGE) -> Path:
    """The project whose stages, simulator and results are used: the one that the package lies in; else what
    FLASHLADDER_ROOT names; else the folder in which we are, or the nearest one above it that is a project's.

    Of the last ones only a folder of this user (or of root) counts: what lies in it is compiled and run.
    """
    if package == package.parents[2] / _IN_PROJECT:
        return package.parents[2]
    named = os.environ.get("FLASHLADDER_ROOT")
    if named:
        folder = Path(named).expanduser().resolve()
        if not is_project(folder):
            raise FlashLadderError(f"FLASHLADDER_ROOT={named} is no folder of the FlashLadder project.")
        return folder
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if is_project(folder):
            if folder.stat().st_uid not in (os.getuid(), 0):
                raise FlashLadderError(
                    f"{folder} belongs to another user, and what lies in it would be compiled and run. If that is "
                    f"what you want: FLASHLADDER_ROOT={folder}"
                )
            return folder
    raise FlashLadderError(
        f"The stages and the simulator are files of the FlashLadder project, and neither {here} nor a folder above it "
        "is a clone of it. Go there (`git clone` it first), or name it: FLASHLADDER_ROOT=/path/to/flashladder"
    )


ROOT = project_folder()
STAGES = ROOT / "stages"
RECORDED = ROOT / "docs" / "results"


def build_directory() -> Path:
    return Path(os.environ.get("FLASHLADDER_BUILD") or ROOT / "build").resolve()


def results_directory() -> Path:
    return build_directory() / "results"


def work_directory() -> Path:
    """What a reader writes: answers to exercises. Never part of a commit."""
    return Path(os.environ.get("FLASHLADDER_WORK") or ROOT / "work").resolve()


def stage_library(number: int) -> Path:
    return build_directory() / "lib" / f"libstage_{number:02d}.so"


def stage_runner(number: int) -> Path:
    return build_directory() / "bin" / f"stage_{number:02d}"


def simulator_directory() -> Path:
    return build_directory() / "simulator"


def simulator_library() -> Path:
    return simulator_directory() / "libcudart.so.13"


def headers(folder: Path = ROOT / "common/include") -> list[Path]:
    """What a kernel can include of a folder. No scripts, and nothing that Python or an editor has left beside them."""
    return sorted([*folder.glob("*.h"), *folder.glob("*.cuh")])


def included(files: list[Path], *folders: Path) -> list[Path]:
    """The headers of these folders that the files include, and those that these include."""
    known = {header.name: header for folder in folders for header in headers(folder)}
    found: dict[str, Path] = {}
    while files:
        file, *files = files
        names = re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read_text(), re.M)
        new = {name: known[name] for name in names if name in known and name not in found}
        found |= new
        files += new.values()
    return sorted(found.values(), key=lambda header: header.name)


def place(purpose: str, folder_name: str, file_name: str, text: str) -> Path:
    """Writes text to build/PURPOSE/folder_name/file_name, whole or not at all, whoever else does the same."""
    return write(build_directory() / purpose / folder_name / file_name, text)


def write(file: Path, data: str | bytes) -> Path:
    """As whole()."""
    with whole(file) as partial:
        partial.write_bytes(data.encode() if isinstance(data, str) else data)
    return file


def write_new(file: Path, data: bytes, mode: int = 0o666) -> Path:
    """Writes a file that is not there yet, else FileExistsError. Where it cannot be written whole (a full disk, say)
    it is not there afterwards."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return file


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A place beside the file, whose contents become the file's at the end unless something fails: the file is there
    whole or not at all, however many threads and processes do the same."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{os.getpid()}.{threading.get_ident()}.{file.name}")
    try:
        yield partial
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)
