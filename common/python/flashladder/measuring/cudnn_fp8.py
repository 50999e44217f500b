"""cuDNN's attention of e4m3, which PyTorch does not offer: by the Python package nvidia-cudnn-frontend, if it is there.

On Hopper cuDNN writes O as e4m3, too, with a scale for each tensor and none for each head. All scales are 1 here. So a
time of it is one of the same products, exponentials and bytes of Q, K and V, and of half the bytes of O.
"""

from functools import cache

from flashladder.core.problem import Problem
from flashladder.measuring import gpu_memory

NAME = "cuDNN FP8"
PACKAGE = "nvidia-cudnn-frontend"
SCALES = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")


class Unavailable(RuntimeError):
    """Why there is no such peer here: the package is missing, or cuDNN has no kernel for the problem."""


def _package():
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
def _handle():
    return _package().create_handle()  # of the default stream


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"package {PACKAGE}: {type(error).__name__}: {lines[0] if lines else 'no message'}"


def versions() -> dict:
    """What a record says of the package; nothing where it is missing."""
    try:
        return {"cudnn_frontend": str(_package().__version__)}
    except (Unavailable, AttributeError):
        return {}


def attention(problem: Problem, tensors: dict):
    """(launch, output, facts): launch() queues the work on the default stream, output() has O as bf16's patterns in
    the problem's layout.

    tensors: PyTorch's Q, K and V of e4m3. Unavailable says why there is none, whatever the package raised.
    """
    cudnn = _package()
    try:
        return _built(cudnn, problem, tensors)
    except Exception as error:  # its exceptions have no common class, and a benchmark goes on without this peer
        raise Unavailable(_words(error)) from error


def _built(cudnn, problem: Problem, tensors: dict):
    torch = gpu_memory.torch
    floats, bytes_type = cudnn.data_type.FLOAT, cudnn.data_type.FP8_E4M3
    graph = cudnn.pygraph(
        io_data_type=bytes_type, intermediate_data_type=floats, compute_data_type=floats, handle=_handle()
    )
    single = {name: torch.ones(1, 1, 1, 1, device="cuda") for name in (*SCALES, "amax_s", "amax_o")}
    inputs = {name.lower(): problem.to_bhnd_tensor(tensors[name]) for name in "QKV"}
    inputs |= {name: single[name] for name in SCALES}
    output_bytes = torch.empty(problem.shape("O"), dtype=torch.float8_e4m3fn, device="cuda")
    written = {"O": problem.to_bhnd_tensor(output_bytes)} | {name: single[name] for name in ("amax_s", "amax_o")}

    def kind(name: str):
        return bytes_type if name in ("q", "k", "v", "O") else floats

    operands = {
        name: graph.tensor(name=name, dim=list(tensor.shape), stride=list(tensor.stride()), data_type=kind(name))
        for name, tensor in inputs.items()
    }
    mask = {}
    if problem.causal:  # the last query sees the last key
        corner = "TOP_LEFT" if problem.Nq == problem.Nkv else "BOTTOM_RIGHT"
        mask = {"diagonal_alignment": getattr(cudnn.diagonal_alignment, corner), "right_bound": 0}
    out, _, *largest = graph.sdpa_fp8(**operands, attn_scale=problem.scale, generate_stats=False, **mask)
    results = dict(zip(written, (out, *largest), strict=True))
    for name, result in results.items():
        shape, strides = list(written[name].shape), list(written[name].stride())
        result.set_output(True).set_dim(shape).set_stride(strides).set_data_type(kind(name))
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(1, graph.get_workspace_size()), dtype=torch.uint8, device="cuda")
    buffers = {operands[name]: tensor for name, tensor in inputs.items()}
    buffers |= {results[name]: tensor for name, tensor in written.items()}

    def launch():
        try:
            graph.execute(buffers, workspace, handle=_handle())
        except Exception as error:
            raise Unavailable(_words(error)) from error

    def output():
        return gpu_memory.host_bits(output_bytes.to(torch.bfloat16))

    return launch, output, {"output": "e4m3"}
