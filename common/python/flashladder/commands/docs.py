"""make docs: collects the pages (flashladder/site), builds them with Sphinx, and follows every link between them.

Needs the extra `docs`; no network, no GPU, and nothing of the build: notebooks are shown with their saved outputs.
"""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

from flashladder.core.console import plural, say
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.site import built, pictures, run_page, sources

NEEDED = {"sphinx": "sphinx", "myst_nb": "myst-nb", "furo": "furo", "tinycss2": "tinycss2"}


def missing() -> list[str]:
    """Packages of the extra `docs` that this Python lacks."""
    return [package for module, package in NEEDED.items() if not importlib.util.find_spec(module)]


def site_directory() -> Path:
    return build_directory() / "site"


def run(extra: list[str] = ()) -> int:
    """Builds the site below build/site/html; extra: more words for sphinx-build. Any warning is an error."""
    if missing():
        raise FlashLadderError(
            f"{sys.executable} lacks {', '.join(missing())}: `make docs` without PYTHON= installs what is needed into "
            f".venv; else `pip install -e .[docs]`."
        )
    began = time.monotonic()
    folder = site_directory()
    pages = sources.collect(folder / "source")
    if not all((folder / "html" / page).with_suffix(".html").exists() for page in pages):
        extra = ["-a", *extra]  # each page lists all others, so a new one is on all of them
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "auto"]
    command += ["-c", ROOT / "docs/site", "-d", folder / "read", *extra, folder / "source", folder / "html"]
    # Pictures and caches that packages write when they are imported belong to nobody's home.
    env = for_python() | {"MPLBACKEND": "agg"}
    status = subprocess.run(command, cwd=ROOT, env=env).returncode
    if status:
        raise FlashLadderError("Sphinx objects to the pages, see above; a warning is an error here.")
    run_page.copy_files(folder / "html")
    pictures.write(folder / "html/_static")
    from flashladder.site import styles  # of what missing() asks for

    styles.put_into_pages(folder / "html")
    wrong = built.faults(folder / "html")
    if wrong:
        raise FlashLadderError(f"{plural(len(wrong), 'link')} of the built pages lead nowhere:\n" + "\n".join(wrong))
    seconds = time.monotonic() - began
    say(f"{plural(len(pages), 'page')} in {seconds:.0f} s, no warning, every link within the site leads somewhere:")
    if not run_page.is_built():
        say("Without the page that runs kernels: `make browser` makes it possible (emcc: apt install emscripten).")
    say(f"open {os.path.relpath(folder / 'html/index.html')} in a browser.")
    return 0
