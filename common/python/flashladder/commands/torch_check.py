"""Tries flashladder.torch on a GPU: O and gradients against the float64 reference, and a layer that learns as with
PyTorch's own attention."""

import numpy as np

from flashladder.core.console import coloured, say, table
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.measuring import gpu_memory
from flashladder.running import gradients, verify
from flashladder.running.verify import Comparison
from flashladder.torch import attention

PROBLEMS = (
    Problem(B=1, Hq=1, Nq=5, Nkv=7, d_head=64),
    Problem(B=2, Hq=4, Hkv=2, Nq=150, Nkv=230, d_head=128, causal=True),
    Problem(B=2, Hq=3, Nq=64, d_head=64, dtype="fp16", causal=True, layout="bnhd"),
    Problem(B=1, Hq=2, Hkv=1, Nq=300, Nkv=170, d_head=128, dtype="fp16", causal=True, layout="bnhd"),
    Problem(B=1, Hq=2, Nq=257, d_head=128, scale=0.5),
)
STEPS = 50


def run() -> int:
    """1 where something is wrong."""
    torch = gpu_memory.torch_with_cuda()
    if torch is None:
        raise FlashLadderError("PyTorch that sees a GPU is needed: this Python has none, or no GPU is here.")
    say(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
    compared = [(problem, *compare(problem)) for problem in PROBLEMS]
    rows = [[problem, *(f"{one.frobenius:.1e}" for one in both), "right" if all(both) else "WRONG"]
            for problem, *both in compared]  # fmt: skip
    table("O and the gradients against the float64 reference", ("problem", "O", "gradients", ""), rows, right=(1, 2))
    wrong = [f"{problem}: {one.message}" for problem, *both in compared for one in both if not one]
    ours, theirs = losses(attention), losses(torchs_own)
    table("A layer that learns: loss by step", ("step", "flashladder", "PyTorch"),
          [[step, f"{ours[step]:.5f}", f"{theirs[step]:.5f}"] for step in (*range(0, STEPS, 10), STEPS - 1)],
          right=(0, 1, 2))  # fmt: skip
    wrong += unlike(ours, theirs)
    for words in wrong:
        say(coloured(words, "red"))
    return 1 if wrong else 0


def compare(problem: Problem) -> tuple[Comparison, Comparison]:
    """Of O, and of the worst of dQ, dK and dV, through PyTorch's autograd."""
    torch, inputs = gpu_memory.torch, gradients.random_inputs(problem)

    def tensor(name: str):
        patterns = torch.from_numpy(np.ascontiguousarray(inputs[name]).view(np.int16)).cuda()
        return problem.to_bhnd_tensor(patterns.view(gpu_memory.torch_type(problem.dtype)))

    q, k, v = leaves = [tensor(name).requires_grad_() for name in "QKV"]
    output = attention(q, k, v, problem.causal, problem.scale)
    output.backward(tensor("dO"))
    of_output = verify.compare(gpu_memory.host_bits(output.detach()), *verify.reference(problem, inputs), problem.dtype)
    got = {name: gpu_memory.host_bits(leaf.grad) for name, leaf in zip(gradients.GRADIENTS, leaves, strict=True)}
    return of_output, gradients.compare_all(got, gradients.expected(problem, inputs), problem.dtype)


def torchs_own(q, k, v, causal: bool):
    return gpu_memory.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def losses(attend) -> list[float]:
    """Of a layer of two heads in bf16 that learns, step by step, what another layer with other weights makes of the
    same rows: Adam, the same seed each time."""
    torch, heads, d = gpu_memory.torch, 2, 64
    generator = torch.Generator("cuda").manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator, device="cuda")

    rows, width = normal(4, 64, heads * d), heads * d

    def layer(weights):
        q, k, v = ((rows @ one).view(4, 64, heads, d).transpose(1, 2).bfloat16() for one in weights)
        return attend(q, k, v, True).float()

    wanted = layer(normal(3, width, width) / width**0.5).detach()
    weights = (normal(3, width, width) / width**0.5).requires_grad_()
    optimizer, found = torch.optim.Adam([weights], lr=0.01), []
    for _ in range(STEPS):
        loss = (layer(weights) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def unlike(ours: list[float], theirs: list[float]) -> list[str]:
    """What is wrong with the first layer's losses beside the second's: both round to 16 bits, each in its own order, so
    they part by little; and a layer that learns ends with a small part of what it began with."""
    apart = max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) / theirs[0]
    wrong = [] if apart <= 0.02 else [f"the losses are up to {apart:.3f} of the first one apart; 0.02 is the limit"]
    left = ours[-1] / ours[0]
    return wrong + ([] if left <= 0.25 else [f"the layer ends with {left:.2f} of its first loss: it does not learn"])
