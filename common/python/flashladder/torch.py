"""Attention for PyTorch with gradients, by the last stage of either part that the GPU can run: on Hopper 23 and 45.

    from flashladder.torch import attention
    O = attention(q, k, v, causal=True)

PyTorch is no dependency: only who has it can have tensors of it. `python -m flashladder torch` tries all of this.
"""

import functools
from collections.abc import Sequence

from flashladder.core import abi
from flashladder.core.device import real_cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.ladder import stages
from flashladder.ladder.kernels import WithKernel
from flashladder.measuring.gpu_memory import loaded_cudart
from flashladder.running.cudart import Cudart

TYPES = {"torch.float16": abi.FP16, "torch.bfloat16": abi.BF16}
HEAD_DIMS = (64, 128)
ALIGNED = 16  # bytes: what rows begin at multiples of


def attention(q, k, v, causal: bool = False, scale: float | None = None):
    """softmax(scale q kᵀ) v for tensors on a CUDA device: q (B, Hq, Nq, d), k and v (B, Hkv, Nkv, d), Hq a multiple of
    Hkv; fp16 or bf16, d 64 or 128. Of (B, N, H, d) pass `q.transpose(1, 2)`: nothing is copied, and O lies as q does.

    causal: query i sees keys 0 to i + Nkv - Nq, so that the last one sees all (PyTorch's is_causal has the first one
    see one key; with Nq = Nkv that is the same). scale: above 0; 1 / sqrt(d) by default. FlashLadderError says what
    does not fit. Gradients of q, k and v can be taken once: they have none themselves.
    """
    check(q, k, v)
    return _function().apply(q, k, v, bool(causal), q.shape[3] ** -0.5 if scale is None else float(scale))


def check(q, k, v) -> None:
    """FlashLadderError where the three are nothing that attention() takes."""
    for name, one in (("q", q), ("k", k), ("v", v)):
        if len(one.shape) != 4 or 0 in one.shape:
            raise FlashLadderError(
                f"{name} has shape {tuple(one.shape)}; (B, heads, rows, d) is needed, none of them 0."
            )
        if one.device.type != "cuda":
            raise FlashLadderError(
                f"{name} is on {one.device}; attention() runs on a CUDA device. `flashladder.run` takes arrays of the "
                "host, and without a GPU it uses the simulator."
            )
        if str(one.dtype) not in TYPES:
            raise FlashLadderError(
                f"{name} is {one.dtype}; attention() takes {' and '.join(TYPES)}: `{name}.bfloat16()`."
            )
        if one.dtype != q.dtype or one.device != q.device:
            raise FlashLadderError(f"{name} is {one.dtype} on {one.device}, and q {q.dtype} on {q.device}.")
    if q.shape[3] not in HEAD_DIMS:
        raise FlashLadderError(f"d is {q.shape[3]}; attention() takes {' and '.join(map(str, HEAD_DIMS))}.")
    if k.shape != v.shape or (k.shape[0], k.shape[3]) != (q.shape[0], q.shape[3]) or q.shape[1] % k.shape[1]:
        shapes = ", ".join(f"{name} {tuple(one.shape)}" for name, one in (("q", q), ("k", k), ("v", v)))
        raise FlashLadderError(f"{shapes}: k and v have one shape, B and d are q's, and their heads divide q's.")


def readable(tensor):
    """The tensor if the kernels can read it as it lies, else a copy without gaps: elements of a row side by side, and
    rows, heads and batches apart, at multiples of 16 bytes."""
    piece = ALIGNED // tensor.element_size()
    steps = [step for step, size in zip(tensor.stride()[:3], tensor.shape[:3]) if size > 1]
    fits = tensor.stride()[3] == 1 and tensor.data_ptr() % ALIGNED == 0
    if fits and all(step > 0 and step % piece == 0 for step in steps):
        return tensor
    import torch

    return tensor.clone(memory_format=torch.contiguous_format)


def flash_tensor(tensor) -> abi.FlashTensor:
    """Where it lies, as C has it. Of an axis with one element the stride says nothing, and may be anything."""
    d = tensor.shape[3]
    return abi.FlashTensor(
        tensor.data_ptr(), *(step if size > 1 else d for step, size in zip(tensor.stride()[:3], tensor.shape[:3]))
    )


def sizes(q, k, causal: bool, scale: float) -> dict:
    """What the structs of both parts have of a problem."""
    return {
        "B": q.shape[0], "Hq": q.shape[1], "Hkv": k.shape[1], "Nq": q.shape[2], "Nkv": k.shape[2],
        "d_head": q.shape[3], "dtype": TYPES[str(q.dtype)], "causal": int(causal), "scale": scale,
    }  # fmt: skip


def last_for(every: Sequence[WithKernel], compute: int) -> WithKernel:
    """The last stage of the main line that takes masks and any length and runs on this compute capability."""
    for stage in reversed(every):
        needed = stage.min_compute
        fits = compute == needed if needed.specific else compute >= needed
        if fits and stage.data.get("masks") and not stage.is_branch:
            return stage
    raise FlashLadderError(f"No stage runs on compute capability {compute / 10}: attention() needs 8.0 or more.")


class Workspaces:
    """Those that have to be zero before a call, and are again after it: calls of one stream share one."""

    def __init__(self):
        self._kept = {}

    def of(self, key, size: int, zeros):
        """The one of this device and stream; zeros(size) makes it when it is first asked for, or is too small."""
        if key not in self._kept or self._kept[key].numel() < size:
            self._kept[key] = zeros(size)
        return self._kept[key]

    def forget(self, key) -> None:
        """After a call that failed it may be anything."""
        self._kept.pop(key, None)


_workspaces = Workspaces()


@functools.cache
def _libraries(compute: int) -> tuple[abi.StageLibrary, abi.BackwardLibrary]:
    """Loaded into this process, with PyTorch's CUDA runtime where it is the same version."""
    Cudart(loaded_cudart() or real_cudart())
    found = []
    for every, kind in ((stages.all_stages(), abi.StageLibrary), (stages.backward_stages(), abi.BackwardLibrary)):
        stage = last_for(every, compute)
        if not stage_library(stage.number).exists():
            raise FlashLadderError(f"Stage {stage.name} is not built: run `make stage-{stage.id}`.")
        found.append(kind(stage_library(stage.number)))
    return tuple(found)


def _launch(part: int, params, tensor) -> None:
    """Queues a part's kernels, 0 forward, 1 backward, on the current stream of the tensor's device. A workspace that
    is given back while kernels still use it is safe: PyTorch hands it to later work of the same stream alone."""
    import torch

    with torch.cuda.device(tensor.device):
        stream = torch.cuda.current_stream().cuda_stream
        major, minor = torch.cuda.get_device_capability()
        library, key = _libraries(10 * major + minor)[part], (tensor.device.index, stream)
        try:
            told = library.describe(params).as_dict()
            make = functools.partial(torch.zeros if told.get("zeroed_workspace") else torch.empty,
                                     dtype=torch.uint8, device=tensor.device)  # fmt: skip
            needed = told["workspace_bytes"]
            workspace = _workspaces.of(key, needed, make) if told.get("zeroed_workspace") else make(needed)
            params.workspace, params.workspace_bytes = workspace.data_ptr() if needed else None, needed
            library.launch(params, stream)
        except abi.StageRefused as refusal:
            _workspaces.forget(key)
            raise FlashLadderError(str(refusal)) from refusal


@functools.cache
def _function():
    import torch

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, causal, scale):
            q, k, v = map(readable, (q, k, v))
            o = torch.empty_like(q)
            log_sum_exp = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
            places = {name: flash_tensor(one) for name, one in zip("QKVO", (q, k, v, o), strict=True)}
            shape = sizes(q, k, causal, scale)
            _launch(0, abi.FlashParams(**places, **shape, log_sum_exp=log_sum_exp.data_ptr()), q)
            ctx.save_for_backward(q, k, v, o, log_sum_exp)
            ctx.shape = shape
            return o

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            q, k, v, o, log_sum_exp = ctx.saved_tensors
            gradients = [torch.empty_like(one) for one in (q, k, v)]
            tensors = (q, k, v, o, readable(gradient.to(q.dtype)), *gradients)
            places = {name: flash_tensor(one) for name, one in zip(abi.TENSORS, tensors, strict=True)}
            _launch(1, abi.FlashBackwardParams(**places, **ctx.shape, log_sum_exp=log_sum_exp.data_ptr()), q)
            return *gradients, None, None

    return Attention
