"""warpsim-report: the reports of one or more runs as text, annotations of GitHub, SARIF and a table."""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from warpsim import counters
from warpsim.report import Hazard, Report, read
from warpsim.sarif import relative

CLEAN, FOUND, UNUSABLE = 0, 1, 2


def lines(report: Report, root: Path) -> Iterable[str]:
    """As compilers write them, so that editors and problem-matcher.json find the places."""
    for one in [*report.hazards, *report.notes]:
        level = "note" if one.is_note else "error"
        place = f"{relative(one.file, root)}:{one.line}:1" if one.file else one.kernel
        yield f"{place}: {level}: {_one_line(one.message)} [{one.kind}]"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def annotations(report: Report, root: Path) -> Iterable[str]:
    """Workflow commands of GitHub Actions, which stand at the source lines of a pull request."""
    for one in [*report.hazards, *report.notes]:
        properties = {"title": f"warpsim: {one.kind}"}
        if one.file:
            properties = {"file": str(relative(one.file, root)), "line": str(one.line)} | properties
        told = ",".join(f"{name}={_escaped(value, '%,:')}" for name, value in properties.items())
        yield f"::{'notice' if one.is_note else 'error'} {told}::{_escaped(one.message, '%')}"


def _escaped(text: str, characters: str) -> str:
    return "".join(f"%{ord(one):02X}" if one in f"{characters}\r\n" else one for one in text)


def summary(report: Report, root: Path) -> str:
    """Markdown: the hazards, and a row of counters for each kernel."""
    found = [*report.hazards, *report.notes]
    parts = [f"### warpsim: {_verdict(report)}"]
    if found:
        rows = [(one.kind, _place(one, root), one.count, _one_line(one.message)) for one in found]
        parts.append(_table(("kind", "where", "times", "what"), rows))
    if report.counters:
        rows = []
        for kernel, sums in report.counters.items():
            folded = counters.summary(sums)
            hazards = sum(one.kernel == kernel for one in report.hazards)
            rows.append((f"`{kernel}`", sums["launches"], *("-" if n is None else n for n in folded.values()), hazards))
        columns = ("kernel", "launches", *counters.summary(next(iter(report.counters.values()))), "hazards")
        parts.append(_table(columns, rows))
    if report.refused_calls:
        rows = [(f"`{call['name']}`", _one_line(call["why"])) for call in report.refused_calls]
        parts.append(_table(("refused call", "why"), rows))
    return "\n\n".join(parts) + "\n"


def _verdict(report: Report) -> str:
    if report.hazards:
        places = len(report.hazards)
        return f"{places} {'place' if places == 1 else 'places'} with a hazard"
    return "clean" if report.clean else report.why_not_clean


def _place(one: Hazard, root: Path) -> str:
    return f"`{relative(one.file, root)}:{one.line}`" if one.file else f"`{one.kernel}`"


def _table(columns: Iterable[str], rows: Iterable[Iterable]) -> str:
    head = [str(column) for column in columns]
    text = [head, ["---"] * len(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in text)


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="warpsim-report",
        description="What the reports of warpsim say (warpsim --report FILE, or WARPSIM_REPORT=folder/%%p.json). "
        "The exit status is 0 where kernels ran and all is clean, 1 where something was found.",
    )
    parser.add_argument("places", nargs="+", type=Path, metavar="FILE|FOLDER", help="reports, or folders of *.json")
    parser.add_argument("--root", type=Path, default=Path(), help="paths are given relative to it (this folder)")
    parser.add_argument("--annotations", action="store_true", help="print commands of GitHub Actions instead of text")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write the hazards as SARIF 2.1.0")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="append a table in Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all reports as one")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    options = _arguments(words)
    root = options.root.resolve()
    try:
        report = read(*options.places)
        for text in (annotations if options.annotations else lines)(report, root):
            print(text)
        if options.sarif:
            options.sarif.write_text(json.dumps(report.to_sarif(root), indent=1) + "\n", encoding="utf-8")
        if options.json:
            options.json.write_text(json.dumps(report.to_json()) + "\n", encoding="utf-8")
        if options.summary:
            with options.summary.open("a", encoding="utf-8") as file:
                file.write(summary(report, root))
    except (OSError, ValueError) as error:
        print(f"warpsim-report: {error}", file=sys.stderr)
        return UNUSABLE
    launches = len(report.launches)
    print(f"warpsim: {launches} {'launch' if launches == 1 else 'launches'}, {_verdict(report)}", file=sys.stderr)
    return CLEAN if report.clean else FOUND


if __name__ == "__main__":
    sys.exit(main())
