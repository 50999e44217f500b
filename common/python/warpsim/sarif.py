"""Hazards as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0), which code scanning and editors read."""

from importlib import metadata
from pathlib import Path
from urllib.parse import quote

from warpsim.kinds import KINDS
from warpsim.report import Hazard, Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def log(report: Report, root: Path) -> dict:
    found = [*report.hazards, *report.notes]
    kinds = sorted({one.kind for one in found})
    driver = {"name": "warpsim", "version": _version(), "rules": [_rule(kind) for kind in kinds]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"uri": f"{root.as_uri()}/"}},
        "results": [_result(one, kinds.index(one.kind), root) for one in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _version() -> str:
    try:
        return metadata.version("warpsim")
    except metadata.PackageNotFoundError:  # run from the repository
        return "0"


def _rule(kind: str) -> dict:
    what = KINDS.get(kind, kind)
    return {"id": kind, "shortDescription": {"text": what[0].upper() + what[1:] + "."}}


def relative(file: str, root: Path) -> Path:
    """The file as seen from the root; its whole path where it lies elsewhere."""
    path = (root / file).resolve()
    return path.relative_to(root) if path.is_relative_to(root) else path


def _location(file: str, line: int, root: Path) -> dict:
    path = relative(file, root)
    uri = {"uri": path.as_uri()} if path.is_absolute() else {"uri": quote(path.as_posix()), "uriBaseId": "%SRCROOT%"}
    physical: dict = {"artifactLocation": uri}
    if line > 0:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def _result(one: Hazard, rule: int, root: Path) -> dict:
    kernel = {"logicalLocations": [{"fullyQualifiedName": one.kernel, "kind": "function"}]}
    place = _location(one.file, one.line, root) if one.file else {}
    result = {
        "ruleId": one.kind,
        "ruleIndex": rule,
        "level": "note" if one.is_note else "error",
        "message": {"text": one.message},
        "locations": [place | kernel],
        "occurrenceCount": max(one.count, 1),
    }
    if one.calls:
        result["relatedLocations"] = [
            _location(file, line, root) | {"id": number, "message": {"text": f"{function}() is called here"}}
            for number, (file, line, function) in enumerate(one.calls, 1)
        ]
    return result
