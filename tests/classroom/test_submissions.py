"""Finding what was handed in: plain folders, archives, and what a hostile student puts into them."""

import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib

import pytest

from flashladder.classroom import submissions
from flashladder.core.errors import FlashLadderError

WANTED = ["05_swizzle.cu"]
TEXT = b"// a kernel\n"


def read(path, wanted=WANTED):
    """As in the process that reads archives; test_an_archive_is_read_by_a_process_of_its_own has that one itself."""
    return submissions.read_here(path, "who", wanted)


def zip_of(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def tar_of(path, members, mode="w:gz"):
    """members: (TarInfo or name, data)."""
    with tarfile.open(path, mode) as archive:
        for member, data in members:
            member = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def tar_kind(name, kind, link=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


@pytest.fixture
def folder(tmp_path):
    def make(name, files):
        for place, data in files.items():
            file = tmp_path / name / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return tmp_path / name

    return make


def test_a_folder_a_zip_and_a_tar_are_read_alike(tmp_path, folder):
    folder("ada", {"05_swizzle.cu": TEXT, "notes.txt": b"x"})
    zip_of(tmp_path / "ben.zip", [("ben/05_swizzle.cu", TEXT)])
    tar_of(tmp_path / "cho.tar.gz", [("deep/er/05_swizzle.cu", TEXT)])
    tar_of(tmp_path / "dan.tar", [("05_swizzle.cu", TEXT)], "w")
    tar_of(tmp_path / "eve.tar.xz", [("05_swizzle.cu", TEXT)], "w:xz")
    found = submissions.find(tmp_path, WANTED)
    assert [one.id for one in found] == ["ada", "ben", "cho", "dan", "eve"]
    assert all(one.kernels == {"05_swizzle.cu": TEXT} and not one.refused for one in found)
    assert len({one.digest() for one in found}) == 1, "what is graded is the same"


def test_kernel_cu_will_do_where_one_file_is_wanted(folder):
    assert read(folder("ada", {"kernel.cu": TEXT})).kernels == {"05_swizzle.cu": TEXT}
    two = ["06_cp_async.cu", "07_eager_kv.cu"]
    refused = read(folder("ben", {"kernel.cu": TEXT}), two).refused
    assert refused.startswith("it holds no 06_cp_async.cu and no 07_eager_kv.cu; it has kernel.cu")
    assert read(folder("cho", {"07_eager_kv.cu": TEXT}), two).kernels == {"07_eager_kv.cu": TEXT}


def test_a_kernel_of_another_name_is_told(tmp_path, folder):
    told = "it holds no 05_swizzle.cu; it has 05_swizzle (1).cu: a file counts by its name"
    assert read(folder("ada", {"src/05_swizzle (1).cu": TEXT, "notes.txt": b""})).refused == told
    zip_of(tmp_path / "ben.zip", [("05_swizzle (1).cu", TEXT), ("__MACOSX/._05_swizzle (1).cu", b"")])
    assert read(tmp_path / "ben.zip").refused == told
    tar_of(tmp_path / "cho.tar.gz", [("05_swizzle (1).cu", TEXT)])
    assert read(tmp_path / "cho.tar.gz").refused == told
    many = read(folder("dan", {f"{'x' * 80}{number}.CU": b"" for number in range(9)})).refused
    assert many.count("x" * 60) == 3 and len(many) < 300


def test_the_file_nearest_to_the_top_counts_and_two_equally_near_do_not(folder):
    assert read(folder("ada", {"05_swizzle.cu": TEXT, "old/05_swizzle.cu": b"old"})).kernels["05_swizzle.cu"] == TEXT
    assert (
        "more than one 05_swizzle.cu" in read(folder("ben", {"a/05_swizzle.cu": b"", "b/05_swizzle.cu": b""})).refused
    )


def test_two_submissions_of_one_name_are_told_apart_in_every_run(tmp_path, folder):
    folder("Ada", {"05_swizzle.cu": b"1"})
    zip_of(tmp_path / "ada.zip", [("05_swizzle.cu", b"2")])
    zip_of(tmp_path / "ben b.zip", [("05_swizzle.cu", b"3")])
    zip_of(tmp_path / "ben_b.zip", [("05_swizzle.cu", b"4")])
    found = submissions.identities(tmp_path)
    assert len({name.casefold() for name in found}) == 4
    folder("zoe", {"05_swizzle.cu": b"5"})
    assert set(found) < set(submissions.identities(tmp_path)), "another student must not rename them"


def test_names_are_fit_for_files(tmp_path):
    for name in ("=cmd|' C calc'!A0", "<script>", "a\nb", ".._..", "ü" * 5, "x" * 200):
        zip_of(tmp_path / f"{name}.zip", [("05_swizzle.cu", TEXT)])
    for name in submissions.identities(tmp_path):
        assert name and len(name) < 80 and not set(name) & set("/\\<>=|'\n ") and not name.startswith("."), name


def test_links_and_fifos_are_refused_and_block_nobody(tmp_path, folder):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    one = folder("ada", {"readme": b""})
    (one / "05_swizzle.cu").symlink_to(secret)
    assert read(one).refused == "05_swizzle.cu is a symbolic link"
    two = folder("ben", {"readme": b""})
    os.mkfifo(two / "05_swizzle.cu")
    assert read(two).refused == "05_swizzle.cu is no regular file"
    (tmp_path / "cho").symlink_to(one)
    assert read(tmp_path / "cho").refused == "it is a symbolic link"
    inner = folder("dan", {"readme": b""})
    (inner / "src").symlink_to(folder("whole", {"05_swizzle.cu": TEXT}))
    assert read(inner).refused == "it holds no 05_swizzle.cu", "a link to a folder is not followed"
    os.mkfifo(tmp_path / "eve.zip")
    assert read(tmp_path / "eve.zip").refused == "it is neither a folder nor an archive"


@pytest.mark.parametrize("name", ["../05_swizzle.cu", "/05_swizzle.cu", "a/../../05_swizzle.cu", "..\\05_swizzle.cu"])
def test_members_outside_of_the_archive_are_refused(tmp_path, name):
    for path in (zip_of(tmp_path / "a.zip", [(name, TEXT)]), tar_of(tmp_path / "a.tgz", [(name, TEXT)])):
        assert "a member outside of itself" in read(path).refused
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["a.tgz", "a.zip"], "nothing was written"


def test_links_in_archives_are_refused(tmp_path):
    link = zipfile.ZipInfo("05_swizzle.cu")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert read(zip_of(tmp_path / "a.zip", [(link, b"/etc/passwd")])).refused == "05_swizzle.cu is a symbolic link"
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        path = tar_of(tmp_path / "a.tar", [(tar_kind("05_swizzle.cu", kind, "/etc/passwd"), b"")], "w")
        assert read(path).refused == "05_swizzle.cu is a link"
    path = tar_of(tmp_path / "b.tar", [(tar_kind("05_swizzle.cu", tarfile.FIFOTYPE), b"")], "w")
    assert read(path).refused == "05_swizzle.cu is no regular file"


def test_bombs_are_refused_before_they_fill_the_memory(tmp_path, monkeypatch):
    large = b"\0" * (submissions.MOST_KERNEL_BYTES + 1)
    assert "larger than 1 MiB" in read(zip_of(tmp_path / "a.zip", [("05_swizzle.cu", large)])).refused
    assert "larger than 1 MiB" in read(tar_of(tmp_path / "a.tgz", [("05_swizzle.cu", large)])).refused
    monkeypatch.setattr(submissions, "MOST_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(tar_of(tmp_path / "b.tar", [("zeros", large)], "w").read_bytes()))
    assert "unpacks to more than 1 MiB" in read(path).refused
    monkeypatch.setattr(submissions, "MOST_ENTRIES", 10)
    many = [(f"{number}.txt", b"") for number in range(11)]
    assert "more than 10 files" in read(zip_of(tmp_path / "c.zip", many)).refused
    assert "more than 10 files" in read(tar_of(tmp_path / "c.tar", many, "w")).refused
    monkeypatch.setattr(submissions, "MOST_ARCHIVE_BYTES", 10)
    assert "the archive is larger than" in read(tmp_path / "c.zip").refused


def test_a_zip_that_lies_about_a_members_size_is_refused(tmp_path):
    path = zip_of(tmp_path / "a.zip", [("05_swizzle.cu", b"\0" * (4 << 20))])
    data = bytearray(path.read_bytes())
    directory = data.find(b"PK\1\2")
    data[directory + 24 : directory + 28] = struct.pack("<I", 100)
    path.write_bytes(data)
    assert read(path).refused and not read(path).kernels


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_a_damaged_archive_is_refused_in_words(tmp_path, name):
    (tmp_path / name).write_bytes(b"this is no archive" * 100)
    assert "cannot be read" in read(tmp_path / name).refused


def test_a_folder_without_submissions_says_what_belongs_there(tmp_path):
    with pytest.raises(FlashLadderError, match="holds no submissions. Each student has a folder or an archive"):
        submissions.find(tmp_path, WANTED)
    with pytest.raises(FlashLadderError, match="is no folder"):
        submissions.find(tmp_path / "nothing", WANTED)


def xz_of(data: bytes, dictionary: int) -> bytes:
    """An xz file of nothing to speak of that asks for a dictionary of this many bytes: 2^n or 3 * 2^(n-1)."""
    packed = bytearray(lzma.compress(data, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]))
    at = packed.index(b"\x21\x01", 12) + 2  # the filter's id, the size of its properties, the dictionary
    packed[at] = {1 << 32: 40, 1 << 20: 16}[dictionary]
    header = slice(12, 12 + 4 * (packed[12] + 1))
    packed[header.stop - 4 : header.stop] = struct.pack("<I", zlib.crc32(bytes(packed[header][:-4])))
    return bytes(packed)


def test_a_dictionary_of_four_gigabytes_is_refused(tmp_path):
    content = tar_of(tmp_path / "plain", [("05_swizzle.cu", TEXT)], "w").read_bytes()
    (tmp_path / "a.tar.xz").write_bytes(xz_of(content, 1 << 20))
    assert read(tmp_path / "a.tar.xz").kernels == {"05_swizzle.cu": TEXT}
    (tmp_path / "b.tar.xz").write_bytes(xz_of(content, 1 << 32))
    assert "dictionary has more than 64 MiB" in read(tmp_path / "b.tar.xz").refused
    with zipfile.ZipFile(tmp_path / "c.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("05_swizzle.cu", TEXT)
    assert "by a method that is not taken" in read(tmp_path / "c.zip").refused


def test_a_device_is_refused_by_its_name(tmp_path):
    path = tar_of(tmp_path / "a.tar", [(tar_kind("dev/sda", tarfile.BLKTYPE), b""), ("05_swizzle.cu", TEXT)], "w")
    assert read(path).refused == "dev/sda is a device"


@pytest.mark.long
def test_an_archive_is_read_by_a_process_of_its_own(tmp_path, monkeypatch):
    """With the same result, and where it takes too much with words: the process is lost, and not the class."""
    good = submissions.read_one(zip_of(tmp_path / "a.zip", [("05_swizzle.cu", TEXT)]), "ada", WANTED)
    assert good.kernels == {"05_swizzle.cu": TEXT} and good.id == "ada" and not good.refused
    bad = submissions.read_one(zip_of(tmp_path / "b.zip", [("../05_swizzle.cu", TEXT)]), "ben", WANTED)
    assert "a member outside of itself" in bad.refused
    program = "import sys, flashladder.classroom.submissions as s; s.MEMORY_BYTES = 60 << 20; s.main(sys.argv[1:])"
    original = submissions.subprocess.run

    def with_little_memory(command, **more):
        return original([command[0], "-c", program, *command[3:]], **more)

    monkeypatch.setattr(submissions.subprocess, "run", with_little_memory)
    large = zip_of(tmp_path / "c.zip", [(f"{number}.txt", b"") for number in range(90_000)])
    lost = submissions.read_one(large, "cho", WANTED)
    assert not lost.kernels and "memory" in lost.refused, lost.refused
