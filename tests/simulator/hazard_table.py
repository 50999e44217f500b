"""The table of docs/mistakes_on_a_gpu.md that has every kind of hazard: an example, what it says, what a GPU does.

    python hazard_table.py --write

test_hazard_table.py holds the page against what the examples say today. A new kind of core/hazard_kind.h is a row in
ROWS, with a program of programs/ that shows it.
"""

import argparse
import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

from cudart import PROGRAMS, REPOSITORY, run_program
from families import run_faulty
from fault_marks import HOPPER, HOPPER_A

from warpsim.kinds import KINDS

PAGE = REPOSITORY / "docs" / "mistakes_on_a_gpu.md"
RECORD = REPOSITORY / "docs" / "results" / "H200-faults.json"
BEGIN, END = "<!-- hazards -->", "<!-- end hazards -->"


@dataclass(frozen=True)
class Row:
    kind: str  # a key of warpsim.kinds.KINDS, which has what it is
    program: str  # of programs/
    fault: str = ""  # its argument, where it has several faults
    gpu: str = ""  # what a GPU does with it; empty: it is recorded


# On an H100 each program ran ten times; its numbers are right where they are those of the mended twin.
RIGHT = "right numbers (H100)"
ROWS = (
    Row("out_of_bounds", "faulty/memory.cu", "bounds_one_too_many", gpu=RIGHT),
    Row("misaligned", "arrivals/faults.cu", "misaligned"),
    Row("uninitialized_shared", "faulty/memory.cu", "uninitialized_tail", gpu=RIGHT),
    Row("uninitialized_variable", "undefined/kernels.cu", "local_array", gpu="no error (H100)"),
    Row("shared_race", "faulty/races.cu", "race_missing_barrier", gpu="wrong each time (H100)"),
    Row("global_race", "global_memory/faults.cu", "one_counter", gpu="wrong each time (H100)"),
    Row("launch_race", "launch_order/faults.cu", "two_streams", gpu=RIGHT),
    Row("noncoherent_read", "global_memory/faults.cu", "neighbour_by_ldg", gpu="wrong each time (H200)"),
    Row("async_pending", "faulty/async_copies.cu", "async_wrong_group", gpu=RIGHT),
    Row("divergent_barrier", "faulty/barriers.cu", "divergent_barrier", gpu=RIGHT),
    Row("deadlock", "arrivals/faults.cu", "forgotten_arrive"),
    Row("missing_lanes", "faulty/barriers.cu", "missing_lanes", gpu=RIGHT),
    Row("invalid_address", "faulty/memory.cu", "address_null", gpu="`cudaErrorIllegalAddress` (H100)"),
    Row("trap", "faulty/errors.cu", "trap", gpu="`cudaErrorLaunchFailure` (H100)"),
    Row("assertion", "faulty/errors.cu", "assertion", gpu="`cudaErrorAssert` (H100)"),
    Row("budget", "clean/matrices.cu", "sgemm_naive", gpu="right numbers: it has no such limit"),
    Row("illegal_instruction", "tensor_maps/faults.cu", "negative_store"),
    Row("invalid_argument", "tensor_maps/faults.cu", "map_of_zeros"),
    Row("mbarrier", "arrivals/faults.cu", "initialised_twice"),
    Row("proxy_fence", "arrivals/faults.cu", "no_proxy_fence"),
    Row("wgmma", "wgmma/faults.cu", "no_fence"),
    Row("cluster", "clusters/faults.cu", "before_the_peer_started"),
    Row("setmaxnreg", "hopper/setmaxnreg.cu", gpu="right numbers, with the registers of before"),
)


def kinds():
    """All of core/hazard_kind.h."""
    text = (REPOSITORY / "common" / "simulator" / "core" / "hazard_kind.h").read_text()
    names = re.search(r"enum class HazardKind[^{]*\{(.*?)\}", text, re.S)[1]
    return [name for name in re.findall(r"^\s*(\w+),", names, re.M) if name != "count_"]


@functools.cache
def ran(row):
    """The row's example."""
    file = PROGRAMS / row.program
    if row.program.startswith("faulty/"):
        return run_faulty(row.fault)
    elif row.kind == "budget":
        return run_program(file, [row.fault], env={"WARPSIM_MAX_INSTRUCTIONS": 1000}, report=True)
    elif row.program.startswith(("undefined/", "global_memory/")):
        return run_program(file, [row.fault, 0], report=True)
    else:
        architecture = HOPPER_A if row.program.startswith(("wgmma/", "hopper/")) else HOPPER
        return run_program(file, [row.fault, 0], report=True, architecture=architecture)


def said(row):
    """The first hazard or note of the row's example: its record of the report."""
    launches = ran(row).report["launches"]
    return next(one for key in ("hazards", "notes") for launch in launches for one in launch[key])


def message(row):
    """What it says, without the brackets that name kernel, block and warp, and what changes from build to build."""
    text = re.sub(r" \[[^\[\]]*\bkernel [^\[]*\]$", "", said(row)["message"])
    text = re.sub(r"at 0x[0-9a-f]{7,}", "at 0x...", text)  # addresses of the device
    text = re.sub(r"(?<!\S)/\S+/(?=\w+\.cu)", "", text)
    return re.sub(r"PTX line \d+, ", "", text)


def on_a_gpu(row):
    if row.gpu:
        return row.gpu
    from flashladder.commands import faults_page

    record = json.loads(RECORD.read_text())
    (found,) = (one for one in record["faults"] if (one["program"], one["fault"]) == (row.program, row.fault))
    return f"{faults_page.details(found)} (H200)"


def table():
    lines = ["| kind | what it is | example | what it says | on a GPU |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        example = f"`{row.program}`" + (f", `{row.fault}`" if row.fault else "")
        words = message(row).replace("|", "\\|")
        lines.append(f"| `{row.kind}` | {KINDS[row.kind]} | {example} | `` {words} `` | {on_a_gpu(row)} |")
    return "\n".join(lines)


def written():
    """The table as the page has it."""
    return PAGE.read_text().split(BEGIN)[1].split(END)[0].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", required=True, help="write the table into the page")
    parser.parse_args()
    before, rest = PAGE.read_text().split(BEGIN)
    Path(PAGE).write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
