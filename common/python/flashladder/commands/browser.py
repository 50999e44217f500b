"""make browser: the simulator as WebAssembly and the stages' PTX, for the page of the site that runs kernels.

Writes build/browser/out, which `make docs` takes along:

    simulator.js, simulator.wasm    common/browser, compiled by Emscripten
    catalogue.json                  the kernels and problems that the page offers, the numbers of the timeline's model
    kernels/ID.json.gz              of one kernel: PTX, source files and their phases, a request for each problem, and
                                    the instances that they launch, by symbol, as C++ declares them
    exercises/index.json            which exercises the page offers
    exercises/ID.json.gz            of one stage: its exercises, and what answers are judged by

and, where clang for WebAssembly is installed (site/page_compiler.py), what compiles an edited kernel in the page:

    clang/, headers.json            the package's files, the headers
    ir_to_ptx.js, ir_to_ptx.wasm    common/compiler, compiled by Emscripten
"""

import concurrent.futures
import gzip
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from flashladder.building import build, toolchain
from flashladder.core.console import plural, say
from flashladder.core.environment import prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel
from flashladder.simulator import clocks
from flashladder.simulator.warps import named
from flashladder.site import page_compiler, page_exercises, page_kernels
from flashladder.site.page_kernels import Offered
from flashladder.site.run_page import shipped

MOST_BYTES = 12_000_000  # of all that is shipped, without clang


def folder() -> Path:
    return build_directory() / "browser"


def find_emscripten() -> Path | None:
    """CMake's toolchain file of the Emscripten that is installed."""
    emcc = shutil.which("emcc")
    if not emcc:
        return None
    roots = (Path(emcc).resolve().parent, Path("/usr/share/emscripten"))  # an SDK's own folder, Debian's
    files = (root / "cmake/Modules/Platform/Emscripten.cmake" for root in roots)
    return next((file for file in files if file.is_file()), None)


def build_modules() -> None:
    """The simulator and the compiler's back end as WebAssembly, each with its script."""
    emscripten = find_emscripten()
    if not emscripten:
        raise FlashLadderError(
            "emcc not found: it compiles the simulator for browsers. Install it, e.g. `sudo apt install emscripten` "
            "(Debian, Ubuntu). Everything else is built without it; the site then lacks the page that runs kernels."
        )
    build.configure()
    cmake = toolchain.require("cmake", "Install it (3.24 or newer), e.g. `pip install cmake`.")
    ninja = toolchain.require("ninja", "Install it, e.g. `pip install ninja`.")
    place, log = folder() / "cmake", folder() / "build.log"
    if not (place / "out/simulator.wasm").exists():
        say("Compiling the simulator for browsers: about six minutes of one core, and once.")
    place.mkdir(parents=True, exist_ok=True)
    headers = build.info()["cudart_includes"].split(";")
    include = next((one for one in headers if (Path(one) / "cuda_runtime_api.h").is_file()), headers[0])
    commands = [
        [cmake, "-S", ROOT / "common/browser", "-B", place, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}",
         f"-DCMAKE_TOOLCHAIN_FILE={emscripten}", f"-DWARPSIM_CUDA_INCLUDE={include}"],
        [cmake, "--build", place, "-j", str(build.jobs()), "--target", "browser_run", "ir_to_ptx"],
    ]  # fmt: skip
    # Debian's Emscripten finds its JavaScript packages by the node of Debian alone, unless it is told.
    env = prepended(NODE_PATH="/usr/share/nodejs")
    with log.open("w") as file:
        for command in commands:
            done = subprocess.run(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT, env=env)
            if done.returncode:
                text = log.read_text()
                first = max(text.find("error:"), 0)
                raise FlashLadderError(
                    f"Emscripten's build failed; the whole log is {log}.\n{text[first : first + 2000]}"
                )
    shipped().mkdir(exist_ok=True)
    for name in ("simulator", "ir_to_ptx"):
        for suffix in (".js", ".wasm"):
            shutil.copy(place / "out" / f"{name}{suffix}", shipped())


def kernel_file(one: Offered, problems: list[tuple[Problem, str | None]] | None = None) -> dict:
    """What the page loads of one kernel, with a request for each problem: all that it offers, if none are given."""
    library = one.library()
    ptx, places = page_kernels.without_folders(page_kernels.ptx_of(library))
    wanted = one.problems() if problems is None else problems
    requests = [page_kernels.request(one, library, ptx, problem, name) for problem, name in wanted]
    sources = {name: Path(place) for name, place in places.items() if ROOT in Path(place).parents}
    launched = page_kernels.launched(requests)
    return {
        "ptx": page_kernels.of_these(ptx, requests),
        "requests": requests,
        "instances": {symbol: name for name, symbol in page_kernels.instances(one.stage) if symbol in launched},
        "sources": {name: file.read_text() for name, file in sources.items()},
        "phases": {name: [[one.name, one.first, one.last] for one in named(file)] for name, file in sources.items()},
    }


def entry(one: Offered) -> dict:
    """What the catalogue says of one kernel."""
    return {
        "id": one.id,
        "stage": one.stage.id,
        "kind": one.kind,
        "title": one.title,
        "name": f"{one.stage.id} {one.stage.title}",
        "problems": [str(problem) for problem, _ in one.problems()],
        "judged": len(one.stage.judged_by()),  # the first of them
    }


def write_packed(place: Path, some: list[Offered] | list[WithKernel], content: Callable[..., dict]) -> None:
    """The content of each in a file by its id; whatever else lay there goes."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)

    def write(one: Offered | WithKernel) -> None:
        text = json.dumps(content(one), ensure_ascii=False).encode()
        (place / f"{one.id}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))

    with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
        for _ in pool.map(write, some):
            pass


def write_kernels(kernels: list[Offered], compiler: dict | None) -> None:
    """The catalogue and the files of these kernels. compiler: what the page is told of the one that is shipped, None
    where there is none."""
    write_packed(shipped() / "kernels", kernels, kernel_file)
    catalogue = {"kernels": [entry(one) for one in kernels], "clocks": asdict(clocks.load()), "compiler": compiler}
    (shipped() / "catalogue.json").write_text(json.dumps(catalogue, ensure_ascii=False, indent=1) + "\n")


def write_exercises(compiler: dict | None) -> None:
    """The exercises' index and the files of their stages. compiler: as above."""
    write_packed(shipped() / "exercises", page_exercises.offered(), page_exercises.stage_file)
    index = page_exercises.index() | {"compiler": compiler}
    (shipped() / "exercises/index.json").write_text(json.dumps(index, ensure_ascii=False) + "\n")


def targets() -> list[str]:
    """What the kernels' files are made with, by CMake's names."""
    return [
        *(f"stage_{one.id}" for one in page_exercises.offered()),
        "browser_record",
        "warpsim_cudart",
        "warpsim-inspect",
    ]


def own_bytes(folder: Path) -> int:
    """Of all that is shipped, without clang."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.relative_to(folder).parts[0] != "clang"]
    return sum(file.stat().st_size for file in files)


def run() -> int:
    began = time.monotonic()
    build_modules()
    kernels = page_kernels.offered()
    build.build(targets())
    clang = page_compiler.find_clang()
    compiler = page_compiler.ship(clang, shipped()) if clang else None
    write_kernels(kernels, compiler)
    write_exercises(compiler)
    size = own_bytes(shipped())
    if size > MOST_BYTES:
        raise FlashLadderError(f"The page's files have {size} bytes; {MOST_BYTES} are the most that it may ship.")
    where = os.path.relpath(shipped())
    say(f"{plural(len(kernels), 'kernel')} in {time.monotonic() - began:.0f} s, {size / 1e6:.1f} MB in {where}.")
    if not compiler:
        say(f"Without a compiler, the page's sources are read-only: pip install {page_compiler.PACKAGE} brings it.")
    say("`make docs` puts the page into the site.")
    return 0
