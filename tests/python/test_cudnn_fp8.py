"""cuDNN by its package, which is played, as PyTorch is: the peer of e4m3 and the deterministic gradients. What they ask
for, and that they never stop a benchmark."""

import sys
import types

import pytest

from flashladder.core.problem import Problem
from flashladder.measuring import bench, cudnn_peers, gpu_memory, peers

PROBLEM = Problem(B=2, Hq=3, Nq=64, d_head=64, dtype="e4m3", causal=True)


class Tensor:
    """A tensor of the package (name, dim, stride, data_type), or one of PyTorch (shape)."""

    def __init__(self, shape=(), **described):
        self.shape, self.described = tuple(shape), described

    def stride(self):
        sizes = [1]
        for size in reversed(self.shape[1:]):
            sizes.insert(0, sizes[0] * size)
        return tuple(sizes)

    def unsqueeze(self, dimension):
        assert dimension == -1
        return Tensor((*self.shape, 1))

    def __getattr__(self, name):
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda value: self.described.update({name[4:]: value}) or self


def forward(q, k, v, is_causal, scale):
    """O and the log-sum-exp of PyTorch's FlashAttention-2, and what else it returns."""
    return Tensor(q.shape, causal=is_causal, scale=scale), Tensor(q.shape[:-1]), None, None


@pytest.fixture
def package(monkeypatch):
    """The package `cudnn`; package.graphs has what was built, and package.fails names the step that raises."""
    made = types.ModuleType("cudnn")
    made.__version__ = "1.18.0"
    made.graphs, made.fails = [], ""
    made.data_type = types.SimpleNamespace(FLOAT="float", FP8_E4M3="e4m3", BFLOAT16="bf16", HALF="fp16")
    made.heur_mode = types.SimpleNamespace(A="A", FALLBACK="fallback")
    made.diagonal_alignment = types.SimpleNamespace(TOP_LEFT="top left", BOTTOM_RIGHT="bottom right")

    class Graph:
        def __init__(self, **named):
            self.named, self.steps, self.inputs, self.executed = named, [], {}, []
            made.graphs.append(self)

        def step(self, name):
            self.steps.append(name)
            if made.fails == name:
                raise OverflowError("no such kernel\nand more words")

        def tensor(self, **described):
            self.inputs[described["name"]] = Tensor(described["dim"], **described)
            return self.inputs[described["name"]]

        def sdpa_fp8(self, **operands):
            self.operands = operands
            self.outputs = [Tensor(), None, Tensor(), Tensor()]
            return self.outputs

        def sdpa_backward(self, **operands):
            self.operands = operands
            self.outputs = [Tensor(), Tensor(), Tensor()]
            return self.outputs

        def create_execution_plans(self, modes):
            self.step("create_execution_plans")

        def get_workspace_size(self):
            return 0

        def execute(self, buffers, workspace, handle):
            self.step("execute")
            self.executed.append(buffers)

        def __getattr__(self, name):
            if name not in ("validate", "build_operation_graph", "check_support", "build_plans"):
                raise AttributeError(name)
            return lambda: self.step(name)

    made.pygraph, made.create_handle = Graph, lambda: "handle"
    cudnn_peers.handle.cache_clear()
    monkeypatch.setitem(sys.modules, "cudnn", made)
    torch = types.SimpleNamespace(float8_e4m3fn="e4m3", uint8="bytes", bfloat16="bf16")
    torch.empty = lambda shape, **rest: Tensor(shape if isinstance(shape, tuple) else (shape,))
    torch.ones = lambda *shape, **rest: Tensor(shape)
    torch.empty_like = lambda tensor: Tensor(tensor.shape)
    aten = types.SimpleNamespace(_scaled_dot_product_flash_attention=forward)
    torch.ops = types.SimpleNamespace(aten=aten)
    monkeypatch.setattr(gpu_memory, "torch", torch)
    yield made
    cudnn_peers.handle.cache_clear()


def tensors(problem=PROBLEM) -> dict:
    return {name: Tensor(problem.shape(name)) for name in "QKV"}


def test_the_graph_is_of_the_problem(package):
    given = tensors()
    launch, _, facts = cudnn_peers.attention(PROBLEM, given)
    launch()
    (graph,) = package.graphs
    assert facts == {"output": "e4m3"}
    assert graph.operands["attn_scale"] == PROBLEM.scale and graph.operands["right_bound"] == 0
    assert graph.operands["diagonal_alignment"] == "top left" and graph.operands["generate_stats"] is False
    assert set(cudnn_peers.SCALES) | {"q", "k", "v"} <= set(graph.operands)
    assert graph.inputs["q"].described["dim"] == [2, 3, 64, 64]
    assert graph.inputs["k"].described["stride"] == [3 * 64 * 64, 64 * 64, 64, 1]
    assert [graph.inputs[name].described["data_type"] for name in ("v", "scale_o")] == ["e4m3", "float"]
    out, _, *largest = graph.outputs
    assert out.described == {
        "output": True, "dim": [2, 3, 64, 64], "stride": [12288, 4096, 64, 1], "data_type": "e4m3"
    }  # fmt: skip
    assert all(tensor.described["output"] and tensor.described["dim"] == [1] * 4 for tensor in largest)
    (buffers,) = graph.executed
    assert buffers[graph.inputs["q"]] is given["Q"] and len(buffers) == 3 + 6 + 3


def test_a_mask_is_at_the_last_key(package):
    cudnn_peers.attention(Problem(B=1, Hq=1, Nq=64, Nkv=128, d_head=64, dtype="e4m3", causal=True), tensors())
    cudnn_peers.attention(Problem(B=1, Hq=1, Nq=64, d_head=64, dtype="e4m3"), tensors())
    causal, full = package.graphs
    assert causal.operands["diagonal_alignment"] == "bottom right" and "right_bound" not in full.operands


@pytest.mark.parametrize(
    "step", ["validate", "build_operation_graph", "create_execution_plans", "check_support", "build_plans"]
)
def test_whatever_fails_is_told_and_no_more(package, step):
    package.fails = step
    with pytest.raises(cudnn_peers.Unavailable, match="^package .*: OverflowError: no such kernel$"):
        cudnn_peers.attention(PROBLEM, tensors())
    package.fails = "execute"
    launch, *_ = cudnn_peers.attention(PROBLEM, tensors())
    with pytest.raises(cudnn_peers.Unavailable, match="no such kernel"):
        launch()


def test_the_gradients_graph_asks_for_a_deterministic_algorithm(package):
    problem = Problem(B=2, Hq=3, Nq=64, d_head=64, causal=True)
    given = {name: Tensor(problem.shape(name)) for name in ("Q", "K", "V", "dO")}
    gradients = peers.gradient_call("cuDNN attention, deterministic", problem, given)()
    (graph,) = package.graphs
    operands, (buffers,) = graph.operands, graph.executed
    assert operands["use_deterministic_algorithm"] is True and operands["attn_scale"] == problem.scale
    assert (operands["diagonal_alignment"], operands["diagonal_band_right_bound"]) == ("top left", 0)
    assert graph.inputs["stats"].described["dim"] == [2, 3, 64, 1]
    assert [graph.inputs[name].described["data_type"] for name in ("dO", "stats")] == ["bf16", "float"]
    assert buffers[graph.inputs["o"]].described == {"causal": True, "scale": problem.scale}
    assert [buffers[result] for result in graph.outputs] == list(gradients)
    assert all(one.described["output"] and one.described["dim"] == [2, 3, 64, 64] for one in graph.outputs)
    peers.gradient_call("cuDNN attention, deterministic", Problem(Nq=64), given)
    assert "diagonal_band_right_bound" not in package.graphs[-1].operands


def test_gradients_that_the_package_has_no_kernel_for_are_told(package):
    package.fails = "check_support"
    problem = Problem(Nq=64)
    given = {name: Tensor(problem.shape(name)) for name in ("Q", "K", "V", "dO")}
    with pytest.raises(RuntimeError, match="^package .*: OverflowError: no such kernel$"):
        peers.gradient_call("cuDNN attention, deterministic", problem, given)


def test_without_the_package_the_record_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "cudnn", None)
    one = bench.Bench.__new__(bench.Bench)
    one.skipped, one.torch, one.settings = [], True, bench.Settings()
    assert one.peer_candidates(PROBLEM, types.SimpleNamespace(tensors={})) == []
    ((row),) = one.skipped
    assert (row["name"], row["dtype"]) == ("cuDNN FP8", "e4m3")
    assert row["reason"] == "package nvidia-cudnn-frontend not there"
    assert cudnn_peers.version() == {}


def test_a_package_that_cannot_be_loaded_is_told_in_its_words(monkeypatch):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name == "cudnn":
                raise OSError("libcudnn.so.9: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "cudnn", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(cudnn_peers.Unavailable, match="OSError: libcudnn.so.9: cannot open"):
        cudnn_peers.attention(PROBLEM, tensors())


def test_the_record_has_the_packages_version(package, monkeypatch):
    torch = types.SimpleNamespace(
        __version__="2.11",
        backends=types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91900)),
        version=types.SimpleNamespace(cuda="13.0"),
    )
    monkeypatch.setattr(gpu_memory, "torch_with_cuda", lambda: torch)
    assert peers.versions()["cudnn_frontend"] == "1.18.0"
