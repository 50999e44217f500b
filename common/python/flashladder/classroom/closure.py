"""Which of the project's modules another one needs: for a student's folder, and for the hash of what grades."""

import ast
from functools import cache
from pathlib import Path

from flashladder.core.environment import PACKAGE

NAMES = ("flashladder", "warpsim")


def closure(*modules: str) -> dict[str, Path]:
    """By name, the modules of these packages that these import, and those that they import; themselves included.

    An import inside a function counts. A folder's __init__.py goes by the folder's name.
    """
    found, todo = {}, list(modules)
    while todo:
        module = todo.pop()
        if module in found or _file(module) is None:
            continue
        found[module] = _file(module)
        todo += _imports(module)
        if "." in module:
            todo.append(module.rpartition(".")[0])  # importing a.b runs a's __init__, too
    return dict(sorted(found.items()))


def _file(module: str) -> Path | None:
    path = PACKAGE / Path(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()), None)


@cache
def _imports(module: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(_file(module).read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in found if name.split(".")[0] in NAMES]
