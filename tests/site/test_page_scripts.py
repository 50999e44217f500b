"""The page's scripts that need no browser: which lines differ, what a link holds, what a run is told as."""

import copy
import json
import random
import re
import shutil
import subprocess
from html import unescape

import page_runs
import pytest

from flashladder.ladder import stages
from flashladder.site import run_page


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "scripts"
    shutil.copytree(run_page.FILES, folder)
    (folder / "package.json").write_text('{"type": "module"}')

    def call(*calls):
        """Each: file, function, arguments; returns what they return."""
        if not shutil.which("node"):
            pytest.skip("no node on PATH: it comes with emscripten")
        command = ["node", page_runs.HERE / "pages_in_node.mjs", folder]
        done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def test_every_script_can_be_parsed(scripts, tmp_path):
    """One that cannot be leaves its pages without what it does, and nothing else complains where no browser is."""
    scripts()  # skips without node
    (tmp_path / "package.json").write_text('{"type": "module"}')
    files = sorted(run_page.FILES.parent.rglob("*.js"))
    assert len(files) > 20
    for file in files:
        copy = shutil.copy(file, tmp_path / file.name)
        done = subprocess.run(["node", "--check", copy], capture_output=True, text=True)
        assert done.returncode == 0, f"{file.relative_to(run_page.FILES.parent)}: {done.stderr}"


def source(which: str) -> list[str]:
    return stages.get(which).kernel.read_text().split("\n")


def test_changes_lead_from_one_text_to_the_other(scripts):
    words = random.Random(1)
    pairs = [([words.choice("abc") for _ in range(words.randrange(9))], [words.choice("abc") for _ in range(7)])
             for _ in range(60)]  # fmt: skip
    pairs.append((source("tensor_cores"), source("swizzle")))
    found = scripts(*(["diff.js", "changes", *pair] for pair in pairs))
    applied = scripts(*(["diff.js", "applied", before, changes] for (before, _), changes in zip(pairs, found)))
    assert applied == [after for _, after in pairs]
    assert sum(len(removed) for _, removed, _ in found[-1]) < 10, "the stages share all but a few lines"


def test_lines_that_differ_are_named_on_both_sides(scripts):
    left, right = ["a", "b", "c", "d"], ["a", "x", "y", "c", "d", "e"]
    assert scripts(["diff.js", "differing", left, right]) == [[[2], [2, 3, 6]]]
    (changes,) = scripts(["diff.js", "changes", left, right])
    assert scripts(*(["diff.js", "moved", line, changes] for line in (1, 3, 4))) == [1, 4, 5]


def test_changes_of_another_text_are_refused(scripts):
    (answer,) = scripts(["diff.js", "applied", ["a", "z"], [[1, ["b"], ["c"]]]])
    assert answer == {"error": "line 2 is another one"}


STATE = {"left": "04", "right": "05-padding", "problem": "bf16 B=1 H=2 Nq=128 Nkv=192 d=128", "question": "sectors"}


def test_a_link_holds_kernels_problem_and_edits(scripts):
    edits = {"left": [[3, ["int a = b ^ c;"], ["    // ä & <b>", ""]]], "right": []}
    (fragment,) = scripts(["share.js", "toFragment", STATE | {"edits": edits}])
    assert " " not in fragment and "left=04" in fragment and fragment.isascii()
    assert scripts(["share.js", "fromFragment", fragment]) == [STATE | {"edits": edits}]
    (plain,) = scripts(["share.js", "toFragment", STATE | {"edits": {"left": [], "right": []}}])
    assert "edits" not in plain
    assert scripts(["share.js", "fromFragment", plain], ["share.js", "fromFragment", ""]) == [STATE, {}]


def test_a_link_is_short(scripts):
    """All of a stage's differences to the next one, as edits."""
    (changes,) = scripts(["diff.js", "changes", source("tensor_cores"), source("swizzle")])
    (fragment,) = scripts(["share.js", "toFragment", STATE | {"edits": {"left": changes, "right": []}}])
    assert len(fragment) < 2000, "some programs cut addresses off there"


BROKEN = (
    ("x", "not whole"),
    ("!!", "not whole"),
    ("A" * 200_000, "too long"),
    ({"left": [[0, ["a"]]], "right": []}, "no edits that the page knows"),
    ({"left": [[-1, [], []]], "right": []}, "no edits that the page knows"),
    ({"left": [[0, [], ["a\nb"]]], "right": []}, "no edits that the page knows"),
    ({"left": [], "right": [0]}, "no edits that the page knows"),
    ({"left": [[0, [], ["a" * 2_000_000]]], "right": []}, "too long"),
)


def test_a_link_that_is_broken_is_told_so(scripts):
    made = iter(scripts(*(["share.js", "toFragment", {"edits": one}] for one, _ in BROKEN if isinstance(one, dict))))
    fragments = [f"edits={one}" if isinstance(one, str) else next(made) for one, _ in BROKEN]
    found = scripts(*(["share.js", "fromFragment", fragment] for fragment in fragments))
    for (one, words), answer in zip(BROKEN, found, strict=True):
        assert words in answer["error"], str(one)[:80]


def test_sources_are_shown_as_they_are(scripts):
    text = 'if (a < b && c > d) s = "<i>";  // <b>\n/* one\ntwo */ #pragma\n'
    (lines,) = scripts(["highlight.js", "highlighted", text])
    bare = [page_text(line) for line in lines]
    assert bare == text.split("\n")
    assert lines[1] == '<i class="comment">/* one</i>' and lines[2].startswith('<i class="comment">two */</i>')


def page_text(html: str) -> str:
    """As a browser shows a line: tags are none of it."""
    return unescape(re.sub(r"</?i[^>]*>", "", html))


LAUNCH = {
    "error": "",
    "shared": {"load": {"wavefronts": 10}, "ldmatrix": {"wavefronts": 70}},
    "global": {"load": {"sectors": 5}, "store": {"sectors": 5}},
    "tensor_copies": {},
    "instructions": {"total": 100},
    "hazards": [],
    "notes": [],
}
RUN = {"name": "04 Tensor cores", "problem": "p", "judged": 1}


def run_of(status: str, passes: int = 80, name: str = RUN["name"], hazards=(), notes=(), **more) -> dict:
    launch = copy.deepcopy(LAUNCH)
    launch["shared"]["ldmatrix"]["wavefronts"] = passes - 10
    launch |= {"hazards": list(hazards), "notes": list(notes), "error": "failed" if status == "failed" else ""}
    return RUN | {"name": name, "result": {"status": status, "message": "m", "report": {"launches": [launch]}}} | more


RACE = {"kind": "shared_race", "file": "kernel.cu", "line": 58, "message": "thread 3 wrote it"}
IN_HEADER = RACE | {"file": "tile.cuh", "line": 3, "inlined": [{"file": "kernel.cu", "line": 40}]}

FEWER = "times fewer wavefronts than 04 Tensor cores"

TOLD = (
    (run_of("right", 10), run_of("right"), "right", f"right, 8 {FEWER} (10 in place of 80)."),
    (run_of("right", 10), run_of("right", 25), "right", f"right, 2.5 {FEWER} (10 in place of 25)."),
    (run_of("right", 99), run_of("right", 100), "right", f"right, 1 {FEWER[6:]} (99 in place of 100)."),
    (run_of("right"), run_of("right", 10), "right", "right, 80 wavefronts."),
    (run_of("right"), run_of("right"), "right", "right, as many wavefronts as 04 Tensor cores: 80."),
    (run_of("right"), run_of("failed"), "right", "right, 80 wavefronts."),
    (run_of("right"), run_of("right", problem="q"), "right", "right, 80 wavefronts."),
    (run_of("right", judged=3), None, "right", "right on all 3 problems by which the stage is judged, 80 wavefronts."),
    (run_of("wrong"), None, "wrong", "wrong."),
    (run_of("failed"), None, "failed", "failed."),
    (run_of("refused"), None, "failed", "refused."),
    (run_of("failed", hazards=[RACE]), None, "caught", "caught: a race at line 58."),
    (run_of("failed", hazards=[IN_HEADER]), None, "caught", "caught: a race at line 40."),
    (run_of("failed", notes=[RACE]), None, "caught", "caught: a race at line 58."),
    (run_of("right", notes=[RACE]), None, "right", "right, 80 wavefronts."),
    (run_of("failed", hazards=[RACE | {"line": 0}]), None, "caught", "caught: a race."),
    (RUN | {"said": {"diagnostics": [{"line": 7, "message": ""}]}}, None, "failed", "does not compile at line 7."),
    (RUN | {"said": {"words": "w", "diagnostics": []}}, None, "failed", "does not compile."),
)  # fmt: skip


def test_a_run_is_told_in_words(scripts):
    found = scripts(*(["verdict.js", "verdict", run, other, "passes"] for run, other, _, _ in TOLD))
    assert [(one["mark"], one["head"]) for one in found] == [(mark, head) for _, _, mark, head in TOLD]


def test_who_goes_on_after_a_hazard_is_told_both(scripts):
    (found,) = scripts(["verdict.js", "verdict", run_of("wrong", hazards=[RACE]), None, "passes"])
    assert found["mark"] == "caught" and "the result is wrong: m" in found["detail"]


def test_every_kind_of_hazard_has_words():
    header = (run_page.ROOT / "common/simulator/core/hazard_kind.h").read_text()
    kinds = header.partition("enum class HazardKind")[2].partition("{")[2].partition("count_")[0]
    names = [line.strip().partition(",")[0] for line in kinds.splitlines() if line.strip()]
    table = (run_page.FILES / "verdict.js").read_text().partition("const HAZARDS")[2].partition("};")[0]
    assert len(names) > 20
    assert [line.strip().partition(":")[0] for line in table.splitlines() if '"' in line] == names
