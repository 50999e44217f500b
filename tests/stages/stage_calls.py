"""Makes calls of a stage one after the other in a process of its own: python stage_calls.py FOLDER.

FOLDER/job.json: cudart, stage (paths) and a list of calls, each with its problem, its views, whether it has a stream
of its own, whether it asks for the log-sum-exp where the stage writes one, and its configuration or null. A view says
where one of Q, K, V and O lies: the buffer, the offset in it and the three strides, all in elements.
FOLDER/CALL.BUFFER.npy are the buffers (uint16; of e4m3 uint8, and CALL.Q_scales.npy and its like, float32) as they are
before the call; they are written back as they are after
it, the output and all that lies around it, and with them CALL.log_sum_exp.npy (float32). Prints {"failed": CALL,
"message": ...} where a call fails.
"""

import ctypes
import json
import sys
import threading
from pathlib import Path

import numpy as np

from flashladder.core.abi import FlashTensor, StageLibrary, StageRefused
from flashladder.core.problem import Problem
from flashladder.running.cudart import DEVICE_TO_HOST, CudaError, Cudart

NON_BLOCKING = 1  # cudaStreamNonBlocking: a stream that the default stream does not join
HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def on_own_stream(cudart: Cudart, stage: StageLibrary, params, download) -> None:
    """Calls the stage on a stream of its own and waits for that alone, while the default stream is held up.

    So work that went to the default stream is not there when download(stream) looks. The kernel has run before in
    this process: its first use may load code, which may wait for the whole device.
    """
    stream = ctypes.c_void_p()
    cudart.call("cudaStreamCreateWithFlags", ctypes.byref(stream), NON_BLOCKING)
    cudart.synchronize()
    looked = threading.Event()
    hold = HostFunction(lambda _: looked.wait(120) and None)
    cudart.call("cudaLaunchHostFunc", None, hold, None)
    try:
        stage.launch(params, stream.value)
        cudart.call("cudaStreamSynchronize", stream)
        download(stream)
        cudart.call("cudaStreamSynchronize", stream)
    finally:
        looked.set()
    cudart.synchronize()
    cudart.call("cudaStreamDestroy", stream)


def execute(cudart: Cudart, stage: StageLibrary, call: dict, call_file) -> None:
    problem = Problem(**call["problem"])
    files = {view["buffer"]: call_file(view["buffer"]) for view in call["views"].values()}
    buffers = {name: np.load(file) for name, file in files.items()}
    pointers = {name: cudart.malloc(buffer.nbytes) for name, buffer in buffers.items()}
    for name, buffer in buffers.items():
        cudart.upload(pointers[name], buffer)
    configuration = call["configuration"]
    description = stage.describe(problem.params({}, configuration=configuration))
    scratch_bytes = description.workspace_bytes
    scratch = cudart.malloc(scratch_bytes) if scratch_bytes else 0
    if scratch:
        cudart.fill(scratch, 0xFF, scratch_bytes)
    params = problem.params({}, scratch, scratch_bytes, configuration)
    if call["log_sum_exp"] and description.supports_log_sum_exp:
        name, rows = "log_sum_exp", problem.B * problem.Hq * problem.Nq
        buffers[name] = np.full(rows, np.nan, np.float32)
        files[name] = call_file(name)
        pointers[name] = params.log_sum_exp = cudart.malloc(buffers[name].nbytes)
        cudart.upload(pointers[name], buffers[name])
    for tensor, view in call["views"].items():
        start = pointers[view["buffer"]] + buffers[view["buffer"]].itemsize * view["offset"]
        setattr(params, tensor, FlashTensor(start, *view["strides"]))
    for name in problem.scales({}):
        files[name] = call_file(name)
        buffers[name] = np.load(files[name])
        pointers[name] = cudart.malloc(buffers[name].nbytes)
        cudart.upload(pointers[name], buffers[name])
        setattr(params, name, pointers[name])

    def download(stream) -> None:
        for name, buffer in buffers.items():
            to, source = ctypes.c_void_p(buffer.ctypes.data), ctypes.c_void_p(pointers[name])
            cudart.call("cudaMemcpyAsync", to, source, ctypes.c_size_t(buffer.nbytes), DEVICE_TO_HOST, stream)

    if call["own_stream"]:
        on_own_stream(cudart, stage, params, download)
    else:
        stage.launch(params)
        cudart.synchronize()
        download(None)
        cudart.synchronize()
    for name, buffer in buffers.items():
        np.save(files[name], buffer)
        cudart.free(pointers[name])
    if scratch:
        cudart.free(scratch)


def main() -> None:
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())
    cudart = Cudart(job["cudart"])
    stage = StageLibrary(job["stage"])
    for number, call in enumerate(job["calls"]):
        try:
            execute(cudart, stage, call, lambda name, number=number: folder / f"{number}.{name}.npy")
        except (StageRefused, CudaError) as error:
            print(json.dumps({"failed": number, "message": str(error)}))
            return


main()
