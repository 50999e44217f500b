"""Small CUDA programs beside the modules that run them."""

import subprocess
from pathlib import Path

from flashladder.building import toolchain
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT


def compiled(source: Path, folder: Path, *options: str) -> Path:
    """What nvcc with these options makes of a .cu, in the folder. FlashLadderError with its words where it refuses."""
    file = folder / source.stem
    command = [toolchain.require_nvcc(), "-std=c++20", "-O3", f"-I{ROOT / 'common/include'}", "-o", file, source]
    done = subprocess.run([str(word) for word in [*command, *options]], capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError(f"{source.name} does not compile:\n{done.stderr.strip()[-1500:]}")
    return file
