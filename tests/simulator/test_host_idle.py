"""A host that waits for queued work without a CUDA call gets on, in the order of the streams."""

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

HEAD = """
#include <cstdio>
#include <thread>
#include <vector>
#include <cuda_runtime.h>
__global__ void add(volatile int *to, int n) { *to = *to + n; }
__global__ void fault(int *p) { p[1 << 20] = 1; }
"""

FLAG = """
volatile bool ready = false;
void set(void *) { ready = true; }
int main() {
    int *p, value = 0;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    add<<<1, 1>>>(p, 42);
    cudaLaunchHostFunc(0, set, nullptr);
    while (!ready) {}
    cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost);
    printf("%d\\n", value);
}
"""

PINNED = """
int main() {
    int *p;
    cudaMallocHost(&p, 4);
    *p = 0;
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    for (int i = 0; i < 100; ++i) {  // the first one takes a second, the others do not
        cudaEvent_t event;
        cudaEventCreate(&event);
        add<<<1, 1, 0, a>>>(p, 1);
        cudaEventRecord(event, a);
        cudaStreamWaitEvent(b, event);
        add<<<1, 1, 0, b>>>(p, 1);
        while (*(volatile int *)p != 2 * i + 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    printf("%d\\n", *p);
}
"""

FAILS = """
int main() {
    int *p;
    cudaMalloc(&p, 4);
    fault<<<1, 1>>>(p);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""

ENDS = """
int main() {
    int *p;
    cudaMalloc(&p, 4);
    add<<<1, 1>>>(p, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    printf("ended\\n");
}
"""


@pytest.mark.parametrize("schedule", ["0", "3", "last:0"])
@pytest.mark.parametrize("program, output", [(FLAG, "42"), (PINNED, "200")], ids=["flag", "pinned"])
def test_a_host_that_polls_gets_on(program, output, schedule):
    result = run_program(HEAD + program, env={"WARPSIM_SCHEDULE": schedule}, report=True, timeout=60).check()
    assert result.stdout == f"{output}\n"
    assert result.hazards == [] and result.report["launches"]
    if schedule == "0":
        assert result.stderr.count("work has been queued for a second") == 1, result.stderr


@pytest.mark.long
def test_errors_arrive_as_ever():
    result = run_program(HEAD + FAILS, timeout=60).check()
    assert result.stdout == "cudaErrorIllegalAddress\n" and "out of bounds" in result.stderr


@pytest.mark.long
def test_a_short_while_changes_nothing():
    result = run_program(HEAD + ENDS, timeout=60).check()
    assert "1 kernel launch was still queued when the program ended" in result.stderr
    assert "for a second" not in result.stderr
