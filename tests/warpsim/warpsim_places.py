"""Where the files lie that these tests use."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs/examples/warpsim"
RECORDED = Path(__file__).with_name("recorded")  # the reports of the examples with their mistakes, by hazards=warn
