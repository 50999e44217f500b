"""flashladder.torch: what it takes and how it tells the kernels, without PyTorch; all of it where there is a GPU."""

import ctypes
import importlib.util
import sys
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from flashladder import torch as front
from flashladder.core import abi
from flashladder.core.device import Compute, find_gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages

GPU = "cuda:0"


@dataclass(frozen=True)
class Device:
    name: str

    @property
    def type(self) -> str:
        return self.name.partition(":")[0]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Tensor:
    """What is asked of a tensor of PyTorch."""

    shape: tuple
    steps: tuple = ()  # (): without gaps
    dtype: str = "torch.bfloat16"
    device: Device = field(default_factory=lambda: Device(GPU))
    place: int = 1 << 20

    def stride(self) -> tuple:
        b, h, n, d = self.shape
        return self.steps or (h * n * d, n * d, d, 1)

    def data_ptr(self) -> int:
        return self.place

    def element_size(self) -> int:
        return 2

    def clone(self, memory_format) -> "Tensor":
        return replace(self, steps=(), place=1 << 21)


Q, KV = Tensor((2, 4, 6, 64)), Tensor((2, 2, 9, 64))


def test_what_fits_is_taken():
    front.check(Q, KV, KV)
    front.check(*(replace(one, dtype="torch.float16") for one in (Q, KV, KV)))


@pytest.mark.parametrize(
    "tensors, words",
    [
        ((replace(Q, device=Device("cpu")), KV, KV), "q is on cpu; attention() runs on a CUDA device"),
        (
            (Q, replace(KV, dtype="torch.float64"), KV),
            "k is torch.float64; attention() takes torch.float16 and torch.bf",
        ),
        ((replace(Q, dtype="torch.float32"), KV, KV), "q is torch.float32"),
        ((Q, KV, replace(KV, dtype="torch.float16")), "v is torch.float16 on cuda:0, and q torch.bfloat16"),
        ((Q, KV, replace(KV, device=Device("cuda:1"))), "v is torch.bfloat16 on cuda:1"),
        ((Tensor((2, 6, 64)), KV, KV), "q has shape (2, 6, 64)"),
        ((Tensor((2, 4, 0, 64)), KV, KV), "none of them 0"),
        (tuple(Tensor((1, 1, 8, 96)) for _ in range(3)), "d is 96; attention() takes 64 and 128"),
        ((Q, KV, Tensor((2, 2, 8, 64))), "k and v have one shape"),
        ((Q, Tensor((2, 3, 9, 64)), Tensor((2, 3, 9, 64))), "their heads divide q's"),
        ((Q, Tensor((1, 2, 9, 64)), Tensor((1, 2, 9, 64))), "B and d are q's"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(tensors, words):
    with pytest.raises(FlashLadderError) as refusal:
        front.check(*tensors)
    assert words in str(refusal.value)


@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
def test_the_structs_are_those_of_the_harness(layout):
    """Of the same tensors the package's own runs make the same bytes."""
    problem = Problem(B=2, Hq=4, Hkv=2, Nq=6, Nkv=9, d_head=64, causal=True, scale=0.3, layout=layout)
    places = {name: 4096 * (number + 1) for number, name in enumerate((*abi.TENSORS, "log_sum_exp"))}

    def tensor(name: str) -> Tensor:
        b, first, second, d = problem.steps(name)
        shape = (2, *((4, 6) if name[-1] in "QO" else (2, 9)), 64)
        return Tensor(shape, (b, *((second, first) if layout == "bnhd" else (first, second)), d), place=places[name])

    every = {name: front.flash_tensor(tensor(name)) for name in abi.TENSORS}
    shape = front.sizes(tensor("Q"), tensor("K"), True, 0.3)
    backward = abi.FlashBackwardParams(**every, **shape, log_sum_exp=places["log_sum_exp"])
    assert bytes(backward) == bytes(problem.params(places, kind=abi.FlashBackwardParams))
    forward = abi.FlashParams(**{name: every[name] for name in "QKVO"}, **shape, log_sum_exp=places["log_sum_exp"])
    assert bytes(forward) == bytes(problem.params(places))


def test_an_axis_with_one_element_may_have_any_stride():
    odd = Tensor((1, 4, 6, 64), (7, 384, 64, 1))
    assert front.readable(odd) is odd and front.flash_tensor(odd).stride_batch == 64


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor((2, 4, 6, 64), (0, 384, 64, 1)),  # expanded
        Tensor((2, 4, 6, 64), (1536, 384, 1, 6)),  # transposed
        Tensor((2, 4, 6, 64), (2048, 512, 68, 1)),  # rows at multiples of 8 bytes
        replace(Q, place=(1 << 20) + 2),
    ],
)
def test_what_the_kernels_cannot_read_is_copied(tensor, monkeypatch):
    fake = type("torch", (), {"contiguous_format": None})
    monkeypatch.setitem(sys.modules, "torch", fake)
    copy = front.readable(tensor)
    assert copy is not tensor and copy.stride() == (1536, 384, 64, 1) and copy.data_ptr() % front.ALIGNED == 0


@pytest.mark.parametrize(
    "every, compute, slug",
    [
        (stages.all_stages(), 90, "shapes"),
        (stages.all_stages(), 80, "masking"),
        (stages.all_stages(), 100, "tma"),
        (stages.backward_stages(), 90, "no_scratch_pass"),
        (stages.backward_stages(), 120, "backward_recompute"),
    ],
)
def test_the_last_stage_that_a_gpu_runs(every, compute, slug):
    assert front.last_for(every, compute).slug == slug


def test_a_gpu_that_is_too_old_is_refused():
    with pytest.raises(FlashLadderError, match="No stage runs on compute capability 7.0"):
        front.last_for(stages.all_stages(), 70)
    assert not Compute(80).specific


class Buffer:
    def __init__(self, size: int):
        self.size = size

    def numel(self) -> int:
        return self.size


def test_a_stream_s_calls_share_a_workspace_of_zeros():
    kept = front.Workspaces()
    first = kept.of(("0", 1), 64, Buffer)
    assert kept.of(("0", 1), 32, Buffer) is first and kept.of(("0", 2), 32, Buffer) is not first
    assert kept.of(("0", 1), 128, Buffer).size == 128
    kept.forget(("0", 1))
    assert kept.of(("0", 1), 32, Buffer).size == 32


def test_the_two_layers_losses_are_judged():
    from flashladder.commands.torch_check import unlike

    falling = [1.0, 0.5, 0.1]
    assert unlike(falling, falling) == [] and unlike([1.0, 0.51, 0.1], falling) == []
    assert "apart" in unlike([1.0, 0.6, 0.1], falling)[0] and "does not learn" in unlike([1.0, 1.0, 1.0], [1.0] * 3)[0]


def by_formulas(part: int, params, tensor) -> None:
    """What the kernels of a part do with the struct, in NumPy on the host's memory: fp16, Hq = Hkv, no mask."""

    def array(name: str) -> np.ndarray:
        one, rows = getattr(params, name), params.Nq if name[-1] in "QO" else params.Nkv
        steps = [2 * step for step in (one.stride_batch, one.stride_head, one.stride_row, 1)]
        memory = (ctypes.c_uint16 * (sum(steps) * max(params.B, params.Hq, rows))).from_address(one.data)
        half = np.frombuffer(memory, np.float16)
        return np.lib.stride_tricks.as_strided(half, (params.B, params.Hq, rows, params.d_head), steps)

    q, k, v = (array(name).astype(np.float64) for name in "QKV")
    sums = (ctypes.c_float * (params.B * params.Hq * params.Nq)).from_address(params.log_sum_exp)
    log_sum_exp = np.frombuffer(sums, np.float32).reshape(params.B, params.Hq, params.Nq)
    scores = params.scale * q @ k.swapaxes(2, 3)
    if part == 0:
        log_sum_exp[...] = np.log(np.exp(scores).sum(axis=3))
    weights = np.exp(scores - log_sum_exp[..., None])
    if part == 0:
        array("O")[...] = weights @ v
        return
    gradient, output = array("dO").astype(np.float64), array("O").astype(np.float64)
    of_scores = weights * (gradient @ v.swapaxes(2, 3) - (gradient * output).sum(axis=3, keepdims=True))
    array("dQ")[...] = params.scale * of_scores @ k
    array("dK")[...] = params.scale * of_scores.swapaxes(2, 3) @ q
    array("dV")[...] = weights.swapaxes(2, 3) @ gradient


@pytest.mark.parametrize("layout", ["bhnd", "bnhd", "one tensor of all three"])
def test_autograd_gives_both_parts_the_tensors_where_they_lie(layout, monkeypatch):
    torch = pytest.importorskip("torch", reason="flashladder.torch: PyTorch is not installed")
    monkeypatch.setattr(front, "_launch", by_formulas)
    monkeypatch.setattr(front, "check", lambda *tensors: None)  # tensors of the host
    if layout == "one tensor of all three":
        whole = torch.randn(2, 5, 3, 3, 64, dtype=torch.float64).half()
        leaves = [whole[:, :, one].transpose(1, 2).detach() for one in range(3)]
    else:
        leaves = [torch.randn(2, 3, 5, 64).half() for _ in range(3)]
        leaves = [one if layout == "bhnd" else one.transpose(1, 2).contiguous().transpose(1, 2) for one in leaves]
    doubles = [one.double().requires_grad_() for one in leaves]
    leaves = [one.requires_grad_() for one in leaves]
    outputs = front.attention(*leaves, scale=0.2), doubles[0] @ doubles[1].transpose(2, 3)
    outputs = outputs[0], torch.softmax(0.2 * outputs[1], dim=3) @ doubles[2]
    torch.testing.assert_close(outputs[0].double(), outputs[1], rtol=0, atol=4e-3)
    if layout == "bnhd":
        assert outputs[0].stride() == leaves[0].stride()
    for one in outputs:
        one.square().sum().backward()
    for one, exact in zip(leaves, doubles, strict=True):
        torch.testing.assert_close(one.grad.double(), exact.grad, rtol=2e-2, atol=2e-2)
    outputs[0].detach_()
    front.attention(*leaves, scale=0.2).sum().backward()  # its gradient is one number, expanded


def test_on_a_gpu_gradients_are_right_and_a_layer_learns(flashladder):
    if not importlib.util.find_spec("torch"):
        pytest.skip("flashladder.torch: PyTorch is not installed")
    if not find_gpu():
        pytest.skip("flashladder.torch: no GPU here")
    done = flashladder("torch")
    assert done.returncode == 0 and "A layer that learns" in done.stdout, done.stdout + done.stderr
