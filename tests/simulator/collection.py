"""Many CUDA programs compiled as one: most of what compiling a small one takes is to read CUDA's headers.

Each program stays a file that can be compiled and run alone. Here it is included in a namespace of its own, behind all
headers, and the one main() there is calls the program's whose name is its first argument.
"""

import hashlib
import re
from pathlib import Path

# A main() without a return is one that C++ ends for the programmer, and only where it is the program's own.
FLAGS = ("-Xcudafe", "--diag_error=940")
AT_A_TIME = 16  # programs in a unit: the simulator reads all of its kernels whichever of them runs


def unit(programs: list[Path], variants: tuple[str, ...] = ("",)) -> str:
    """The text of a CUDA program of them, each once for every variant: a macro that is defined for it, or "". Its
    first argument is such a program's name(), the others are that program's."""
    headers, bodies, cases = {}, [], []
    for program in programs:
        text = program.read_text()
        for header in re.findall(r"^ *# *include +(\S+)", text, re.M):
            own = header.startswith('"') and (program.parent / header.strip('"')).resolve()
            headers[f'"{own}"' if own else header] = None
        macros = re.findall(r"^ *# *define +(\w+)", text, re.M)
        for variant in variants:
            bodies += [
                f"namespace {name(program, variant)} {{  // {hashlib.sha256(text.encode()).hexdigest()}",
                *([f"#define {variant}"] if variant else []),
                f'#include "{program}"',
                *(f"#undef {macro}" for macro in [*macros, *filter(None, [variant])]),
                "}",
            ]
            main = f"{name(program, variant)}::main"
            cases.append(
                f'    if (!std::strcmp(arguments[1], "{name(program, variant)}")) return run({main}, arguments);'
            )
    return "\n".join(
        [
            *(f"#include {header}" for header in [*headers, "<cstring>"]),
            *bodies,
            "static int run(int (*main)(), char **) { return main(); }",
            "static int run(int (*main)(int, char **), char **arguments) {",
            "    int count = 1;",
            "    while (arguments[count]) ++count;",
            "    return main(count - 1, arguments + 1);",
            "}",
            "int main(int, char **arguments) {",
            *cases,
            "    return 127;",
            "}\n",
        ]
    )


def name(program: Path, variant: str = "") -> str:
    """Of a program in a unit: the unit's first argument, and the program's namespace."""
    return f"{program.stem}_{variant.lower()}" if variant else program.stem


def unit_with(program: Path, programs: list[Path], variants: tuple[str, ...] = ("",)) -> str:
    """The unit that this one of the programs is in, where those that follow each other go together."""
    first = programs.index(program) // AT_A_TIME * AT_A_TIME
    return unit(programs[first : first + AT_A_TIME], variants)
