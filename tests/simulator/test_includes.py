"""The simulator's rooms: what includes what, that an instruction lies in one of them, that texts name files that are."""

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
    "counters",
    "machine",
    "device_runtime",
    "scheduler",
    "lower",
    "instructions",
    "report",
    "fatbin",
    "runtime",
    "driver",
    "tools",
]
# Families of instructions, rooms of instructions/, in the README's order: each may use what those before it have.
FAMILIES = [
    "control",
    "barrier",
    "warp",
    "arithmetic",
    "convert",
    "memory",
    "texture",
    "mma",
    "wgmma",
    "async_copy",
    "mbarrier",
    "bulk_copy",
    "cluster",
]
ROOM = re.compile(r"instructions/(\w+)/")
# Handlers and lowerings; and those that rows of several families name: ops without an effect, the lowering that looks
# at no operand, and that of forms.
NAME = re.compile(r"\b(?:exec|lower)_\w+")
SHARED = {"exec_nothing", "exec_let_dependents_start", "lower_plain", "lower_by_text"}
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
            elif (own := ROOM.match(file)) and (other := ROOM.match(target)):
                if FAMILIES.index(other[1]) > FAMILIES.index(own[1]):
                    wrong.append(f"{file}:{number}: {own[0]} comes before {other[0]} and must not include {target}")
    return wrong


def sources(root):
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in sorted([*root.rglob("*.h"), *root.rglob("*.cpp")])
    }


def handlers(text):
    """The handlers and lowerings that the table's rows in a file name, macros of rows included."""
    table = re.search(r"(?:^#define (?:[^\n]*\\\n)*[^\n]*\n+)*^constexpr InstructionRow kRows.*?^};", text, re.S | re.M)
    return set(NAME.findall(table[0])) - SHARED if table else set()


def outside_their_room(texts):
    """A sentence for each file outside a row's room that mentions the row's handler or lowering."""
    rooms = {name: file.rsplit("/", 1)[0] for file, text in texts.items() for name in handlers(text)}
    return [
        f"{file} mentions {name}, whose room is {rooms[name]}/"
        for file, text in texts.items()
        for name in sorted(set(NAME.findall(text)) & rooms.keys())
        if file.rsplit("/", 1)[0] != rooms[name]
    ]


def missing_files(texts, known):
    """A sentence for each file of the simulator that a text names by its path and that is not there."""
    path = re.compile(rf"(?<![\w/.])(?:common/simulator/)?((?:{'|'.join(LAYERS)}|exec)/[\w/]+\.(?:cpp|h))\b")
    return [
        f"{file} names {found}, which is not there"
        for file, text in texts.items()
        for found in sorted(set(path.findall(text)))
        if found not in known
    ]


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
    assert rows == LAYERS + FAMILIES


def test_every_family_is_in_the_order():
    assert {path.name for path in (SIMULATOR / "instructions").iterdir() if path.is_dir()} == set(FAMILIES)


def test_an_instruction_lies_in_one_room():
    texts = sources(SIMULATOR)
    wrong = outside_their_room(texts)
    assert not wrong, "\n".join(wrong)
    rooms = [file.split("/")[1] for file, text in texts.items() for _ in handlers(text)]
    assert set(rooms) == set(FAMILIES) and len(rooms) > 100


def left_out_with_a_row(texts):
    """Opcodes that table.cpp leaves out as a whole and that have a row all the same."""
    left_out = re.search(r"kNotSimulated\[\] = {(.*?)};", texts["instructions/table.cpp"], re.S)[1]
    rows = {name for text in texts.values() if "kRows" in text for name in re.findall(r'{"(\w+)[^"]*", "', text)}
    return sorted(rows & set(re.findall(r'"(\w+)"', left_out)))


def test_what_is_left_out_has_no_row():
    texts = sources(SIMULATOR)
    assert left_out_with_a_row(texts) == []
    texts["instructions/x/a.cpp"] = 'constexpr InstructionRow kRows[] = {{"vshr.u32", "d, a, b", c, f, exec_a}};'
    assert left_out_with_a_row(texts) == ["vshr"]


def test_a_handler_outside_its_room_is_seen():
    row = 'constexpr InstructionRow kRows[] = {\n    {"a", "d", c, f, exec_a, lower_a},\n    {"b", "", exec_nothing},\n};\n'
    texts = {"instructions/x/lower.cpp": row, "instructions/x/a.cpp": "void exec_a() {}", "lower/b.cpp": "exec_nothing"}
    assert outside_their_room(texts) == []
    texts["lower/families.h"] = "void lower_a(); void lower_ab();"
    assert outside_their_room(texts) == ["lower/families.h mentions lower_a, whose room is instructions/x/"]


def test_files_that_texts_name_are_there():
    known = sources(SIMULATOR)
    texts = dict(known)
    for path in [*SIMULATOR.rglob("*.md"), SIMULATOR / "CMakeLists.txt", *(SIMULATOR.parents[1] / "docs").glob("*.md")]:
        texts[path.name] = path.read_text()
    missing = missing_files(texts, known)
    assert not missing, "\n".join(missing)


def test_a_name_without_a_file_is_seen():
    texts = {"a.md": "`common/simulator/core/op.h`, lower/none.cpp and other/core/none.h", "b.h": "// exec/gone.cpp"}
    missing = missing_files(texts, {"core/op.h"})
    assert [line.split(",")[0] for line in missing] == ["a.md names lower/none.cpp", "b.h names exec/gone.cpp"]


def test_the_check_sees_what_is_wrong(tmp_path):
    for name, text in {
        "core/a.h": '#include "core/b.h"\n',
        "core/b.h": '\n#include "machine/c.h"\n#include "core/none.h"\n',
        "machine/c.h": '#include "core/a.h"\n',
        "instructions/mma/d.h": '#include "instructions/wgmma/e.h"\n',
        "instructions/wgmma/e.h": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = includes(tmp_path)
    wrong = wrong_includes(graph)
    assert [line.split(": ")[0] for line in wrong] == ["core/b.h:2", "core/b.h:3", "instructions/mma/d.h:1"]
    assert set(circle(graph)) == {"core/a.h", "core/b.h", "machine/c.h"}
