"""The WebAssembly of `make browser` gives what the same entry gives as a program of this machine: in Chromium every
stage, by the page itself, with its buttons; in Firefox a few; in node another problem of each, the variants and the
mistakes that the simulator catches."""

import gzip
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlencode

import page_runs
import pytest

from flashladder.building import build
from flashladder.classroom import exercise
from flashladder.commands import browser, page
from flashladder.ladder import stages
from flashladder.simulator import warps
from flashladder.site import lesson_pages, page_compiler, page_exercises, page_kernels, page_server, run_page

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


# What the page of exercises alone loads.
TO_WRITE = ("write", "judge", "diagnosis", "technique", "progress", "exercise", "attention", "normal", "case",
            "overlap", "forward", "decode", "gradients", "sums")  # fmt: skip


def test_the_files_are_small_enough_and_name_no_folder_of_this_machine(shipped):
    files = [file for file in [*shipped.rglob("*"), *run_page.FILES.rglob("*")] if file.is_file()]
    assert sum(file.stat().st_size for file in files if "clang" not in file.parts) < browser.MOST_BYTES
    first = [file for file in run_page.FILES.iterdir() if file.suffix in (".js", ".css") and file.stem not in TO_WRITE]
    first += [shipped / "catalogue.json", shipped / "kernels/04.json.gz", shipped / "kernels/05.json.gz"]
    assert sum(file.stat().st_size for file in first) < 300_000, "before a run; the theme has as much again"
    for one in (OFFERED[0], OFFERED[-1]):
        file = shipped_file(one)
        assert str(run_page.ROOT) not in file["ptx"] and "kernel.cu" in file["sources"]


class Handler(page_server.Handler):
    """What `make page` serves, and the place where the driver leaves its results. Told /unplug it serves no more."""

    def do_GET(self):
        if self.server.unplugged:
            self.close_connection = True  # without an answer, as where there is no network
        else:
            super().do_GET()

    def do_POST(self):
        if self.path == "/unplug":
            self.server.unplugged = True
            self.send_response(204)
            self.end_headers()
            return
        if self.path != "/done":
            super().do_POST()
            return
        self.server.results = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()


class Server(page_server.Server):
    handler = Handler

    def __init__(self, folder: Path):
        super().__init__(folder, page_server.Compiler(page.compiler_level()), 0)
        self.done, self.results, self.unplugged = threading.Event(), None, False


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


TASKS = ("tile_offset", "barriers")  # of a lesson, written in place


def page_of(folder: Path, compiler: bool) -> None:
    """The pages in the folder, in the theme's boxes; with the theme's style where it is installed. compiler: clang."""
    run_page.copy_files(folder)
    for name in () if compiler else ("catalogue.json", "exercises/index.json"):
        file = folder / "run" / name
        file.write_text(json.dumps(json.loads(file.read_text()) | {"compiler": None}))
    theme = importlib.util.find_spec("furo")
    if theme:
        shutil.copy(Path(theme.origin).parent / "theme/furo/static/styles/furo.css", folder)
    boxes = '<div class="page"><div class="main"><div class="content"><article role="main" id="furo-main-content">'
    for name, text in run_page.texts().items():
        body = re.search(r"```\{raw\} html\n(.*?)```", text, re.S)[1]
        (folder / name).with_suffix(".html").write_text(
            '<!doctype html><html lang="en"><head><title>page</title><meta charset="utf-8">'
            '<link rel="stylesheet" href="furo.css">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"</head><body>{boxes}<section><h1>Page</h1>{body}</section></article></div></div></div></body></html>"
        )
    shutil.copy(Path(__file__).with_name("driver.html"), folder)
    shutil.copytree(run_page.FILES.parent / "static", folder / "_static")
    if page_runs.axe():
        shutil.copy(page_runs.axe(), folder / "axe.js")
    cells = [{"cell_type": "code", "source": f"%%write {name}"} for name in TASKS]
    links = [lesson_pages.in_the_page(cell, stages.get("swizzle"))["source"] for cell in cells]
    (folder / "notebooks").mkdir()
    (folder / "notebooks/lesson.html").write_text(
        '<!doctype html><html lang="en"><head><title>lesson</title><meta charset="utf-8">'
        '<link rel="stylesheet" href="../_static/site.css"><script src="../_static/site.js"></script>'
        f"</head><body>{''.join(links)}</body></html>"
    )


def driven(browser_command, what: str, tmp_path_factory, kernels=(), compiler: str = "") -> dict:
    """What the driver has seen of the page in a browser; compiler: "nvcc" behind it, or "clang" in it."""
    profile = tmp_path_factory.mktemp("profile")
    command = browser_command(profile)
    folder = tmp_path_factory.mktemp("page")
    page_of(folder, compiler == "clang")
    server = Server(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wanted = [
        ("what", what),
        *(("kernel", one.id) for one in kernels),
        *([("key", server.key)] if compiler == "nvcc" else []),
    ]
    address = f"http://127.0.0.1:{server.server_port}/driver.html?{urlencode(wanted)}"
    said = (profile / "said").open("w")
    env = os.environ | {"HOME": str(profile)}  # nothing of the person's own
    running = subprocess.Popen([*command, address], stdout=said, stderr=said, env=env)
    try:
        assert server.done.wait(600), f"the browser did not finish: {(profile / 'said').read_text()[-1000:]}"
    finally:
        running.terminate()
        running.wait(30)
        server.shutdown()
        server.server_close()
    assert "fault" not in server.results, server.results["fault"]
    print({name: f"{seconds:.2f} s" for name, seconds in server.results.pop("seconds").items()})
    return server.results


@pytest.fixture(scope="module")
def in_chromium(shipped, tmp_path_factory) -> dict:
    return driven(chromium, "kernels", tmp_path_factory, IN_CHROMIUM)


@pytest.fixture(scope="module")
def in_firefox(shipped, tmp_path_factory) -> dict:
    return driven(firefox, "kernels", tmp_path_factory, IN_FIREFOX)


def check_seen(one, seen: dict, folder: Path) -> None:
    """The page gave the result of this machine's program, and shows what came of it."""
    assert seen["told"] == ""
    file = shipped_file(one)
    for request in file["requests"][: 1 if one.kind != "mistake" else None]:
        native = page_runs.native(
            file["ptx"], page_runs.with_settings(request, WARPSIM_HAZARDS=hazards_of(one)), folder
        )
        if native["status"] != "right":
            break
    same(seen["result"], native)
    assert native["message"] in seen["text"]
    name = f"{one.stage.id} {one.stage.title}"
    assert len(seen["verdicts"]) == 2 and all(words.startswith(name) for words in seen["verdicts"])
    assert all(
        {"right": "right", "wrong": "wrong", "failed": "caught"}[native["status"]] in w for w in seen["verdicts"]
    )
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
    check_timeline(file, native, seen, folder)
    if not is_traced(native):
        assert seen["steps"] is None and "form clusters" in seen["text"]
        return
    assert seen["steps"] >= 1 and seen["presses"] == seen["steps"] - 1
    ending = "the run failed" if native["status"] == "failed" else "has done all that it has to do"
    assert ending in seen["where"]


def is_traced(run: dict) -> bool:
    """The simulator traces no kernel with clusters."""
    return any(launch["traced"] for launch in run["trace"]["launches"])


def check_timeline(file: dict, native: dict, seen: dict, folder: Path) -> None:
    """The picture of the first launch is the package's timeline of this machine's trace, and says what its bars are."""
    if not is_traced(native):
        assert seen["timeline"] is None
        return
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
    assert in_chromium["cancelled"] == ["Cancelled.", 0]


@pytest.fixture(scope="module")
def read_only(shipped, tmp_path_factory) -> dict:
    return driven(chromium, "readOnly", tmp_path_factory)


def test_axe_has_no_objection_to_what_a_run_shows(read_only):
    if page_runs.axe() is None:
        pytest.skip("axe-core is not there: pip install axe-playwright-python")
    assert set(read_only["objections"]) == {"verdict", "lines", "banks", "timeline"}
    assert not any(read_only["objections"].values()), read_only["objections"]


def test_without_a_compiler_the_page_runs_what_is_shipped_and_says_why_no_more(read_only):
    seen = read_only
    assert seen["readOnly"] and "make page" in seen["words"]
    assert seen["right"][0].startswith("04 Tensor cores: right, ") and "times fewer wavefronts" in seen["right"][1]
    assert [words.partition(":")[0] for words in seen["edited"]] == ["05 Swizzle"]
    assert seen["told"].startswith("04 Tensor cores, edited cannot be compiled here.") and "make page" in seen["told"]


WITHOUT_CLANG = f"no clang for WebAssembly: pip install {page_compiler.PACKAGE}"


@pytest.fixture(scope="module", params=[(one, which) for which in ("nvcc", "clang") for one in (chromium, firefox)],
                ids=lambda param: f"{param[0].__name__}-{param[1]}")  # fmt: skip
def edited(request, shipped, tmp_path_factory) -> dict:
    program, compiler = request.param
    if compiler == "clang" and not page_compiler.find_clang():
        pytest.skip(WITHOUT_CLANG)
    build.configure()
    return driven(program, "editing", tmp_path_factory, compiler=compiler) | {"compiler": compiler}


def line_of(text: str, stage: str) -> int:
    return next(at for at, line in enumerate(stages.get(stage).kernel.read_text().splitlines(), 1) if text in line)


def test_a_planted_race_is_caught_at_its_line(edited):
    reading = line_of("ptx::ldmatrix_x4(Q_fragment", "swizzle")
    assert edited["first"][1].startswith("05 Swizzle: right, 7.6 times fewer wavefronts than 04 Tensor cores")
    assert edited["cleared"] == 1, "what was said of the source before the edit is gone"
    assert edited["race"]["verdicts"][0] == edited["first"][0]
    assert edited["race"]["verdicts"][1].startswith(f"05 Swizzle, edited: caught: a race at line {reading}.")
    assert edited["race"]["marked"] == [reading]
    assert "__syncthreads() is missing" in edited["race"]["text"]
    assert not edited["undone"] and edited["undoneVerdicts"] == edited["first"]


def test_an_error_of_the_compiler_is_told_at_its_line(edited):
    line = line_of("__syncthreads();", "tensor_cores")
    assert edited["error"]["verdicts"][0].startswith(f"04 Tensor cores, edited: does not compile at line {line}.")
    assert edited["error"]["marked"] == [line] and "__syncthread" in edited["error"]["text"]
    assert edited["error"]["verdicts"][1].startswith("05 Swizzle: right") and not edited["reset"]


def test_an_edit_is_counted_and_its_line_has_a_picture(edited):
    assert edited["slower"][1].startswith("05 Swizzle, edited: right, 3.9 times fewer wavefronts than 04 Tensor cores")
    assert edited["compilers"].startswith(f"{edited['compiler']} has compiled both")
    line, words = edited["banks"]
    assert words.startswith(f"Line {line}, ldmatrix 1 of ") and "of them bank conflicts" in words


def test_the_page_says_beforehand_what_compiles(edited):
    if edited["compiler"] == "clang":
        assert re.search(r"clang \d+\.\d+\.\d+ compiles it in this page: \d\d MB, fetched when", edited["about"])
    else:
        assert "nvcc compiles it." in edited["about"]


def test_a_kernel_whose_template_has_a_structure_is_found(edited):
    assert edited["structure"][1].startswith("12 Autotune, edited: right")


def test_a_compilation_can_be_cancelled(edited):
    assert edited["cancelled"] == "Cancelled."


def test_without_a_network_the_page_still_opens_and_runs(edited):
    assert edited["offline"][1] == edited["race"]["verdicts"][1]


def test_a_link_brings_the_edits_back(edited):
    assert edited["opened"] == {"right": True, "text": True}
    assert edited["link"][1] == edited["race"]["verdicts"][1]


def test_a_narrow_screen_shows_one_source_and_nothing_wider_than_itself(edited):
    assert edited["shown"] == [True, False]
    assert [width for width, _ in edited["narrow"]] == [width for _, width in edited["narrow"]]
    assert 0 < edited["fold"][0] < edited["fold"][1] < 800
    assert edited["seen"] == [True] * 4, "what a tab shows is in the window once it is chosen"


@pytest.fixture(scope="module", params=(chromium, firefox), ids=lambda program: program.__name__)
def written(request, shipped, tmp_path_factory) -> dict:
    if not page_compiler.find_clang():
        pytest.skip(WITHOUT_CLANG)
    return driven(request.param, "exercises", tmp_path_factory, compiler="clang")


def test_no_exercise_is_fetched_before_it_is_asked_for(written):
    """Nor is the simulator or the compiler; and what is fetched is little."""
    assert "0 of " in written["list"] and "01 Naive attention" in written["list"] and "Mend it, 1" in written["list"]
    for text in page_exercises.elsewhere():
        assert text.replace("`", "") in written["list"]
    assert "exercises/index.json" in written["loaded"]
    large = [name for name in written["loaded"] if name and re.search(r"\.gz$|\.wasm$|headers.json", name)]
    assert not large
    assert "exercises/05.json.gz" in written["loadedThen"] and "exercises/04.json.gz" not in written["loadedThen"]
    own = [run_page.FILES / name for name in written["loaded"] if name and (run_page.FILES / name).is_file()]
    assert sum(file.stat().st_size for file in own) < 300_000, "before a run; the theme has as much again"


def test_a_task_and_its_hints_are_shown_one_by_one(written):
    chosen = exercise.get("swizzle", "tile_offset")
    assert written["task"].split() == chosen.task.replace("`", "").split()
    assert written["hidden"] == "" and written["hint"] == [chosen.hints[0].replace("`", ""), "Hint 2 of 3"]


def test_answers_are_judged_with_their_reasons(written):
    assert written["stub"].startswith("Not written yet")
    assert written["technique"].startswith("Right, but without the technique.")
    assert "ldmatrix takes 30,720 wavefronts where 15,360 would do" in written["technique"]
    assert written["marked"] == [line_of_start("ptx::ldmatrix_x4(piece, piece_address<T, d_head>(K_tile", written)]
    assert written["builds"].startswith("Does not compile.") and "line 28: expected ')'" in written["builds"]
    assert written["cleared"] == ""
    assert written["right"].startswith("Right. Solved.") and "right at bf16 B=1 H=2 Nq=128" in written["right"]
    assert "Next: " in written["right"] and "solved" in written["title"]
    assert written["mend"].startswith("Not mended yet")
    assert written["race"].startswith("Wrong, and with a hazard.") and "shared race: " in written["race"]
    assert written["decode"].startswith("Wrong.") and "wrong at bf16 B=3 Hq=8 Hkv=2 Nq=3 Nkv=150" in written["decode"]


def line_of_start(text: str, written: dict) -> int:
    return next(at for at, line in enumerate(written["source"].splitlines(), 1) if text in line)


def test_what_was_written_and_solved_is_kept_until_it_is_to_be_forgotten(written):
    kept, forgotten = written["kept"], written["forgotten"]
    assert kept["text"] and "solved" in kept["title"] and kept["hints"]
    assert written["sum"].startswith("1 of ") and " 3 of " in written["sum"]
    assert not forgotten["text"] and "solved" not in forgotten["title"] and not forgotten["hints"]


def test_escape_leaves_the_editor(written):
    assert written["left"]


def test_exercises_fit_a_narrow_screen(written):
    assert set(written["narrow"]) == {"list", "verdict"}
    assert [width for width, _ in written["narrow"].values()] == [width for _, width in written["narrow"].values()]


@pytest.fixture(scope="module", params=(chromium, firefox), ids=lambda program: program.__name__)
def in_a_lesson(request, shipped, tmp_path_factory) -> dict:
    if not page_compiler.find_clang():
        pytest.skip(WITHOUT_CLANG)
    return driven(request.param, "lesson", tmp_path_factory, compiler="clang")


def test_a_task_is_written_in_its_lesson(in_a_lesson):
    """Its editor is fetched when the reader asks for it, has a name, and the height of what is in it."""
    assert in_a_lesson["before"] == 0, "nothing of the page of exercises is loaded"
    assert in_a_lesson["buttons"] == ["Write it here"] * len(TASKS) and in_a_lesson["expanded"] == ["false", "true"]
    title = exercise.get("swizzle", TASKS[0]).title
    assert in_a_lesson["name"] == f"Write it: {title}" and title in in_a_lesson["title"]
    assert in_a_lesson["hidden"] == ["none"] * 3, "the list's button, the task and what follows are the lesson's matter"
    inside, outside = in_a_lesson["heights"]
    assert 300 < inside <= outside <= inside + 20
    assert in_a_lesson["verdict"].startswith("Right. Solved.") and "Next" not in in_a_lesson["verdict"]
    inside, outside = in_a_lesson["grown"]
    assert in_a_lesson["heights"][1] < outside and inside <= outside <= inside + 20
    for width, room in in_a_lesson["narrow"]:
        assert width == room


def test_two_tasks_of_a_lesson_keep_what_is_written_in_each(in_a_lesson):
    assert in_a_lesson["kept"] == [True, True]
    assert in_a_lesson["closed"] == ["false", 0]
