"""cuDNN's attention of e4m3, which PyTorch does not offer: by cuDNN's Python package, if it is there.

On Hopper cuDNN writes O as e4m3, too, with a scale for each tensor and none for each head. All scales are 1 here. So a
time of it is one of the same products, exponentials and bytes of Q, K and V, and of half the bytes of O.
"""

from flashladder.core.problem import Problem
from flashladder.measuring import cudnn_package, gpu_memory

NAME = "cuDNN FP8"
SCALES = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")


def attention(problem: Problem, tensors: dict):
    """(launch, output, facts): launch() queues the work on the default stream, output() has O as bf16's patterns in
    the problem's layout.

    tensors: PyTorch's Q, K and V of e4m3. cudnn_package.Unavailable says why there is none, whatever was raised.
    """
    cudnn = cudnn_package.package()
    with cudnn_package.unavailable():
        return _built(cudnn, problem, tensors)


def _built(cudnn, problem: Problem, tensors: dict):
    torch = gpu_memory.torch
    floats, bytes_type = cudnn.data_type.FLOAT, cudnn.data_type.FP8_E4M3
    graph = cudnn_package.graph(bytes_type)
    single = {name: torch.ones(1, 1, 1, 1, device="cuda") for name in (*SCALES, "amax_s", "amax_o")}
    inputs = {name.lower(): problem.to_bhnd_tensor(tensors[name]) for name in "QKV"}
    inputs |= {name: single[name] for name in SCALES}
    output_bytes = torch.empty(problem.shape("O"), dtype=torch.float8_e4m3fn, device="cuda")
    written = {"O": problem.to_bhnd_tensor(output_bytes)} | {name: single[name] for name in ("amax_s", "amax_o")}

    def kind(name: str):
        return bytes_type if name in ("q", "k", "v", "O") else floats

    operands = {name: cudnn_package.operand(graph, name, tensor, kind(name)) for name, tensor in inputs.items()}
    causal = {"diagonal_alignment": cudnn_package.alignment(problem), "right_bound": 0} if problem.causal else {}
    out, _, *largest = graph.sdpa_fp8(**operands, attn_scale=problem.scale, generate_stats=False, **causal)
    results = dict(zip(written, (out, *largest), strict=True))
    for name, result in results.items():
        cudnn_package.write_to(result, written[name], kind(name))
    buffers = {operands[name]: tensor for name, tensor in inputs.items()}
    buffers |= {results[name]: tensor for name, tensor in written.items()}

    def output():
        return gpu_memory.host_bits(output_bytes.to(torch.bfloat16))

    return cudnn_package.launcher(graph, buffers), output, {"output": "e4m3"}
