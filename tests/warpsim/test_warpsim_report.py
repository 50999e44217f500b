"""Reports read, merged and written in other forms; from recorded ones, so that no simulator is needed."""

import copy
import json
import re
from pathlib import Path

import jsonschema
import pytest
from warpsim_places import RECORDED, ROOT

import warpsim
from warpsim import report_command
from warpsim.kinds import KINDS

PROJECT = Path("/project")
RACE, PENDING = "/project/sum_of_squares.cu", "/project/pipeline.cu"
# What SARIF 2.1.0 requires of the objects that are written, and of their values.
SARIF = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/run"}},
    },
    "definitions": {
        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
        "location": {
            "type": "object",
            "properties": {
                "id": {"type": "integer", "minimum": -1},
                "message": {"$ref": "#/definitions/message"},
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation"],
                    "additionalProperties": False,
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "required": ["uri"],
                            "properties": {"uri": {"pattern": "^[^ ]+$"}, "uriBaseId": {"const": "%SRCROOT%"}},
                        },
                        "region": {
                            "type": "object",
                            "required": ["startLine"],
                            "properties": {"startLine": {"type": "integer", "minimum": 1}},
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "required": ["ruleId", "message", "level", "locations"],
            "properties": {
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"$ref": "#/definitions/message"},
                "occurrenceCount": {"type": "integer", "minimum": 1},
                "locations": {"type": "array", "items": {"$ref": "#/definitions/location"}},
                "relatedLocations": {"type": "array", "items": {"$ref": "#/definitions/location"}},
            },
        },
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "properties": {
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "properties": {
                        "driver": {
                            "type": "object",
                            "required": ["name", "rules"],
                            "properties": {
                                "rules": {"type": "array", "uniqueItems": True, "items": {"required": ["id"]}}
                            },
                        }
                    },
                },
                "originalUriBaseIds": {
                    "additionalProperties": {"properties": {"uri": {"pattern": "^file:///.*/$"}}},
                },
                "results": {"type": "array", "items": {"$ref": "#/definitions/result"}},
            },
        },
    },
}


def changed(name: str, change) -> warpsim.Report:
    """A recorded report with its last hazard alone, changed."""
    launch = copy.deepcopy(warpsim.read(RECORDED / name).launches[0])
    launch["hazards"] = launch["hazards"][-1:]
    change(launch)
    return warpsim.Report([launch])


def without_lines(launch: dict) -> None:
    launch["hazards"][0] |= {"file": "", "line": 0}


def inlined(launch: dict) -> None:
    launch["hazards"][0]["inlined"] = [{"file": "/project/src/my kernel.cu", "line": 7, "function": "sum_up"}]


def as_note(launch: dict) -> None:
    launch["notes"], launch["hazards"] = launch["hazards"], []


def test_a_folder_is_read_as_one():
    report = warpsim.read(RECORDED)
    assert [(one.kind, one.file, one.line) for one in report.hazards] == [
        ("async_pending", PENDING, 24),
        ("async_pending", PENDING, 28),
        ("shared_race", RACE, 17),
    ]
    assert len(report.launches) == len(report.counters) == 3
    assert report.counters["transpose(int, float const*, float*)"]["shared load excess"] == 63488
    assert {line.where for line in report.lines if line.shared_excess} == {"transpose.cu:19"}
    assert not report.clean and "sum_of_squares.cu:17: shared_race: read at" in report.why_not_clean


def test_launches_that_meet_a_hazard_again_add_to_its_count():
    once = warpsim.read(RECORDED / "pipeline.json")
    twice = warpsim.read(RECORDED / "pipeline.json", RECORDED / "pipeline.json")
    assert [one.line for one in twice.hazards] == [24, 28]
    assert [one.count for one in twice.hazards] == [2 * one.count for one in once.hazards]


def test_clean_is_what_ran_and_was_right():
    clean = warpsim.read(RECORDED / "transpose.json")
    warpsim.assert_clean(clean)
    with pytest.raises(AssertionError, match="-cudart shared"):
        warpsim.assert_clean(warpsim.Report([]))
    with pytest.raises(AssertionError, match="exit status 3"):
        warpsim.assert_clean(warpsim.read(RECORDED / "transpose.json", returncode=3))
    note = changed("pipeline.json", as_note)
    warpsim.assert_clean(note)
    unasked = warpsim.Report(clean.launches, unasked_errors=["launch of sum(int*) refused: 2048 threads"])
    with pytest.raises(AssertionError, match=r"launch of sum\(int\*\) refused.*no cudaGetLastError"):
        warpsim.assert_clean(unasked)
    with pytest.raises(AssertionError, match="pipeline.cu:28: note: async_pending"):
        warpsim.assert_clean(note, notes=True)


@pytest.mark.parametrize("text", ("", "{}", "[1]", '{"version": 2, "launches": []}'))
def test_another_file_is_no_report(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ValueError, match="other.json is no report"):
        warpsim.read(tmp_path)


@pytest.mark.parametrize("change", (lambda launch: None, without_lines, inlined, as_note))
def test_sarif_has_what_the_standard_requires(change):
    log = changed("pipeline.json", change).to_sarif(PROJECT)
    jsonschema.validate(json.loads(json.dumps(log)), SARIF)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "async_pending"


def test_sarif_names_places_below_the_root():
    (result,) = changed("pipeline.json", inlined).to_sarif(PROJECT)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "pipeline.cu", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 28}
    assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/my%20kernel.cu"
    result = warpsim.read(RECORDED / "pipeline.json").to_sarif("/elsewhere")["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///project/pipeline.cu"}


def test_lines_are_those_that_the_problem_matcher_takes():
    (matcher,) = json.loads(warpsim.PROBLEM_MATCHER.read_text())["problemMatcher"]
    (pattern,) = matcher["pattern"]
    report = warpsim.read(RECORDED)
    found = [re.match(pattern["regexp"], line) for line in report_command.lines(report, PROJECT)]
    fields = ("file", "line", "severity", "code")
    assert [tuple(one[pattern[name]] for name in fields) for one in found] == [
        ("pipeline.cu", "24", "error", "async_pending"),
        ("pipeline.cu", "28", "error", "async_pending"),
        ("sum_of_squares.cu", "17", "error", "shared_race"),
    ]


def test_annotations_escape_what_a_command_must_not_have():
    def odd(launch):
        launch["hazards"][0] |= {"file": "/project/a,b.cu", "message": "50%\nmore"}

    (line,) = report_command.annotations(changed("pipeline.json", odd), PROJECT)
    assert line == "::error file=a%2Cb.cu,line=28,title=warpsim%3A async_pending::50%25%0Amore"
    (line,) = report_command.annotations(changed("pipeline.json", as_note), PROJECT)
    assert line.startswith("::notice file=pipeline.cu,line=28,")
    (line,) = report_command.annotations(changed("pipeline.json", without_lines), PROJECT)
    assert line.startswith("::error title=warpsim%3A async_pending::read at")


def test_the_command_writes_all_forms(tmp_path, capsys):
    sarif, table, merged = tmp_path / "a.sarif", tmp_path / "a.md", tmp_path / "a.json"
    files = ["--sarif", str(sarif), "--summary", str(table), "--json", str(merged)]
    assert report_command.main([str(RECORDED), "--root", str(PROJECT), *files]) == report_command.FOUND
    assert "sum_of_squares.cu:17:1: error: " in capsys.readouterr().out
    jsonschema.validate(json.loads(sarif.read_text()), SARIF)
    rows = [line for line in table.read_text().splitlines() if "transpose" in line]
    assert rows == ["| `transpose(int, float const*, float*)` | 1 | 28672 | 67584 | 63488 | 16384 | 0 | 512 | 0 |"]
    assert warpsim.read(merged).hazards == warpsim.read(RECORDED).hazards


def test_the_command_says_by_its_status_what_it_found(tmp_path, capsys):
    assert report_command.main([str(RECORDED / "transpose.json")]) == report_command.CLEAN
    assert report_command.main([str(tmp_path)]) == report_command.FOUND  # no kernel ran
    assert "no kernel ran" in capsys.readouterr().err
    assert report_command.main([str(tmp_path / "missing.json")]) == report_command.UNUSABLE


def test_each_kind_and_setting_of_the_simulator_is_known():
    header = (ROOT / "common/simulator/core/hazard_kind.h").read_text()
    names = re.findall(r"^    (\w+),", header, re.M)
    assert set(KINDS) == set(names) - {"count_"}
    options = (ROOT / "common/simulator/core/options.cpp").read_text()
    assert [name for name in warpsim.SETTINGS if f'"WARPSIM_{name.upper()}"' not in options] == []


def test_the_licence_is_the_project_s():
    assert (ROOT / "common/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
