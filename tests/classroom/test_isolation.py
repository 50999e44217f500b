"""Each level of isolation that this machine has keeps what it says."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flashladder.classroom import isolation
from flashladder.classroom.isolation import LEVELS, NONE, Box, Limits, run
from flashladder.core.errors import FlashLadderError

SHORT = Limits(seconds=20)


@pytest.fixture(params=LEVELS, ids=lambda level: level.name)
def each(request):
    why_not = request.param.missing()
    if why_not:
        pytest.skip(f"no level '{request.param.name}' here: {why_not}")
    return request.param


@pytest.fixture
def box(tmp_path) -> Box:
    for folder in (tmp_path, *tmp_path.parents):  # another user has to get here
        if folder == tmp_path or folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(0o755)
    folder = tmp_path / "box"
    folder.mkdir()
    return Box(folder)


def shell(level, box, script: str, limits: Limits = SHORT) -> isolation.Done:
    return run(level, ["/bin/sh", "-c", script], box, limits)


def test_it_works_in_its_folder(each, box):
    (box.folder / "in").write_text("a word")
    done = shell(each, box, "cat in > out; pwd; echo $TMPDIR")
    assert done.status == 0 and not done.ended, done.output
    assert (box.folder / "out").read_text() == "a word"
    assert done.output.split() == [str(each.folder(box))] * 2


def test_no_files_but_those_named(each, box, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden sizes")
    secret.chmod(0o600 if each.name == "user" else 0o644)
    tried = Path("/usr/flashladder-test-isolation")
    done = shell(each, box, f"cat {secret}; echo x > {secret}; echo x > {tried}; cat /etc/shadow; echo over")
    assert "hidden sizes" not in done.output and "root:" not in done.output, done.output
    assert done.output.endswith("over\n") and secret.read_text() == "hidden sizes"
    assert not tried.exists()


def test_what_is_named_can_be_read_and_not_written(each, box, tmp_path):
    named = tmp_path / "named"
    named.mkdir()
    named.chmod(0o755)
    (named / "header.h").write_text("a header")
    done = shell(each, Box(box.folder, (named,)), f"cat {named}/header.h; : > {named}/more")
    assert "a header" in done.output and not (named / "more").exists(), done.output


def test_nothing_of_our_environment(each, box, monkeypatch):
    monkeypatch.setenv("GRADERS_TOKEN", "4711")
    done = shell(each, box, "env; echo HOME=$HOME")
    assert "4711" not in done.output and "HOME=/nonexistent" in done.output


def test_no_network(each, box):
    if each.name == "user":
        pytest.skip("another user has the network: the level says so by not promising it")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        box = Box(box.folder, isolation.python_paths(each.python[0]))
        done = run(each, [*each.python, "-c", script], box, SHORT)
    assert done.status and "Error" in done.output, done.output


def test_the_whole_family_ends_in_time(each, box):
    script = "(sleep 300.5 & setsid sleep 300.5 & echo started; sleep 300.5)"
    done = shell(each, box, script, Limits(seconds=1))
    assert done.ended == "time" and done.status and done.seconds < 15
    alive = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()
    assert "sleep 300.5" not in alive, "a child of the command outlived it"


def test_what_it_leaves_behind_ends_with_it(each, box):
    done = shell(each, box, "(sleep 301 &); echo ready")
    assert done.output == "ready\n" and not done.ended and done.seconds < 15
    assert "sleep 301" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


def test_endless_output_ends(each, box):
    done = shell(each, box, "yes", Limits(seconds=20, output_bytes=10_000))
    assert done.ended == "output" and len(done.output) <= 10_000 and done.seconds < 15


def test_files_and_memory_have_limits(each, box):
    done = shell(
        each, box, "head -c 2000000 /dev/zero > large; wc -c < large", Limits(seconds=20, file_bytes=1_000_000)
    )
    assert (box.folder / "large").stat().st_size <= 1_000_000, done.output
    box = Box(box.folder, isolation.python_paths(each.python[0]))
    done = run(each, [*each.python, "-c", "bytes(1 << 30)"], box, Limits(seconds=20, memory_bytes=1 << 29))
    assert done.status and "MemoryError" in done.output, done.output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs as another user")
def test_root_gives_its_rights_up(each, box):
    done = shell(each, box, "id -u; id -G")
    user, group = done.output.split()
    assert int(user) >= 20000 and int(group) >= 20000


@pytest.mark.parametrize("call", ["os.chroot('.')", "os.setuid(0)", "os.mknod('disk', 0o60600, os.makedev(8, 0))"])
def test_no_rights_are_left(each, box, call):
    if call == "os.setuid(0)" and each.name == "namespaces" and os.geteuid():
        pytest.skip("that is its number inside, of a user without rights")
    box = Box(box.folder, isolation.python_paths(each.python[0]))
    done = run(each, [*each.python, "-c", f"import os; {call}"], box, SHORT)
    # A user whose number is not known inside is an argument that makes no sense there.
    refused = ("Operation not permitted", "Invalid argument") if "setuid" in call else ("Operation not permitted",)
    assert done.status and any(words in done.output for words in refused), done.output


def test_many_at_once_do_not_meet(each, box):
    found = {}

    def one(number: int) -> None:
        folder = box.folder.parent / f"box-{number}"
        folder.mkdir()
        found[number] = shell(each, Box(folder), f"echo {number}; ls")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: done.output for number, done in found.items()} == {number: f"{number}\n" for number in range(4)}


def test_a_killed_grader_leaves_no_command_behind(each, box):
    script = (
        "import sys; from pathlib import Path; from flashladder.classroom import isolation as i;"
        f"level = next(one for one in i.LEVELS if one.name == '{each.name}');"
        f"i.run(level, ['/bin/sh', '-c', 'echo > started; exec sleep 302'], i.Box(Path('{box.folder}')), i.Limits())"
    )
    grader = subprocess.Popen([sys.executable, "-c", script])
    for _ in range(200):
        if (box.folder / "started").exists():
            break
        threading.Event().wait(0.05)
    grader.kill()
    grader.wait()
    for _ in range(100):
        if "sleep 302" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout:
            return
        threading.Event().wait(0.05)
    pytest.fail("the command runs on")


def test_without_any_level_it_refuses_and_says_what_to_do(monkeypatch):
    monkeypatch.setattr(isolation.Level, "missing", lambda self: "not here")
    with pytest.raises(FlashLadderError) as caught:
        isolation.choose()
    for words in ("bubblewrap: not here", "namespaces: not here", "apt install bubblewrap", "--isolation none"):
        assert words in str(caught.value)
    assert isolation.choose("none") is NONE and "NO ISOLATION" in NONE.says
    with pytest.raises(FlashLadderError, match="choose one of auto, bubblewrap"):
        isolation.choose("a wish")


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda file: file.symlink_to("/etc/passwd"), "is a link"),
        (lambda file: os.mkfifo(file), "is a pipe"),
        (lambda file: file.mkdir(), "is a folder"),
        (lambda file: file.write_bytes(bytes(2000)), "more than 1000 bytes"),
        (lambda file: None, "there is no kernel.cu"),
    ],
    ids=["link", "pipe", "folder", "large", "absent"],
)
def test_only_plain_files_are_read(tmp_path, make, words):
    file = tmp_path / "kernel.cu"
    make(file)
    with pytest.raises(isolation.Unreadable, match=words):
        isolation.take(file, 1000)
