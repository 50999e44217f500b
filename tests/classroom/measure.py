"""How long a command takes, and the most memory that it and all it starts hold at once (without what they share).

python tests/classroom/measure.py python -m flashladder grade swizzle folder --out graded
"""

import subprocess
import sys
import time

import psutil


def held(process: psutil.Process) -> tuple[int, int]:
    """Bytes of the process alone, and of it with its descendants (USS: what would be free without it)."""
    sizes = []
    for one in [process, *process.children(recursive=True)]:
        try:
            sizes.append(one.memory_full_info().uss)
        except psutil.Error:  # it has just ended
            continue
    return (sizes[0] if sizes else 0), sum(sizes)


def main(command: list[str]) -> int:
    start = time.monotonic()
    running = subprocess.Popen(command)
    process, most_alone, most = psutil.Process(running.pid), 0, 0
    while running.poll() is None:
        alone, together = held(process)
        most_alone, most = max(most_alone, alone), max(most, together)
        time.sleep(0.1)
    seconds = time.monotonic() - start
    memory = f"at most {most / 2**20:.0f} MiB together, {most_alone / 2**20:.0f} MiB of them the command's own"
    print(f"{seconds:.0f} s; {memory}")
    return running.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
