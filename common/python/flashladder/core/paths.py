"""Where things lie in the repository. FLASHLADDER_BUILD names another build folder, FLASHLADDER_WORK another work/."""

import os
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
STAGES = ROOT / "stages"
RECORDED = ROOT / "docs" / "results"


def build_directory() -> Path:
    return Path(os.environ.get("FLASHLADDER_BUILD") or ROOT / "build").resolve()


def results_directory() -> Path:
    return build_directory() / "results"


def work_directory() -> Path:
    """What a reader writes: answers to exercises. Never part of a commit."""
    return Path(os.environ.get("FLASHLADDER_WORK") or ROOT / "work").resolve()


def stage_library(number: int) -> Path:
    return build_directory() / "lib" / f"libstage_{number:02d}.so"


def stage_runner(number: int) -> Path:
    return build_directory() / "bin" / f"stage_{number:02d}"


def simulator_directory() -> Path:
    return build_directory() / "simulator"


def simulator_library() -> Path:
    return simulator_directory() / "libcudart.so.13"


def place(purpose: str, folder_name: str, file_name: str, text: str) -> Path:
    """Writes text to build/PURPOSE/folder_name/file_name, whole or not at all, whoever else does the same."""
    file = build_directory() / purpose / folder_name / file_name
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{os.getpid()}.{threading.get_ident()}.{file_name}")
    partial.write_text(text)
    os.replace(partial, file)
    return file
