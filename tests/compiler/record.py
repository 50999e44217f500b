"""Records the IR of the small kernels: python record.py FOLDER, the folder of clang's WebAssembly (clang.mjs)."""

import sys
from pathlib import Path

from clang_in_node import compile_to_ir

HERE = Path(__file__).parent
WITH_LINES = {"control"}  # the others take half the room


def main(folder: Path) -> None:
    (HERE / "recorded").mkdir(exist_ok=True)
    for source in sorted((HERE / "programs").glob("*.cu")):
        output = HERE / "recorded" / f"{source.stem}.ll"
        options = ["-ffp-contract=off"]
        if source.stem not in WITH_LINES:
            options.append("-g0")
        compile_to_ir(folder, source, output, options)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
