"""The compiler that the page loads (docs/site/run/clang.js): clang as WebAssembly, from PyPI's package fortitudo, and
the headers that it reads. It is no part of the repository: `make browser` takes it from the package, where that is
installed (`pip install -e .[page]`), and without it the page's sources are read-only."""

import gzip
import json
import os
import re
import shutil
import sys
from pathlib import Path

from flashladder.core.paths import ROOT, headers
from flashladder.ladder import stages

IN_PACKAGE = "share/jupyter/labextensions/fortitudo/static/compiler"
PACKAGE = "fortitudo==0.8.0"  # as pyproject.toml has it
OWN = ROOT / "common/compiler/include"  # in place of CUDA's and the standard library's


def find_clang() -> Path | None:
    """The package's folder with Compiler.js and Compiler.wasm; FLASHLADDER_CLANG may name another one."""
    places = [os.environ.get("FLASHLADDER_CLANG"), Path(sys.prefix) / IN_PACKAGE]
    return next((Path(one) for one in places if one and (Path(one) / "Compiler.wasm").is_file()), None)


# clang takes a comma between a bound's brackets for one between arguments, and the function for a variable.
_BOUND = re.compile(r"(\(&\w+\)\[)(\w+<[^]<>]*,[^]<>]*>)")


def page_headers() -> dict[str, dict[str, str]]:
    """The texts of all headers that a stage's kernel may include, by folder and name, as clang.js puts them."""
    own = [file for file in sorted(OWN.iterdir()) if file.is_file()]
    folders = {"/compiler": own, "/include": headers()}
    folders |= {f"/stages/{stage.id}": headers(stage.folder) for stage in stages.with_kernel()}
    text = {file: _BOUND.sub(r"\1(\2)", file.read_text()) for files in folders.values() for file in files}
    return {name: {file.name: text[file] for file in files} for name, files in folders.items() if files}


def ship(clang: Path, out: Path) -> dict:
    """Writes headers.json and clang/, with its licences, and returns what the catalogue says of the compiler. Packing
    takes half a minute: it is done once for each version."""
    (out / "headers.json").write_text(json.dumps(page_headers(), ensure_ascii=False))
    shutil.copy(ROOT / "common/compiler/clang_command.mjs", out)
    version = json.loads((clang / "manifest.json").read_text())["version"]
    place, packed = out / "clang", out / "clang/Compiler.wasm.gz"
    stamp = out.parent / "clang-version"  # beside what is shipped
    if not packed.is_file() or not stamp.is_file() or stamp.read_text() != version:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(clang / "licenses", place / "licenses")
        shutil.copy(clang / "Compiler.js", place)
        partial = place / "partial"
        with (clang / "Compiler.wasm").open("rb") as file, gzip.GzipFile(partial, "wb", 9, mtime=0) as out_file:
            shutil.copyfileobj(file, out_file)
        partial.replace(packed)
        stamp.write_text(version)
    return {"version": version, "bytes": packed.stat().st_size}
