"""Each call of a lesson, as text (outside of a notebook) and, where it matters, in a kernel."""

import html
import io
import json
import re
import shlex
import subprocess

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from PIL import Image  # noqa: E402

from flashladder.building import build  # noqa: E402
from flashladder.core import device  # noqa: E402
from flashladder.core.decode_problem import DecodeProblem  # noqa: E402
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.core.problem import Problem  # noqa: E402
from flashladder.ladder import stages  # noqa: E402
from flashladder.ladder.stage import Verdict  # noqa: E402
from flashladder.lessons import (  # noqa: E402
    BackwardLesson,
    DecodeLesson,
    HostLesson,
    Lesson,
    RingLesson,
    display,
    notebook_format,
    predict,
    prediction,
    scorecard,
    slider,
)
from flashladder.lessons import throughput as lesson_throughput  # noqa: E402
from flashladder.measuring import recorded  # noqa: E402
from flashladder.plot import style  # noqa: E402
from flashladder.running.verify import Comparison  # noqa: E402

SMALL = Problem(B=1, Hq=1, Nq=128, d_head=128)


@pytest.fixture(scope="module", autouse=True)
def built():
    """What the lessons run: nothing to do after `make build`."""
    build.build(sorted({target for number in (4, 5, 6) for target in stages.get(number).targets} | {"stage_02"}))


@pytest.fixture(autouse=True)
def on_the_simulator(monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")
    monkeypatch.setattr(prediction, "_predictions", {})


@pytest.fixture
def lesson(capsys):
    made = Lesson(5)
    capsys.readouterr()
    return made


def test_says_where_it_runs(capsys):
    Lesson("05_swizzle")
    assert capsys.readouterr().out.startswith("Stage 05, Swizzle, runs on the simulator")
    with pytest.raises(FlashLadderError, match="HostLesson"):
        Lesson(0)


def test_show_is_the_file_with_its_line_numbers(lesson, capsys):
    lesson.show("tile_offset")
    printed = capsys.readouterr().out
    lines = stages.get(5).kernel.read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if "__device__ int tile_offset" in line)
    assert f"{number}  {lines[number - 1]}" in printed.splitlines()
    with pytest.raises(FlashLadderError, match='no part "tile_ofset". It has: "top", "tile_offset"'):
        lesson.show("tile_ofset")


# Up to masking one function does all; from tma on parts have functions of their own, and those that later stages repeat
# lie in a header.
PHASES = ("load", "S = QKᵀ", "online softmax", "O += PV", "store")
PARTS = ("load", "S = QKᵀ and O += PV", "mask", "online softmax", "store", "kernel", "launch")
OTHER_NAMES = {"S = QKᵀ and PV": PARTS[1], "softmax": PARTS[3], "optimistic softmax": PARTS[3]}


@pytest.mark.parametrize("stage", stages.since("online_softmax"), ids=lambda stage: stage.name)
def test_every_stage_has_its_phases_in_the_same_order(stage):
    found = Lesson(stage.number).parts()
    assert {"top", "flash_kernel", "launch"} <= set(found)
    if stage not in stages.since("tma"):
        assert tuple(name for name in found if name in PHASES) == PHASES
        return
    named = [OTHER_NAMES.get(name, name) for name in found[: found.index("launch") + 1]]
    if stage.slug == "tma":  # its loop is as masking's, in the kernel
        assert tuple(name for name in named[named.index("kernel") :] if name in PHASES) == PHASES[1:4]
        named = [name for name in named[: named.index("kernel") + 1] if name not in PHASES[1:4]] + ["launch"]
    there = list(dict.fromkeys(name for name in named if name in PARTS))
    assert there == [name for name in PARTS if name in there]
    assert {"load", "kernel", "launch"} <= set(there)


def test_code_keeps_every_character():
    text = "#pragma unroll\n    for (int i = 0; i < 4; ++i) x[i] = a<b>(i);  // ½ & more\n"
    shown = display.code(text, 8)
    plain = html.unescape(re.sub(r"<[^>]+>", "", shown.html))
    assert plain.splitlines() == [f"{number}  {line}" for number, line in enumerate(text.splitlines(), 8)]


def test_a_note_shows_what_is_typed_as_code():
    shown = display.note("run `make x` & see", "Not shown:")
    assert shown.html == "<div><b>Not shown:</b> run <code>make x</code> &amp; see</div>"
    assert shown.text == "Not shown: run `make x` & see"


@pytest.mark.parametrize("number", [2, 5])
def test_the_whole_kernel_with_the_command_that_compiles_it(number, capsys, monkeypatch):
    lesson, drawn = Lesson(number), []
    capsys.readouterr()
    lesson.kernel()
    summary, command, place, *lines = capsys.readouterr().out.rstrip("\n").split("\n")
    source = stages.get(number).kernel
    text = source.read_text().splitlines()
    assert summary == f"The whole of {place}: {len(text)} lines" and place == f"stages/{source.parent.name}/kernel.cu"
    assert [re.sub(r"^ *\d+ *", "", line) for line in lines] == [line.strip() for line in text]
    # Word by word what the build says, and something that a shell in the project's folder takes.
    words, built = shlex.split(command), build.compile_command(source)
    assert words[0] == "nvcc" and f"--generate-code=arch=compute_{stages.get(number).min_compute}" in command
    places = [word.replace(f"{notebook_format.ROOT}/", "") for word in built]
    assert [word for word in words[1:] if word not in places] == ["kernel.o"]
    words[0] = built[0]
    done = subprocess.run([*words, "--dryrun"], cwd=notebook_format.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr("flashladder.lessons.lesson.show", drawn.append)
    lesson.kernel()
    assert drawn[0].html.startswith("<details><summary>The whole of stages") and drawn[0].html.endswith("</details>")
    assert str(notebook_format.ROOT) not in drawn[0].html


def test_a_shown_command_names_no_place_of_the_machine():
    words = ["/opt/cuda/bin/nvcc", "-ccbin=/opt/gcc/bin/g++", "-I/opt/cuda/include", "-c", "x.cu", "-o", "build/x.o"]
    assert display._shown_command(words) == "nvcc -c x.cu -o x.o"


def test_diff_shows_both_kernels(lesson, capsys):
    lesson.diff()
    printed = capsys.readouterr().out
    assert "-    return row * d_head + c * chunk;" in printed and "+    return row * d_head + (c ^ row % 8)" in printed
    with pytest.raises(FlashLadderError, match="first of its line"):
        Lesson(1).diff()


def test_verify_passes_or_raises(lesson, capsys, monkeypatch):
    lesson.verify(SMALL)
    assert "verified" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="05_swizzle is wrong(.|\n)*multiple"):
        lesson.verify(Problem(Nq=100, d_head=128))
    assert "WRONG" in capsys.readouterr().out


def test_counts_and_counters(lesson, capsys):
    assert lesson.count("shared ldmatrix excess", problem=SMALL) == 0
    assert lesson.count("shared ldmatrix excess", stage=4, problem=SMALL) > 0
    assert lesson.count("tensor instructions", problem=SMALL) == lesson.count(
        "tensor instructions", stage=4, problem=SMALL
    )
    capsys.readouterr()
    lesson.counters(lines=3, classes=True, problem=SMALL)
    printed = capsys.readouterr().out
    assert "04_tensor_cores" in printed and "ldmatrix_x4_trans" in printed and "tensor instructions" in printed
    with pytest.raises(FlashLadderError, match='no counter "wavefronts". There are: launches'):
        lesson.count("wavefronts", problem=SMALL)


def test_instructions_at_a_line(lesson):
    """Of O *= rescale: a multiplication for each element that a lane holds, in each turn of each warp."""
    launch = lesson.stage.data["launch"][-1]
    turns = SMALL.B * SMALL.Hq * (SMALL.Nq // launch["Br"]) * (SMALL.Nkv // launch["Bc"])
    elements = launch["Br"] * SMALL.d_head // 32  # of the block's warps together
    assert lesson.count_at("*= rescale", SMALL) == turns * elements
    with pytest.raises(FlashLadderError, match="No line of 05_swizzle's kernel.cu has the text 'no such text'"):
        lesson.count_at("no such text", SMALL)


def test_predictions_are_scored(lesson, capsys):
    guess = predict("wavefronts", 10, "of them")
    with_none = predict("nothing", None)
    guess.score(40)
    with_none.score(7)
    printed = capsys.readouterr().out
    assert "measured 40 of them, your guess 10 of them: 1/4 of what it is" in printed
    assert "measured 7 (no guess was written down)" in printed
    scorecard()
    assert "wavefronts" in capsys.readouterr().out
    with pytest.raises(FlashLadderError, match="A guess is a number"):
        predict("wavefronts", "ten")


@pytest.mark.parametrize(
    "guess, measured, words",
    [(5, 5, "exactly right"), (102, 100, "within 2 percent"), (300, 100, "3 times what it is"), (3, 0, "off by 3")],
)
def test_distance_in_words(guess, measured, words):
    assert prediction.Prediction("q", guess, "", measured).distance() == words


def test_throughput_shows_recorded_figures_of_the_stages_so_far(lesson, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("flashladder.lessons.lesson.show", drawn.append)
    lesson.throughput(d=64)
    assert "No GPU" in repr(drawn[0])
    names = " ".join(text.get_text() for text in drawn[1].axes[0].texts)
    assert "05 swizzle" in names and "06 cp async" not in names and "FA-2" in names
    assert all("recorded" in axes.get_title() for axes in drawn[1].axes if axes.get_title())
    assert not any("simulator" in axes.get_title() for axes in drawn[1].axes)


def test_no_time_of_the_simulator_is_ever_measured():
    assert lesson_throughput.measure(5, 128, "bf16") is None


def test_a_short_run_on_a_gpu(monkeypatch, tmp_path):
    """The job that measure() starts, with a benchmark that is not one: which stages, lengths, and where it writes."""
    gpu = device.Device("gpu", device.Gpu("Fake", 90, "580.1", 1))
    settings = []

    class Bench:
        def __init__(self, given, where):
            settings.append(given)

        def run(self):
            return {"version": 1, "provenance": {}, "measurements": []}

    monkeypatch.setattr(lesson_throughput.device, "choose", lambda *a: gpu)
    monkeypatch.setattr(lesson_throughput.bench, "check_build", lambda where: None)
    monkeypatch.setattr(lesson_throughput.bench, "Bench", Bench)
    monkeypatch.setattr(lesson_throughput.build, "build", lambda targets: None)
    monkeypatch.setattr(lesson_throughput, "results_directory", lambda: tmp_path)

    def in_this_process(command, **options):
        monkeypatch.setattr(lesson_throughput.sys, "argv", command[2:])
        return subprocess.CompletedProcess(command, lesson_throughput.main(), "", "")

    monkeypatch.setattr(lesson_throughput.subprocess, "run", in_this_process)
    assert lesson_throughput.measure(3, 64, "fp16") == {"version": 1, "provenance": {}, "measurements": []}
    assert settings[0].stages == (1, 2, 3) and settings[0].head_dims == (64,) and settings[0].dtypes == ("fp16",)
    assert settings[0].deadline <= 20 and json.loads((tmp_path / "lessons/stage-03-fp16-d64.json").read_text())


def test_recorded_figures(lesson, capsys):
    rows = recorded.pick(recorded.shipped()[0], name="05_swizzle", d_head=128, Nq=4096, dtype="bf16", causal=False)
    assert lesson.recorded_tflops(4096) == rows[0]["tflops"]
    lesson.resources()
    assert "registers" in capsys.readouterr().out
    with pytest.raises(FlashLadderError, match="no recorded throughput for N = 77"):
        lesson.recorded_tflops(77)


def test_a_decode_lesson_verifies_counts_and_has_its_record(capsys, monkeypatch):
    one, problem = DecodeLesson(50), DecodeProblem(Hq=2, Hkv=1, Nkv=40, d_head=64)
    build.build(one.stage.targets)
    one.verify(problem)
    assert "verified" in capsys.readouterr().out
    assert one.count("global load bytes", problem=problem) >= 2 * problem.cache_bytes(), "once for each head of Q"
    assert one.recorded(B=8)["name"] == one.stage.name
    last = DecodeLesson(55)  # of the newest run, as what reading takes is
    row, reading = last.recorded(B=8), last.microseconds("reading K and V", B=8)
    assert row["of_reading"] == pytest.approx(reading / row["us"]["median"], rel=1e-3)
    with pytest.raises(FlashLadderError, match="no record of name 50_decode_naive, B 7"):
        one.recorded(B=7)
    monkeypatch.setattr(type(one.stage), "compared", lambda *arguments: Comparison(False, 1.0, 9.0, "all is wrong"))
    with pytest.raises(AssertionError, match="all is wrong"):
        one.verify(problem)


def test_a_ring_lesson_verifies_lengths_that_its_stage_takes(capsys):
    """Stage 63 wants pieces of whole tiles; the others are shown lengths that no number of pieces divides."""
    one = RingLesson(63)
    build.build(one.stage.targets)
    one.verify()
    printed = capsys.readouterr().out
    assert "N=512 d=64 P=2" in printed and "N=1024 d=64 causal P=4" in printed and printed.count("verified") == 2


@pytest.mark.parametrize("kind, other", [(DecodeLesson, 40), (BackwardLesson, 50), (DecodeLesson, 5)])
def test_a_lesson_of_a_part_is_of_its_stages(kind, other):
    with pytest.raises(FlashLadderError, match=f"Stage {other:02} "):
        kind(other)


def test_break_it_says_who_caught_it(lesson, capsys):
    lesson.break_it("missing_barrier_after_load")
    printed = capsys.readouterr().out
    assert "-        __syncthreads();" in printed and "Caught by shared race" in printed and "kernel.cu" in printed
    with pytest.raises(FlashLadderError) as refusal:
        lesson.break_it("nothing")
    assert str(refusal.value).startswith("Stage 05_swizzle has no mistake 'nothing'. It has: ")
    assert "swizzle_on_write_only" in str(refusal.value) and "Stage(" not in str(refusal.value)


def test_break_it_raises_where_nobody_notices(lesson, monkeypatch):
    from flashladder.ladder import mistakes

    monkeypatch.setattr(mistakes, "run", lambda mistake: Verdict(False, "", "relative error 2e-03"))
    with pytest.raises(AssertionError, match="nobody noticed"):
        lesson.break_it("swizzle_on_write_only")


@pytest.mark.parametrize("number", [pytest.param(2, marks=pytest.mark.long), 5])
def test_a_changed_comment_changes_no_counter(number, capsys):
    """One stage of each architecture: what try_it() builds is built as the stage is."""
    lesson = Lesson(number)
    first = stages.get(number).kernel.read_text().splitlines()[0]
    lesson.try_it((first, f"{first} A remark."))
    assert lesson.trial.counts == lesson.counts()
    assert "instructions" not in capsys.readouterr().out.split("No check objects")[1], "no counter is shown as changed"


def test_lines_of_the_stage_before_are_shown_where_waste_differs(lesson, capsys, monkeypatch):
    lesson.counters(problem=SMALL)
    assert "04_tensor_cores: most waste first" in capsys.readouterr().out
    after = Lesson(6)
    after.counters(problem=SMALL)
    printed = capsys.readouterr().out
    assert "06_cp_async: most waste first" in printed and "05_swizzle: most waste first" not in printed


@pytest.mark.parametrize("colour", [style.RED, style.INK, style.GREEN])
def test_rare_colours_survive_in_saved_pictures(colour):
    """A thin ring on a picture of many shades, as in a map of errors: it has to keep its colour."""
    figure = style.new_figure(7, 4, "shades")
    axes = figure.subplots()
    axes.imshow(np.random.default_rng(0).random((120, 120)), cmap="cividis", aspect="auto", interpolation="nearest")
    axes.plot(60, 60, "o", markersize=13, markerfacecolor="none", markeredgecolor=colour, markeredgewidth=2.2)
    whole = io.BytesIO()
    figure.savefig(whole, format="png", dpi=display.PNG_DPI)
    before, after = (np.asarray(Image.open(io.BytesIO(one)).convert("RGB")).astype(int)
                     for one in (whole.getvalue(), display.png(figure, display.PNG_DPI)))  # fmt: skip
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    of_the_ring = np.abs(before - wanted).max(axis=2) == 0
    assert of_the_ring.sum() > 20
    off = np.abs(after - wanted).max(axis=2)[of_the_ring].max()
    assert off <= 16, f"the ring's {colour} is off by {off} of 255 after the reduction to 256 colours"
    assert len(display.png(figure, display.PNG_DPI)) < len(whole.getvalue())


def test_ablations_of_a_stage_alone(capsys, monkeypatch):
    drawn = []
    lesson = Lesson(9)
    monkeypatch.setattr("flashladder.lessons.lesson.show", drawn.append)
    lesson.ablations()
    names = [label.get_text() for label in drawn[0].axes[0].get_yticklabels()]
    assert names[0].startswith("09_double_buffering") and not any(name.startswith("07") for name in names)
    with pytest.raises(FlashLadderError, match="No ablations of stage 04 are recorded"):
        Lesson(4).ablations()


@pytest.mark.long
def test_try_it_counts_a_change(lesson, capsys):
    lesson.try_it(("c ^ row % 8", "c ^ row % 4"), counts=("shared ldmatrix wavefronts",))
    assert lesson.trial.count("shared ldmatrix wavefronts") == 2 * lesson.count("shared ldmatrix wavefronts")
    assert "No check objects" in capsys.readouterr().out
    with pytest.raises(FlashLadderError, match="does not contain: no such text"):
        lesson.try_it(("no such text", ""))


def test_try_it_without_pairs_says_how_they_are_written(lesson):
    for changes in ((), ("c ^ row % 8", "c ^ row % 4"), (("c ^ row % 8",),)):
        with pytest.raises(FlashLadderError, match="goes in pairs"):
            lesson.try_it(*changes)


def test_what_is_shown_has_no_places_of_this_machine():
    shown = display.message(f"at {notebook_format.ROOT}/stages/x.cu:3 and {notebook_format.ROOT}")
    assert repr(shown) == "at stages/x.cu:3 and ."
    assert "<b>" not in display.message("<b>").html


def test_slider_wants_lists():
    with pytest.raises(FlashLadderError, match="slider: d needs a list"):
        slider(lambda d: None, d=128)


def test_host_lesson(capsys):
    HostLesson().show("copy_in")
    assert "cudaMemcpyAsync(to.Q" in capsys.readouterr().out
    HostLesson().program()
    printed = capsys.readouterr().out
    assert "host_streams.cpp: " in printed and "\nc++ " in printed.replace("g++", "c++") and "-std=c++20" in printed


@pytest.mark.long
def test_slider_and_steps_in_a_kernel(notebook, jupyter, monkeypatch):
    """Controls for those who have a live page, and a picture for all others; a step leaves one line."""
    from flashladder.lessons import notebooks

    file = notebook(
        "from flashladder import plot\nfrom flashladder.lessons import slider\n"
        "slider(plot.swizzle, d=[64, 128], on=[True, False])",
        "plot.swizzle_bits(64)",
        "from flashladder.lessons.display import step\n"
        "with step('Working', 'Worked.'):\n    print('1/2')\n    print('2/2')",
    )
    executed = notebooks.execute(file)
    slid, drawn, stepped = (cell["outputs"] for cell in executed["cells"][2:])
    assert notebook_format.WIDGETS in slid[0]["data"] and "image/png" in slid[1]["data"]
    assert list(drawn[0]["data"]) == ["image/png", "text/plain"]
    assert "Address within a tile" in "".join(drawn[0]["data"]["text/plain"])
    words = drawn[0]["metadata"]["image/png"]["alt"]
    assert words.startswith("Bits of an address") and "Address within a tile" in words
    assert [output["data"]["text/plain"] for output in stepped] in (["Worked."], [["Worked."]])
    saved = notebook_format.canonical(executed, file)
    assert [list(output["data"]) for output in saved["cells"][2]["outputs"]] == [["image/png", "text/plain"]]
    assert notebook_format.WIDGETS not in notebook_format.to_text(saved)


MOVE = """\
import ipywidgets
(box,) = [one for one in ipywidgets.widgets.widget._instances.values() if isinstance(one, ipywidgets.Checkbox)]
box.value = not box.value"""


@pytest.mark.long
def test_moving_a_control_redraws_the_picture(notebook, jupyter, monkeypatch):
    from flashladder.lessons import notebooks

    slide = (
        "from flashladder import plot\nfrom flashladder.lessons import slider\nslider(plot.swizzle, on=[True, False])"
    )
    still = notebooks.execute(notebook(slide))["cells"][2]["outputs"]
    moved = notebooks.execute(notebook(slide, MOVE))["cells"][2]["outputs"]
    assert "place c XOR" in "".join(still[1]["data"]["text/plain"])
    assert "place c;" in "".join(moved[1]["data"]["text/plain"])
