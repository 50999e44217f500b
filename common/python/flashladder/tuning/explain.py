"""A configuration in words, and what it takes: the model beside ptxas and the simulator, with the error."""

from dataclasses import dataclass

from flashladder.measuring import recorded
from flashladder.tuning import instances, model, rules
from flashladder.tuning.configuration import Configuration, of_stage, parse

BARELY = 0.0005  # an error that a table shows as 0.0%


def shipped_choice() -> Configuration:
    """What stage 12 runs at N = 4096, bf16, d = 128, on the first GPU that was tuned; stage 11's flags before that."""
    record = recorded.first("tuning")
    rows = record["chosen"] if record else []
    found = [row for row in rows if (row["dtype"], row["d_head"], row["Nq"]) == ("bf16", 128, 4096)]
    return parse(found[0]["configuration"]) if found else of_stage(11)


def _loads(what: str, load: int) -> str:
    if load == 0:
        return f"{what}'s fragments of the whole block are loaded before the products"
    if load == 1:
        return f"{what}'s fragments come by one ldmatrix at a time, each in front of the products that use it"
    return f"{what}'s fragments come {load} at a time, for {load // 2} step{'s' * (load > 2)} of mma"


def in_words(c: Configuration) -> list[tuple[str, str, str]]:
    """(field, value, what it does) of every field."""
    rows = c.Br // c.warps if c.warps > 0 else 0
    early, late = "tiles of K and V are requested as soon as their buffer is free", "a tile is requested when needed"
    load_Q = "Q is not loaded in the loop" if c.Q_in_registers else _loads("Q", c.load_Q)
    twice = "two buffers for K and for V: one is read while the other is filled"
    promised = f"the compiler spares registers so that {c.resident_blocks} blocks fit on a multiprocessor"
    return [
        ("dtype", c.dtype, "type of Q, K, V and O; sums are float32"),
        ("d_head", str(c.d_head), "elements of a row"),
        ("Br", str(c.Br), "rows of Q that a block works on"),
        ("Bc", str(c.Bc), "rows of K and of V in a tile"),
        ("warps", str(c.warps), f"of a block, {32 * c.warps} threads; each has {rows} rows of Q"),
        ("async_copy", _yes(c.async_copy), "tiles go from global to shared memory by cp.async, past the registers"
         if c.async_copy else "tiles are copied through registers"),
        ("eager", _yes(c.eager), early if c.eager else late),
        ("swizzled", _yes(c.swizzled), "chunks of 16 bytes are permuted within a row: ldmatrix meets no bank twice"
         if c.swizzled else "rows lie as they are: the 8 rows of an ldmatrix begin in the same bank"),
        ("load_Q", str(c.load_Q), load_Q),
        ("load_K", str(c.load_K), _loads("K", c.load_K)),
        ("load_V", str(c.load_V), _loads("V", c.load_V)),
        ("Q_in_registers", _yes(c.Q_in_registers), "Q's fragments are loaded once and stay in registers"
         if c.Q_in_registers else "Q's fragments are loaded again for each tile"),
        ("kv_stages", str(c.kv_stages), twice if c.kv_stages == 2 else "one buffer for K and one for V"),
        ("fragment_stages", str(c.fragment_stages), "the next fragments are loaded while these are multiplied"
         if c.fragment_stages == 2 else "fragments are loaded where they are needed; the compiler orders it"),
        ("fast_softmax", _yes(c.fast_softmax), "the scale is folded into exp2, sums over lanes are made once at the end"
         if c.fast_softmax else "scale, exp and sums over lanes for each tile"),
        ("skip_rescale", _yes(c.skip_rescale), "O is rescaled only where a maximum of the warp's rows grew"
         if c.skip_rescale else "O is rescaled for each tile"),
        ("lean", _yes(c.lean), "addresses of copies are computed once; K and V are visited from the last tile on"
         if c.lean else "addresses of copies are computed for each tile"),
        ("lean_ldmatrix", _yes(c.lean_ldmatrix), "addresses of ldmatrix are computed once"
         if c.lean_ldmatrix else "addresses of ldmatrix are computed for each piece"),
        ("resident_blocks", str(c.resident_blocks), promised if c.resident_blocks
         else "the compiler is promised no number of blocks"),
    ]  # fmt: skip


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


@dataclass(frozen=True)
class Row:
    """A quantity as the model predicts it, and as ptxas and the simulator say it; None: that one does not tell."""

    name: str
    model: float | None
    ptxas: float | None = None
    simulator: float | None = None

    @property
    def error(self) -> str:
        """Of the model: the difference, and in percent of what is true."""
        true = self.ptxas if self.ptxas is not None else self.simulator
        if self.model is None or true is None:
            return ""
        off = self.model - true
        if off == 0:
            return "exact"
        return f"{off:+,.0f}" + (f" ({off / true:+.1%})" if true and abs(off / true) > BARELY else "")


def resources(c: Configuration, arch: int = 90) -> list[Row]:
    """The model beside what ptxas makes of it for compute capability `arch` (90: 9.0), and what the simulator says
    of a block and tile. Builds the configuration. FlashLadderError, StageError."""
    built = instances.build(c, arch)
    counted, predicted = model.measured(c, built.library), model.per_tile(c)
    wanted, limit = model.registers_wanted(c), model.register_limit(c)
    rows = [
        Row("registers a thread", model.registers(c), built.registers),
        Row("spilled bytes a thread", 4 * max(0, wanted - limit), built.spill_bytes),
        Row("shared bytes a block", rules.shared_bytes(c), None, counted.pop("shared bytes")),
        Row("resident blocks", model.resident_blocks(c, model.registers(c)),
            model.resident_blocks(c, built.registers)),
    ]  # fmt: skip
    rows += [Row(f"{name}, a tile", predicted.get(name), None, value) for name, value in counted.items()
             if name != "instructions"]  # fmt: skip
    return [*rows, Row("all instructions, a tile", model.instructions(c), None, counted["instructions"])]
