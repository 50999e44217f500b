"""The pages that run kernels in the browser: two kernels compared, and exercises. They are part of the site where `make
browser` has built what they need."""

import shutil
from pathlib import Path

from flashladder.core.paths import ROOT, build_directory

PAGES = ("run.md", "write.md")  # of the site and of docs/site; their files lie in run/ beside them
FILES = ROOT / "docs/site/run"
OFFLINE = ROOT / "docs/site/offline.js"  # beside the page: a service worker keeps what lies below its own place


def shipped() -> Path:
    """Where `make browser` writes (commands/browser.py)."""
    return build_directory() / "browser/out"


def is_built() -> bool:
    needed = ("simulator.js", "simulator.wasm", "catalogue.json", "exercises/index.json")
    return all((shipped() / name).is_file() for name in needed)


def texts() -> dict[str, str]:
    """The pages' own texts, by place."""
    return {name: (FILES.parent / name).read_text() for name in PAGES}


def copy_files(site: Path) -> None:
    """The pages' scripts and what they load, into the built site; nothing where the pages are not in it."""
    place = site / "run"
    shutil.rmtree(place, ignore_errors=True)
    if is_built():
        shutil.copytree(FILES, place)
        shutil.copytree(shipped(), place, dirs_exist_ok=True)
        shutil.copy(OFFLINE, site)
