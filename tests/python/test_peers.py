"""FlashAttention-3 and -4 as peers, their packages played: found where they are, asked in their layout, versions kept,
and that one without a kernel for a problem is skipped, whatever it raises."""

import importlib.machinery
import sys
import types

import numpy as np
import pytest

from flashladder.core.problem import Problem
from flashladder.measuring import peers

PROBLEM = Problem(B=2, Hq=4, Hkv=2, Nq=6, d_head=64, scale=0.5, causal=True)


class Tensor(np.ndarray):
    """An array whose transpose() takes two dimensions, as PyTorch's does."""

    def transpose(self, first, second):
        return self.swapaxes(first, second)


def attention(q, k, v, softmax_scale, causal):
    """Of (B, N, H, d); a lower triangle where causal."""
    k, v = (np.repeat(one, q.shape[2] // one.shape[2], axis=2) for one in (k, v))
    S = softmax_scale * np.einsum("bihd,bjhd->bhij", q, k)
    if causal:
        S = np.where(np.tri(*S.shape[2:], dtype=bool), S, -np.inf)
    P = np.exp(S - S.max(axis=3, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", P / P.sum(axis=3, keepdims=True), v).view(Tensor)


@pytest.fixture
def install(monkeypatch):
    """Puts a module with this flash_attn_func where the peer's package would be."""

    def put(name, function):
        *parents, last = peers.PACKAGES[name].module.split(".")
        for module in (".".join(parents[: i + 1]) for i in range(len(parents))):
            monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
            sys.modules[module].__path__ = []
        full = ".".join([*parents, last])
        made = types.ModuleType(full)
        made.__spec__, made.flash_attn_func = importlib.machinery.ModuleSpec(full, None), function
        monkeypatch.setitem(sys.modules, full, made)

    return put


def tensors(problem):
    numbers = np.random.default_rng(1)
    return {name: numbers.standard_normal(problem.shape(name)).view(Tensor) for name in "QKV"}


def test_only_those_that_are_installed_are_peers(install):
    assert peers.names() == tuple(peers.BACKENDS)
    install("FlashAttention-4", attention)
    assert peers.names() == (*peers.BACKENDS, "FlashAttention-4")
    assert peers.names("e4m3") == ()
    install("FlashAttention-3", attention)
    assert peers.names("e4m3") == ("FlashAttention-3",)


@pytest.mark.parametrize("name", peers.PACKAGES)
@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
def test_the_package_is_asked_in_its_own_layout(install, name, layout):
    problem = Problem(**{**PROBLEM.__dict__, "layout": layout})
    given = tensors(problem)
    told = {}

    def with_log_sum_exp(q, k, v, softmax_scale, causal):
        told.update(shapes=[one.shape for one in (q, k, v)])
        output = attention(q, k, v, softmax_scale, causal)
        return (output, None) if name == "FlashAttention-4" else output

    install(name, with_log_sum_exp)
    got = peers.attention_call(name, problem, given)()
    assert told["shapes"] == [(2, 6, 4, 64), (2, 6, 2, 64), (2, 6, 2, 64)]
    by_rows = (problem.to_bhnd_tensor(given[one]).transpose(1, 2) for one in "QKV")
    wanted = attention(*by_rows, softmax_scale=0.5, causal=True).transpose(1, 2)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_whatever_it_raises_is_a_reason_to_skip_it(install):
    def refuses(*_, **__):
        raise AssertionError("head dim 64 is not supported on this architecture")

    install("FlashAttention-3", refuses)
    with pytest.raises(RuntimeError, match="AssertionError: head dim 64 is not supported"):
        peers.attention_call("FlashAttention-3", PROBLEM, tensors(PROBLEM))()


def test_the_record_has_their_versions(install, monkeypatch):
    install("FlashAttention-3", attention)
    assert peers.PACKAGES["FlashAttention-3"].version() == "unknown"
    known = {"flash-attn-3": "3.0.1"}

    def version(name):
        if name not in known:
            raise peers.importlib.metadata.PackageNotFoundError(name)
        return known[name]

    monkeypatch.setattr(peers.importlib.metadata, "version", version)
    torch = types.SimpleNamespace(
        __version__="2.11",
        backends=types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91900)),
        version=types.SimpleNamespace(cuda="13.0"),
    )
    monkeypatch.setattr(peers.gpu_memory, "torch_with_cuda", lambda: torch)
    assert peers.versions()["FlashAttention-3"] == "3.0.1"
