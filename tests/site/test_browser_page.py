"""The WebAssembly of `make browser` gives what the same entry gives as a program of this machine: in node for all that
the page offers, and in Chromium by the page itself, a few kernels, with its buttons."""

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path

import page_runs
import pytest

from flashladder.building import build
from flashladder.commands import browser
from flashladder.site import page_kernels, run_page

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]

OFFERED = page_kernels.offered()
IN_CHROMIUM = ("05", "14", "09-kv_stages_1", "02-missing_barrier_after_load", "02-missing_barrier_before_overwrite")
NUMBERS = ("frobenius", "worst", "log_sum_exp_worst")


@pytest.fixture(scope="module")
def shipped() -> Path:
    page_runs.need_emscripten()
    assert browser.run() == 0
    build.build(["browser_run"])
    return run_page.shipped()


def same(ours: dict, native: dict) -> None:
    """Equal but for where device memory lies, and the last digits of the comparison, which two libraries computed."""
    assert ours["status"] == native["status"], ours["message"]
    assert page_runs.comparable(ours["report"]) == page_runs.comparable(native["report"])
    assert ours["report"]["operations"] == native["report"]["operations"]
    assert {name for name in NUMBERS if name in ours} == {name for name in NUMBERS if name in native}
    for name in NUMBERS:
        if native.get(name) is not None:
            assert ours[name] == pytest.approx(native[name], rel=1e-4)


def hazards_of(one) -> str:
    return "strict" if one.kind == "mistake" else "on"


@pytest.mark.parametrize("one", OFFERED, ids=lambda one: one.id)
def test_webassembly_in_node_equals_this_machine(one, shipped, tmp_path):
    file = browser.kernel_file(one)
    for request in file["requests"]:
        request = page_runs.with_settings(request, WARPSIM_HAZARDS=hazards_of(one))
        same(page_runs.in_node(file["ptx"], request, tmp_path), page_runs.native(file["ptx"], request, tmp_path))


def test_the_files_are_small_enough_and_name_no_folder_of_this_machine(shipped):
    files = [file for file in [*shipped.rglob("*"), *run_page.FILES.rglob("*")] if file.is_file()]
    assert sum(file.stat().st_size for file in files) < browser.MOST_BYTES
    for one in (OFFERED[0], OFFERED[-1]):
        file = browser.kernel_file(one)
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


@pytest.fixture(scope="module")
def in_chromium(shipped, tmp_path_factory) -> dict:
    """What the driver has seen of the page, kernel by kernel."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("no chromium on PATH: apt install chromium")
    folder = tmp_path_factory.mktemp("page")
    run_page.copy_files(folder)
    body = re.search(r"```\{raw\} html\n(.*?)```", run_page.TEXT.read_text(), re.S)[1]
    (folder / "run.html").write_text(f"<!doctype html><title>page</title>{body}")
    shutil.copy(Path(__file__).with_name("driver.html"), folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    server.done, server.results = threading.Event(), None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wanted = "&".join(f"kernel={name}" for name in IN_CHROMIUM)
    address = f"http://127.0.0.1:{server.server_port}/driver.html?{wanted}"
    profile = tmp_path_factory.mktemp("profile")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    said = (profile / "said").open("w")
    running = subprocess.Popen([*command, "--remote-debugging-port=0", address], stdout=said, stderr=said)
    try:
        assert server.done.wait(300), f"Chromium did not finish: {(profile / 'said').read_text()[-1000:]}"
    finally:
        running.terminate()
        running.wait(30)
        server.shutdown()
    assert "error" not in server.results, server.results["error"]
    return server.results


@pytest.mark.parametrize("name", IN_CHROMIUM)
def test_the_page_in_chromium_equals_this_machine(name, in_chromium, tmp_path):
    one = next(one for one in OFFERED if one.id == name)
    seen = in_chromium[name]
    assert seen["told"] == "Done."
    file = browser.kernel_file(one)
    request = page_runs.with_settings(file["requests"][0], WARPSIM_HAZARDS=hazards_of(one))
    native = page_runs.native(file["ptx"], request, tmp_path)
    same(seen["result"], native)
    # What is shown is what came of it.
    assert native["message"] in seen["text"]
    for launch in native["report"]["launches"]:
        for hazard in launch["hazards"]:
            assert hazard["message"] in seen["text"]
            line = file["sources"][hazard["file"]].splitlines()[hazard["line"] - 1]
            assert line.strip() in seen["text"], "the source line of a hazard"
        if any(access["space"] == "shared" for access in launch.get("accesses", [])):
            assert seen["cells"] >= 32


def test_a_run_can_be_cancelled(in_chromium):
    assert in_chromium["cancelled"] == "Cancelled."
