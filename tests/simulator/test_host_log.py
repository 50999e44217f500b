"""The report's host calls and operations: what the host asked for, and when it took effect."""

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

SOURCE = r"""
#include <cstdlib>
#include <cstring>
__global__ void twice(int *x) { x[threadIdx.x] *= 2; }
int main(int, char **argv) {
    const size_t bytes = 32 * sizeof(int);
    int *pinned, *pageable = static_cast<int *>(std::calloc(32, sizeof(int))), *a, *b;
    cudaMallocHost(&pinned, 2 * bytes);
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaStream_t s[2];
    for (auto &stream : s) cudaStreamCreate(&stream);
    if (!std::strcmp(argv[1], "async")) {                                 // call
        cudaMemcpyAsync(a, pinned, bytes, cudaMemcpyHostToDevice, s[0]);  // 0
        twice<<<1, 32, 0, s[0]>>>(a);                                     // 1
        cudaMemcpyAsync(b, pinned, bytes, cudaMemcpyHostToDevice, s[1]);  // 2
        cudaMemcpyAsync(pinned + 32, a, bytes, cudaMemcpyDeviceToHost, s[0]);  // 3
        cudaStreamSynchronize(s[0]);                                      // 4
        cudaDeviceSynchronize();                                          // 5
    } else if (!std::strcmp(argv[1], "pageable")) {
        cudaMemcpyAsync(a, pageable, bytes, cudaMemcpyHostToDevice, s[0]);  // 0
        cudaMemcpyAsync(pageable, a, bytes, cudaMemcpyDeviceToHost, s[0]);  // 1
        cudaMemcpy(b, pageable, bytes, cudaMemcpyHostToDevice);             // 2
        cudaMemset(a, 1, bytes);                                            // 3
        cudaDeviceSynchronize();                                            // 4
    } else {
        cudaEvent_t event;
        cudaEventCreate(&event);
        twice<<<1, 32, 0, s[0]>>>(a);       // 0
        cudaEventRecord(event, s[0]);       // 1
        cudaStreamWaitEvent(s[1], event);   // 2
        twice<<<1, 32, 0, s[1]>>>(a);       // 3
        cudaStreamSynchronize(s[1]);        // 4
        cudaFree(b);                        // 5
    }
    return cudaGetLastError() != cudaSuccess;
}
"""


def run(how, env=None):
    report = run_program(SOURCE, [how], report=True, env=env or {}).check().report
    assert [call["call"] for call in report["host_calls"]] == list(range(len(report["host_calls"])))
    return report


def brief(report):
    return [(one["kind"], one["stream"], one["queued"], one["completed"]) for one in report["operations"]]


def test_asynchronous_work_completes_where_something_waits():
    report = run("async")
    assert brief(report) == [
        ("memcpy_h2d", 1, 0, 4),
        ("kernel", 1, 1, 4),
        ("memcpy_d2h", 1, 3, 4),
        ("memcpy_h2d", 2, 2, 5),
    ]
    names = [call["name"] for call in report["host_calls"]]
    assert names[:2] == ["cudaMemcpyAsync", "cudaLaunchKernel"]
    assert names[4:] == ["cudaStreamSynchronize", "cudaDeviceSynchronize"]
    assert [call["stream"] for call in report["host_calls"]] == [1, 1, 2, 1, 1, None]
    assert {one["host_memory"] for one in report["operations"]} == {"pinned", None}
    assert [one["bytes"] for one in report["operations"]] == [128, 0, 128, 128]
    assert report["operations"][1]["name"] == "twice(int*)"


def test_pageable_memory_is_waited_for():
    report = run("pageable")
    assert brief(report) == [
        ("memcpy_h2d", 1, 0, 1),  # its source was read at the call
        ("memcpy_d2h", 1, 1, 1),
        ("memcpy_h2d", 0, 2, 2),
        ("memset", 0, 3, 4),
    ]
    assert [one["host_memory"] for one in report["operations"]] == ["pageable"] * 3 + [None]


def test_events_order_streams():
    report = run("events")
    kinds = [(one["kind"], one["stream"]) for one in report["operations"]]
    assert kinds == [("kernel", 1), ("event_record", 1), ("event_wait", 2), ("kernel", 2)]
    assert report["host_calls"][-1]["name"] == "cudaFree"


@pytest.mark.parametrize("schedule", [1, 2, 3, 4, 5, "last:1", "last:2"])
def test_any_schedule_keeps_each_streams_order(schedule):
    report = run("async", {"WARPSIM_SCHEDULE": schedule})
    for stream in (1, 2):
        queued = [one["queued"] for one in report["operations"] if one["stream"] == stream]
        assert len(queued) in (1, 3) and queued == sorted(queued), f"stream {stream} of schedule {schedule}"
    assert all(one["queued"] <= one["completed"] for one in report["operations"])


def test_the_stream_that_comes_last_is_in_flight_and_the_others_are_not():
    assert brief(run("async", {"WARPSIM_SCHEDULE": "last:1"})) == [
        ("memcpy_h2d", 2, 2, 2),
        ("memcpy_h2d", 1, 0, 4),
        ("kernel", 1, 1, 4),
        ("memcpy_d2h", 1, 3, 4),
    ]
