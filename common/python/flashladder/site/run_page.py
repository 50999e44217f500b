"""The page that runs kernels in the browser. It is part of the site where `make browser` has built what it needs."""

import shutil
from pathlib import Path

from flashladder.core.paths import ROOT, build_directory

PAGE = "run.md"  # of the site; its files lie in run/ beside it
TEXT = ROOT / "docs/site/run.md"
FILES = ROOT / "docs/site/run"
OFFLINE = ROOT / "docs/site/offline.js"  # beside the page: a service worker keeps what lies below its own place
DOOR = (
    "[Compare two kernels](run.md): run them on the simulator, in your browser, and see which mistake is caught "
    "where. Nothing to install."
)


def shipped() -> Path:
    """Where `make browser` writes (commands/browser.py)."""
    return build_directory() / "browser/out"


def is_built() -> bool:
    return all((shipped() / name).is_file() for name in ("simulator.js", "simulator.wasm", "catalogue.json"))


def copy_files(site: Path) -> None:
    """The page's scripts and what they load, into the built site; nothing where the page is not in it."""
    place = site / "run"
    shutil.rmtree(place, ignore_errors=True)
    if is_built():
        shutil.copytree(FILES, place)
        shutil.copytree(shipped(), place, dirs_exist_ok=True)
        shutil.copy(OFFLINE, site)
