"""One mma.m16n8k16 of one warp, executed with fragments given lane by lane (lesson 04)."""

import os
import subprocess
import sys

import numpy as np

from flashladder.core.environment import for_python, prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, place
from flashladder.ladder import stages
from flashladder.ladder.kernels import stage_flags

# A: [32, 8], B: [32, 4] in fp16 from the standard input, C: [32, 4] in fp32 to the standard output; all by lane.
SOURCE = """\
#include <cstdio>
#include "ptx.cuh"

__global__ void one_mma(const uint32_t (*A)[4], const uint32_t (*B)[2], float (*C)[4]) {
    const int lane = threadIdx.x;
    float mine[4] = {};
    ptx::mma_m16n8k16<__half>(mine, A[lane], B[lane]);
    for (int i = 0; i < 4; ++i) C[lane][i] = mine[i];
}

int main() {
    unsigned char *memory, bytes[512 + 256];
    if (fread(bytes, 1, sizeof bytes, stdin) != sizeof bytes) return 1;
    cudaMalloc(&memory, sizeof bytes + 512);
    cudaMemcpy(memory, bytes, sizeof bytes, cudaMemcpyHostToDevice);
    one_mma<<<1, 32>>>((uint32_t(*)[4])memory, (uint32_t(*)[2])(memory + 512), (float(*)[4])(memory + sizeof bytes));
    cudaMemcpy(bytes, memory + sizeof bytes, 512, cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) return 1;
    fwrite(bytes, 1, 512, stdout);
}
"""


def one_mma(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """C = A B as the instruction computes it on the simulator: C by lane [32, 4], from A [32, 8] and B [32, 4] by lane.

    FlashLadderError where the program does not compile or run.
    """
    source = place("break", "one_mma", "one_mma.cu", SOURCE)
    program = source.with_name(f"one_mma-{os.getpid()}")
    compiler = [*stage_flags(stages.get(4)), "-cudart", "shared"]
    _run([*compiler, "-o", str(program), str(source)], env=prepended(LIBRARY_PATH=build_directory() / "cudart-links"))
    given = b"".join(np.ascontiguousarray(part, np.float16).tobytes() for part in (A, B))
    command = [sys.executable, "-m", "flashladder", "sim", "--", str(program)]
    found = _run(command, given, for_python())
    program.unlink()
    return np.frombuffer(found, np.float32).reshape(32, 4)


def _run(command: list[str], given: bytes = b"", env: dict[str, str] | None = None) -> bytes:
    done = subprocess.run(command, input=given, capture_output=True, env=env)
    if done.returncode:
        raise FlashLadderError(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout
