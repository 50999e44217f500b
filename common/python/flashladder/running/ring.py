"""One run of a stage for several GPUs in a worker process (running/worker.py): the sequence is divided over the ranks,
and what they computed put together again."""

import ctypes
from pathlib import Path

import numpy as np

from flashladder.core import abi
from flashladder.core.ring_problem import RingProblem
from flashladder.running.cudart import NON_BLOCKING, Cudart

TENSORS = ("Q", "K", "V", "O")


class Rank:
    """A rank's memory and streams on its device."""

    def __init__(self, cudart: Cudart, problem: RingProblem, device: int, description: abi.FlashRingDescription):
        self.cudart, self.problem, self.device = cudart, problem, device
        self.described = description.as_dict()
        self.pieces = self.described["pieces"]
        self.rows = sum(rows for _, rows in self.pieces)
        self.use()
        self.layouts = {name: problem.rank_layout(name, self.rows) for name in TENSORS}
        self.sizes = {name: layout.bytes(name) for name, layout in self.layouts.items()}
        self.sizes["log_sum_exp"] = 4 * problem.B * problem.Hq * self.rows
        self.pointers = {name: cudart.malloc(size) for name, size in self.sizes.items()}
        self.kept = {name: cudart.malloc(self.sizes[name]) for name in "QKV"}
        self.scratch_bytes = self.described["workspace_bytes"]
        self.scratch = cudart.malloc(self.scratch_bytes) if self.scratch_bytes else 0
        if self.scratch:
            cudart.fill(self.scratch, 0 if self.described["zeroed_workspace"] else 0xFF, self.scratch_bytes)
        self.stream, self.copy_stream = ctypes.c_void_p(), cudart.stream(NON_BLOCKING)

    def use(self) -> None:
        self.cudart.call("cudaSetDevice", self.device)

    def keep(self, inputs: dict[str, np.ndarray]) -> None:
        """Puts the rank's rows of the inputs where prepare() takes them from."""
        self.use()
        for name, pointer in self.kept.items():
            memory = np.full(self.sizes[name], 0xFF, np.uint8)  # where no element lies: a NaN
            layout = self.layouts[name]
            layout.to_bhnd(layout.view(name, memory))[...] = self.problem.rows_of(inputs[name], self.pieces)
            self.cudart.upload(pointer, memory)

    def prepare(self) -> None:
        """Queues on the rank's stream that its inputs are written anew and its outputs poisoned: the call that comes
        next must wait for this, and this for the call before."""
        self.use()
        for name, source in self.kept.items():
            self.cudart.copy_on_device(self.pointers[name], source, self.sizes[name], self.stream)
        for name in ("O", "log_sum_exp"):
            self.cudart.fill(self.pointers[name], 0xFF, self.sizes[name], self.stream)

    def struct(self) -> abi.FlashRank:
        tensors = (self.layouts[name].tensor(name, self.pointers[name]) for name in TENSORS)
        streams = (self.stream.value, self.copy_stream.value)
        workspace = (self.scratch, self.scratch_bytes)
        return abi.FlashRank(self.device, *streams, *tensors, self.pointers["log_sum_exp"], *workspace)

    def output(self, name: str) -> np.ndarray:
        """Bytes of O or of the log-sum-exp, when the rank's stream is done."""
        self.use()
        self.cudart.call("cudaStreamSynchronize", self.stream)
        memory = np.empty(self.sizes[name], np.uint8)
        self.cudart.download(memory, self.pointers[name])
        return memory


class Marks:
    """Events around the work of all ranks, and the times between them."""

    def __init__(self, cudart: Cudart, ranks: list[Rank]):
        self.cudart, self.ranks, self.seen = cudart, ranks, []
        self.begin = []
        for rank in ranks:
            rank.use()
            self.begin.append(cudart.event())
            cudart.record(self.begin[-1], rank.stream)
        for rank in ranks:  # all begin together, and the time of each counts from there
            for event in self.begin:
                cudart.call("cudaStreamWaitEvent", rank.stream, event, 0)
        for rank, event in zip(ranks, self.begin, strict=True):
            rank.use()
            cudart.record(event, rank.stream)
        self.callback = abi.FlashRingMark(self._mark)

    def _mark(self, context, rank: int, work: int, source: int, end: int, stream: int) -> None:
        event = self.cudart.event()
        self.cudart.record(event, ctypes.c_void_p(stream))
        self.seen.append((rank, abi.RING_WORK[work], source, end, event))

    def spans(self) -> list[dict]:
        """Of each piece of work: "rank", "work" (of abi.RING_WORK), "source" (a rank, or -1), and "start_ms" and
        "end_ms" after the rank's begin."""
        found, started = [], {}
        for rank, work, source, end, event in self.seen:
            self.ranks[rank].use()
            self.cudart.wait(event)
            ms = self.cudart.elapsed_ms(self.begin[rank], event)
            if not end:
                started[rank, work] = ms
            else:
                one = {"rank": rank, "work": work, "source": source, "start_ms": started[rank, work], "end_ms": ms}
                found.append(one)
        return found


def execute(folder: Path, job) -> dict:
    """All runs are queued one after the other, over one workspace, and nothing waits for them before the last."""
    cudart, library, problem = Cudart(job.cudart), abi.RingLibrary(job.library), job.problem
    options = job.options
    params = problem.ring_params(options.forward, options.configuration)
    descriptions = [library.describe(params, rank) for rank in range(problem.ranks)]
    told = {"title": descriptions[0].title.decode(), "ranks": [one.as_dict() for one in descriptions]}
    if job.describe_only:
        return {"status": "ok", "description": told}

    devices = cudart.devices()
    ranks = [Rank(cudart, problem, rank % devices, one) for rank, one in enumerate(descriptions)]
    inputs = {name: np.load(folder / f"{name}.npy") for name in "QKV"}
    for rank in ranks:
        rank.keep(inputs)
        if options.own_stream:
            rank.stream = cudart.stream(NON_BLOCKING)
        cudart.synchronize()  # what was filled and uploaded is there for streams that do not join the default stream
    structs = (abi.FlashRank * len(ranks))(*(rank.struct() for rank in ranks))
    ranks[-1].use()  # not the first: a stage that forgets whose turn it is queues on the wrong device
    for number in range(options.repeat):
        for rank in ranks:
            rank.prepare()
        marks = Marks(cudart, ranks) if options.timed and number == options.repeat - 1 else None
        params.mark = marks.callback if marks else abi.FlashRingMark()
        library.launch(params, structs)
    return _gathered(folder, problem, ranks) | {"description": told, "spans": marks.spans() if marks else []}


def _gathered(folder: Path, problem: RingProblem, ranks: list[Rank]) -> dict:
    """Writes O, in the problem's layout, and the log-sum-exp of the whole sequence."""
    whole = np.zeros(problem.shape("O"), problem.bits_type("O"))
    sums = np.zeros((problem.B, problem.Hq, problem.Nq), np.float32)
    for rank in ranks:
        layout, memory = rank.layouts["O"], rank.output("O")
        problem.put_rows(problem.to_bhnd(whole), rank.pieces, layout.to_bhnd(layout.view("O", memory)))
        own = rank.output("log_sum_exp").view(np.float32).reshape(problem.B, problem.Hq, rank.rows)
        problem.put_rows(sums, rank.pieces, own)
        layout.view("O", memory)[...] = 0xFFFF
        if (memory != 0xFF).any():
            return {"status": "error", "message": "wrote between or behind the rows of a rank's O"}
    np.save(folder / "O.npy", whole)
    np.save(folder / "log_sum_exp.npy", sums)
    return {"status": "ok", "written": ["O", "log_sum_exp"]}
