"""The peers of decode, their packages played: what they are handed is the cache, whatever its lengths and pages, and
that one without a function or a kernel for it is skipped."""

import importlib.machinery
import sys
import types

import numpy as np
import pytest

from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.dtypes import from_bits
from flashladder.measuring import decode_peers, gpu_memory, peers
from flashladder.running import decoding

SHAPE = {"B": 2, "Hq": 4, "Hkv": 2, "d_head": 64}
CACHES = {
    "equal lengths": DecodeProblem(**SHAPE, Nkv=128),
    "unequal lengths": DecodeProblem(**SHAPE, Nkv=192, lengths=(129, 20)),
    "pages": DecodeProblem(**SHAPE, Nkv=128, page_size=32),
    "unequal lengths in pages": DecodeProblem(**SHAPE, Nkv=140, lengths=(140, 20), page_size=64),
}


class Tensor(np.ndarray):
    """An array with as much of a tensor as a peer's call asks for."""

    def transpose(self, first, second):
        return self.swapaxes(first, second)

    def view(self, *shape):
        return self.reshape(shape)


def tensor(numbers, **_):
    return np.asarray(numbers).view(Tensor)


def as_strided(given, shape, steps):
    """PyTorch's, which refuses what lies outside of the memory."""
    assert sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) < given.size
    return np.lib.stride_tricks.as_strided(given, shape, [step * given.itemsize for step in steps], subok=True)


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    made = types.SimpleNamespace(
        tensor=tensor, as_strided=as_strided, zeros=lambda size, **_: np.zeros(0), uint8="uint8", bfloat16="bf16",
        float16="fp16", float8_e4m3fn="e4m3",
    )  # fmt: skip
    monkeypatch.setattr(gpu_memory, "torch", made)


@pytest.fixture
def install(monkeypatch):
    """Puts a module with these attributes where a package would be, below modules that are there as well."""

    def put(name, **attributes):
        parts = name.split(".")
        for parent in (".".join(parts[:i]) for i in range(1, len(parts))):
            monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
        made = types.ModuleType(name)
        made.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(made).update(attributes)
        monkeypatch.setitem(sys.modules, name, made)

    return put


def one_row(q, k, v, scale):
    """O of the query heads of a sequence, (Hq, d), over K and V as (rows, Hkv, d)."""
    k, v = (np.repeat(one, len(q) // one.shape[1], axis=1) for one in (k, v))
    S = scale * np.einsum("hd,nhd->hn", q, k)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return np.einsum("hn,nhd->hd", P / P.sum(axis=1, keepdims=True), v)


def outcome(name, problem):
    """O of the peer, and that of the reference. Rows behind a sequence's length are NaN."""
    inputs = problem.random(seed=3)
    given = {one: tensor(from_bits(inputs[one], problem.dtype).astype(np.float64)) for one in "QKV"}
    (call,) = decode_peers.calls(name, problem, [given], inputs.get("block_table"))
    return np.asarray(call()), decoding.expected(problem, inputs)[0][0]


class Wrapper:
    """FlashInfer's, by its manual: pages by a list of numbers, and run() after plan()."""

    made: list["Wrapper"] = []

    def __init__(self, workspace, layout, *, use_cuda_graph, use_tensor_cores, **buffers):
        assert use_cuda_graph and set(buffers) == {
            "paged_kv_indptr_buffer", "paged_kv_indices_buffer", "paged_kv_last_page_len_buffer",
        }  # fmt: skip
        self.layout, self.use_tensor_cores = layout, use_tensor_cores
        self.made.append(self)

    def plan(self, begins, numbers, last_rows, Hq, Hkv, d, page_size, *, sm_scale, q_data_type, kv_data_type):  # noqa: N803
        assert q_data_type == kv_data_type == "bf16"
        assert all(one.dtype == np.int32 for one in (begins, numbers, last_rows))
        self.of_plan = begins, numbers, last_rows, sm_scale
        self.page = (Hkv, page_size, d) if self.layout == "HND" else (page_size, Hkv, d)

    def run(self, q, cache):
        begins, numbers, last_rows, scale = self.of_plan
        assert all(one.shape[1:] == self.page for one in cache)
        found = []
        for b, last in enumerate(last_rows):
            own = numbers[begins[b] : begins[b + 1]]
            whole = (one[own].swapaxes(1, 2) if self.layout == "HND" else one[own] for one in cache)
            joined = (one.reshape(-1, *one.shape[2:]) for one in whole)
            rows = (len(own) - 1) * (self.page[1] if self.layout == "HND" else self.page[0]) + last
            found.append(one_row(q[b], *(one[:rows] for one in joined), scale))
        return tensor(found)


@pytest.mark.parametrize("problem", CACHES.values(), ids=CACHES)
def test_flashinfer_is_handed_the_cache(install, monkeypatch, problem):
    monkeypatch.setattr(Wrapper, "made", [])
    install("flashinfer", BatchDecodeWithPagedKVCacheWrapper=Wrapper)
    assert decode_peers.names(problem)[-1] == peers.FLASHINFER
    got, wanted = outcome(peers.FLASHINFER, problem)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    assert [one.use_tensor_cores for one in Wrapper.made] == [True]


def test_flashinfer_without_a_group_of_heads_uses_no_tensor_cores(install, monkeypatch):
    monkeypatch.setattr(Wrapper, "made", [])
    install("flashinfer", BatchDecodeWithPagedKVCacheWrapper=Wrapper)
    got, wanted = outcome(peers.FLASHINFER, DecodeProblem(B=1, Hq=2, Hkv=2, Nkv=64, d_head=64))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    assert [one.use_tensor_cores for one in Wrapper.made] == [False]


def test_one_plan_serves_all_copies(install, monkeypatch):
    monkeypatch.setattr(Wrapper, "made", [])
    install("flashinfer", BatchDecodeWithPagedKVCacheWrapper=Wrapper)
    problem = CACHES["pages"]
    given = [{one: tensor(np.zeros(problem.shape(one))) for one in "QKV"} for _ in range(3)]
    assert len(decode_peers.calls(peers.FLASHINFER, problem, given, problem.block_table())) == 3
    assert len(Wrapper.made) == 1


@pytest.mark.parametrize("of_run", (False, True))
def test_what_flashinfer_cannot_do_is_a_reason_to_skip_it(install, of_run):
    class Refuses(Wrapper):
        def plan(self, *arguments, **options):
            if not of_run:
                raise ValueError("head dim 64 is not supported")
            super().plan(*arguments, **options)

        def run(self, *_):
            raise ValueError("head dim 64 is not supported")

    install("flashinfer", BatchDecodeWithPagedKVCacheWrapper=Refuses)
    with pytest.raises(RuntimeError, match="ValueError: head dim 64 is not supported"):
        outcome(peers.FLASHINFER, CACHES["equal lengths"])


@pytest.mark.parametrize(("fields", "message"), (({"Nkv": 100}, "room for 100 rows"), ({"Nq": 2}, "one query row")))
def test_what_flashinfer_is_not_asked(install, fields, message):
    install("flashinfer", BatchDecodeWithPagedKVCacheWrapper=Wrapper)
    with pytest.raises(RuntimeError, match=message):
        outcome(peers.FLASHINFER, DecodeProblem(**SHAPE, **fields))


def attention_over_a_cache(q, k_cache, v_cache, cache_seqlens, softmax_scale, causal, page_table=None):
    """FlashAttention-3's, of Q as (B, N, heads, d) and of a cache like it or in pages like it."""
    assert not causal and q.shape[1] == 1
    found = []
    for b, length in enumerate(cache_seqlens):
        own = (one[b] if page_table is None else np.concatenate(one[page_table[b]]) for one in (k_cache, v_cache))
        found.append([one_row(q[b, 0], *(one[:length] for one in own), softmax_scale)])
    return tensor(found), None


@pytest.mark.parametrize("problem", CACHES.values(), ids=CACHES)
def test_flashattention_3_is_handed_the_cache(install, problem):
    install("flash_attn_interface", flash_attn_with_kvcache=attention_over_a_cache)
    assert decode_peers.names(problem)[-1] == "FlashAttention-3"
    got, wanted = outcome("FlashAttention-3", problem)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_flashattention_3_without_a_cache(install):
    """Equal lengths go by the function that all versions have, the others not at all."""
    told = {}

    def flash_attn_func(q, k, v, softmax_scale, causal):
        told.update(shapes=[one.shape for one in (q, k, v)])
        return q

    install("flash_attn_interface", flash_attn_func=flash_attn_func)
    outcome("FlashAttention-3", CACHES["equal lengths"])
    assert told["shapes"] == [(2, 1, 4, 64), (2, 128, 2, 64), (2, 128, 2, 64)]
    with pytest.raises(RuntimeError, match="no flash_attn_with_kvcache"):
        outcome("FlashAttention-3", CACHES["unequal lengths"])


def test_who_is_asked_what(install):
    """Without packages: SDPA where lengths are equal, and PyTorch's attention over pages where there are any."""
    asked = {name: decode_peers.names(problem) for name, problem in CACHES.items()}
    paged = (decode_peers.PAGED,)
    assert asked == {
        "equal lengths": tuple(peers.BACKENDS), "unequal lengths": (), "pages": paged,
        "unequal lengths in pages": paged,
    }  # fmt: skip


def paged_call():
    return outcome(decode_peers.PAGED, CACHES["unequal lengths in pages"])[0]


def offer(install, **attributes):
    """Has a module of PyTorch offer these."""
    install("torch.nn.attention.varlen", **attributes)


def test_pytorchs_attention_over_pages(install):
    given = {}

    def varlen_attn(q, k, v, begins_q, begins_k, most_q, most_k, *, scale, enable_gqa, seqused_k, block_table):
        given.update(locals())
        return q

    offer(install, varlen_attn=varlen_attn)
    assert paged_call().shape == (2, 4, 1, 64)
    assert list(given["begins_q"]) == [0, 1, 2] and list(given["begins_k"]) == [0, 140, 160]
    assert (given["most_q"], given["most_k"], given["enable_gqa"], given["scale"]) == (1, 140, True, 0.125)
    assert list(given["seqused_k"]) == [140, 20]
    table = given["block_table"]
    assert table.shape == (2, 3) and list(table[1, 1:]) == [0, 0], "no page is where there is none"
    assert len({*table[0], table[1, 0]}) == 4


def test_a_pytorch_without_pages_says_so(install):
    offer(install)
    with pytest.raises(RuntimeError, match="no varlen_attn"):
        paged_call()
    offer(install, varlen_attn=lambda q, k, v, seqused_k=None: q)
    with pytest.raises(RuntimeError, match="takes no block_table, enable_gqa"):
        paged_call()
