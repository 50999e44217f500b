"""The package's folders are layers: a module imports from its own folder and from those below, and never in a circle.

docs/architecture.md says what lies in which, and pyproject.toml's [tool.importlinter] in which order. An import inside
a function counts, too: it hides a circle, it does not open it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostcc import ROOT

from flashladder.core.toml import tomllib

SETTINGS = ROOT / "pyproject.toml"
LAYERS = tomllib.loads(SETTINGS.read_text())["tool"]["importlinter"]["contracts"][0]["layers"]  # from the top


def lint(folder: Path) -> subprocess.CompletedProcess:
    """import-linter by the project's settings, over the package that lies in the folder."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1], no_cache=True))"
    env = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", code, SETTINGS], cwd=folder, env=env, capture_output=True, text=True)


def test_folders_are_layers_and_no_modules_import_each_other_in_a_circle():
    done = lint(ROOT / "common/python")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documentation_names_the_layers_in_their_order():
    rows = [line.split("`")[1].strip("/") for line in (ROOT / "docs/architecture.md").read_text().splitlines()
            if line.startswith("| `") and line.split("`")[1].endswith("/")]  # fmt: skip
    assert [row for row in rows if row in LAYERS] == LAYERS[::-1]


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("core/b.py", "import os\n\ndef f():\n    from ..plot import a\n", "core.b -> flashladder.plot.a (l.4)"),
        ("core/b.py", "from flashladder import run\n", "core.b -> flashladder (l.1)"),
        ("core/b.py", "def f():\n    from flashladder.core import a\n", "No cycles are allowed in flashladder.core."),
        ("new/a.py", "", "new"),
        ("plot/b.py", "from flashladder.core import a\n", None),
    ],
)
def test_what_breaks_the_layers_is_found_with_its_line(tmp_path, name, text, said):
    files = {f"{one}/{file}": "" for one in LAYERS for file in ("__init__.py", "a.py")} | {"__init__.py": ""}
    files |= {"core/a.py": "from flashladder.core import b\n", "core/b.py": "", f"{Path(name).parent}/__init__.py": ""}
    for place, content in {**files, name: text}.items():
        file = tmp_path / "flashladder" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    done = lint(tmp_path)
    assert bool(done.returncode) == bool(said), done.stdout + done.stderr
    assert (said or "") in done.stdout, done.stdout
