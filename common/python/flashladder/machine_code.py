"""make stage-NN order: in which order the compiler put a kernel's loads, matrix products and waits.

One character for each machine instruction of the bf16, d_head 128 kernel's main loop, from cuobjdump.
"""

import re
import subprocess

from flashladder import stages, toolchain
from flashladder.console import say
from flashladder.errors import FlashLadderError
from flashladder.paths import stage_library

LETTERS = {
    "HMMA": "M", "LDSM": "L", "LDGSTS": "G", "LDG": "g", "STS": "s", "LDS": "l", "BAR": "|", "MUFU": "e",
    "SHFL": "~", "LDL": "<", "STL": ">", "DEPBAR": "w", "WARPSYNC": "!",
}  # fmt: skip
LEGEND = (
    "M mma   L ldmatrix   G cp.async   w its wait   g global load   s l shared store, load   | barrier\n"
    "e exp   ~ shuffle   < > spilled register loaded, stored   . everything else"
)


def loop_of(sass: str) -> list[str]:
    """Opcodes of the largest loop (a backward branch and what lies between) with an HMMA in the function's text."""
    found = re.findall(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)[^;]*?(?:0x([0-9a-f]+))?\s*;", sass)
    code = [(int(at, 16), opcode, target) for at, opcode, target in found]
    best: list[str] = []
    for at, opcode, target in code:
        if opcode == "BRA" and target and int(target, 16) < at:
            body = [op for where, op, _ in code if int(target, 16) <= where <= at]
            if "HMMA" in body and len(body) > len(best):
                best = body
    return best


def picture(opcodes: list[str], width: int = 120) -> str:
    text = "".join(LETTERS.get(opcode, ".") for opcode in opcodes)
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


def show(stage: stages.Stage) -> None:
    tool = toolchain.find_program("cuobjdump")
    if not tool:
        raise FlashLadderError(
            "cuobjdump not found: it comes with the CUDA Toolkit (pip install nvidia-cuda-cuobjdump)."
        )
    done = subprocess.run([tool, "--dump-sass", str(stage_library(stage.number))], capture_output=True, text=True)
    functions = re.split(r"\n\s*Function : ", done.stdout)[1:]
    wanted = [text for text in functions if "bfloat16" in text.splitlines()[0] and "Li128E" in text.splitlines()[0]]
    if not wanted:
        raise FlashLadderError(
            f"{stage_library(stage.number)} has no machine code, only PTX (there is no GPU here): build it with "
            "`FLASHLADDER_ARCHS=90 make build` for compute capability 9.0."
        )
    for function in wanted:
        opcodes = loop_of(function)
        if not opcodes:
            continue
        say(f"{stage.name}: the loop over K and V, {len(opcodes)} machine instructions, "
            f"{opcodes.count('HMMA')} mma, {opcodes.count('LDSM')} ldmatrix, "
            f"{opcodes.count('LDL') + opcodes.count('STL')} spills\n")  # fmt: skip
        say(picture(opcodes))
        say(f"\n{LEGEND}")
