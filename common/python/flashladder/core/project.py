"""What pyproject.toml says of the project, read with the standard library alone: nothing may be installed yet."""

import re
from functools import cache

from flashladder.core.paths import ROOT


@cache
def _text() -> str:
    return (ROOT / "pyproject.toml").read_text()


def version() -> str:
    return re.search(r'^version = "(.+)"$', _text(), re.M)[1]


def requirement(name: str) -> str:
    """How pip is asked for a package, without a condition on Python: "numpy>=1.26,<3". KeyError where none is named."""
    found = re.search(rf'"({re.escape(name)}[\[<>=~][^";]*)', _text())
    if not found:
        raise KeyError(f"pyproject.toml has no requirement {name}")
    return found[1].strip()
