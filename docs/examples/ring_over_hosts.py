"""The ring of stage 62 over torch.distributed: a process for each rank, on this host or on several.

python ring_over_hosts.py 4                                  # four processes here, without a GPU (gloo)
torchrun --nnodes 2 --nproc-per-node 4 ... ring_over_hosts.py   # on each of two hosts
"""

import os
import sys

import torch
import torch.distributed as dist

HEADS, N, D = 2, 256, 64


def rows_of(rank: int, ranks: int) -> torch.Tensor:
    """An early and a late piece of the sequence."""
    pieces = torch.arange(N).chunk(2 * ranks)
    return torch.cat([pieces[rank], pieces[2 * ranks - 1 - rank]])


def attend(q, k, v, seen=None):
    """O and the log-sum-exp: the kernel's place."""
    scores = q @ k.transpose(-1, -2) * D**-0.5
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    log_sum_exp = scores.logsumexp(-1, keepdim=True)
    return (scores - log_sum_exp).exp() @ v, log_sum_exp


def merge(one, other):
    """Two parts of the same rows, each weighted by what its keys have of the whole sum."""
    whole = torch.logaddexp(one[1], other[1])
    return (one[1] - whole).exp() * one[0] + (other[1] - whole).exp() * other[0], whole


def ring_attention(q, k, v):
    """This rank's rows of O. In each step K and V move on by one rank, while those at hand are computed."""
    rank, ranks, half = dist.get_rank(), dist.get_world_size(), q.shape[1] // 2
    rows = rows_of(rank, ranks)
    here = torch.stack([k, v])
    for step in range(ranks):
        coming = torch.empty_like(here)
        moves = [
            dist.P2POp(dist.isend, here, (rank + 1) % ranks),
            dist.P2POp(dist.irecv, coming, (rank - 1) % ranks),
        ]
        under_way = dist.batch_isend_irecv(moves) if step + 1 < ranks else []
        source = (rank - step) % ranks
        if step == 0:
            done = attend(q, *here, seen=rows[:, None] >= rows)
        elif source < rank:  # all rows see its early piece, and none its late one
            done = merge(done, attend(q, *here[:, :, :half]))
        else:  # the late rows see both pieces
            late = merge([part[:, half:] for part in done], attend(q[:, half:], *here))
            done = [torch.cat([part[:, :half], more], 1) for part, more in zip(done, late, strict=True)]
        for request in under_way:
            request.wait()
        here = coming
    return done[0]


def main(rank: int, ranks: int) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(0)  # all ranks make the whole sequence, for the check
    q, k, v = torch.randn(3, HEADS, N, D, dtype=torch.float64)
    rows = rows_of(rank, ranks)
    got = ring_attention(*(x[:, rows].contiguous() for x in (q, k, v)))
    wanted, _ = attend(q, k, v, seen=torch.arange(N)[:, None] >= torch.arange(N))
    torch.testing.assert_close(got, wanted[:, rows])
    print(f"rank {rank} of {ranks}: right")
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:  # torchrun's
        main(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    else:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ.get("MASTER_PORT", "29533")}
        ranks = int(sys.argv[1])
        torch.multiprocessing.spawn(main, args=(ranks,), nprocs=ranks)
