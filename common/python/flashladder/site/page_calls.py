"""The calls of stages whose kernels take more than the parameters of attention, as the page plays them: what the
stage's own host code launches for a problem, with all arguments (common/browser/request.h).

A call is recorded on the simulator of this machine and runs nothing there. A pointer among the arguments is one by its
value: numbers of a problem are smaller than the addresses of a process.
"""

import bisect
import subprocess
import sys
import tempfile
from pathlib import Path

from flashladder.classroom.cases import Case
from flashladder.core.device import Device, cudart
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory
from flashladder.ladder.kernels import WithKernel
from flashladder.running.job import KINDS, Job, Options, answer

MAP_BYTES = 128
HOST = "configuration"  # a name of one, which only the host reads


def requests(stage: WithKernel, library: Path, cases: list[Case]) -> list[str]:
    """One for each case. FlashLadderError where the stage refuses one."""
    with tempfile.TemporaryDirectory(prefix="flashladder-") as name:
        folders = []
        for number, one in enumerate(cases):
            options = Options(kind=stage.KIND, configuration=one.configuration)
            folders.append(Path(name) / str(number))
            folders[-1].mkdir()
            job = Job(str(cudart(Device("sim", None))), str(library), one.problem, options=options)
            job.write(folders[-1])
        command = [sys.executable, "-m", "flashladder.site.record", *map(str, folders)]
        first = {"LD_PRELOAD": str(build_directory() / "lib/browser-record.so")}
        done = subprocess.run(command, env=for_python(stage.simulated | first), capture_output=True, text=True)
        return [_request(stage, answer(folder) or {"message": done.stderr[-2000:]}) for folder in folders]


def _request(stage: WithKernel, told: dict) -> str:
    if told.get("status") != "ok":
        raise FlashLadderError(f"{stage.name} launches nothing to record: {told['message']}")
    kind, memory, lines = KINDS[stage.KIND], told["memory"], []
    for name, (_, size) in memory.items():
        if name == HOST:
            continue
        if name == "workspace":
            lines.append(f"workspace {size} {told['zeroed']}")
        else:
            lines.append(f"{'output' if name in (*kind.outputs, *kind.sums) else 'input'} {name} {size}")
    places = _Places(memory)
    for line in told["recorded"].splitlines():
        what, *words = line.split()
        lines += places.argument(words) if what == "argument" else [line]
    lines += [f"{name} {value}" for name, value in stage.simulated.items()]
    return "\n".join(lines) + "\n"


class _Places:
    """What lies where in the device memory of the process that was recorded."""

    def __init__(self, memory: dict[str, tuple[int, int]]):
        self._known = sorted((address, size, name) for name, (address, size) in memory.items())

    def named(self, address: int) -> str:
        """Name and offset; "" where none of the memory is."""
        at = bisect.bisect([first for first, *_ in self._known], address) - 1
        first, size, name = self._known[at] if at >= 0 else (0, 0, "")
        return f"{name} {address - first}" if address < first + size else ""

    def argument(self, words: list[str]) -> list[str]:
        """The lines of an argument, whose pointers and tensor maps are taken out of it. words: its bytes, then of each
        map its offset, its address and what else it was made of."""
        digits, *maps = " ".join(words).split(";")
        content, lines = bytearray.fromhex(digits), []
        for one in maps:
            at, address, *rest = one.split()
            lines.append(f"map {at} {self.named(int(address))} {' '.join(rest)}")
            content[int(at) : int(at) + MAP_BYTES] = bytes(MAP_BYTES)
        for at in range(0, len(content) - 7, 8):
            name = self.named(int.from_bytes(content[at : at + 8], "little"))
            if name:
                lines += [] if name.startswith(HOST) else [f"pointer {at} {name}"]
                content[at : at + 8] = bytes(8)
        return [f"argument {content.hex()}", *lines]
