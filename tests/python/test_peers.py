"""FlashAttention-3 and -4 as peers, their packages played: found where they are, asked in their layout, versions kept,
and that one without a kernel for a problem is skipped, whatever it raises."""

import importlib.machinery
import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest

from flashladder.core.problem import Problem
from flashladder.measuring import peers

PROBLEM = Problem(B=2, Hq=4, Hkv=2, Nq=6, d_head=64, scale=0.5, causal=True)


class Tensor(np.ndarray):
    """An array whose transpose() takes two dimensions, as PyTorch's does, and which may stand in a graph."""

    def transpose(self, first, second):
        return self.swapaxes(first, second)

    def detach(self):
        return self

    def requires_grad_(self):
        return self


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
    return {name: numbers.standard_normal(problem.shape(name)).view(Tensor) for name in ("Q", "K", "V", "dO")}


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


def test_a_build_of_another_name_is_recorded_with_it(install, tmp_path, monkeypatch):
    install("FlashAttention-3", attention)
    made = tmp_path / "others_fa3-3.0.1.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: others-fa3\nVersion: 3.0.1\n")
    (made / "top_level.txt").write_text("flash_attn_interface\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert peers.PACKAGES["FlashAttention-3"].version() == "others-fa3 3.0.1"


@pytest.fixture
def pytorch(monkeypatch):
    """PyTorch with its settings of determinism; pytorch.during has them as each gradient was computed."""
    modules = {name: types.ModuleType(name) for name in ("torch", "torch.nn", "torch.nn.attention")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    modules["torch.nn.attention"].SDPBackend = types.SimpleNamespace(FLASH_ATTENTION=1, CUDNN_ATTENTION=2)
    modules["torch.nn.attention"].sdpa_kernel = lambda backend: nullcontext()
    made = modules["torch"]
    made.asked, made.during, made.fails = False, [], None
    made.utils = types.SimpleNamespace(deterministic=types.SimpleNamespace(fill_uninitialized_memory=True))
    made.use_deterministic_algorithms = lambda asked: setattr(made, "asked", asked)
    functional = types.SimpleNamespace(scaled_dot_product_attention=lambda q, k, v, **options: q)
    made.nn = types.SimpleNamespace(functional=functional)

    def grad(output, inputs, gradient, retain_graph):
        made.during.append((made.asked, made.utils.deterministic.fill_uninitialized_memory))
        if made.fails:
            raise made.fails
        return inputs

    made.autograd = types.SimpleNamespace(grad=grad)
    monkeypatch.setattr(peers.gpu_memory, "torch", made)
    return made


def with_argument(q, k, v, softmax_scale, causal, deterministic=False):
    return attention(q, k, v, softmax_scale, causal)


def test_only_those_that_can_be_asked_for_the_same_bits_are_peers_twice(install):
    both = ("FlashAttention-2, deterministic", "cuDNN attention, deterministic")
    assert peers.gradient_names() == (*peers.BACKENDS, *both)
    install("FlashAttention-3", with_argument)
    install("FlashAttention-4", attention)
    packages = ("FlashAttention-3", "FlashAttention-4")
    assert peers.gradient_names() == (*peers.BACKENDS, *packages, *both, "FlashAttention-3, deterministic")


@pytest.mark.parametrize("name, asked", [("FlashAttention-3", False), ("FlashAttention-3, deterministic", True)])
def test_a_package_is_asked_by_its_argument(install, pytorch, name, asked):
    told = []

    def function(*tensors, deterministic=False, **options):
        told.append(deterministic)
        return with_argument(*tensors, **options)

    install("FlashAttention-3", function)
    given = tensors(PROBLEM)
    gradients = peers.gradient_call(name, PROBLEM, given)()
    assert told == [asked] and pytorch.during == [(False, True)]
    assert all(one is given[tensor] for one, tensor in zip(gradients, "QKV", strict=True))


def test_pytorch_is_asked_by_its_settings_as_the_gradients_are_computed(pytorch):
    peers.gradient_call("FlashAttention-2", PROBLEM, tensors(PROBLEM))()
    call = peers.gradient_call("FlashAttention-2, deterministic", PROBLEM, tensors(PROBLEM))
    assert not pytorch.asked
    call()
    pytorch.fails = RuntimeError("out of memory")
    with pytest.raises(RuntimeError, match="out of memory"):
        call()
    assert pytorch.during == [(False, True), (True, False), (True, False)]
    assert not pytorch.asked and pytorch.utils.deterministic.fill_uninitialized_memory


def test_a_package_that_says_no_to_gradients_is_a_reason_to_skip_it(install, pytorch):
    install("FlashAttention-4", attention)
    pytorch.fails = NotImplementedError("no backward pass on sm_90")
    call = peers.gradient_call("FlashAttention-4", PROBLEM, tensors(PROBLEM))
    with pytest.raises(RuntimeError, match="NotImplementedError: no backward pass on sm_90"):
        call()
