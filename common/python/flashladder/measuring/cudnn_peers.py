"""cuDNN by its Python package nvidia-cudnn-frontend, if it is there, for what PyTorch does not offer of it.

Attention of e4m3: on Hopper cuDNN writes O as e4m3, too, with a scale for each tensor and none for each head. All
scales are 1 here. So a time of it is one of the same products, exponentials and bytes of Q, K and V, and of half the
bytes of O.

Deterministic gradients: asked for deterministic algorithms, PyTorch refuses cuDNN's forward pass, and the algorithm of
cuDNN's backward pass does not depend on what it was asked for.
"""

from contextlib import contextmanager
from functools import cache

from flashladder.core.problem import Problem
from flashladder.measuring import gpu_memory

PACKAGE = "nvidia-cudnn-frontend"


class Unavailable(RuntimeError):
    """Why there is no such peer here: the package is missing, or cuDNN has no kernel for the problem."""


def package():
    try:
        import cudnn
    except ModuleNotFoundError as error:
        if error.name == "cudnn":
            raise Unavailable(f"package {PACKAGE} not there") from error
        raise Unavailable(f"package {PACKAGE}: {error}") from error
    except Exception as error:  # it loads libcudnn.so.9 while it is imported
        raise Unavailable(_words(error)) from error
    return cudnn


@cache
def handle():
    return package().create_handle()  # of the default stream


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"package {PACKAGE}: {type(error).__name__}: {lines[0] if lines else 'no message'}"


@contextmanager
def unavailable():
    """Whatever the package raises as Unavailable: its exceptions have no common class, and a benchmark goes on without
    this peer."""
    try:
        yield
    except Exception as error:
        raise Unavailable(_words(error)) from error


def version() -> dict:
    """What a record says of the package; nothing where it is missing."""
    try:
        return {"cudnn_frontend": str(package().__version__)}
    except (Unavailable, AttributeError):
        return {}


def graph(io_type):
    """An empty one; the intermediate numbers are floats."""
    cudnn = package()
    floats = cudnn.data_type.FLOAT
    return cudnn.pygraph(io_data_type=io_type, intermediate_data_type=floats, compute_data_type=floats, handle=handle())


def operand(made, name: str, tensor, kind):
    return made.tensor(name=name, dim=list(tensor.shape), stride=list(tensor.stride()), data_type=kind)


def write_to(result, tensor, kind) -> None:
    """Has an output of the graph lie as PyTorch's tensor does."""
    result.set_output(True).set_dim(list(tensor.shape)).set_stride(list(tensor.stride())).set_data_type(kind)


def alignment(problem: Problem):
    """Of a causal mask: the last query sees the last key."""
    return getattr(package().diagonal_alignment, "TOP_LEFT" if problem.Nq == problem.Nkv else "BOTTOM_RIGHT")


def launcher(made, buffers: dict):
    """Builds the graph; a function that queues it on the default stream with these tensors."""
    modes = package().heur_mode
    made.validate()
    made.build_operation_graph()
    made.create_execution_plans([modes.A, modes.FALLBACK])
    made.check_support()
    made.build_plans()
    torch = gpu_memory.torch
    workspace = torch.empty(max(1, made.get_workspace_size()), dtype=torch.uint8, device="cuda")

    def launch():
        with unavailable():
            made.execute(buffers, workspace, handle=handle())

    return launch


NAME = "cuDNN FP8"
SCALES = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")


def attention(problem: Problem, tensors: dict):
    """(launch, output, facts): launch() queues the work on the default stream, output() has O as bf16's patterns in
    the problem's layout.

    tensors: PyTorch's Q, K and V of e4m3. Unavailable says why there is none, whatever was raised.
    """
    cudnn = package()
    with unavailable():
        return _built(cudnn, problem, tensors)


def _built(cudnn, problem: Problem, tensors: dict):
    torch = gpu_memory.torch
    floats, bytes_type = cudnn.data_type.FLOAT, cudnn.data_type.FP8_E4M3
    made = graph(bytes_type)
    single = {name: torch.ones(1, 1, 1, 1, device="cuda") for name in (*SCALES, "amax_s", "amax_o")}
    inputs = {name.lower(): problem.to_bhnd_tensor(tensors[name]) for name in "QKV"}
    inputs |= {name: single[name] for name in SCALES}
    output_bytes = torch.empty(problem.shape("O"), dtype=torch.float8_e4m3fn, device="cuda")
    written = {"O": problem.to_bhnd_tensor(output_bytes)} | {name: single[name] for name in ("amax_s", "amax_o")}

    def kind(name: str):
        return bytes_type if name in ("q", "k", "v", "O") else floats

    operands = {name: operand(made, name, tensor, kind(name)) for name, tensor in inputs.items()}
    causal = {"diagonal_alignment": alignment(problem), "right_bound": 0} if problem.causal else {}
    out, _, *largest = made.sdpa_fp8(**operands, attn_scale=problem.scale, generate_stats=False, **causal)
    results = dict(zip(written, (out, *largest), strict=True))
    for name, result in results.items():
        write_to(result, written[name], kind(name))
    buffers = {operands[name]: tensor for name, tensor in inputs.items()}
    buffers |= {results[name]: tensor for name, tensor in written.items()}

    def output():
        return gpu_memory.host_bits(output_bytes.to(torch.bfloat16))

    return launcher(made, buffers), output, {"output": "e4m3"}


def gradients(problem: Problem, tensors: dict):
    """Deterministic ones, as peers.gradient_call(); the forward pass is PyTorch's FlashAttention-2. Unavailable, a
    RuntimeError, says why there is none."""
    cudnn = package()
    with unavailable():
        return _built_gradients(cudnn, problem, tensors)


def _built_gradients(cudnn, problem: Problem, tensors: dict):
    torch = gpu_memory.torch
    kind = {"bf16": cudnn.data_type.BFLOAT16, "fp16": cudnn.data_type.HALF}[problem.dtype]
    q, k, v, dO = (problem.to_bhnd_tensor(tensors[name]) for name in ("Q", "K", "V", "dO"))  # noqa: N806
    forward = torch.ops.aten._scaled_dot_product_flash_attention
    out, log_sum_exp, *_ = forward(q, k, v, is_causal=problem.causal, scale=problem.scale)
    inputs = {"q": q, "k": k, "v": v, "o": out, "dO": dO, "stats": log_sum_exp.unsqueeze(-1)}
    gradients = tuple(torch.empty_like(tensors[name]) for name in "QKV")
    made = graph(kind)
    operands = {
        name: operand(made, name, tensor, cudnn.data_type.FLOAT if name == "stats" else kind)
        for name, tensor in inputs.items()
    }
    causal = {}
    if problem.causal:
        causal = {"diagonal_alignment": alignment(problem), "diagonal_band_right_bound": 0}
    results = made.sdpa_backward(**operands, attn_scale=problem.scale, use_deterministic_algorithm=True, **causal)
    buffers = {operands[name]: tensor for name, tensor in inputs.items()}
    for result, gradient in zip(results, gradients, strict=True):
        buffers[result] = problem.to_bhnd_tensor(gradient)
        write_to(result, buffers[result], kind)
    launch = launcher(made, buffers)

    def run():
        launch()
        return gradients

    return run
