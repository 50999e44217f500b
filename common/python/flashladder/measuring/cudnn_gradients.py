"""cuDNN's deterministic gradients, by cuDNN's Python package, if it is there.

PyTorch offers none: asked for deterministic algorithms it refuses cuDNN's forward pass, and the algorithm of cuDNN's
backward pass does not depend on what it was asked for.
"""

from flashladder.core.problem import Problem
from flashladder.measuring import cudnn_package, gpu_memory


def call(problem: Problem, tensors: dict):
    """As peers.gradient_call(); the forward pass is PyTorch's FlashAttention-2. cudnn_package.Unavailable, a
    RuntimeError, says why there is none."""
    cudnn = cudnn_package.package()
    with cudnn_package.unavailable():
        return _built(cudnn, problem, tensors)


def _built(cudnn, problem: Problem, tensors: dict):
    torch = gpu_memory.torch
    kind = {"bf16": cudnn.data_type.BFLOAT16, "fp16": cudnn.data_type.HALF}[problem.dtype]
    q, k, v, dO = (problem.to_bhnd_tensor(tensors[name]) for name in ("Q", "K", "V", "dO"))  # noqa: N806
    forward = torch.ops.aten._scaled_dot_product_flash_attention
    out, log_sum_exp, *_ = forward(q, k, v, is_causal=problem.causal, scale=problem.scale)
    inputs = {"q": q, "k": k, "v": v, "o": out, "dO": dO, "stats": log_sum_exp.unsqueeze(-1)}
    gradients = tuple(torch.empty_like(tensors[name]) for name in "QKV")
    graph = cudnn_package.graph(kind)
    operands = {
        name: cudnn_package.operand(graph, name, tensor, cudnn.data_type.FLOAT if name == "stats" else kind)
        for name, tensor in inputs.items()
    }
    causal = {}
    if problem.causal:
        causal = {"diagonal_alignment": cudnn_package.alignment(problem), "diagonal_band_right_bound": 0}
    results = graph.sdpa_backward(**operands, attn_scale=problem.scale, use_deterministic_algorithm=True, **causal)
    buffers = {operands[name]: tensor for name, tensor in inputs.items()}
    for result, gradient in zip(results, gradients, strict=True):
        buffers[result] = problem.to_bhnd_tensor(gradient)
        cudnn_package.write_to(result, buffers[result], kind)
    launch = cudnn_package.launcher(graph, buffers)

    def run():
        launch()
        return gradients

    return run
