"""Runs what the browser's page runs, by the same entry (common/browser): as a program of this machine, and by node."""

import copy
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flashladder.commands import browser
from flashladder.core.paths import build_directory
from flashladder.site import run_page

SETTINGS = {
    "WARPSIM_THREADS": "1",
    "WARPSIM_ACCESSES": "1",
    "WARPSIM_MAX_MEMORY": "32M",
    "WARPSIM_REPORT": "report.json",
}
NODE = Path(__file__).with_name("run_in_node.js")


def with_settings(request: str, **settings: str) -> str:
    lines = [f"{name} {value}\n" for name, value in (SETTINGS | settings).items()]
    return request + "seed 0\n" + "".join(lines)


def native(ptx: str, request: str, folder: Path) -> dict:
    """The entry's result on this machine; nothing of the environment's WARPSIM_* takes part."""
    command = [str(build_directory() / "bin/browser-run"), *_files(ptx, request, folder)]
    return _result(command, folder)


def in_node(ptx: str, request: str, folder: Path) -> dict:
    """The same by the WebAssembly of `make browser`, in node."""
    return _result([_node(), str(NODE), str(run_page.shipped()), *_files(ptx, request, folder)], folder)


def need_emscripten() -> None:
    if not browser.find_emscripten():
        pytest.skip("no emcc on PATH: apt install emscripten")


def _node() -> str:
    node = shutil.which("node")
    if not node:
        pytest.skip("no node on PATH: it comes with emscripten")
    return node


def _files(ptx: str, request: str, folder: Path) -> list[str]:
    (folder / "kernel.ptx").write_text(ptx)
    (folder / "request").write_text(request)
    return ["kernel.ptx", "request"]


def _result(command: list[str], folder: Path) -> dict:
    env = {name: value for name, value in os.environ.items() if not name.startswith("WARPSIM_")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def comparable(report: dict) -> list[dict]:
    """The launches of a report without what may differ: where on the host device memory begins, and folders."""
    launches = copy.deepcopy(report["launches"])
    for launch in launches:
        for part in ("lines", "hazards", "notes", "accesses", "boxes"):
            for one in launch.get(part, []):
                one["file"] = Path(one["file"]).name
        for access in launch.get("accesses", []):
            if access["space"] == "global":
                first = min(address for address in access["addresses"] if address is not None)
                access["addresses"] = [address and address - first for address in access["addresses"]]
        for box in launch.get("boxes", []):
            first = min((row for row in box["rows"] if row is not None), default=0)
            box["rows"] = [row and row - first for row in box["rows"]]
    return launches
