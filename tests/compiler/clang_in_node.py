"""clang as WebAssembly, from PyPI's package fortitudo, in node."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from flashladder.core.paths import ROOT

COMPILER = ROOT / "common/compiler"
INCLUDES = [COMPILER / "include", ROOT / "common/include"]
IN_PACKAGE = "share/jupyter/labextensions/fortitudo/static/compiler"


def why_missing() -> str:
    """Empty where all is there."""
    if not shutil.which("node"):
        return "no node on PATH"
    if not folder():
        return (
            "no clang for WebAssembly: pip install fortitudo==0.8.0, or set FLASHLADDER_CLANG to its folder `compiler`"
        )
    return ""


def folder() -> Path | None:
    places = [os.environ.get("FLASHLADDER_CLANG"), Path(sys.prefix) / IN_PACKAGE]
    return next((Path(one) for one in places if one and (Path(one) / "Compiler.wasm").is_file()), None)


def compile_to_ir(clang: Path, source: Path, output: Path, options: tuple[str, ...] = ()) -> float:
    """Writes the IR. The seconds that clang took, without its start."""
    command = ["node", "--stack-size=8000", COMPILER / "clang.mjs", clang, output, source, *INCLUDES, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Where the sources lay on the machine that recorded them is nobody's business.
    output.write_text(re.sub(rf"{re.escape(str(ROOT))}/", "", output.read_text()))
    return float(re.search(r"compiled (\d+) ms", done.stdout)[1]) / 1000
