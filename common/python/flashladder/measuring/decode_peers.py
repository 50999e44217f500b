"""What the decode stages are measured against: the peers of forward where all lengths are equal; besides, PyTorch's
attention over pages, FlashAttention-3's over a cache, and FlashInfer's."""

import importlib
import inspect
from collections.abc import Callable
from itertools import accumulate

import numpy as np

from flashladder.core.decode_problem import NO_PAGE, DecodeProblem
from flashladder.measuring import gpu_memory, peers

PAGED = "PyTorch varlen_attn"  # of unequal lengths in pages
OVER_A_CACHE = "FlashAttention-3"
ROWS = 64  # of a page, where FlashInfer is handed a cache in one piece
WORKSPACE = 128 << 20  # bytes, as FlashInfer's manual wants them


def names(problem: DecodeProblem) -> tuple[str, ...]:
    """The peers that this machine has for such a problem, where it has PyTorch."""
    if problem.equal_lengths:
        found = peers.names()
    else:
        found = (*((PAGED,) if problem.page_size else ()), *(name for name in peers.names() if name == OVER_A_CACHE))
    return (*found, *(name for name, package in peers.DECODE_PACKAGES.items() if package.installed()))


def calls(name: str, problem: DecodeProblem, copies: list[dict], table: np.ndarray | None) -> list[Callable]:
    """For each copy's tensors a function that runs the peer on them and returns O as (B, Hq, Nq, d). table: of a cache
    in pages. RuntimeError, here or by these functions, where the peer cannot."""
    if name == peers.FLASHINFER:
        return _flashinfer_calls(problem, copies, table)
    if name == PAGED:
        return [_paged_call(problem, tensors, table) for tensors in copies]
    if name == OVER_A_CACHE and (attention := _attention_over_a_cache(problem)):
        return [_cache_call(attention, problem, tensors, table) for tensors in copies]
    return [peers.attention_call(name, problem, tensors) for tensors in copies]


def _on_gpu(numbers):
    torch = gpu_memory.torch
    return torch.tensor(np.asarray(numbers, np.int32), device="cuda")


def _by_rows(problem: DecodeProblem, tensor):
    """(B, N, heads, d)."""
    return problem.to_bhnd_tensor(tensor).transpose(1, 2)


def _paged_call(problem: DecodeProblem, tensors: dict, table: np.ndarray) -> Callable:
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError as error:
        raise RuntimeError("this PyTorch has no varlen_attn") from error
    missing = {"enable_gqa", "seqused_k", "block_table"} - set(inspect.signature(varlen_attn).parameters)
    if missing:
        raise RuntimeError(f"varlen_attn of this PyTorch takes no {', '.join(sorted(missing))}")
    B, Nq, Hq, d = problem.B, problem.Nq, problem.Hq, problem.d_head
    q = _by_rows(problem, tensors["Q"]).reshape(B * Nq, Hq, d)
    begins = _on_gpu(range(0, (B + 1) * Nq, Nq)), _on_gpu([0, *accumulate(problem.lengths)])
    cache = {"seqused_k": _on_gpu(problem.lengths), "block_table": _on_gpu(np.where(table == NO_PAGE, 0, table))}
    cache |= {"scale": problem.scale, "enable_gqa": Hq != problem.Hkv}

    def call():
        found = varlen_attn(q, tensors["K"], tensors["V"], *begins, Nq, max(problem.lengths), **cache)
        return found.view(B, Nq, Hq, d).transpose(1, 2)

    return call


def _attention_over_a_cache(problem: DecodeProblem) -> Callable | None:
    """Of FlashAttention-3, which shares a sequence among blocks only by this function. None: a package without it."""
    module = peers.PACKAGES[OVER_A_CACHE].module
    with peers.refusals():
        found = getattr(importlib.import_module(module), "flash_attn_with_kvcache", None)
    if not found and not problem.equal_lengths:
        raise RuntimeError(f"this {module} has no flash_attn_with_kvcache")
    return found


def _cache_call(attention: Callable, problem: DecodeProblem, tensors: dict, table: np.ndarray | None) -> Callable:
    q = _by_rows(problem, tensors["Q"])
    cache = [tensors[name] if problem.page_size else _by_rows(problem, tensors[name]) for name in "KV"]
    options = {"cache_seqlens": _on_gpu(problem.lengths), "softmax_scale": problem.scale, "causal": problem.Nq > 1}
    if problem.page_size:
        options["page_table"] = _on_gpu(np.where(table == NO_PAGE, 0, table))

    def call():
        with peers.refusals():
            found = attention(q, *cache, **options)
        return (found[0] if isinstance(found, tuple) else found).transpose(1, 2)

    return call


def _flashinfer_calls(problem: DecodeProblem, copies: list[dict], table: np.ndarray | None) -> list[Callable]:
    """Their plan, the same for all copies, is made here; the functions only run it."""
    if problem.Nq > 1:
        raise RuntimeError("only asked with one query row")
    if not problem.page_size and problem.Nkv % ROWS:
        raise RuntimeError(f"a cache with room for {problem.Nkv} rows is no whole number of pages of {ROWS}")
    with peers.refusals():
        wrapper = _flashinfer_plan(problem, *_pages(problem, table))
    return [_flashinfer_call(wrapper, problem, tensors) for tensors in copies]


def _flashinfer_plan(problem: DecodeProblem, begins: list, numbers: list, last_rows: list):
    """A wrapper of fixed buffers, as users of CUDA graphs have it, after its plan()."""
    torch, flashinfer = gpu_memory.torch, importlib.import_module("flashinfer")
    begins, numbers, last_rows = _on_gpu(begins), _on_gpu(numbers), _on_gpu(last_rows)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        torch.zeros(WORKSPACE, dtype=torch.uint8, device="cuda"), "NHD" if problem.page_size else "HND",
        use_cuda_graph=True, use_tensor_cores=problem.Hq > problem.Hkv, paged_kv_indptr_buffer=begins,
        paged_kv_indices_buffer=numbers, paged_kv_last_page_len_buffer=last_rows,
    )  # fmt: skip
    kind = gpu_memory.torch_type(problem.dtype)
    wrapper.plan(
        begins, numbers, last_rows, problem.Hq, problem.Hkv, problem.d_head, problem.page_size or ROWS,
        sm_scale=problem.scale, q_data_type=kind, kv_data_type=kind,
    )  # fmt: skip
    return wrapper


def _pages(problem: DecodeProblem, table: np.ndarray | None) -> tuple[list, list, list]:
    """Where each sequence's page numbers begin, the numbers of all, and the rows of each last page. In a cache of one
    piece a sequence's pages follow one another, and _first_pages() are the first ones."""
    rows = problem.page_size or ROWS
    counts = [-(-length // rows) for length in problem.lengths]
    if not problem.page_size:
        table = [range(first, first + problem.Nkv // ROWS) for first in _first_pages(problem)]
    numbers = [number for own, count in zip(table, counts, strict=True) for number in own[:count]]
    return [0, *accumulate(counts)], numbers, [(length - 1) % rows + 1 for length in problem.lengths]


def _first_pages(problem: DecodeProblem) -> range:
    """Of each sequence of a cache in one piece: all its heads lie before the next sequence."""
    between = problem.Hkv * problem.Nkv // ROWS
    return range(0, problem.B * between, between)


def _flashinfer_call(wrapper, problem: DecodeProblem, tensors: dict) -> Callable:
    B, Hq, d = problem.B, problem.Hq, problem.d_head
    q = _by_rows(problem, tensors["Q"]).reshape(B, Hq, d)
    cache = tuple(tensors[name] if problem.page_size else _as_pages(problem, tensors[name]) for name in "KV")

    def call():
        with peers.refusals():
            return wrapper.run(q, cache).view(B, Hq, 1, d)

    return call


def _as_pages(problem: DecodeProblem, tensor):
    """A view of K or V in one piece as (pages, Hkv, ROWS, d). A page begins every ROWS rows, and so they overlap:
    what is one page's second head is another's first. _pages() names those that begin in a sequence's first head."""
    d, pages = problem.d_head, _first_pages(problem)[-1] + problem.Nkv // ROWS
    shape, steps = (pages, problem.Hkv, ROWS, d), (ROWS * d, problem.Nkv * d, d, 1)
    return gpu_memory.torch.as_strided(tensor, shape, steps)
