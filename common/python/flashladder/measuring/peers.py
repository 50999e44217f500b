"""What the stages are measured against: FlashAttention-2 and cuDNN by PyTorch's SDPA; FlashAttention-3 and -4 where
their users' packages are installed; and cuBLAS as the ceiling. cuDNN of e4m3 and its
deterministic gradients are in cudnn_peers; peers of decode alone are in decode_peers."""

import importlib
import importlib.metadata
import importlib.util
import inspect
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from flashladder.core.problem import Problem
from flashladder.measuring import cudnn_peers, gpu_memory


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
        """Of another distribution that brings the module, with its name: who built it differs."""
        for name in self.distributions:
            try:
                return importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        others = importlib.metadata.packages_distributions().get(self.module.partition(".")[0], ())
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in sorted(set(others))) or "unknown"

    def takes_deterministic(self) -> bool:
        try:
            function = importlib.import_module(self.module).flash_attn_func
            return "deterministic" in inspect.signature(function).parameters
        except Exception:  # it cannot be imported, which attention() will say, or its function shows no parameters
            return False

    def attention(self, problem: Problem, q, k, v, **options):
        """O as (B, H, N, d), of tensors of that shape, by its flash_attn_func, which takes them as (B, N, H, d).
        RuntimeError, too, where the package has no kernel for it."""
        with refusals():
            function = importlib.import_module(self.module).flash_attn_func
            by_rows = (tensor.transpose(1, 2) for tensor in (q, k, v))
            output = function(*by_rows, softmax_scale=problem.scale, causal=problem.causal, **options)
        output = output[0] if isinstance(output, tuple) else output  # some versions return the log-sum-exp as well
        return output.transpose(1, 2)


BACKENDS = {"FlashAttention-2": "FLASH_ATTENTION", "cuDNN attention": "CUDNN_ATTENTION"}
PACKAGES = {
    "FlashAttention-3": Package("flash_attn_interface", ("flash_attn_3", "flash-attn-3")),
    "FlashAttention-4": Package("flash_attn.cute", ("flash-attn-4", "fa4")),
}
WITH_E4M3 = ("FlashAttention-3",)  # its flash_attn_func takes e4m3, with scales of 1, and writes bf16
DETERMINISTIC = ", deterministic"  # behind the name of a peer whose gradients are to have the same bits in each run
FLASHINFER = "FlashInfer"
DECODE_PACKAGES = {FLASHINFER: Package("flashinfer", ("flashinfer-python",))}
CEILING = "cuBLAS matmul"
CEILING_SIZE = 8192  # rows and columns of the square matrices


def known() -> set[str]:
    """All peers that a record may have, on this machine or not."""
    plain = {*BACKENDS, *PACKAGES}
    return plain | {name + DETERMINISTIC for name in plain}


def names(dtype: str = "bf16") -> tuple[str, ...]:
    """The peers that this machine has for a type, where it has PyTorch."""
    installed = tuple(name for name, package in PACKAGES.items() if package.installed())
    return tuple(name for name in installed if name in WITH_E4M3) if dtype == "e4m3" else (*BACKENDS, *installed)


def gradient_names() -> tuple[str, ...]:
    """The same of gradients, with the peers that can be asked for the same bits in each run."""
    asked = [name for name in names() if name in BACKENDS or PACKAGES[name].takes_deterministic()]
    return (*names(), *(name + DETERMINISTIC for name in asked))


def attention_call(name: str, problem: Problem, tensors: dict, **options):
    """A function that runs the peer on Q, K, V and returns its output tensor; raises RuntimeError if it cannot.
    options: further ones for a package's function."""
    q, k, v = (problem.to_bhnd_tensor(tensors[tensor]) for tensor in "QKV")
    if name in PACKAGES:
        return lambda: PACKAGES[name].attention(problem, q, k, v, **options)
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
    plain = name.removesuffix(DETERMINISTIC)
    deterministic = plain != name
    if deterministic and plain == "cuDNN attention":
        return cudnn_peers.gradients(problem, tensors)
    torch = gpu_memory.torch
    given = tuple(tensors[tensor].detach().requires_grad_() for tensor in "QKV")
    by_heads = dict(zip("QKV", given, strict=True))
    options = {"deterministic": True} if deterministic and plain in PACKAGES else {}
    output = attention_call(plain, problem, by_heads, **options)()
    dO = problem.to_bhnd_tensor(tensors["dO"])  # noqa: N806 - the tensor's name

    around = refusals if plain in PACKAGES else _deterministic_algorithms if deterministic else nullcontext

    def call():
        with around():
            return torch.autograd.grad(output, given, dO, retain_graph=True)

    return call


@contextmanager
def _deterministic_algorithms():
    """Has PyTorch's FlashAttention-2 add dQ in a fixed order, which its backward pass asks PyTorch's settings about.
    New tensors are not filled with NaN, as this setting has it else: that would be timed."""
    torch = gpu_memory.torch
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = True


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
    return found | installed | cudnn_peers.version()
