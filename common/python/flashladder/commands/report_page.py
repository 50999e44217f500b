"""The page of a GPU's report, one file: the summary, the throughput in tables and pictures, what is left out."""

import tempfile
from html import escape
from pathlib import Path

from flashladder.commands import throughput
from flashladder.core import html_page
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import bench, recorded

ORIGIN = ("device", "compute_capability", "memory_mib", "driver", "toolkit", "runtime", "torch", "cudnn", "commit",
          "uncommitted_changes", "build_type", "date")  # fmt: skip


def write(record_file: Path, summary: list[str]) -> Path:
    """Beside the record of the throughput, GPU.json, GPU.html; of a report without that record the summary alone."""
    title = f"FlashLadder on {summary[0]}"
    body = [f"<h1>{escape(title)}</h1>", f"<pre>{escape(chr(10).join(summary[1:]))}</pre>"]
    body += _throughput(recorded.load(record_file)) if record_file.exists() else []
    page = record_file.with_suffix(".html")
    page.write_text(html_page.page(title, body))
    return page


def _throughput(record: dict) -> list[str]:
    origin = record["provenance"]
    known = [(key.replace("_", " "), str(origin[key])) for key in ORIGIN if origin.get(key) is not None]
    body = ["<h2>Measured with</h2>", html_page.table(("", ""), known), "<h2>Throughput</h2>"]
    for title, columns, rows in bench.tables(record):
        body += [f"<h3>{escape(title)}</h3>", html_page.table(columns, rows)]
    remarks = [f"<li>{escape(line)}</li>" for line in bench.remarks(record)]
    return [*body, "<ul>", *remarks, "</ul>", *_pictures(record)]


def _pictures(record: dict) -> list[str]:
    try:
        with tempfile.TemporaryDirectory(prefix="flashladder-report-") as folder:
            files = throughput.draw([(record, True)], Path(folder))
            return [html_page.picture(f"{one.stem}: the stages and the peers", one.read_bytes()) for one in files]
    except (ImportError, FlashLadderError) as error:
        return [f"<p>No pictures: {escape(str(error))}</p>"]
