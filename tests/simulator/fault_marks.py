"""Programs with a fault in each kernel and a mended twin: marks in the source say what is reported, and where.

`//! NAME kind: words | more words` stands in the line where NAME's fault is reported, `//~ NAME` in another line that the
message names; " or " divides alternatives, of kinds and of words.
"""

import re

from cudart import run_program

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


def check_fault_and_twin(program, name, seed, names_lines=True, architecture=HOPPER):
    """The faulty kernel fails as its marks say, under this seed of the schedule; the mended one has no hazards."""
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    kinds, words, lines = marks(program, name)
    result = run_program(program, [name, 0], env=env, report=True, architecture=architecture)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    # Code of a header is charged there, with the calls that lead to it.
    places = {hazard["line"], *(call["line"] for call in hazard.get("inlined", []))}
    assert hazard["kind"] in kinds and places & lines, hazard
    for alternatives in words:
        assert any(word in hazard["message"] for word in alternatives), hazard["message"]
    for line in lines if names_lines else ():
        assert f"{program.name}:{line}" in hazard["message"], hazard["message"]
    mended = run_program(program, [name, 1], env=env, report=True, architecture=architecture).check()
    assert mended.stdout == "cudaSuccess\n" and mended.hazards == []
