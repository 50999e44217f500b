"""Runs what the browser's page runs, by the same entry (common/browser): as a program of this machine, and by node."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from flashladder.commands import browser
from flashladder.core.dtypes import to_bits
from flashladder.core.paths import build_directory
from flashladder.simulator import trace, warps
from flashladder.site import run_page

SETTINGS = {
    "WARPSIM_THREADS": "1",
    "WARPSIM_ACCESSES": "1",
    "WARPSIM_MAX_MEMORY": "32M",
    "WARPSIM_REPORT": "report.json",
    "WARPSIM_TRACE": "trace.json",
}
HERE = Path(__file__).parent


def with_settings(request: str, **settings: str) -> str:
    lines = [f"{name} {value}\n" for name, value in (SETTINGS | settings).items()]
    return request + "seed 0\n" + "".join(lines)


def inputs(problem, seed: int = 0) -> dict[str, np.ndarray]:
    """The page's own Q, K and V (random_inputs() of common/host/problem.cpp), as Problem.random() would give them: in
    which warp a mistake shows first may depend on them."""
    sizes = {name: int(np.prod(problem.shape(name))) for name in "QKV"}
    drawn, count = [], 0
    for bits in _mt19937_64(seed):
        x, y = bits.astype(np.uint32).astype(np.int32), (bits >> np.uint64(32)).astype(np.int32)
        square = (x.astype(np.int64) ** 2).astype(np.uint64) + (y.astype(np.int64) ** 2).astype(np.uint64)
        inside = (square != 0) & (square < np.uint64(1 << 62))
        s = np.ldexp(square[inside].astype(np.float64), -62)
        factor = np.ldexp(np.sqrt(-2 * np.log(s) / s), -31)
        drawn.append(np.stack([x[inside] * factor, y[inside] * factor], axis=1).astype(np.float32).ravel())
        count += len(drawn[-1])
        if count >= sum(sizes.values()):
            break
    values, found = np.concatenate(drawn), {}
    for name, size in sizes.items():
        tensor, values = values[:size].reshape(problem.shape(name)), values[size:]
        if problem.dtype == "e4m3":
            largest = np.abs(tensor).max(axis=(2, 3))
            room = (np.arange(largest.size) % 3 + 1).reshape(largest.shape).astype(np.float32)
            found[f"{name}_scales"] = scales = largest / np.float32(448) * room
            tensor = tensor / scales[:, :, None, None]
        found[name] = to_bits(tensor, problem.dtype)
    return found


def _mt19937_64(seed: int):
    """What std::mt19937_64 gives, 312 numbers at a time."""
    state = [seed]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) % 2**64)
    state = np.array(state, np.uint64)
    word = np.uint64
    while True:
        following = np.roll(state, -1)
        for half, other in ((slice(0, 156), slice(156, 312)), (slice(156, 312), slice(0, 156))):
            following[311] = state[0]
            mixed = (state[half] & word(0xFFFFFFFF80000000)) | (following[half] & word(0x7FFFFFFF))
            odd = np.where(mixed & word(1), word(0xB5026F5AA96619E9), word(0))
            state[half] = state[other] ^ (mixed >> word(1)) ^ odd
        y = state ^ ((state >> word(29)) & word(0x5555555555555555))
        y ^= (y << word(17)) & word(0x71D67FFFEDA60000)
        y ^= (y << word(37)) & word(0xFFF7EEE000000000)
        yield y ^ (y >> word(43))


def some(one) -> list[int]:
    """The first of a stage's problems, and one of the others: another one for each stage."""
    others = len(one.problems()) - 1
    return [0, 1 + one.stage.number % others]


def native(ptx: str, request: str, folder: Path) -> dict:
    """The entry's result on this machine; nothing of the environment's WARPSIM_* takes part."""
    return json.loads(_output([str(build_directory() / "bin/browser-run"), *_files(ptx, request, folder)], folder))


def in_node(ptx: str, request: str, folder: Path) -> dict:
    """The same by the WebAssembly of `make browser`, in node."""
    return json.loads(node(HERE / "run_in_node.js", run_page.shipped(), *_files(ptx, request, folder), cwd=folder))


def need_emscripten() -> None:
    if not browser.find_emscripten():
        pytest.skip("no emcc on PATH: apt install emscripten")


def axe() -> Path | None:
    """axe-core's file, where the package that brings it is installed."""
    package = importlib.util.find_spec("axe_playwright_python")
    return Path(package.origin).with_name("axe.min.js") if package else None


def node(*command: object, cwd: Path | None = None, given: str | None = None, limit: int = 300) -> str:
    """What a script prints in node; given: its standard input; limit: seconds."""
    program = shutil.which("node")
    if not program:
        pytest.skip("no node on PATH: it comes with emscripten")
    return _output([program, *map(str, command)], cwd, given, limit)


def _files(ptx: str, request: str, folder: Path) -> list[str]:
    (folder / "kernel.ptx").write_text(ptx)
    (folder / "request").write_text(request)
    return ["kernel.ptx", "request"]


def _output(command: list[str], cwd: Path | None, given: str | None = None, limit: int = 300) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("WARPSIM_")}
    done = subprocess.run(command, cwd=cwd, env=env, input=given, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def timelines(file: dict, traced: dict, folder: Path) -> list[warps.WarpTimeline]:
    """What the Python package makes of the trace's launches, with the sources that the page has of the kernel."""
    for name, text in file["sources"].items():
        (folder / name).write_text(text)
    launches = [one | {"files": [str(folder / name) for name in one["files"]]} for one in traced["launches"]]
    return [warps.of_launch(one, "") for one in trace.read(traced | {"launches": launches})]


def same_timeline(ours: dict, theirs: warps.WarpTimeline) -> None:
    """The page's numbers are the package's, to the last bit, and so are its words."""
    names = ("warp", "kind", "start", "end", "label", "words")
    assert [[span[name] for name in names] for span in ours["spans"]] == [
        [getattr(span, name) for name in names] for span in theirs.spans
    ]
    busy = {f"{unit} {number}": [list(bar) for bar in bars] for (unit, number), bars in theirs.busy.items()}
    assert dict(ours["busy"]) == busy
    assert (ours["end"], ours["warps"]) == (theirs.end, len(theirs.warps))


def without_addresses(found):
    """JSON without the addresses that its texts name: each process has its device memory elsewhere."""
    return json.loads(re.sub(r"\b0x[0-9a-f]+", "0x", json.dumps(found)))


def comparable(report: dict) -> list[dict]:
    """The launches of a report without what may differ: where on the host device memory begins, and folders. Lines are
    sorted without them."""
    launches = without_addresses(report["launches"])
    for launch in launches:
        for part in ("lines", "hazards", "notes", "accesses", "boxes"):
            for one in launch.get(part, []):
                for place in (one, *one.get("inlined", [])):
                    place["file"] = Path(place["file"]).name
        launch.get("lines", []).sort(key=json.dumps)
        for access in launch.get("accesses", []):
            if access["space"] == "global":
                first = min(address for address in access["addresses"] if address is not None)
                access["addresses"] = [address and address - first for address in access["addresses"]]
        for box in launch.get("boxes", []):
            first = min((row for row in box["rows"] if row is not None), default=0)
            box["rows"] = [row and row - first for row in box["rows"]]
    return launches
