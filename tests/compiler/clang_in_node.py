"""clang as WebAssembly, from PyPI's package fortitudo, in node."""

import re
import shutil
import subprocess
from pathlib import Path

from flashladder.core.paths import ROOT
from flashladder.site.page_compiler import PACKAGE, find_clang

COMPILER = ROOT / "common/compiler"
INCLUDES = [COMPILER / "include", ROOT / "common/include"]


def why_missing() -> str:
    """Empty where all is there."""
    if not shutil.which("node"):
        return "no node on PATH"
    if not find_clang():
        return f"no clang for WebAssembly: pip install {PACKAGE}, or set FLASHLADDER_CLANG to its folder `compiler`"
    return ""


def compile_to_ir(clang: Path, source: Path, output: Path, options: tuple[str, ...] = ()) -> float:
    """Writes the IR. The seconds that clang took, without its start."""
    command = ["node", "--stack-size=8000", COMPILER / "clang.mjs", clang, output, source, *INCLUDES, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Where the sources lay on the machine that recorded them is nobody's business.
    output.write_text(re.sub(rf"{re.escape(str(ROOT))}/", "", output.read_text()))
    return float(re.search(r"compiled (\d+) ms", done.stdout)[1]) / 1000
