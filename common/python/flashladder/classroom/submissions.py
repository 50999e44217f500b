"""Finds what students handed in: a folder, zip or tar file for each, or a .cu file where one file is all.

Nothing is unpacked to disk and no link followed; of an archive the wanted files alone are read, into memory, up to a
limit. An archive is read by a process of its own with limits for time and memory, this module as a program:

    python -m flashladder.classroom.submissions ARCHIVE WANTED...
"""

import base64
import bz2
import gzip
import hashlib
import json
import lzma
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError

MOST_KERNEL_BYTES = 1 << 20
MOST_ARCHIVE_BYTES = 32 << 20
MOST_UNPACKED_BYTES = 128 << 20  # that may flow by while a tar file is searched
MOST_ENTRIES = 10_000
MOST_DEPTH = 6  # folders in folders
MOST_OTHERS = 3  # kernels of other names that are told
MOST_DICTIONARY_BYTES = 64 << 20  # that xz may keep of what it has unpacked: the largest that `xz -9` asks for
SECONDS = 20  # of the processor, for one archive
MEMORY_BYTES = 1 << 30  # of addresses
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


class Refused(Exception):
    """A submission that is not looked at any further; the words are for the student."""


@dataclass(frozen=True)
class Submission:
    """id: fit for file names, and no other submission's. kernels: text by file name; of those handed in."""

    id: str
    name: str  # as the folder or archive was called
    path: Path
    kernels: dict[str, bytes] = field(repr=False)
    refused: str = ""  # why nothing of it is graded

    def digest(self) -> str:
        """sha256 of what is graded."""
        digest = hashlib.sha256()
        for name, data in sorted(self.kernels.items()):
            digest.update(f"{name} {len(data)}\n".encode() + data)
        return digest.hexdigest()


def find(folder: Path, wanted: list[str]) -> list[Submission]:
    """The submissions in a folder, in the order of their ids: each of its folders and archives is one.

    wanted: the names of the files to hand in, e.g. 05_swizzle.cu; where it is one alone, kernel.cu will do. For a large
    class there are identities() and read_one(): one at a time in memory.
    """
    return [read_one(path, identity, wanted) for identity, path in identities(folder).items()]


def identities(folder: Path) -> dict[str, Path]:
    """By id, where each submission lies. FlashLadderError where there is none."""
    if not folder.is_dir():
        raise FlashLadderError(f"{folder} is no folder: name the one that holds a folder or archive for each student.")
    with os.scandir(folder) as entries:
        paths = sorted(Path(entry.path) for entry in entries if not entry.name.startswith(".") and _is_one(entry))
    if not paths:
        raise FlashLadderError(
            f"{folder} holds no submissions. Each student has a folder or an archive in it "
            f"({', '.join(ARCHIVES)}) with the file to hand in."
        )
    names = {path: _slug(_without_suffix(path.name)) for path in paths}
    taken = Counter(name.casefold() for name in names.values())
    return dict(
        sorted(
            (
                # Of two with one name each gets a mark of its own, the same one in every run.
                f"{name}~{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:6]}"
                if taken[name.casefold()] > 1
                else name,
                path,
            )
            for path, name in names.items()
        )
    )


def read_one(path: Path, identity: str, wanted: list[str]) -> Submission:
    """Reads one submission; what is wrong with it stands in its `refused`."""
    if path.name.lower().endswith(ARCHIVES) and stat.S_ISREG(os.lstat(path).st_mode):
        kernels, refused = _by_a_process(path, wanted)
        return Submission(identity, path.name, path, kernels, refused)
    return read_here(path, identity, wanted)


def _by_a_process(path: Path, wanted: list[str]) -> tuple[dict[str, bytes], str]:
    """What read_here() finds in an archive, by a process that may have SECONDS and MEMORY_BYTES: (kernels, refused)."""
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "flashladder.classroom.submissions"]
    try:
        done = subprocess.run(
            [*command, os.path.abspath(path), *wanted],
            env=for_python(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=6 * SECONDS,
        )
        said = json.loads(done.stdout)
        return {name: base64.b64decode(data) for name, data in said["kernels"].items()}, str(said["refused"])
    except subprocess.TimeoutExpired:
        return {}, f"the archive takes more than {6 * SECONDS} s to read"
    except (ValueError, KeyError, TypeError, AttributeError):
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return {}, f"the archive takes more than {SECONDS} s of processor time to read"
        return {}, f"the archive cannot be read: it takes more than {MEMORY_BYTES >> 30} GiB of memory, or is damaged"


def read_here(path: Path, identity: str, wanted: list[str]) -> Submission:
    """read_one() in this process, with no limits but those for sizes."""
    try:
        kernels = _choose(path, wanted)
    except Refused as error:
        return Submission(identity, path.name, path, {}, str(error))
    except MemoryError:
        refused = f"the archive takes more than {MEMORY_BYTES >> 30} GiB of memory to read"
        return Submission(identity, path.name, path, {}, refused)
    except (
        OSError,
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        NotImplementedError,
    ) as error:
        return Submission(identity, path.name, path, {}, f"it cannot be read: {_words(error)}")
    except (RuntimeError, ValueError) as error:  # what zipfile raises for an encrypted member, and for nonsense
        return Submission(identity, path.name, path, {}, f"the archive cannot be read: {_words(error)}")
    return Submission(identity, path.name, path, kernels)


def _is_one(entry: os.DirEntry) -> bool:
    """A folder, an archive, or something that pretends to be one (a link): that is told, not passed over."""
    return entry.is_dir(follow_symlinks=False) or entry.is_symlink() or entry.name.lower().endswith((*ARCHIVES, ".cu"))


def _without_suffix(name: str) -> str:
    return next((name[: -len(suffix)] for suffix in (*ARCHIVES, ".cu") if name.lower().endswith(suffix)), name)


def _slug(name: str) -> str:
    """Letters, digits, dots, dashes: fit for a file name everywhere, a page's address and a table."""
    text = name.encode("utf-8", "replace").decode()
    return re.sub(r"[^\w.-]+", "_", text, flags=re.ASCII).strip("._-")[:64] or "unnamed"


def _words(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).replace("\n", " ")[:200]


def _choose(path: Path, wanted: list[str]) -> dict[str, bytes]:
    """The wanted files of a submission: the one that lies nearest to its top, of each name."""
    names = {*wanted, *(["kernel.cu"] if len(wanted) == 1 else [])}
    nearest: dict[str, tuple[int, bytes]] = {}
    others: list[str] = []  # kernels that are called otherwise, as a browser's second download is: 05_swizzle (1).cu
    for place, read in _files(path, wanted):
        if "__MACOSX" in place.parts:
            continue
        depth, name = len(place.parts), place.name
        if name not in names:
            others += [name[:60]] if place.suffix.lower() == ".cu" else []
            continue
        data = read()
        if name in nearest and nearest[name][0] == depth:
            raise Refused(f"it has more than one {name} ({place} is one of them): hand in one")
        if name not in nearest or depth < nearest[name][0]:
            nearest[name] = depth, data
    kernels = {name: data for name, (_, data) in nearest.items()}
    if len(wanted) == 1 and "kernel.cu" in kernels:
        kernels.setdefault(wanted[0], kernels["kernel.cu"])
    kernels = {name: kernels[name] for name in wanted if name in kernels}
    if not kernels:
        told = f"; it has {', '.join(others[:MOST_OTHERS])}: a file counts by its name" if others else ""
        raise Refused(f"it holds no {' and no '.join(wanted)}{told}")
    return kernels


# Each file of a submission with what reads it, up to a limit, before the next one is asked for.
Files = Iterator[tuple[PurePosixPath, Callable[[], bytes]]]


def _files(path: Path, wanted: list[str]) -> Files:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        raise Refused("it is a symbolic link")
    if stat.S_ISDIR(mode):
        return _in_folder(path)
    if not stat.S_ISREG(mode):
        raise Refused("it is neither a folder nor an archive")
    if path.name.lower().endswith(".cu"):
        if len(wanted) > 1:
            raise Refused(f"it is one file, and {' and '.join(wanted)} are wanted: hand in a folder or an archive")
        return iter([(PurePosixPath(wanted[0]), lambda: _read_file(path, PurePosixPath(path.name)))])
    if os.path.getsize(path) > MOST_ARCHIVE_BYTES:
        raise Refused(f"the archive is larger than {MOST_ARCHIVE_BYTES >> 20} MiB")
    return _in_zip(path) if path.name.lower().endswith(".zip") else _in_tar(path)


def _size_allowed(place: PurePosixPath, size: int) -> None:
    if size > MOST_KERNEL_BYTES:
        raise Refused(f"{place} is larger than {MOST_KERNEL_BYTES >> 20} MiB")


def _in_folder(folder: Path) -> Files:
    entries_seen, todo = 0, [PurePosixPath()]
    while todo:
        here = todo.pop()
        if len(here.parts) > MOST_DEPTH:
            raise Refused(f"its folders are more than {MOST_DEPTH} deep")
        with os.scandir(folder / here) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                entries_seen += 1
                if entries_seen > MOST_ENTRIES:
                    raise Refused(f"it has more than {MOST_ENTRIES} files")
                place = here / entry.name
                if not entry.is_dir(follow_symlinks=False):
                    yield place, partial(_read_file, folder / place, place)
                elif not entry.name.startswith("."):
                    todo.append(place)


def _read_file(file: Path, place: PurePosixPath) -> bytes:
    if stat.S_ISLNK(os.lstat(file).st_mode):
        raise Refused(f"{place} is a symbolic link")
    # A FIFO would block here for ever, and a file could have become a link since.
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as opened:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise Refused(f"{place} is no regular file")
        _size_allowed(place, about.st_size)
        data = opened.read(MOST_KERNEL_BYTES + 1)
    _size_allowed(place, len(data))
    return data


def _inside(name: str) -> PurePosixPath:
    """A member's name as a path; one that leaves the archive is refused, though nothing is ever written to it."""
    place = PurePosixPath(name.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or re.match(r"^[A-Za-z]:", name):
        raise Refused(f"the archive has a member outside of itself: {name[:100]!r}")
    return place


# Those whose memory is bounded: a member packed by LZMA names the size of its dictionary itself.
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


def _in_zip(path: Path) -> Files:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) > MOST_ENTRIES:
            raise Refused(f"it has more than {MOST_ENTRIES} files")
        for member in members:
            place = _inside(member.filename)
            if not member.is_dir():
                yield place, partial(_read_packed, archive, member, place)


def _read_packed(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: PurePosixPath) -> bytes:
    if member.compress_type not in _ZIP_METHODS:
        raise Refused(f"{place} is packed by a method that is not taken: make the zip file with deflate")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Refused(f"{place} is {'a symbolic link' if kind == stat.S_IFLNK else 'no regular file'}")
    _size_allowed(place, member.file_size)
    with archive.open(member) as opened:  # what it says of its size may be a lie: read no more than allowed
        data = opened.read(MOST_KERNEL_BYTES + 1)
    _size_allowed(place, len(data))
    return data


class _Budget:
    """A tar stream's reader that gives up after so many unpacked bytes."""

    def __init__(self, stream):
        self.stream, self.left = stream, MOST_UNPACKED_BYTES

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise Refused(f"the archive unpacks to more than {MOST_UNPACKED_BYTES >> 20} MiB")
        return data


class _Xz:
    """A reader of an xz file that gives up where the dictionary, whose size the file names, is too large."""

    def __init__(self, path: Path):
        self._file, self._left = open(path, "rb"), b""
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2 * MOST_DICTIONARY_BYTES)

    def read(self, size: int) -> bytes:
        while len(self._left) < size and not self._decompressor.eof:
            packed = self._file.read(1 << 16) if self._decompressor.needs_input else b""
            if not packed and self._decompressor.needs_input:
                raise EOFError("the archive ends too early")
            try:
                self._left += self._decompressor.decompress(packed, size - len(self._left))
            except lzma.LZMAError as error:
                if "Memory usage limit" not in str(error):
                    raise
                limit = MOST_DICTIONARY_BYTES >> 20
                raise Refused(f"the archive's dictionary has more than {limit} MiB: pack it by `tar cJf`") from error
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def _opened(path: Path):
    name = path.name.lower()
    if name.endswith(".xz"):
        return _Xz(path)
    for suffixes, opener in (((".gz", ".tgz"), gzip.open), ((".bz2",), bz2.open)):
        if name.endswith(suffixes):
            return opener(path, "rb")
    return open(path, "rb")


def _in_tar(path: Path) -> Files:
    seen = 0
    with _opened(path) as stream, tarfile.open(fileobj=_Budget(stream), mode="r|") as archive:
        for member in archive:
            seen += 1
            if seen > MOST_ENTRIES:
                raise Refused(f"it has more than {MOST_ENTRIES} files")
            place = _inside(member.name)
            if member.ischr() or member.isblk():
                raise Refused(f"{place} is a device")
            if not member.isdir():
                yield place, partial(_read_member, archive, member, place)


def _read_member(archive: tarfile.TarFile, member: tarfile.TarInfo, place: PurePosixPath) -> bytes:
    if not member.isreg():
        raise Refused(f"{place} is {'a link' if member.issym() or member.islnk() else 'no regular file'}")
    _size_allowed(place, member.size)
    return archive.extractfile(member).read(MOST_KERNEL_BYTES + 1)


def _limit() -> None:
    """Limits of this process, which nothing that it reads can raise."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: list[str]) -> int:
    _limit()
    path, *wanted = arguments
    found = read_here(Path(path), "", wanted)
    kernels = {name: base64.b64encode(data).decode() for name, data in found.kernels.items()}
    json.dump({"kernels": kernels, "refused": found.refused}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
