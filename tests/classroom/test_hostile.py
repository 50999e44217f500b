"""Submissions that are after the grader: none runs host code, none reads a grader's file, none slows or stops others.

Most are whole kernels, given to what compiles and launches behind the screening that an answer meets first: so they
have more freedom than a submission has.
"""

import os
from dataclasses import replace

import numpy as np
import pytest
from graded import SIMULATOR, ZEROS, as_json, assignment_for, tiny
from shares import share

from flashladder.classroom import device_code, exercise, isolation, trials
from flashladder.classroom.assignment import Sizes
from flashladder.classroom.cases import draw
from flashladder.classroom.device_code import Sandbox
from flashladder.classroom.grading import grade
from flashladder.classroom.screening import objections
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import stages

STAGE = stages.get(5)
SMALL = Problem(Hq=1, Nq=128, Nkv=64, d_head=64)
SECRET = "root:x:0:0"  # what /etc/passwd begins with


def ran(source: str, sandbox: Sandbox, problem: Problem = SMALL):
    """(what was built, how the run ended); the run is None where nothing was built."""
    built = device_code.compile_kernel(STAGE, source, sandbox)
    return built, device_code.run(STAGE, built, problem, problem.random(1), sandbox) if built.ok else None


def said(built, outcome=None) -> str:
    return f"{built.words}\n{outcome.words if outcome else ''}\n{outcome.report if outcome else ''}"


HOST_CODE = """#include <stdlib.h>
__attribute__((constructor)) void early() { system("touch MARK-constructor"); }
static int number = system("touch MARK-initialiser");
struct Early { Early() { system("touch MARK-object"); } } object;
extern "C" FlashStatus flash_forward(const FlashParams *, cudaStream_t) {
    system("touch MARK-launcher");
    return FLASH_OK;
}
extern "C" FlashStatus flash_describe(const FlashParams *, FlashDescription *) {
    system("touch MARK-description");
    return FLASH_OK;
}"""


def test_host_code_never_runs(level, tmp_path):
    """Without any isolation, too: there is nothing that could run it."""
    source = tiny(ZEROS, HOST_CODE.replace("MARK", str(tmp_path / "mark")))
    built, outcome = ran(source, Sandbox(isolation.NONE, SIMULATOR))
    assert built.ok and outcome.output is not None, said(built, outcome)
    assert not list(tmp_path.glob("mark*")), "host code of a submission was executed"


HIDDEN = next((ROOT / "docs/assignments").glob("*.toml"))


@pytest.mark.parametrize("file", ["/etc/passwd", str(HIDDEN), str(ROOT / "tests/classroom/test_hostile.py")])
def test_a_graders_file_cannot_be_included(file, sandbox):
    if not sandbox.level.moves:
        pytest.skip(f"level {sandbox.level.name} cannot hide files that every user may read; screening does")
    built, _ = ran(tiny(ZEROS, f'#include "{file}"'), sandbox)
    assert not built.ok and "No such file" in built.words, built.words
    assert SECRET not in built.words and "[seeds]" not in built.words


READERS = [
    '#include "/etc/passwd"',
    "#  include </etc/passwd>",
    '%:include "/etc/passwd"',
    '#/* */include "/etc/passwd"',
    '#inc\\\nlude "/etc/passwd"',
    '#\\\ninclude "/etc/passwd"',
    '#define A "/etc/passwd"\n#include A',
    'R"(\n#include "/etc/passwd"\n)"',
    '#include_next "passwd"',
    "#import <x>",
    '#embed "/etc/passwd"',
    "#if __has_include(</etc/passwd>)\n#endif",
    '#line 1 "/etc/passwd"',
    '# 1 "/etc/passwd"',
    '#pragma GCC dependency "/etc/passwd"',
    '_Pragma("once")',
    'asm(".incbin \\"/etc/passwd\\"");',
    'asm(".file 1 \\"/etc/passwd\\"");',
]


@pytest.mark.parametrize("text", READERS)
def test_screening_refuses(text):
    found = objections(f"int a = 1;\n{text}\nint b = 2;\n")
    assert found and found[0].line in (2, 3), f"not refused: {text}"


@pytest.mark.parametrize("stage", stages.all_stages(), ids=lambda stage: stage.name)
def test_screening_lets_the_solutions_pass(stage):
    source = stage.kernel.read_text()
    assert objections(source, source) == []
    assert {one.words.split()[0] for one in objections(source)} <= {"#include", "#pragma"}


@pytest.mark.long
def test_assembler_directives_read_nothing(sandbox):
    built, outcome = ran(tiny(ZEROS + 'asm volatile(".file 9 \\"/etc/passwd\\"\\n.loc 9 1 1;");'), sandbox)
    assert SECRET not in said(built, outcome)
    built, outcome = ran(tiny(ZEROS + 'asm volatile(".incbin \\"/etc/passwd\\"");'), sandbox)
    assert outcome.output is None and SECRET not in said(built, outcome)
    assert "incbin" in outcome.words, outcome.words


ENDLESS_TEMPLATES = """
template <int n, int m> struct Endless {
    static constexpr int value = Endless<n - 1, 2 * m>::value + Endless<n - 1, 2 * m + 1>::value;
};
template <int m> struct Endless<0, m> { static constexpr int value = m; };
"""


@pytest.mark.long
def test_endless_templates_end(sandbox, monkeypatch):
    monkeypatch.setattr(device_code, "COMPILING", replace(device_code.COMPILING, seconds=4, memory_bytes=1 << 30))
    built, _ = ran(tiny(ZEROS + "O[0] = T(float(Endless<28, 1>::value));", ENDLESS_TEMPLATES), sandbox)
    assert not built.ok, "the compiler came to an end"
    assert "ended" in built.words or "memory" in built.words, built.words


@pytest.mark.long
def test_recursion_of_templates_ends(sandbox):
    text = "template <int n> struct Deep { static constexpr int value = Deep<n + 1>::value; };"
    built, _ = ran(tiny(ZEROS + "O[0] = T(float(Deep<0>::value));", text), sandbox)
    assert not built.ok and "kernel.cu" in built.words, built.words


@pytest.mark.long
def test_a_giant_output_ends(sandbox, monkeypatch):
    monkeypatch.setattr(device_code, "COMPILING", replace(device_code.COMPILING, file_bytes=8 << 20))
    macros = [f"#define A{n} " + f"A{n - 1} " * 8 for n in range(1, 8)]
    text = "\n".join(["#define A0 1234567,", *macros, "__device__ int large[] = {A7};"])
    built, _ = ran(tiny(ZEROS + "O[0] = T(float(large[threadIdx.x]));", text), sandbox)
    assert not built.ok and built.words, "2 million numbers were taken"


@pytest.mark.long
def test_macros_that_stand_for_keywords_change_nothing_of_ours(sandbox):
    for text in ("#define template", "#define FlashParams int", "#define __global__", "/*", "#if 0", "namespace x {"):
        built, _ = ran(tiny(ZEROS, after=text), sandbox)
        assert not built.ok and built.words, f"{text} was taken"


@pytest.mark.long
def test_the_compilers_own_errors_are_the_students(sandbox):
    built, _ = ran(tiny("#error my own words"), sandbox)
    assert not built.ok and "my own words" in built.words


PRINTING = 'for (int i = 0; i < 1 << 20; ++i) printf("%1000d%1000d", i, i);'
RUNNERS = {
    "two gigabytes of printf": PRINTING,
    "an endless loop": "for (volatile int i = 1; i;) i = 1;",
    "a count that never ends": "for (volatile unsigned i = 1; i; i += 2);",
    "a spin lock": "volatile int *lock = reinterpret_cast<volatile int *>(params.O.data);"
    " while (*lock != 1) __nanosleep(100);",
    "a barrier that half of the block waits at": "if (threadIdx.x < 64) while (true) __syncthreads();"
    " else for (volatile int i = 1; i;) i = 1;",
    "a lot of memory": "for (;;) if (!malloc(1 << 20)) __trap();",
    "a trap": "__trap();",
}


QUICK = ("an endless loop",)


@pytest.mark.parametrize(
    "name", share([pytest.param(one, id=one, marks=() if one in QUICK else pytest.mark.long) for one in RUNNERS], 2)
)
def test_what_never_ends_is_ended(name, sandbox):
    built, outcome = ran(tiny(ZEROS + RUNNERS[name], "#include <cstdio>"), sandbox)
    assert built.ok, built.words
    assert outcome.failure and outcome.output is None, f"{name} came to an end"
    assert outcome.words, "nothing is said about it"


def test_what_ran_out_of_its_budget_is_not_tried_again(sandbox):
    sizes = tuple(Sizes(f"class {n}", True, "normal", (SMALL,)) for n in range(4))
    source = tiny(RUNNERS["a count that never ends"])
    judgement = trials.judge(STAGE, source, assignment_for(5, "tile_offset", sizes=sizes), sandbox)
    assert [one.outcome.words.startswith("not run after") for one in judgement.tried] == [False, True, True, True]


def wrong(source: str, sandbox: Sandbox, **fields):
    judgement = trials.judge(STAGE, source, assignment_for(5, "tile_offset", **fields), sandbox, diagnose=False)
    assert judgement.built.ok, judgement.built.words
    return judgement


def test_reading_beyond_the_buffers_for_a_reference_is_a_hazard(sandbox):
    """There is no reference in the process; and what lies beyond a buffer is out of bounds."""
    judgement = wrong(tiny("for (int x = 0; x < d_head; ++x) O[x] = O[x + (1 << 16)];"), sandbox)
    assert {hazard["kind"] for hazard in judgement.hazards} & {"out_of_bounds", "invalid_address"}
    assert not judgement.right_in("public")


@pytest.mark.long
def test_nothing_is_left_of_an_earlier_run(sandbox):
    """O is a NaN before each run, and each run has a process of its own, so variables start afresh, too."""
    body = """__shared__ int again;
    if (threadIdx.x == 0) again = atomicAdd(&runs, 1);
    __syncthreads();
    if (again > 100) for (int x = 0; x < d_head; ++x) O[x] = T(0.0f);"""
    built, _ = ran(tiny(ZEROS), sandbox)
    source = tiny(body, "__device__ int runs;")
    for _ in range(2):
        built, outcome = ran(source, sandbox)
        assert built.ok and (outcome.output == 0xFFFF).all(), "something was there that this run has not written"


@pytest.mark.long
def test_a_timed_kernel_may_not_save_itself_later_runs(sandbox, monkeypatch):
    """What a GPU does, here on the simulator, whose times mean nothing."""
    monkeypatch.setattr(device_code, "TURNS", 1)
    built = device_code.compile_kernel(STAGE, tiny(ZEROS), sandbox)
    once = device_code.compile_kernel(
        STAGE, tiny("if (atomicAdd(&runs, 1) < 128) " + ZEROS, "__device__ int runs;"), sandbox
    )
    inputs = SMALL.random(1)
    fair = device_code.run(STAGE, built, SMALL, inputs, sandbox, rival=built)
    assert fair.speed and (fair.output == 0).all(), fair.words
    assert "differs from run to run" in device_code.run(STAGE, once, SMALL, inputs, sandbox, rival=built).words


def test_inputs_are_not_to_be_written(sandbox):
    _, outcome = ran(tiny(ZEROS + "static_cast<T *>(params.Q.data)[row] = T(0.0f);"), sandbox)
    assert outcome.output is None and "wrote to its input Q" in outcome.words


def right_kernel_with(text: str, instead: str) -> str:
    source = STAGE.kernel.read_text()
    assert source.count(text) == 1, f"the solution has {text!r} {source.count(text)} times"
    return source.replace(text, instead)


STORE = "    // ---- store ----\n"


@pytest.mark.long
def test_writing_other_blocks_outputs_loses_points(sandbox):
    """Zeros to the rows of the next block, which that one overwrites where it comes later: in one order of blocks."""
    spoil = """
    if (blockIdx.x + 1 < gridDim.x)
        for (int x = 0; x < d_head; ++x) O_global[(Br + threadIdx.x) * params.O.stride_row + x] = T(0.0f);
    """
    sizes = (Sizes("public", True, "normal", (Problem(Hq=2, Nq=512, Nkv=64, d_head=64),)),)
    judgement = wrong(right_kernel_with(STORE, spoil + STORE), sandbox, sizes=sizes)
    assert not judgement.right_in("public") or "order of blocks" in judgement.order


@pytest.mark.long
def test_a_precomputed_answer_is_worth_nothing(sandbox):
    """The right result for what students can see: sizes and public seeds. The seeds that count are hidden."""
    sizes = (Sizes("public", True, "normal", (SMALL,)),)
    inputs = draw(SMALL, "normal", 1)
    built = device_code.compile_kernel(STAGE, STAGE.kernel.read_text(), sandbox)
    answer = device_code.run(STAGE, built, SMALL, inputs, sandbox).output.ravel()
    table = f"__device__ const unsigned short answer[] = {{{', '.join(map(str, answer))}}};"
    body = """for (int x = 0; x < d_head; ++x)
        reinterpret_cast<unsigned short *>(O)[x] = answer[row * d_head + x];"""
    source = tiny(body, table)
    assert (ran(source, sandbox)[1].output.ravel() == answer).all(), "the table is not the answer to the public seed"
    assert not wrong(source, sandbox, sizes=sizes).right_in("public")


@pytest.mark.long
def test_a_kernel_that_knows_the_simulator_gains_nothing(sandbox):
    """It may know it by its clock. What it does there is what has points there; on a GPU it is compared, too."""
    body = """const long long start = clock64();
    const bool simulated = clock64() - start < 1000;
    for (int x = 0; x < d_head; ++x) O[x] = T(simulated ? 0.0f : 1.0f);"""
    assert not wrong(tiny(body), sandbox).right_in("public")


def submission(one: exercise.Exercise, answer: str) -> str:
    stub = "\n".join(one.indent + line for line in one.stub.splitlines())
    text = exercise.starter(STAGE, [one.name])
    return text.replace(stub, answer) if stub in text else text.replace(one.stub, answer)


@pytest.mark.long
def test_only_what_stands_between_the_marks_is_taken(level, tmp_path):
    one = exercise.get(STAGE, "piece_address")
    text = '#include "/etc/passwd"\nstatic int early = system("reboot");\n' + submission(one, one.solution)
    (tmp_path / "kernel.cu").write_text(text)
    (tmp_path / "scratch").mkdir()
    got = grade(assignment_for(5, one.name), tmp_path / "kernel.cu", tmp_path / "scratch", where=SIMULATOR)
    assert got.points == 100, as_json(got)
    assert got.remarks == ("Changes outside of the marks are ignored: line 1, 2.",)


@pytest.mark.parametrize("make", [lambda f: f.symlink_to("/etc/passwd"), os.mkfifo], ids=["link", "pipe"])
def test_a_link_or_a_pipe_is_refused_in_words(make, level, tmp_path):
    make(tmp_path / "kernel.cu")
    one = exercise.exercises(STAGE)[0]
    got = grade(assignment_for(5, one.name), tmp_path / "kernel.cu", tmp_path, where=SIMULATOR)
    assert got.points == 0 and "hand in" in got.refused and SECRET not in as_json(got)


def test_bytes_that_are_no_text_are_refused_in_words(level, tmp_path):
    (tmp_path / "kernel.cu").write_bytes(np.arange(256, dtype=np.uint8).tobytes())
    one = exercise.exercises(STAGE)[0]
    got = grade(assignment_for(5, one.name), tmp_path / "kernel.cu", tmp_path, where=SIMULATOR)
    assert got.points == 0 and "zero bytes" in got.refused


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"result.json": "{}"},
        {"result.json": "[1]"},
        {"result.json": '{"status": "ok", "changed_inputs": [], "touched_guards": []}', "O": "short"},
        {
            "result.json": '{"status": "ok", "changed_inputs": [], "touched_guards": []}',
            "report.json": '{"launches": [1]}',
        },
        {"result.json": '{"status": "ok"', "report.json": "no json"},
    ],
)
def test_whatever_a_process_leaves_is_no_crash(files, tmp_path):
    """Were a kernel to break out of the simulator, it would still have to get past this."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = isolation.Done(0, "", "", 0.1)
    outcome = device_code._outcome(tmp_path, SMALL, done, device_code.RUNNING)
    assert outcome.failure and outcome.words and outcome.output is None


def test_a_link_that_a_process_leaves_is_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(SMALL.bytes("O")))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "result.json").write_text('{"status": "ok", "changed_inputs": [], "touched_guards": []}')
    (folder / "O").symlink_to(secret)
    outcome = device_code._outcome(folder, SMALL, isolation.Done(0, "", "", 0.1), device_code.RUNNING)
    assert outcome.output is None
