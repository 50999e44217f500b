"""What a failed run says first: of a hazard its kind, place and words; without one CUDA's error."""

from flashladder.ladder.run import hazard_first

ERROR = "stage 02, bf16 B=1 H=1 N=64 d=64: cudaDeviceSynchronize: unspecified launch failure (cudaError 719)"
RACE = """warpsim: shared-memory race at kernel.cu:89
    read at kernel.cu:89 of what thread 1 wrote at kernel.cu:25: a __syncthreads() is missing
    89 | q[r] = to_float2(Q_rows + k);
warpsim: flash_kernel<<<(1, 1, 1), (256, 1, 1), 58368>>> failed with cudaErrorLaunchFailure"""


def test_a_hazard_comes_first_and_once():
    said = hazard_first(ERROR, f"something printed before\n{RACE}")
    assert said.splitlines() == [
        "shared-memory race at kernel.cu:89: "
        "read at kernel.cu:89 of what thread 1 wrote at kernel.cu:25: a __syncthreads() is missing",
        "something printed before",
        "    89 | q[r] = to_float2(Q_rows + k);",
        "warpsim: flash_kernel<<<(1, 1, 1), (256, 1, 1), 58368>>> failed with cudaErrorLaunchFailure",
        ERROR,
    ], f"not in the order hazard, others, CUDA's error:\n{said}"


def test_without_a_hazard_the_error_comes_first():
    assert hazard_first(ERROR, "printed") == f"{ERROR}\nprinted"
    assert hazard_first(ERROR, "") == ERROR
