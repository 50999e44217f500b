"""Figures that are computed from the records and from the simulator's counters: `tflops(9) / tflops(8)`.

Arithmetic with the functions in FUNCTIONS. The lists of the numbers that sentences quote (commands/figure_lists.py)
have it, and the cells of declared tables, there with one of Python's formats behind " : ".
"""

import ast
import operator
from functools import cache

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import ablations, stages
from flashladder.measuring import (
    block_order,
    machine_code,
    peers,
    profile,
    profiler,
    recorded,
)
from warpsim import counters

STALE = " (stale)"  # the kernel has changed since this was measured
UNRECORDED = "(not recorded yet)"
FASTEST_PEER = "fastest peer"  # where a peer's name may stand: whichever of the record's is the fastest at that point

_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}


class Unrecorded(Exception):
    """What is asked for is a figure that a record may lack: there is none yet, or the GPU does not count it."""


class _Figures:
    """Evaluates one source, in which its public methods may be called (FUNCTIONS), and notes whether anything in it is
    stale. names: what the variables in it stand for; gpu: the one of throughputs for which the source names none, ""
    for recorded.MAIN."""

    def __init__(self, names: dict, gpu: str = ""):
        self.stale = False
        self.names = names
        self.gpu = gpu

    def _row(self, results: dict | None, name: str, causal: bool | None = False, **wanted) -> dict:
        """causal: None of a record whose rows do not say it."""
        wanted |= {} if causal is None else {"causal": causal}
        which = {"kind": "peer"} if name == FASTEST_PEER else {"name": name}
        rows = recorded.pick(results, **which, **wanted) if results else []
        if name == FASTEST_PEER:
            rows.sort(key=lambda row: -row["tflops"])
        if results and not recorded.pick(results, **which) and name in _kernels():
            raise Unrecorded  # newer than the record
        if results and not rows and name in peers.known():
            raise Unrecorded  # newer than the record, or without a kernel for this shape
        if not rows:
            there = ", ".join(dict.fromkeys(row["name"] for row in recorded.pick(results))) if results else "nothing"
            raise FlashLadderError(f'"{name}" with {wanted} is not recorded; there is: {there}.')
        self.stale |= recorded.is_stale(rows[0])
        return rows[0]

    def tflops(
        self,
        name: int | str,
        N: int = 4096,
        d: int = 128,
        dtype: str = "bf16",
        causal: bool = False,
        gpu: str = "",
    ) -> float:
        """Recorded throughput: tflops("swizzle"), tflops(9), tflops("FlashAttention-2"), tflops(13, causal=True),
        tflops(9, gpu="H100"), of that GPU; tflops("fastest peer"), of all that the record has of this shape."""
        results = recorded.first(gpu=gpu or self.gpu)
        return self._row(results, _name(name), causal, Nq=N, d_head=d, dtype=dtype)["tflops"]

    def lead(  # noqa: PLR0913 - as tflops()
        self, name: int | str, other: int | str, d: int = 0, causal: bool | None = None, most: bool = False,
        gpu: str = "", dtype: str = "bf16",
    ) -> float:  # fmt: skip
        """By how many percent a stage has more throughput than another kernel, at the recorded point where it is the
        least, or the most: lead("shapes", "cuDNN attention"), lead("overlap", "ping_pong", d=64, causal=True), at
        points with this head dim and mask alone."""
        self.tflops(name, gpu=gpu, causal=bool(causal), dtype=dtype)  # notes whether it is recorded, and stale
        wanted = {"dtype": dtype} | ({"d_head": d} if d else {}) | ({} if causal is None else {"causal": causal})
        rows = recorded.pick(recorded.first(gpu=gpu or self.gpu), name=_name(name), **wanted)
        points = [(row["Nq"], row["d_head"], dtype, row["causal"], gpu) for row in rows]
        return (max if most else min)(100 * (self.tflops(name, *at) / self.tflops(other, *at) - 1) for at in points)

    def together(self, name: int | str, d: int = 128, causal: bool = False, gpu: str = "") -> float:
        """Recorded throughput at N = 4096 in bf16 of the run in which all stages were timed in turn:
        together("tma") / together("masking"); gpu: as in tflops()."""
        results = recorded.first(gpu=gpu or self.gpu)
        return self._row(results and recorded.together(results), _name(name), causal, Nq=4096, d_head=d)["tflops"]

    def gradients(self, name: int | str, N: int = 4096, d: int = 128, causal: bool = False, gpu: str = "") -> float:
        """Recorded throughput of a stage that computes gradients, or of a peer: gradients("waits_apart", gpu="H100");
        of recorded.MAIN where no GPU is named. "fastest peer": as in tflops()."""
        return self._row(recorded.first("backward", gpu), _name(name), causal, Nq=N, d_head=d)["tflops"]

    def gradients_ahead(self, name: int | str, other: int | str, gpu: str = "") -> float:
        """At how many recorded points a stage that computes gradients has more throughput than another kernel:
        gradients_ahead("waits_apart", "cuDNN attention", gpu="H100")."""
        self.gradients(name, gpu=gpu)  # notes whether it is recorded, and stale
        rows = recorded.pick(recorded.first("backward", gpu), name=_name(name))
        return sum(row["tflops"] > self.gradients(other, row["Nq"], row["d_head"], row["causal"], gpu) for row in rows)

    def decode(  # noqa: PLR0913 - the names of a table's columns
        self,
        name: int | str,
        B: int = 1,
        N: int = 4096,
        Hq: int = 32,
        Hkv: int = 8,
        d: int = 128,
        of_reading: bool = False,
    ) -> float:
        """Recorded microseconds of a decode stage or a peer: decode("packed_gqa", B=8); of_reading: the part of them
        that reading K and V takes. Of recorded.MAIN, else of the first GPU that has a record."""
        row = self._row(recorded.first("decode"), _name(name), None, B=B, Nkv=N, Hq=Hq, Hkv=Hkv, d_head=d)
        return row["of_reading"] if of_reading else row["us"]["median"]

    def decode_shapes(self, name: int | str, d: int = 128) -> float:
        """At how many shapes a decode stage or a peer is recorded."""
        return len(recorded.pick(recorded.first("decode"), name=_name(name), d_head=d))

    def decode_ahead(self, name: int | str, other: int | str, d: int = 128) -> float:
        """At how many recorded shapes a decode stage takes less time than another kernel:
        decode_ahead("lean", "cuDNN attention", d=64)."""
        self._row(recorded.first("decode"), _name(name), None, d_head=d)  # notes whether it is recorded, and stale
        rows = recorded.pick(recorded.first("decode"), name=_name(name), d_head=d)
        return sum(
            row["us"]["median"] < self.decode(other, row["B"], row["Nkv"], row["Hq"], row["Hkv"], d) for row in rows
        )

    def ring(  # noqa: PLR0913 - the names of a table's columns
        self, name: int | str, N: int = 65536, Hq: int = 16, Hkv: int = 16, causal: bool = False,
        of_ideal: bool = False, ranks: int = 2,
    ) -> float:  # fmt: skip
        """Recorded TFLOP/s of each GPU of a stage for several GPUs or a peer: ring("one_launch", causal=True, ranks=4);
        of_ideal: the part of what the GPUs reach that have nothing to wait for."""
        results, wanted = recorded.first("ring"), {"N": N, "Hq": Hq, "Hkv": Hkv, "ranks": ranks}
        if not results or not recorded.pick(results, causal=causal, **wanted):
            raise Unrecorded  # a run has as many lengths as its time allows
        row = self._row(results, _name(name), causal, **wanted)
        return row["of_ideal"] if of_ideal else row["tflops_per_gpu"]

    def ceiling(self, dtype: str = "bf16") -> float:
        """TFLOP/s of cuBLAS's matrix product, timed in the stages' own run."""
        results = recorded.first(gpu=self.gpu)
        row = recorded.ceiling(results, dtype) if results else None
        if not row:
            raise Unrecorded
        return row["tflops"]

    def on_inputs(self, name: int | str, inputs: str, N: int = 16384, d: int = 128) -> float:
        """Recorded throughput on inputs that hurt: on_inputs("optimistic_max", "growing")."""
        name = _name(name)
        if not recorded.first("inputs"):
            raise Unrecorded
        return self._row(recorded.first("inputs"), name, False, Nq=N, d_head=d, inputs=inputs)["tflops"]

    def ablation(self, name: int | str, N: int = 4096, d: int = 128, causal: bool = False) -> float:
        """TFLOP/s in the ablations' run: ablation("09 kv_stages 1"), ablation(9) for the kernel itself. The first
        record that has it. In bf16; stages of another type alone, their variants and cuDNN FP8 in that."""
        name = _name(name)
        records = recorded.shipped(kind="ablations")
        having = [one for one in records if recorded.pick(one, name=name)]
        record = (having or records or [None])[0]
        types = {row["dtype"] for row in recorded.pick(record, name=name)} if record else set()
        dtype = "bf16" if "bf16" in types or not types else min(types)
        return self._row(record, name, causal, Nq=N, d_head=d, dtype=dtype)["tflops"]

    def resource(self, stage: int | str, key: str, d: int = 128) -> float:
        """Recorded: resource(9, "registers"); also spill_bytes, shared_bytes, resident_blocks, threads."""
        row = self._row(recorded.first(gpu=self.gpu), stages.get(stage).name, d_head=d, dtype="bf16")
        if not isinstance(row.get(key), (int, float)):
            raise FlashLadderError(f'There is no figure "{key}" of {row["name"]}. There are: {", ".join(row)}.')
        return row[key]

    def counter(self, stage: int | str, name: str, N: int = 256, heads: int = 2, d: int = 128) -> float:
        """A counter of the simulator: counter(5, "instructions"), counter("09_kv_stages_1", "barriers")."""
        problem = Problem(B=1, Hq=heads, Nq=N, d_head=d, dtype=profile.PROBLEM.dtype)
        counted = _counters(stage, problem)
        if counted.get(name) is None:
            raise FlashLadderError(f'There is no counter "{name}". There are: {", ".join(counted)}.')
        return counted[name]

    def instructions(self, which: int | str, name: str = "all", d: int = 128) -> float:
        """Of a warp in a turn, recorded machine code: instructions(9, "mma"), instructions("09 kv_stages 1")."""
        kernel = _name(which)
        there = {row["name"]: row for row in machine_code.recorded_rows(d=d, kinds=("stage", "variant"))}
        if kernel not in there and kernel in _kernels():
            raise Unrecorded  # newer than the record
        (row,) = machine_code.recorded_rows(kernel, d=d)
        self.stale |= machine_code.is_stale(row)
        counts = row["in_a_turn"] | {"all": sum(row["in_a_turn"].values())}
        counts |= {"registers": row["registers"], "spill bytes": row["spill_bytes"]}
        counts["ldmatrix used at once"] = machine_code.used_at_once(row)
        if name not in counts:
            raise FlashLadderError(f'There are no instructions "{name}". There are: {", ".join(counts)}.')
        return counts[name]

    def busy(self, order: str, N: int = 4096, heads: int = 64) -> float:
        """Of the model of a causal grid (measuring/block_order.py): busy("all heads' longest first", N=1024)."""
        if order not in block_order.ORDERS:
            raise FlashLadderError(f'There is no order "{order}". There are: {", ".join(block_order.ORDERS)}.')
        return block_order.busy(order, N, heads)

    def profiled(self, which: int | str, name: str) -> float:
        """Of Nsight Compute, docs/profiler.md: profiled(5, "shared ldmatrix wavefronts"), profiled(9, "stall barrier")
        in cycles for each instruction, profiled(9, "samples barrier") as a share. Not recorded yet is no error."""
        made = recorded.first("profiler")
        kernel = _name(which)
        value, entry = profiler.figure(made, kernel, name), profiler.kernel(made, kernel)
        if value is None:
            raise Unrecorded
        self.stale |= recorded.is_stale(entry)
        return value

    def record(self, file: str, *path: int | str) -> float:
        """Any number of a record: record("H200-roofline.json", "rows", "name=09_double_buffering", "tflops"), also of
        one inside another. A step is a key, an index, or "key=value": the entry of a list that has this value."""
        value = recorded.named(file, recorded.RECORDED)
        for step in path:
            try:
                if isinstance(value, list) and isinstance(step, str):
                    key, _, wanted = step.partition("=")
                    value = next(entry for entry in value if str(entry[key]) == wanted)
                    self.stale |= "kernel_sha256" in value and recorded.is_stale(
                        {"kind": "stage", "name": value.get("stage"), **value}
                    )
                else:
                    value = value[step]
            except (KeyError, IndexError, TypeError, StopIteration) as error:
                raise FlashLadderError(f"{file} has nothing at {step!r} of {path}.") from error
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise FlashLadderError(f"{file} has no number at {path}.")
        return value

    def _evaluate(self, node: ast.expr) -> float | str:
        match node:
            case ast.Constant(value=int() | float() | str()):
                return node.value
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.BinOp() if type(node.op) in _OPERATIONS:
                return _OPERATIONS[type(node.op)](self._evaluate(node.left), self._evaluate(node.right))
            case ast.UnaryOp() if type(node.op) in _OPERATIONS:
                return _OPERATIONS[type(node.op)](self._evaluate(node.operand))
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                arguments = [self._evaluate(one) for one in node.args]
                named = {one.arg: self._evaluate(one.value) for one in node.keywords}
                return getattr(self, name)(*arguments, **named)
        raise FlashLadderError(f"only + - * /, numbers and {', '.join(FUNCTIONS)} are known, not: {ast.unparse(node)}")


FUNCTIONS = tuple(name for name in vars(_Figures) if not name.startswith("_"))


def _name(which: int | str) -> str:
    """As records have it, of a stage by its number or its name ("swizzle"); what is neither stays as it is."""
    slugs = {stage.slug: stage.name for stage in stages.all_parts()}
    return stages.get(which).name if isinstance(which, int) else slugs.get(which, which)


@cache
def _kernels() -> set[str]:
    """Names that a record has once the GPU has run: of the stages, and of their ablations."""
    titles = {f"{one.stage.id} {one.title}" for one in ablations.ablations()}
    return titles | {stage.name for stage in stages.all_parts()}


@cache
def _counters(which: int | str, problem: Problem) -> dict[str, float | None]:
    """Of a stage, or of an ablation by its id. Counters are the same each time, so each runs once."""
    stage = next((one for one in stages.all_stages() if one.name == _name(which)), None)
    if stage:
        return counters.by_name(profile.measure([stage], problem)[stage.name].report)
    for one in ablations.ablations():
        if one.id == which:
            report = one.stage.run(problem, device="sim", library=ablations.library(one)).report
            return counters.by_name(report)
    names = ", ".join(one.id for one in ablations.ablations())
    raise FlashLadderError(f'There is no stage and no ablation "{which}" to count. There are: {names}.')


def value_of(source: str, names: dict | None = None, gpu: str = "") -> tuple[float, bool]:
    """(a source's figure, whether anything in it is stale). Unrecorded where there is none yet; FlashLadderError where
    the source asks for something that is not there."""
    figures = _Figures(names or {}, gpu)
    try:
        return figures._evaluate(ast.parse(" ".join(source.split()), mode="eval").body), figures.stale
    except (SyntaxError, TypeError, ValueError, ZeroDivisionError) as error:
        raise FlashLadderError(str(error)) from error


def text_of(what: str, names: dict | None = None, gpu: str = "") -> str:
    """The text of a source with its format: `tflops(9) : .1f`."""
    source, separator, form = what.rpartition(" : ")
    if not separator:
        raise FlashLadderError("a figure needs a format behind ` : `, such as .1f")
    try:
        value, stale = value_of(source, names, gpu)
        return format(value, form.strip()) + (STALE if stale else "")
    except Unrecorded:
        return UNRECORDED
    except ValueError as error:
        raise FlashLadderError(str(error)) from error
