"""Peers of the stages for several GPUs, by PyTorch, a process for each GPU: its context parallelism over cuDNN with
both ways of passing K and V round, and NCCL's all-gather with the kernel of stage 23 behind it. They are timed one
after the other, each time behind the same work as the stages (measuring/ring_bench.py), and beside the same ideal."""

import json
import math
import os
import socket
import statistics
import time
from dataclasses import asdict
from pathlib import Path

from flashladder.core import abi
from flashladder.core.abi import StageLibrary
from flashladder.core.console import say
from flashladder.core.device import Device
from flashladder.core.dtypes import FROBENIUS_LIMIT
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder.ring import FORWARD, library_of
from flashladder.measuring import gpu_memory, peers, ring_rows

GATHER = "NCCL all-gather, stage 23"
CONTEXT = "context_parallel, cuDNN, {}"
ROTATIONS = ("allgather", "alltoall")
# Multicast over NVLink is not to be had on every machine, and is not what these peers are about.
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}


def run(settings: ring_rows.Settings, where: Device, told: ring_rows.Told) -> None:
    torch = gpu_memory.torch_with_cuda()
    if not torch:
        return told.skip("peers", None, "PyTorch is not installed, or sees no GPU")
    ranks = settings.ranks or torch.cuda.device_count()
    if torch.cuda.device_count() < ranks:
        return told.skip("peers", None, f"PyTorch sees {torch.cuda.device_count()} GPUs, fewer than {ranks}")
    os.environ.update({name: os.environ.get(name, value) for name, value in QUIET.items()})
    told.row("versions", peers.versions() | {"nccl": ".".join(map(str, torch.cuda.nccl.version()))})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = (ranks, port, json.dumps(asdict(settings)), str(told.file), told.left())
    torch.multiprocessing.spawn(_worker, args=words, nprocs=ranks)


def _worker(rank: int, ranks: int, port: int, settings: str, rows: str, seconds: float) -> None:
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank)
    )
    told = ring_rows.Told(Path(rows if rank == 0 else os.devnull), seconds)
    try:
        with torch.no_grad():
            Peers(ring_rows.Settings.read(settings), rank, ranks, told).run()
    finally:
        dist.destroy_process_group()


class Peers:
    """One process's part: all of them do the same calls in the same order."""

    def __init__(self, settings: ring_rows.Settings, rank: int, ranks: int, told: ring_rows.Told):
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.settings, self.rank, self.ranks, self.told = (
            torch,
            dist,
            settings,
            rank,
            ranks,
            told,
        )
        self.tiny = torch.zeros(1, device="cuda")
        self.forward = StageLibrary(library_of(FORWARD))

    def run(self) -> None:
        for problem in self.settings.problems(self.ranks):
            began = time.monotonic()
            if self.left() < ring_rows.least_seconds(problem, 6 + 4 * (1 + len(ROTATIONS))):
                self.told.skip("peers", problem, "no time left")
                continue
            try:
                self.problem(problem)
            except self.torch.OutOfMemoryError as error:
                self.told.skip("peers", problem, str(error))
            self.torch.cuda.empty_cache()
            if self.rank == 0:
                say(f"peers, {problem}: {time.monotonic() - began:.1f} s")

    def left(self) -> float:
        """Of the process that has least."""
        return -self.largest(-self.told.left())

    def largest(self, value: float) -> float:
        tensor = self.torch.tensor([value], device="cuda", dtype=self.torch.float64)
        self.dist.all_reduce(tensor, self.dist.ReduceOp.MAX)
        return tensor.item()

    # ---- attention of stage 23 ----

    def attend(self, q, k, v, causal: bool, out=None):
        """Tensors (1, heads, rows, d) with any strides of batch, head and row."""
        out = self.torch.empty_like(q) if out is None else out
        tensors = [abi.FlashTensor(x.data_ptr(), *x.stride()[:3]) for x in (q, k, v, out)]
        sizes = (1, q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3])
        dtype = abi.TYPE_NUMBERS[self.settings.dtype]
        params = abi.FlashParams(*tensors, *sizes, dtype, int(causal), q.shape[3] ** -0.5)
        self.forward.launch(params, self.torch.cuda.current_stream().cuda_stream)
        return out

    # ---- one problem ----

    def problem(self, problem: RingProblem) -> None:
        torch, kind = self.torch, gpu_memory.torch_type(problem.dtype)
        generator = torch.Generator(device="cuda").manual_seed(problem.Nq)  # the same numbers on all GPUs
        shapes = ((1, heads, problem.Nq, problem.d_head) for heads in (problem.Hq, problem.Hkv, problem.Hkv))
        q, k, v = (torch.randn(shape, generator=generator, device="cuda", dtype=kind) for shape in shapes)
        share = [max(1, heads // self.ranks) for heads in (problem.Hq, problem.Hkv)]
        of_share = (q[:, : share[0]], k[:, : share[1]], v[:, : share[1]])
        out = torch.empty_like(of_share[0])

        def ideal():
            return self.attend(*of_share, problem.causal, out)

        ms = [self.series(ideal, 1, lambda: None) for _ in range(3)][-1]
        pace = ring_rows.Pace.of(self.settings, ms)
        count = math.ceil(pace.filler_ms / ms)

        def filler():
            for _ in range(count):
                ideal()

        limit = statistics.median(self.series(ideal, pace.calls, filler) for _ in range(min(pace.rounds, 3)))
        self.candidate(problem, GATHER, self.gathered(problem, q, k, v), (q, k, v), (filler, limit))
        for rotation in ROTATIONS:
            self.context_parallel(problem, rotation, (q, k, v), (filler, limit))

    def rows(self, problem: RingProblem):
        """This rank's: with a mask an early and a late piece."""
        length = problem.Nq // self.ranks
        if not problem.causal:
            return self.torch.arange(self.rank * length, (self.rank + 1) * length, device="cuda")
        piece, late = length // 2, 2 * self.ranks - 1 - self.rank
        starts = (self.rank * piece, late * piece)
        return self.torch.cat([self.torch.arange(first, first + piece, device="cuda") for first in starts])

    def gathered(self, problem: RingProblem, q, k, v):
        """A function that gathers K and V and computes this rank's rows of O."""
        torch, dist, ranks, rows = self.torch, self.dist, self.ranks, self.rows(problem)
        own_q, (own_k, own_v) = q[:, :, rows], (x[0, :, rows].transpose(0, 1).contiguous() for x in (k, v))
        shape = (problem.Nq, problem.Hkv, problem.d_head)  # a row's heads together: pieces are runs of rows
        whole = [torch.empty(shape, dtype=q.dtype, device="cuda") for _ in range(2)]
        piece, out = problem.Nq // ranks // 2, torch.empty_like(own_q)

        def gather():
            for to, own in zip(whole, (own_k, own_v), strict=True):
                dist.all_gather_into_tensor(to, own)
            return [x.transpose(0, 1)[None] for x in whole]

        def full():
            return self.attend(own_q, *gather(), False, out)

        def causal():
            gather()
            pieces = (x.view(ranks, 2, piece, *shape[1:]) for x in whole)
            keys, values = (torch.cat([x[:, 0], x[:, 1].flip(0)]).view(shape).transpose(0, 1)[None] for x in pieces)
            for half, number in ((1, 2 * ranks - 1 - self.rank), (0, self.rank)):
                seen, own = (number + 1) * piece, slice(half * piece, (half + 1) * piece)
                self.attend(own_q[:, :, own], keys[:, :, :seen], values[:, :, :seen], True, out[:, :, own])
            return out

        return causal if problem.causal else full

    def context_parallel(self, problem: RingProblem, rotation: str, tensors, behind) -> None:
        name = CONTEXT.format(rotation)
        try:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.tensor.experimental import context_parallel
            from torch.nn.attention import SDPBackend, sdpa_kernel

            try:
                import torch.distributed.tensor.experimental._context_parallel._attention as inside
            except ImportError:
                import torch.distributed.tensor.experimental._attention as inside
            inside.set_rotate_method(rotation)
            inside._cp_options.enable_load_balance = problem.causal
        except Exception as error:  # it is experimental: what is where changes from release to release
            return self.told.skip(name, problem, f"{type(error).__name__}: {error}")
        mesh = init_device_mesh("cuda", (self.ranks,))
        functional, group = self.torch.nn.functional, problem.Hq // problem.Hkv
        for repeated in (False, True) if group > 1 else (False,):
            full = [x.repeat_interleave(group, 1) if repeated and i else x.clone() for i, x in enumerate(tensors)]
            more = {"enable_gqa": True} if group > 1 and not repeated else {}
            entered = context_parallel(mesh, buffers=full, buffer_seq_dims=[2, 2, 2], no_restore_buffers=set(full))
            try:
                with entered, sdpa_kernel(SDPBackend.CUDNN_ATTENTION):

                    def call(full=full, more=more):
                        # Looked up at each call: context_parallel puts its own in this name's place.
                        return functional.scaled_dot_product_attention(*full, is_causal=problem.causal, **more)

                    facts = {"repeated_heads": True} if repeated else {}
                    if self.candidate(problem, name, call, tensors, behind, facts):
                        return
            except Exception as error:  # in all processes alike
                self.told.skip(name, problem, f"{type(error).__name__}: {error}")

    # ---- right, and how fast ----

    def error_of(self, call, problem: RingProblem, tensors) -> float:
        """Of the first and the last head, relative to stage 23 on the whole sequence."""
        got, rows, off = call(), self.rows(problem), 0.0
        for head in (0, problem.Hq - 1):
            kv = head // (problem.Hq // problem.Hkv)
            own = [x[:, at : at + 1] for x, at in zip(tensors, (head, kv, kv), strict=True)]
            wanted = self.attend(*own, problem.causal)[0, 0, rows].float()
            off = max(off, ((got[0, head].float() - wanted).norm() / wanted.norm()).item())
        self.torch.cuda.synchronize()
        return off

    def candidate(self, problem: RingProblem, name: str, call, tensors, behind, facts=None) -> bool:
        """True where it was timed, or there is no time."""
        filler, limit = behind
        off, reason = float("nan"), ""
        try:
            off = self.error_of(call, problem, tensors)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        worst, most = self.largest(off if off == off else 1e9), 2 * FROBENIUS_LIMIT[problem.dtype]
        if worst > most:
            self.told.skip(name, problem, reason or f"it computes something else: relative error {worst:.2g}")
            return False
        if limit < ring_rows.LONG_MS:  # of a long call the check has warmed up
            self.series(call, 1, filler)
        one = max(self.series(call, 1, filler), 1e-3) if limit < ring_rows.LONG_MS else limit
        pace = ring_rows.Pace.of(self.settings, one)
        rounds = ring_rows.rounds_that_fit(pace.rounds, 1.3 * pace.seconds(one), self.left())
        if not rounds:
            self.told.skip(name, problem, "no time left for two rounds")
            return True
        times = [self.series(call, pace.calls, filler) for _ in range(rounds)]
        told = {"of_ideal": float(f"{limit / statistics.median(times):.4g}"), "calls": pace.calls, "rounds": rounds}
        told |= {"off": float(f"{worst:.3g}")} | (facts or {})
        self.told.row("measurements", ring_rows.row_of(problem, name, "peer", times, told))
        return True

    def series(self, call, calls: int, filler) -> float:
        """Milliseconds of a call, of the slowest GPU, behind the filler."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        filler()
        self.dist.all_reduce(self.tiny)  # all begin together
        start.record()
        for _ in range(calls):
            call()
        stop.record()
        stop.synchronize()
        return self.largest(start.elapsed_time(stop)) / calls
