"""What the stages are measured against: FlashAttention-2 and cuDNN by PyTorch's SDPA; FlashAttention-3 and -4 where
their users' packages are installed; and cuBLAS as the ceiling. The peer of e4m3 is in cudnn_fp8, those of decode alone
in decode_peers."""

import importlib
import importlib.metadata
import importlib.util
from contextlib import contextmanager
from dataclasses import dataclass

from flashladder.core.problem import Problem
from flashladder.measuring import cudnn_fp8, gpu_memory


@contextmanager
def refusals():
    """Makes a RuntimeError of whatever a package says no by: its own assertions, a compiler's errors."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Package:
    """A peer with a package of its own."""

    module: str
    distributions: tuple[str, ...]  # names under which it is installed

    def installed(self) -> bool:
        try:
            return importlib.util.find_spec(self.module) is not None
        except ModuleNotFoundError:  # of the package that the module is in
            return False

    def version(self) -> str:
        for name in self.distributions:
            try:
                return importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        return "unknown"

    def attention(self, problem: Problem, q, k, v):
        """O as (B, H, N, d), of tensors of that shape, by its flash_attn_func, which takes them as (B, N, H, d).
        RuntimeError, too, where the package has no kernel for it."""
        with refusals():
            function = importlib.import_module(self.module).flash_attn_func
            by_rows = (tensor.transpose(1, 2) for tensor in (q, k, v))
            output = function(*by_rows, softmax_scale=problem.scale, causal=problem.causal)
        output = output[0] if isinstance(output, tuple) else output  # some versions return the log-sum-exp as well
        return output.transpose(1, 2)


BACKENDS = {"FlashAttention-2": "FLASH_ATTENTION", "cuDNN attention": "CUDNN_ATTENTION"}
PACKAGES = {
    "FlashAttention-3": Package("flash_attn_interface", ("flash_attn_3", "flash-attn-3")),
    "FlashAttention-4": Package("flash_attn.cute", ("flash-attn-4", "fa4")),
}
FLASHINFER = "FlashInfer"
DECODE_PACKAGES = {FLASHINFER: Package("flashinfer", ("flashinfer-python",))}
CEILING = "cuBLAS matmul"
CEILING_SIZE = 8192  # rows and columns of the square matrices


def names() -> tuple[str, ...]:
    """The peers that this machine has, where it has PyTorch."""
    return (*BACKENDS, *(name for name, package in PACKAGES.items() if package.installed()))


def attention_call(name: str, problem: Problem, tensors: dict):
    """A function that runs the peer on Q, K, V and returns its output tensor; raises RuntimeError if it cannot."""
    q, k, v = (problem.to_bhnd_tensor(tensors[tensor]) for tensor in "QKV")
    if name in PACKAGES:
        return lambda: PACKAGES[name].attention(problem, q, k, v)
    torch = gpu_memory.torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = getattr(SDPBackend, BACKENDS[name])
    attention = torch.nn.functional.scaled_dot_product_attention

    def call():
        with sdpa_kernel(backend):
            return attention(
                q, k, v, is_causal=problem.causal, scale=problem.scale, enable_gqa=problem.Hq != problem.Hkv
            )

    return call


def gradient_call(name: str, problem: Problem, tensors: dict):
    """A function that runs the peer's backward pass and returns dQ, dK and dV; its forward pass runs here. Raises
    RuntimeError if it cannot."""
    torch = gpu_memory.torch
    given = tuple(tensors[tensor].detach().requires_grad_() for tensor in "QKV")
    by_heads = dict(zip("QKV", given, strict=True))
    output = attention_call(name, problem, by_heads)()
    dO = problem.to_bhnd_tensor(tensors["dO"])  # noqa: N806 - the tensor's name
    return lambda: torch.autograd.grad(output, given, dO, retain_graph=True)


def matmul_call(dtype: str):
    """A function that multiplies two square matrices, and its number of floating-point operations."""
    torch = gpu_memory.torch
    kind, flops = gpu_memory.torch_type(dtype), 2.0 * CEILING_SIZE**3
    a, b = (torch.randn(CEILING_SIZE, CEILING_SIZE, device="cuda", dtype=torch.float32).to(kind) for _ in range(2))
    if dtype == "e4m3":  # the second matrix by columns, as the tensor cores take bytes; bf16 out, as attention has it
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True), flops
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out), flops


def versions() -> dict:
    torch = gpu_memory.torch_with_cuda()
    if not torch:
        return {}
    found = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "torch_cuda": torch.version.cuda}
    packages = PACKAGES | DECODE_PACKAGES
    installed = {name: package.version() for name, package in packages.items() if package.installed()}
    return found | installed | cudnn_fp8.versions()
