"""Reports and formats: what they say, that a student's words stay words, and the contracts of other programs."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import markdown_it
import pytest

from flashladder import plot
from flashladder.classroom import formats, marks, report, text
from flashladder.classroom.marks import Check, Exercise, Kernel, Marks
from flashladder.core.errors import FlashLadderError

HOSTILE = '<script>alert(1)</script> | `a` "q" & =1+1 ]]> \x00\x1b[31m\u202e ![x](http://evil/) \ud800'


@pytest.fixture
def some(small):
    """Marks with a check passed, one lost, and a hostile student."""
    checks = (
        Check("builds", True, 10, 10, ""),
        Check("correct: whole tiles", False, 0, 50, HOSTILE),
        Check("correct: secret sizes", False, 12.5, 40, "first O[0, 1] = 2"),
    )
    exercise = Exercise("05_swizzle", small.items[0].name, "Where a chunk lies", 22.5, 100, checks, ("wrong in fp16",))
    kernel = Kernel("05_swizzle", "", HOSTILE, (HOSTILE,), ("right, but slow",), ("line 3 is ignored",), "a box")
    return Marks("ada", HOSTILE, small, (exercise,), (kernel,), {"05-errors": b"\x89PNG"}, key="0" * 64)


@pytest.fixture
def nothing(small):
    return marks.nothing("ben", "ben", small, refused="it holds no 05_swizzle.cu")


@pytest.fixture
def ungraded(small):
    return marks.nothing("cho", "cho", small, ungraded="its process was killed")


class Page(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.tags, self.links = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]


def test_the_page_shows_what_was_found_and_runs_nothing(some):
    page = report.html(some)
    seen = Page(page)
    assert not seen.tags & {"script", "a", "iframe", "form", "object"}
    assert all(link.startswith("data:image/png;base64,") for link in seen.links) and len(seen.links) == 1
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    for words in ("22.5 of 100 points", "Where a chunk lies", "lost", "wrong in fp16", "a box", "&lt;script&gt;"):
        assert words in page, words
    assert not re.search("[\x00\x1b\u202e\ud800]", page)


def test_the_markdown_shows_the_same_and_makes_nothing_of_a_students_words(some):
    page = report.markdown(some)
    seen = Page(markdown_it.MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(page))
    assert not seen.tags & {"script", "a"} and seen.links == ["05-errors.png"], seen.links
    assert "**22.5 of 100 points**" in page and "wrong in fp16" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows), "a cell must not open another one"


def test_a_block_of_code_cannot_be_closed_from_within():
    block = text.code_block("a\n```\n# heading\n````\nb")
    assert block.startswith("`````text\n") and block.endswith("\n`````")


def test_what_was_refused_is_not_called_unwritten(some, nothing, ungraded):
    damaged = replace(some.kernels[0], refused="Line 29 ends tile_offset: put it back.")
    unwritten = replace(some.exercises[0], points=0, checks=(), words=("not written yet",))
    mistakes = report.Mistakes()
    for one in (nothing, replace(some, kernels=(damaged,)), replace(some, exercises=(unwritten,)), some, ungraded):
        mistakes.add(one)
    page = mistakes.markdown("T")
    assert "4 submissions were graded" in page
    assert "0 have all points, 1 have not written it. The files of 2 were refused." in page


def test_refused_and_ungraded_are_told_apart(nothing, ungraded):
    assert "0 of 100 points" in report.markdown(nothing) and "it holds no" in report.html(nothing)
    assert "the grader" in report.markdown(ungraded) and "0 of 100" not in report.html(ungraded)
    (row,) = csv.reader(io.StringIO(formats.csv_line(formats.csv_row(ungraded))))
    assert row[2] == "" and "NOT GRADED" in row[-2]
    with pytest.raises(FlashLadderError, match="could not be graded"):
        formats.gradescope(ungraded)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "|calc", "%0A=1", "  =1", "\x00=1"])
def test_no_cell_of_the_csv_is_a_formula(some, name):
    (row,) = csv.reader(io.StringIO(formats.csv_line(formats.csv_row(replace(some, name=name)))))
    assert not row[1].strip().startswith(("=", "+", "-", "@", "|", "%")), row[1]


def test_the_csv_has_a_column_for_each_exercise(some):
    text = formats.csv_line(formats.csv_head(some)) + formats.csv_line(formats.csv_row(some))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["points"] == "22.5" and row["of"] == "100" and row[some.exercises[0].id] == "22.5"


# JUnit XML, as Jenkins' xUnit plugin has it in junit-10.xsd: which elements, in which, with which attributes (the
# required ones first). An extract of what is used here, in words of this test's own.
JUNIT = {
    "testsuites": ((), ("name", "tests", "failures", "errors", "time"), ("testsuite",)),
    "testsuite": (
        ("name", "tests", "failures", "errors"),
        ("time", "skipped", "timestamp", "hostname", "id", "package", "file"),
        ("testcase", "properties", "system-out", "system-err"),
    ),
    "testcase": (("name",), ("classname", "time", "group"), ("failure", "error", "skipped", "system-out")),
    "failure": ((), ("type", "message"), ()),
    "error": ((), ("type", "message"), ()),
}


def test_junit_xml_is_what_readers_of_it_expect(some, nothing, ungraded):
    suites = [formats.junit_suite(one) for one in (some, nothing, ungraded)]
    root = ElementTree.fromstring("".join(formats.junit('a "class" & <all>', suites)))
    assert root.tag == "testsuites" and root.get("name") == 'a "class" & <all>'
    for element in root.iter():
        required, allowed, children = JUNIT[element.tag]
        assert set(required) <= set(element.attrib) <= {*required, *allowed}, element.attrib
        assert {child.tag for child in element} <= set(children)
    counts = [(suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in root]
    assert counts == [("3", "2", "0"), ("1", "1", "0"), ("1", "0", "1")]
    for suite in root:
        assert len(suite.findall("testcase")) == int(suite.get("tests"))
        assert len(suite.findall("testcase/failure")) == int(suite.get("failures"))


# Gradescope has no published schema: this is the page "Autograder Specifications", as far as results.json is used here.
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
GRADESCOPE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tests"],
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "output_format": FORMAT,
        "test_output_format": FORMAT,
        "test_name_format": FORMAT,
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "status": {"enum": ["passed", "failed"]},
                    "name": {"type": "string"},
                    "name_format": FORMAT,
                    "number": {"type": "string"},
                    "output": {"type": "string"},
                    "output_format": FORMAT,
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}


def validate(found: dict, schema: dict) -> None:
    import jsonschema

    jsonschema.validate(found, schema)


def test_gradescopes_results_follow_its_specification(some, nothing):
    for one in (some, nothing):
        found = json.loads(json.dumps(formats.gradescope(one)))
        validate(found, GRADESCOPE)
        assert sum(test["score"] for test in found["tests"]) == pytest.approx(found["score"])
        assert sum(test["max_score"] for test in found["tests"]) == pytest.approx(100)
    visible = {test["name"]: test["visibility"] for test in formats.gradescope(some)["tests"]}
    name = some.exercises[0].id
    assert visible[f"{name}: correct: whole tiles"] == "visible"
    assert visible[f"{name}: correct: secret sizes"] == "after_published"
    assert "right, but slow" in formats.gradescope(some)["output"]
    assert "it holds no 05_swizzle.cu" in formats.gradescope(nothing)["output"]


# classroom50/result/v1, as foundation50/classroom50 publishes it in schemas/result-v1.schema.json: the same demands, in
# this test's own words.
WORD = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
TIME = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$"}
CLASSROOM50 = {
    "type": "object",
    "additionalProperties": False,
    "required": ["schema", "classroom", "assignment", "assignment_type", "owner", "submission", "commit", "release",
                 "review", "datetime", "score", "max-score", "tests"],
    "properties": {
        "schema": {"const": "classroom50/result/v1"},
        "classroom": WORD,
        "assignment": WORD,
        "assignment_type": {"enum": ["individual", "group"]},
        "owner": WORD,
        "submission": {"type": "string", "pattern": "^submit/"},
        "commit": WORD,
        "release": WORD,
        "review": WORD,
        "datetime": TIME,
        "graded_at": TIME,
        "score": COUNT,
        "max-score": COUNT,
        "submitted_by": {"type": "object"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["test-name", "passed", "score", "max-score"],
                "properties": {"test-name": WORD, "passed": {"type": "boolean"}, "score": COUNT, "max-score": COUNT},
            },
        },
    },
}  # fmt: skip
TOLD = {
    "CLASSROOM": "cuda",
    "ASSIGNMENT": "swizzle",
    "ASSIGNMENT_TYPE": "individual",
    "USERNAME": "ada",
    "SUBMISSION_TAG": "submit/2026-09-05T10-00-00Z-abcdef0",
    "COMMIT_URL": "https://example.org/commit/abcdef0",
    "RELEASE_URL": "https://example.org/release",
}


def test_classroom_50s_result_follows_its_schema(some, nothing):
    for one in (some, nothing):
        found = json.loads(json.dumps(formats.classroom50(one, TOLD, "2026-09-05T10:00:00Z")))
        validate(found, CLASSROOM50)
        assert found["score"] == sum(test["score"] for test in found["tests"]) <= found["max-score"] == 100
        assert all(test["score"] <= test["max-score"] for test in found["tests"])
    assert formats.classroom50(some, TOLD, "2026-09-05T10:00:00Z")["owner"] == "ada"
    with pytest.raises(FlashLadderError, match="SUBMISSION_TAG not set"):
        formats.classroom50(some, {**TOLD, "SUBMISSION_TAG": ""}, "2026-09-05T10:00:00Z")


def test_points_that_the_assignment_does_not_have_are_refused(small):
    grade = {"stage": 5, "refused": "", "first_wrong": "", "hazards": [], "technique": [], "isolation": ""}
    one = {"name": small.items[0].name, "points": 120, "most": 100, "checks": []}
    result = {"grades": [grade | {"exercises": [one]}], "pictures": {}, "key": ""}
    with pytest.raises(FlashLadderError, match="not those of the assignment"):
        marks.of_result("ada", "ada", small, result)
    result["grades"][0]["exercises"] = [one | {"points": 50, "name": "other"}]
    with pytest.raises(FlashLadderError, match="not those of the assignment"):
        marks.of_result("ada", "ada", small, result)


def test_a_hazard_begins_with_its_line_or_with_its_exercise(small):
    """A hazard in a shipped line has no line of the student's."""
    name = small.items[0].name
    grade = {"stage": 5, "refused": "", "first_wrong": "", "technique": [], "isolation": ""}
    told = {"kind": "shared_race", "exercise": name, "message": "a race"}
    grade["hazards"] = [told | {"line": 7}, told | {"line": 0}]
    grade["exercises"] = [{"name": name, "points": 5, "most": 100, "checks": []}]
    (kernel,) = marks.of_result("ada", "ada", small, {"grades": [grade], "pictures": {}, "key": ""}).kernels
    assert kernel.hazards == (f"line 7 of {name}: shared_race: a race", f"{name}: shared_race: a race")


def test_the_histogram_counts_everybody():
    figure = plot.points([0, 5, 9.99, 10, 55, 100, 100], 100, "Small")
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert heights == [3, 1, 0, 0, 0, 1, 0, 0, 0, 2]
    assert "median 10" in figure.get_supxlabel() and "2 with full points" in figure.get_supxlabel()
    assert plot.points([], 100, "Nobody").axes
