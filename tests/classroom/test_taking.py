"""What is taken of a file: honest ones whatever their look, by `make check` and the grader alike, in bounded time."""

import subprocess
import sys
from pathlib import Path

import pytest
from graded import SIMULATOR, as_json, assignment_for
from hostile import ANSWERS, FILE, REPEATED, handed_in
from shares import share

from flashladder.classroom import check, exercise, taking
from flashladder.classroom.grading import grade
from flashladder.classroom.lexing import CODE, COMMENT, STRING, Lines, pieces, without_comments
from flashladder.classroom.screening import objections
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages

STAGE = stages.get(5)
NAME = "tile_offset"
ONE = exercise.get(5, NAME)


def kinds(text: str) -> list[tuple[str, str]]:
    return [(piece.kind, text[piece.first : piece.end]) for piece in pieces(text)]


def test_comments_and_strings_are_told_apart():
    assert kinds("a // b\nc") == [(CODE, "a "), (COMMENT, "// b"), (CODE, "\nc")]
    assert kinds('"//" /* " */') == [(STRING, '"//"'), (CODE, " "), (COMMENT, '/* " */')]
    assert kinds(r'"a\"b" + 1') == [(STRING, r'"a\"b"'), (CODE, " + 1")]
    assert kinds('R"x(" // )" )x" y') == [(CODE, "R"), (STRING, '"x(" // )" )x"'), (CODE, " y")]
    assert kinds("1'000 '\"' //") == [(CODE, "1'000 "), (STRING, "'\"'"), (CODE, " "), (COMMENT, "//")]
    assert kinds("/* no end") == [(COMMENT, "/* no end")]
    assert kinds('"no end\nx') == [(STRING, '"no end'), (CODE, "\nx")]
    for text in ("", "a", 'R"(', "'", '"', "/*", "//", "\\", "u8'", '"\\'):
        assert "".join(words for _, words in kinds(text)) == text
    assert without_comments("a/*\n\n*/b // c\nd") == "a \n\nb  \nd"


def test_lines_of_offsets():
    text = "a\nbc\n\nd"
    assert [Lines(text).of(offset) for offset in range(len(text))] == [1, 1, 2, 2, 2, 3, 4]


HONEST = [
    "// warp #1",
    "int x;  // of lane #3, see #include",
    "/* warp #1\n   #2 and\n # three */",
    "/*\n#1 is the first warp\n*/",
    "#define PASTE(a, b) a##b\nint PASTE(x, 1) = 0;",
    "#define LONG(a, b) \\\n    a \\\n    ## b",
    "#define TEXT(a) #a",
    "#  pragma   unroll",
    "#\tpragma\tunroll 4\r",
    "#pragma unroll(4)",
    '_Pragma("unroll 4")',
    '_Pragma( "unroll" )',
    "#if 1  // include this\n#elif 0\n#else\n#endif",
    "#",
    "%:define A 1",
    "float x = params.file + tile.section + s.loc;",
    "auto n = 1'000'000;",
    'printf("#%d: 50% of {}", 1);',
    "char c = '#';",
    's = "a\\"#\\"";',
    "int\ni\n=\n0\n;",
    "int i=0;int j=i;",
    "\tint i = 0;\t",
    "int größe = 0;  // ü, 漢, 🙂",
    'asm volatile("mov.u32 %0, 1;" : "=r"(x));',
]


@pytest.mark.parametrize("text", HONEST)
def test_what_is_honest_is_accepted(text):
    assert objections(f"int a;\n{text}\nint b;\n") == []


@pytest.mark.parametrize("text", HONEST)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "windows"])
def test_an_honest_files_look_changes_nothing(text, ends):
    """Windows' line ends, a byte order mark, marks that an editor has moved: no change is told that there is not."""
    whole = handed_in(f"{text}\n{ONE.solution}").replace("    // >>> write: ", "\t//>>>write: ")
    data = ("\ufeff" + whole).replace("\n", ends).encode()
    taken = taking.take(STAGE, taking.decoded(data, FILE), [NAME])
    assert taken.remarks == () and taken.answers[NAME].split() == f"{text}\n{ONE.solution}".split()
    assert taking.refused(ONE, taken.answers[NAME]) == []


def test_a_comment_in_latin_1_costs_no_points(level, tmp_path):
    """A compiler takes such bytes in a comment, and so does the grader, with a remark. In code they do not compile."""
    text = handed_in(f"{ONE.solution}  // h@here Zeile")
    (tmp_path / FILE).write_bytes(text.encode().replace(b"h@", b"h\xf6"))
    (tmp_path / "scratch").mkdir()
    graded = grade(assignment_for(5, NAME), tmp_path / FILE, tmp_path / "scratch", where=SIMULATOR)
    assert graded.points == 100 and not graded.refused, as_json(graded)
    line = text[: text.index("h@")].count("\n") + 1
    (remark,) = graded.remarks
    assert "no UTF-8" in remark and f"line {line}." in remark
    (tmp_path / FILE).write_bytes(text.encode().replace(b"// h@", b"h\xf6"))
    graded = grade(assignment_for(5, NAME), tmp_path / FILE, tmp_path / "scratch", where=SIMULATOR)
    assert graded.points == 0 and "compile" in as_json(graded), as_json(graded)


def test_changes_outside_are_told_where_there_are_some():
    text = handed_in(ONE.solution)
    assert taking.changed_outside(STAGE, text) == []
    assert taking.changed_outside(STAGE, "/* of mine\n   and more */\n" + text + "\n\n// the end\n") == []
    assert taking.changed_outside(STAGE, text + "static int mine = 1;\n") == [text.count("\n") + 1]
    carried = "// === load_tile: your answer in 06_cp_async.cu is put here by `make check` ===\nint mine;\n"
    assert taking.changed_outside(STAGE, f"{carried}// === end of load_tile ===\n{text}") == []


def test_lines_are_those_of_the_students_file():
    text = "// mine\n" * 7 + handed_in("int one;\nint two;")
    taken = taking.take(STAGE, text, [NAME])
    filled = taking.filled_with(STAGE, taken, [NAME])
    places, lines, own = taking.places(STAGE, filled, taken), filled.source.split("\n"), text.split("\n")
    for number, place in places.items():
        assert lines[number - 1].split() == own[place - 1].split() or "//" in own[place - 1]
    assert own[places[lines.index("int two;") + 1] - 1] == "int two;"
    assert len(places) > 0.6 * len(lines), "blank lines and comments have none"


def test_the_answer_to_another_file_is_put_where_it_belongs():
    text = "a\n  // === wait: your answer in 06.cu is put here by `make check` ===\nstub;\n  // === end of wait ===\nb"
    filled, origins = taking.carried_filled(text, {"wait": "one;\ntwo;"})
    assert [line.strip() for line in filled.split("\n")][2:4] == ["one;", "two;"] and "stub" not in filled
    assert filled.split("\n")[-1] == "b" and origins[6] == 5
    assert taking.carried_filled(text, {})[0] == text


def refusals() -> list[str]:
    names = ["line_directive", "has_include", "embed", "pragma_push_macro", "hidden_in_a_raw_string", "asm_include"]
    return [ANSWERS[name] for name in names]


@pytest.mark.parametrize("answer", [*refusals(), '#include "x"', 'asm(".incbin \\"x\\"");'])
def test_what_the_grader_refuses_make_check_refuses_in_the_same_words(answer, level, tmp_path, capsys):
    text = handed_in(answer)
    (tmp_path / FILE).write_text(text)
    (tmp_path / "scratch").mkdir()
    graded = grade(assignment_for(5, NAME), tmp_path / FILE, tmp_path / "scratch", where=SIMULATOR)
    said = graded.exercises[0].words.split(": ", 1)[1].split("; ")[0]
    assert graded.points == 0 and "not allowed" in said, as_json(graded)
    problems = (("whole", (Problem(Hq=1, Nq=128, Nkv=64, d_head=64),)),)
    every = exercise.starter(STAGE)  # of all exercises of the stage, as in the folder of one that has them all
    begin, end = every.index(ONE.opening) + len(ONE.opening), every.index(ONE.closing)
    (tmp_path / FILE).write_text(f"{every[:begin]}\n{answer}\n{every[end:]}")
    assert check.check(check.Sheet("t", (5,), problems, tmp_path)) == 1
    printed = capsys.readouterr().out
    assert "REFUSED" in printed and said in printed and f"{FILE}:" in printed, printed


@pytest.mark.parametrize(
    "data, words",
    [
        (b"/" * (300 << 10), "more than 256 KiB"),
        ("a".encode("utf-16"), "save it as UTF-8"),
        (b"", "marks of"),
        (b"// >>> write: x", "'x'"),
    ],
    ids=["large", "no text", "empty", "another mark"],
)
def test_a_file_that_cannot_be_taken_is_told_by_make_check(data, words, tmp_path, capsys):
    (tmp_path / FILE).write_bytes(data)
    assert check.check(check.Sheet("t", (5,), (), tmp_path)) == 1
    assert words in capsys.readouterr().out


TAKEN = """
import resource, sys
from flashladder.classroom import exercise, taking
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
stage, one = stages.get(5), exercise.get(5, "tile_offset")
sys.path.insert(0, sys.argv[1])
from hostile import REPEATED, handed_in
for name in sys.argv[2:]:
    for text in (handed_in(REPEATED[name] * (250_000 // len(REPEATED[name]))), REPEATED[name] * 100_000):
        try:
            taken = taking.take(stage, taking.decoded(text.encode()[: taking.MOST_BYTES], "kernel.cu"), ["tile_offset"])
        except FlashLadderError:
            continue
        answer = taken.answers.get("tile_offset", "")
        one.is_stub(answer), taking.refused(one, answer)
        taking.places(stage, exercise.fill(stage, {"tile_offset": answer}), taken)
"""
# Each took minutes before: patterns that went back, files that were compared line by line.
ONCE = ("empty_comments_behind_a_hash", "comments_that_do_not_end", "semicolons", "splices", "apostrophes")


def taken_in_time(names) -> None:
    """In a process that may have a minute of the processor for each of them, and takes a second or two."""
    for name in names:
        command = [sys.executable, "-c", TAKEN, str(Path(__file__).parent), name]
        done = subprocess.run(command, env=for_python(), capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.returncode} {done.stderr[-500:]}"


@pytest.mark.parametrize("name", [*ONCE[:2], *(pytest.param(name, marks=pytest.mark.long) for name in ONCE[2:])])
def test_no_text_takes_more_than_its_time(name):
    taken_in_time([name])


@pytest.mark.parametrize(
    "name", share([pytest.param(name, id=name, marks=pytest.mark.long) for name in REPEATED if name not in ONCE], 8)
)
def test_no_repeated_text_takes_more_than_its_time(name):
    taken_in_time([name])


def test_a_mark_that_is_opened_twice_is_refused_at_once():
    with pytest.raises(FlashLadderError, match="before it is closed"):
        taking.take(STAGE, "// >>> write: tile_offset (3 points)\n" * 5, [NAME])
