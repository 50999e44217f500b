"""Programs with a fault in each kernel and a mended twin: marks in the source say what is reported, and where.

`//! NAME kind: words | more words` stands in the line where NAME's fault is reported, `//~ NAME` in another line that the
message names; " or " divides alternatives, of kinds and of words.
"""

import re

from cudart import ON_GPU, run_program

HOPPER = ("-gencode", "arch=compute_90,code=compute_90")
HOPPER_A = ("-gencode", "arch=compute_90a,code=compute_90a")


def cases(program):
    return re.findall(r"CASE\((\w+)\),", program.read_text())


def marks(program, name):
    """(kinds, words, the lines that are named) of a fault; words: lists of alternatives"""
    kinds, words, lines = None, None, set()
    for number, line in enumerate(program.read_text().splitlines(), 1):
        if match := re.search(rf"//[!?] {name} ([a-z_ ]+): (.+)", line):
            kinds, words = match[1].split(" or "), [w.split(" or ") for w in match[2].split(" | ")]
        if re.search(rf"//[!?~] {name}\b", line):
            lines.add(number)
    return kinds, words, lines


def check_fault(program, name, env=None, architecture=HOPPER, arguments=()):
    """The faulty kernel fails as its marks say: its hazard, and the lines that are marked."""
    kinds, words, lines = marks(program, name)
    result = run_program(program, [name, 0, *arguments], env=env, report=True, architecture=architecture)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    # Code of a header is charged there, with the calls that lead to it; a copy has no line.
    places = {hazard["line"], *(call["line"] for call in hazard.get("inlined", []))}
    assert hazard["kind"] in kinds and (places & lines or places == {0} and "launch_race" in kinds), hazard
    for alternatives in words:
        assert any(word in hazard["message"] for word in alternatives), hazard["message"]
    assert hazard["message"] in result.stderr
    return hazard, lines


def check_mended(program, name, env=None, architecture=HOPPER, arguments=()):
    """The kernel without the fault has no hazards; its launches' reports."""
    mended = run_program(program, [name, 1, *arguments], env=env, report=True, architecture=architecture).check()
    assert mended.stdout == "cudaSuccess\n" and mended.hazards == []
    return mended.report["launches"]


def check_fault_and_twin(program, name, seed, names_lines=True, architecture=HOPPER):
    """Both, under this seed of the schedule; the fault's message names all lines that are marked."""
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    hazard, lines = check_fault(program, name, env, architecture)
    for line in lines if names_lines else ():
        assert f"{program.name}:{line}" in hazard["message"], hazard["message"]
    check_mended(program, name, env, architecture)


def check_clean(program, seed, architecture=HOPPER):
    """A correct program says OK, and nothing is said of it; its report."""
    env = {"WARPSIM_SCHEDULE": seed} if seed and not ON_GPU else {}
    result = run_program(program, env=env, report=not ON_GPU, architecture=architecture).check()
    assert result.stdout == "OK\n" and result.hazards == []
    return result.report


def check_host_threads(program, name, env=None, architecture=HOPPER):
    """What is reported of a faulty kernel does not depend on how many threads of the host run it."""
    reports = []
    for threads in (1, 2, 5):
        settings = {**(env or {}), "WARPSIM_THREADS": threads}
        reports.append(run_program(program, [name, 0], env=settings, report=True, architecture=architecture).hazards)
    for hazard in (h for report in reports for h in report):
        hazard["address"] = hazard["message"] = None  # addresses are those of this run
    assert reports[0] and reports[0] == reports[1] == reports[2]
