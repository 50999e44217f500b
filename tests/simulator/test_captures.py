"""What must not be done while a stream is captured is refused, spoils the capture and is told; its mended twin runs."""

from pathlib import Path

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

PROGRAM = Path(__file__).parent / "programs" / "runtime" / "captures.cu"
SPOILT = "cudaErrorStreamCaptureInvalidated"

# case: the errors of the call and of the capture's end; words of the message; the mended graph's number
FAULTS = {
    "launched_into_the_default_stream": (
        ("cudaErrorStreamCaptureImplicit", SPOILT),
        "the default stream gets work while stream 1 is captured",
        11,
    ),
    "copied_by_a_blocking_call": (
        ("cudaErrorStreamCaptureImplicit", SPOILT),
        "take cudaMemcpyAsync or cudaMemsetAsync with it",
        0,
    ),
    "allocated": (("cudaErrorStreamCaptureUnsupported", SPOILT), "cudaMalloc while stream 1 is captured", 1),
    "freed": (("cudaErrorStreamCaptureUnsupported", SPOILT), "cudaFree while stream 1 is captured", 1),
    "waited_for_the_device": (
        ("cudaErrorStreamCaptureUnsupported", SPOILT),
        "cudaDeviceSynchronize: stream 1 is captured",
        1,
    ),
    "waited_for_an_event": (
        ("cudaErrorCapturedEvent", SPOILT),
        "cudaEventSynchronize: the event was recorded in a stream that is captured",
        1,
    ),
    "an_event_from_outside": (
        ("cudaErrorStreamCaptureIsolation", SPOILT),
        "the event was recorded outside of the capture",
        1,
    ),
    "a_branch_that_leads_nowhere": (
        ("cudaSuccess", "cudaErrorStreamCaptureUnjoined"),
        "kernel add(int*, int) of another stream than stream 1, where the capture began, leads to nothing there",
        1,
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_mistake_and_mended_twin(case):
    errors, words, number = FAULTS[case]
    wrong = run_program(PROGRAM, [case, "0"]).check()
    assert wrong.stdout.split() == list(errors)
    assert words in wrong.stderr
    mended = run_program(PROGRAM, [case, "1"]).check()
    assert mended.stdout.split() == ["cudaSuccess", "cudaSuccess", str(number)]
    assert "capture" not in mended.stderr


def test_the_default_stream_does_not_wait_for_a_non_blocking_one():
    result = run_program(PROGRAM, ["beside_a_non_blocking_stream", "0"]).check()
    assert result.stdout.split() == ["cudaSuccess", "cudaSuccess", "1"]
    assert not result.stderr


@pytest.mark.parametrize("case", ["allocated", "a_branch_that_leads_nowhere"])  # which then ask for no error
def test_a_spoilt_capture_is_in_the_report(case):
    (error,) = run_program(PROGRAM, [case, "0"], report=True).check().report["unasked_errors"]
    assert FAULTS[case][1] in error
    assert "unasked_errors" not in run_program(PROGRAM, [case, "1"], report=True).check().report


def test_a_refused_launch_is_in_the_report_once():
    """The launch fails and the capture is spoilt for one reason."""
    source = r"""
    __global__ void set(int *p) { *p = 1; }
    int main() {
        cudaStream_t stream;
        cudaGraph_t graph;
        int *p;
        cudaMalloc(&p, 4);
        cudaStreamCreate(&stream);
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        set<<<1, 1>>>(p);
        cudaStreamEndCapture(stream, &graph);
    }
    """
    (error,) = run_program(source, report=True).check().report["unasked_errors"]
    assert error.startswith("the default stream gets work while stream 1 is captured")
