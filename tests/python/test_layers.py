"""The package's folders are layers: a module imports from its own folder and from those below, and never in a circle.

docs/architecture.md says what lies in which. An import inside a function counts, too: it hides a circle, it does not
open it.
"""

import ast
from pathlib import Path

import pytest
from hostcc import ROOT

PACKAGE = "flashladder"
# From the bottom to the top; what lies in the package's own folder (its front, `python -m`) may import all of them.
LAYERS = ("core", "building", "running", "ladder", "simulator", "measuring", "tuning", "plot", "classroom", "lessons",
          "site", "commands")  # fmt: skip


def modules(root: Path) -> dict[str, Path]:
    """flashladder.core.paths -> its file; a folder's __init__.py goes by the folder's name."""
    files = sorted((root / PACKAGE).rglob("*.py"))
    names = [".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for file in files]
    return dict(zip(names, files, strict=True))


def imports(root: Path) -> dict[str, dict[str, int]]:
    """By module, the modules of the package that it imports anywhere in its text, with the first line that does."""
    known = modules(root)
    found: dict[str, dict[str, int]] = {name: {} for name in known}
    for name, file in known.items():
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                origin = ".".join([*parts, *filter(None, [node.module])])
                wanted = [f"{origin}.{alias.name}" for alias in node.names]
                wanted = [one if one in known else origin for one in wanted]
            else:
                continue
            for one in wanted:
                if one in known and one != name:
                    found[name][one] = min(node.lineno, found[name].get(one, node.lineno))
    return found


def layer(module: str) -> int:
    """The height of a module's folder: an index of LAYERS, beyond them for the package's own folder."""
    folder = module.split(".")[1] if "." in module else ""
    return LAYERS.index(folder) if folder in LAYERS else len(LAYERS)


def upward(root: Path) -> list[str]:
    """One line for each import of something from a higher folder."""
    files = modules(root)
    return [
        f"{files[module].relative_to(root)}:{line}: imports {other} from a layer above; move what needs it up, or what "
        "it needs down"
        for module, others in imports(root).items()
        for other, line in others.items()
        if layer(other) > layer(module)
    ]


def circles(root: Path) -> list[str]:
    """One line for each import that closes a circle of modules."""
    files, graph = modules(root), imports(root)
    found, finished, path = [], set(), []

    def visit(module: str) -> None:
        path.append(module)
        for other, line in graph[module].items():
            if other in path:
                circle = " -> ".join([*path[path.index(other) :], other])
                found.append(f"{files[module].relative_to(root)}:{line}: closes the circle {circle}")
            elif other not in finished:
                visit(other)
        finished.add(path.pop())

    for module in graph:
        if module not in finished:
            visit(module)
    return found


def test_every_folder_is_a_layer():
    folders = {file.parent.name for file in (ROOT / "common/python" / PACKAGE).glob("*/*.py")}
    assert folders == set(LAYERS), "name a new folder in LAYERS, at its height, and in docs/architecture.md"
    loose = {file.name for file in (ROOT / "common/python" / PACKAGE).glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}, "a module lies in a folder, which says its layer"


def test_no_folder_imports_one_above_it():
    found = upward(ROOT / "common/python")
    assert not found, "\n".join(found)


def test_no_modules_import_each_other_in_a_circle():
    found = circles(ROOT / "common/python")
    assert not found, "\n".join(found)


def test_the_documentation_names_the_layers_in_their_order():
    rows = [line.split("`")[1].strip("/") for line in (ROOT / "docs/architecture.md").read_text().splitlines()
            if line.startswith("| `") and line.split("`")[1].endswith("/")]  # fmt: skip
    assert [row for row in rows if row in LAYERS] == list(LAYERS)


@pytest.fixture
def package(tmp_path):
    """package({"core/paths.py": text, ...}) -> the folder that holds such a package."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            file = tmp_path / PACKAGE / name
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / "__init__.py").touch()
            file.write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "import os\nfrom flashladder.plot import style\n",
        "import os\nfrom flashladder.plot.style import INK\n",
        "import os\nimport flashladder.plot.style\n",
        "import os\nfrom ..plot import style\n",
        "def draw():\n    from flashladder.plot import style\n",
    ],
)
def test_an_import_from_above_is_found_with_its_line(package, text):
    root = package({"core/paths.py": text, "plot/style.py": "INK = 1\n"})
    (line,) = upward(root)
    assert line.startswith("flashladder/core/paths.py:2: imports flashladder.plot.style ")


def test_a_circle_is_found_even_if_a_function_hides_it(package):
    root = package(
        {
            "core/a.py": "from flashladder.core import b\n",
            "core/b.py": "from flashladder.core.c import x\n",
            "core/c.py": "x = 1\ndef f():\n    from flashladder.core import a\n",
        }
    )
    (line,) = circles(root)
    assert line.startswith("flashladder/core/c.py:3: closes the circle ") and "core.a -> " in line


def test_what_lies_below_may_be_imported(package):
    root = package({"core/paths.py": "", "plot/style.py": "from flashladder.core import paths\n"})
    assert not upward(root) and not circles(root)
