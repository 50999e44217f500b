"""The WebAssembly of `make browser` gives what the same entry gives as a program of this machine: in Chromium every
stage, by the page itself, with its buttons; in Firefox a few; in node another problem of each, the variants and the
mistakes that the simulator catches."""

import fcntl
import functools
import gzip
import http.server
import json
import math
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import page_runs
import pytest

from flashladder.building import build
from flashladder.commands import browser
from flashladder.core.paths import build_directory
from flashladder.ladder import stages
from flashladder.simulator import warps
from flashladder.site import page_kernels, run_page

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]

OFFERED = page_kernels.offered()
TURNS = stages.get("ping_pong").id
CHANGED = ("09-kv_stages_1", "02-no_scale", "02-missing_barrier_after_load", f"{TURNS}-first_turn_not_given")
IN_NODE = [one for one in OFFERED if one.kind != "mistake" or one.cause.caught_by != "verification"]
IN_CHROMIUM = [one for one in OFFERED if one.kind == "stage" or one.id in CHANGED]
IN_FIREFOX = [
    one for one in OFFERED if one.id in ("05", stages.get("warp_specialization").id, "02-missing_barrier_after_load")
]
NUMBERS = ("frobenius", "worst", "log_sum_exp_worst")


@pytest.fixture(scope="module")
def shipped() -> Path:
    """The page, built once for all workers of a run of pytest: who builds it takes the files away that others read."""
    page_runs.need_emscripten()
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    with (build_directory() / "browser-page.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not this_run or lock.read() != this_run:
            assert browser.run() == 0
            build.build(["browser_run"])
            lock.truncate(0)
            lock.write(this_run)
    return run_page.shipped()


def shipped_file(one) -> dict:
    """What the page loads of a kernel."""
    return json.loads(gzip.decompress((run_page.shipped() / "kernels" / f"{one.id}.json.gz").read_bytes()))


def same(ours: dict, native: dict) -> None:
    """Equal but for where device memory lies, and the last digits of the comparison, which two libraries computed."""
    assert ours["status"] == native["status"], ours["message"]
    assert page_runs.comparable(ours["report"]) == page_runs.comparable(native["report"])
    assert ours["report"]["operations"] == native["report"]["operations"]
    assert page_runs.without_addresses(ours["trace"]) == page_runs.without_addresses(native["trace"])
    assert {name for name in NUMBERS if name in ours} == {name for name in NUMBERS if name in native}
    for name in NUMBERS:
        if native.get(name) is not None:
            assert ours[name] == pytest.approx(native[name], rel=1e-4)


def hazards_of(one) -> str:
    return "strict" if one.kind == "mistake" else "on"


@pytest.mark.parametrize("one", IN_NODE, ids=lambda one: one.id)
def test_webassembly_in_node_equals_this_machine(one, shipped, tmp_path):
    file = shipped_file(one)
    requests = [file["requests"][page_runs.some(one)[1]]] if one.kind == "stage" else file["requests"]
    for request in requests:
        request = page_runs.with_settings(request, WARPSIM_HAZARDS=hazards_of(one))
        result = page_runs.in_node(file["ptx"], request, tmp_path)
        same(result, page_runs.native(file["ptx"], request, tmp_path))
        if result["status"] != "right":
            break


def test_the_files_are_small_enough_and_name_no_folder_of_this_machine(shipped):
    files = [file for file in [*shipped.rglob("*"), *run_page.FILES.rglob("*")] if file.is_file()]
    assert sum(file.stat().st_size for file in files) < browser.MOST_BYTES
    for one in (OFFERED[0], OFFERED[-1]):
        file = shipped_file(one)
        assert str(run_page.ROOT) not in file["ptx"] and "kernel.cu" in file["sources"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """The page's files, and the place where the driver leaves its results."""

    def do_POST(self):  # noqa: N802 (the library's name)
        self.server.results = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *_):
        pass


def chromium(profile: Path) -> list[str]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        pytest.skip("no chromium on PATH: apt install chromium")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
    return [program, *options, f"--user-data-dir={profile}"]


def firefox(profile: Path) -> list[str]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        pytest.skip("no firefox on PATH: apt install firefox-esr")
    return [program, "--headless", "--no-remote", "--profile", str(profile)]


def driven(browser_command, kernels, tmp_path_factory) -> dict:
    """What the driver has seen of the page in a browser, kernel by kernel."""
    profile = tmp_path_factory.mktemp("profile")
    command = browser_command(profile)
    folder = tmp_path_factory.mktemp("page")
    run_page.copy_files(folder)
    body = re.search(r"```\{raw\} html\n(.*?)```", run_page.TEXT.read_text(), re.S)[1]
    (folder / "run.html").write_text(f"<!doctype html><title>page</title>{body}")
    shutil.copy(Path(__file__).with_name("driver.html"), folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    server.done, server.results = threading.Event(), None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wanted = "&".join(f"kernel={one.id}" for one in kernels)
    address = f"http://127.0.0.1:{server.server_port}/driver.html?{wanted}"
    said = (profile / "said").open("w")
    env = os.environ | {"HOME": str(profile)}  # nothing of the person's own
    running = subprocess.Popen([*command, address], stdout=said, stderr=said, env=env)
    try:
        assert server.done.wait(600), f"the browser did not finish: {(profile / 'said').read_text()[-1000:]}"
    finally:
        running.terminate()
        running.wait(30)
        server.shutdown()
    assert "error" not in server.results, server.results["error"]
    return server.results


@pytest.fixture(scope="module")
def in_chromium(shipped, tmp_path_factory) -> dict:
    return driven(chromium, IN_CHROMIUM, tmp_path_factory)


@pytest.fixture(scope="module")
def in_firefox(shipped, tmp_path_factory) -> dict:
    return driven(firefox, IN_FIREFOX, tmp_path_factory)


def check_seen(one, seen: dict, folder: Path) -> None:
    """The page gave the result of this machine's program, and shows what came of it."""
    assert seen["told"] == "Done."
    file = shipped_file(one)
    request = page_runs.with_settings(file["requests"][0], WARPSIM_HAZARDS=hazards_of(one))
    native = page_runs.native(file["ptx"], request, folder)
    same(seen["result"], native)
    assert native["message"] in seen["text"]
    for launch in native["report"]["launches"]:
        for hazard in launch["hazards"]:
            assert hazard["message"] in seen["text"]
            line = file["sources"][hazard["file"]].splitlines()[hazard["line"] - 1]
            assert line.strip() in seen["text"], "the source line of a hazard"
    accesses = [one for launch in native["report"]["launches"] for one in launch.get("accesses", [])]
    shared = [one for one in accesses if one["space"] == "shared"]
    if shared:
        drawn = max(shared, key=lambda one: one["wavefronts"] - one["ideal"])  # the first of those with most conflicts
        assert seen["cells"] >= drawn["lanes"].bit_count(), "a cell for each lane"
    assert seen["steps"] >= 1 and seen["presses"] == seen["steps"] - 1
    check_timeline(file, native, seen, folder)
    ending = "the run failed" if native["status"] == "failed" else "has done all that it has to do"
    assert ending in seen["where"]


def check_timeline(file: dict, native: dict, seen: dict, folder: Path) -> None:
    """The picture of the first launch is the package's timeline of this machine's trace, and says what its bars are."""
    if native["status"] == "failed":
        assert seen["timeline"] is None and "This launch failed" in seen["text"]
        return
    wanted = page_runs.timelines(file, native["trace"], folder)[0]
    page_runs.same_timeline(seen["timeline"], wanted)
    assert "A model, not a measurement" in seen["text"] and "No throughput" in seen["text"]
    warp = wanted.of_scheduler(0)[0]
    first = next(span for span in wanted.spans if span.warp == warp and span.kind not in warps.BACKGROUND)
    assert seen["bars"].pop("keyboard") == bar_words(first)
    assert set(seen["bars"]) == {span.kind for span in wanted.spans}
    for kind, words in seen["bars"].items():
        assert words in {bar_words(span) for span in wanted.spans if span.kind == kind}


def bar_words(span) -> str:
    start, end, length = (f"{math.floor(clocks + 0.5):,}" for clocks in (span.start, span.end, span.end - span.start))
    return f"Warp {span.warp}, clocks {start} to {end} ({length}): {span.words}"


@pytest.mark.parametrize("one", IN_CHROMIUM, ids=lambda one: one.id)
def test_the_page_in_chromium_equals_this_machine(one, in_chromium, tmp_path):
    check_seen(one, in_chromium[one.id], tmp_path)


@pytest.mark.parametrize("one", IN_FIREFOX, ids=lambda one: one.id)
def test_the_page_in_firefox_equals_this_machine(one, in_firefox, tmp_path):
    check_seen(one, in_firefox[one.id], tmp_path)


def test_a_run_can_be_cancelled(in_chromium):
    assert in_chromium["cancelled"] == "Cancelled."
