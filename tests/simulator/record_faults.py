"""What a GPU says to the mistakes that the simulator names: every faulty kernel for Hopper, and its mended twin.

    python record_faults.py FILE [--launches 50] [--seconds 5] [--total 100] [--workers 8] [--device gpu|sim]

Each kernel runs in a process of its own, `launches` times, on numbers (see programs/fault_run.h), and is killed after
`seconds`: a deadlock never ends. FILE is JSON: for each fault the simulator's kind and line, and of both twins what
came out. After faults that ended in an error or were killed a clean kernel is run; where it fails, the GPU has stopped
answering: all ends there, and what was not run is marked. --device sim puts the simulator in the GPU's place, so that
this can be tried without one.
"""

import argparse
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.pop("FLASHLADDER_DEVICE", None)  # the simulator's runtime, but where a run is told otherwise

from cudart import LIBRARY, PROGRAMS, build_program, real_runtime
from fault_marks import cases, marks

FILES = (
    "wgmma/faults.cu", "tensor_maps/faults.cu", "tensor_maps/changed_maps.cu", "arrivals/faults.cu",
    "clusters/faults.cu",
)  # fmt: skip
# Machine code for the GPU, and PTX for the simulator.
HOPPER = ("-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]")
PROBE = ("wgmma/faults.cu", "no_barrier")  # mended, it uses barriers, fences and wgmma


def environment(on_gpu):
    found = {key: value for key, value in os.environ.items() if not key.startswith("WARPSIM_")}
    runtime = real_runtime() if on_gpu else LIBRARY
    if runtime.is_absolute():
        found["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(runtime.parent), found.get("LD_LIBRARY_PATH")]))
    return found


def run(program, arguments, env, seconds):
    """(exit status, stdout); the status is None where it was killed."""
    process = subprocess.Popen(
        [program, *map(str, arguments)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=seconds)
        return process.returncode, out
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        return None, out


def outcome(status, text, launches):
    """What a program with LAUNCHES printed, as a record."""
    found = {"expected": None, "outcome": None, "launches": 0}
    wrong, fewest, example = 0, None, None
    for line in text.splitlines():
        if match := re.fullmatch(r"expected (\w+)", line):
            found["expected"] = match[1]
        elif match := re.fullmatch(r"(cuda\w+) (\d+) (\d+) (\d+) (\w+) (\w+)", line):
            if match[1] != "cudaSuccess":
                found["error"] = match[1]
                continue
            found["launches"] += 1
            if differ := int(match[2]):
                wrong += 1
                fewest = min(fewest or differ, differ)
                example = example or f"word {match[4]}: {match[5]} instead of {match[6]}"
                found["words"] = int(match[3])
    if wrong:
        found |= {"wrong launches": wrong, "fewest wrong words": fewest, "example": example}
    if found["expected"] is None:
        found["outcome"] = "the mended kernel did not come to its end"
    elif status is None:
        found["outcome"] = "hang"
    elif "error" in found:
        found["outcome"] = "error"
    elif found["launches"] != launches:
        found["outcome"] = f"exit status {status}"
    else:
        found["outcome"] = "wrong numbers" if wrong else "right numbers"
    return found


def simulated(program, name, mended):
    """(what the simulator reports first: {kind, line, as error or note} or None, the hash of a mended kernel's output)"""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        arguments = [name, 1, 1] if mended else [name, 0]
        _, text = run(program, arguments, environment(False) | {"WARPSIM_REPORT": str(report)}, 120)
        launches = json.loads(report.read_text())["launches"]
    numbers = outcome(0, text, 1)["expected"]
    for name, words in (("hazards", "error"), ("notes", "note")):
        for one in (one for launch in launches for one in launch[name]):
            return {"kind": one["kind"], "line": one["line"], "as": words}, numbers
    return None, numbers


class Runner:
    def __init__(self, options):
        self.options = options
        self.on_gpu = options.device == "gpu"
        built = beside_each_other(lambda file: build_program(PROGRAMS / file, architecture=HOPPER), FILES)
        self.programs = dict(zip(FILES, built, strict=True))
        self.ends = time.monotonic() + options.total
        self.stopped = None

    def measured(self, file, name, mended):
        if self.stopped or time.monotonic() > self.ends:
            return {"outcome": "not run"}
        launches = self.options.launches
        arguments = [name, mended, launches]
        status, text = run(self.programs[file], arguments, environment(self.on_gpu), self.options.seconds)
        return outcome(status, text, launches)

    def probe(self):
        """Whether a clean kernel still runs."""
        file, name = PROBE
        status, text = run(self.programs[file], [name, 1, 1], environment(self.on_gpu), 30)
        return outcome(status, text, 1)["outcome"] == "right numbers"

    def all(self):
        # Those that hang last, so that they wait for their end beside each other.
        jobs = [(file, name, mended) for file in FILES for name in cases(PROGRAMS / file) for mended in (1, 0)]
        jobs.sort(key=lambda job: not job[2] and "deadlock" in marks(PROGRAMS / job[0], job[1])[0])
        if self.options.only:
            jobs = [job for job in jobs if job[1] in self.options.only]
        if not self.probe():
            raise SystemExit("The clean kernel fails before any fault has run.")
        found = {}
        step = self.options.workers
        with concurrent.futures.ThreadPoolExecutor(step) as pool:
            # Those of one step run beside each other, and the clean kernel after them.
            for begin in range(0, len(jobs), step):
                these = jobs[begin : begin + step]
                results = list(pool.map(lambda job: self.measured(*job), these))
                found |= dict(zip(these, results, strict=True))
                bad = any(result["outcome"] not in ("right numbers", "wrong numbers", "not run") for result in results)
                if bad and not self.stopped and not self.probe():
                    self.stopped = f"after {', '.join(f'{file} {name}' for file, name, _ in these)}"
        said = dict(
            zip(jobs, beside_each_other(lambda job: simulated(self.programs[job[0]], *job[1:]), jobs), strict=True)
        )
        rows = []
        for job in jobs:
            file, name, mended = job
            if mended:
                continue
            twin = (file, name, 1)
            rows.append(
                {
                    "program": file,
                    "fault": name,
                    "marked": marks(PROGRAMS / file, name)[0],
                    "warpsim": said[job][0],
                    "warpsim mended": said[twin][0],
                    "warpsim expected": said[twin][1],
                    "gpu": found[job],
                    "gpu mended": found[twin],
                }
            )
        options = self.options
        return {"launches": options.launches, "seconds": options.seconds, "stopped": self.stopped, "faults": rows}


def beside_each_other(function, jobs):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, jobs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--launches", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--total", type=float, default=100, help="seconds for all runs; what is left then is not run")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--device", choices=("gpu", "sim"), default="gpu")
    parser.add_argument("--only", nargs="*", help="only these faults")
    options = parser.parse_args()
    record = Runner(options).all()
    options.file.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if record["stopped"] else 0


if __name__ == "__main__":
    sys.exit(main())
