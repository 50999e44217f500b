"""The simulator's folders include only what lies below them, and no files include each other in a circle."""

import re
from pathlib import Path

SIMULATOR = Path(__file__).resolve().parents[2] / "common" / "simulator"
# The order that common/simulator/README.md gives, lowest first.
LAYERS = [
    "core",
    "ptx",
    "memory",
    "hazard",
    "definedness",
    "exec",
    "lower",
    "report",
    "fatbin",
    "runtime",
    "driver",
    "tools",
]
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def includes(root):
    """{file: [(line number, included file)]}, paths relative to `root`."""
    found = {}
    for path in sorted([*root.rglob("*.h"), *root.rglob("*.cpp")]):
        lines = path.read_text().splitlines()
        matches = [(number, INCLUDE.match(line)) for number, line in enumerate(lines, 1)]
        found[path.relative_to(root).as_posix()] = [(number, match[1]) for number, match in matches if match]
    return found


def wrong_includes(graph):
    """A sentence for each include that leads upwards, out of the folders, or to no file."""
    wrong = []
    for file, targets in graph.items():
        folder = file.split("/")[0]
        for number, target in targets:
            below = target.split("/")[0]
            if target not in graph:
                wrong.append(f"{file}:{number}: there is no {target}; includes are relative to common/simulator")
            elif folder not in LAYERS or below not in LAYERS:
                wrong.append(f"{file}:{number}: {folder}/ and {below}/ must both be in LAYERS and in the README")
            elif LAYERS.index(below) > LAYERS.index(folder):
                wrong.append(f"{file}:{number}: {folder}/ lies below {below}/ and must not include {target}")
    return wrong


def circle(graph):
    """The files of a circle of includes, the first one again at the end; empty where there is none."""
    done = set()

    def visit(file, path):
        if file in path:
            return [*path[path.index(file) :], file]
        if file in done:
            return []
        for _, target in graph.get(file, []):
            if found := visit(target, [*path, file]):
                return found
        done.add(file)
        return []

    return next(filter(None, (visit(file, []) for file in graph)), [])


def test_no_folder_includes_one_above_it():
    wrong = wrong_includes(includes(SIMULATOR))
    assert not wrong, "\n".join(wrong)


def test_no_circle_of_includes():
    found = circle(includes(SIMULATOR))
    assert not found, " -> ".join(found)


def test_every_folder_is_a_layer_and_the_readme_says_so():
    folders = {path.parent.relative_to(SIMULATOR).parts[0] for path in SIMULATOR.rglob("*.cpp")}
    assert folders == set(LAYERS)
    rows = re.findall(r"^\| `(\w+)/` \|", (SIMULATOR / "README.md").read_text(), re.MULTILINE)
    assert rows == LAYERS


def test_the_check_sees_what_is_wrong(tmp_path):
    for name, text in {
        "core/a.h": '#include "core/b.h"\n',
        "core/b.h": '\n#include "exec/c.h"\n#include "core/none.h"\n',
        "exec/c.h": '#include "core/a.h"\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = includes(tmp_path)
    wrong = wrong_includes(graph)
    assert [line.split(": ")[0] for line in wrong] == ["core/b.h:2", "core/b.h:3"]
    assert set(circle(graph)) == {"core/a.h", "core/b.h", "exec/c.h"}
