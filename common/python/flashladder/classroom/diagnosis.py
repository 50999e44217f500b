"""Why an output is wrong: attention is computed with one common mistake after another, and where the output fits one of
them within the bound, that mistake is named. Where it fits none, the rows and columns that are wrong are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flashladder.core.dtypes import ELEMENT_LIMIT, HALF_SMALLEST, OUTPUT, UNIT_ROUNDOFF, from_bits
from flashladder.core.problem import Problem
from flashladder.running import verify

LOG2_E = 1.4426950408889634
CHUNK = 16  # bytes
MOST_ROWS = 4096  # of all heads together: more would take long
MOST_RANGES = 3  # of rows or columns that are told


@dataclass(frozen=True)
class Mistake:
    """Attention with one thing done in another way. Functions of rows get and give arrays of them."""

    words: str  # "the scores are not scaled"
    scale: Callable[[float], float] = lambda scale: scale
    power: Callable[[np.ndarray], np.ndarray] = np.exp  # of a score less the row's maximum
    divided: bool = True
    backwards: bool = False  # the last tile of K and V comes first
    weight: Callable[[int, int], float] = lambda tile, tiles: 1.0  # how often a tile counts
    rescales_O: Callable[[int], bool] = lambda step: True  # whether O shrinks in the step-th tile that is visited
    rescales_sum: Callable[[int], bool] = lambda step: True
    sees: Callable[[Problem, np.ndarray], np.ndarray] | None = None  # the last key that each row sees
    padded: bool = False  # the last tile is whole: keys and values of 0 fill it
    kv_head: Callable[[Problem, int], int] | None = None
    batch: Callable[[int], int] = lambda batch: batch
    tensors: str = "QKV"  # which tensors stand in for Q, K and V
    turned: str = ""  # the tensor whose chunks lie XORed with their row modulo 8
    P_rows: bool = False  # rows 0 to 7 of P for rows 8 to 15, and the other way round
    P_columns: bool = False  # so with the columns of P


def _of_order(backwards: bool) -> Iterator[Mistake]:
    """Mistakes that depend on which tile comes first."""
    there = {"backwards": backwards}
    yield Mistake("O is not rescaled when a row's maximum grows", rescales_O=lambda step: False, **there)
    yield Mistake(
        "O is not rescaled in the second tile that is visited: the first tile's part stays too large",
        rescales_O=lambda step: step != 1, **there,
    )  # fmt: skip
    yield Mistake("row_sum is not rescaled when a row's maximum grows", rescales_sum=lambda step: False, **there)
    yield Mistake(
        "row_sum is not rescaled in the second tile that is visited", rescales_sum=lambda step: step != 1, **there
    )
    yield Mistake("rows 8 to 15 of each 16 rows of P are exchanged with rows 0 to 7", P_rows=True, **there)
    yield Mistake(
        "neither O nor row_sum is rescaled when a row's maximum grows",
        rescales_O=lambda step: False, rescales_sum=lambda step: False, **there,
    )  # fmt: skip


def _diagonal(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """The last key that each row sees."""
    return rows + problem.Nkv - problem.Nq if problem.causal else np.full(len(rows), problem.Nkv - 1)


MISTAKES = (
    Mistake("the scores are not scaled", scale=lambda scale: 1.0),
    Mistake("the scale is applied twice", scale=lambda scale: scale * scale),
    Mistake("the sign of the scale is lost", scale=abs),
    Mistake("log2(e) is left out: 2^x stands where e^x is meant", power=np.exp2),
    Mistake("log2(e) is applied, and then e^x taken instead of 2^x", power=lambda x: np.exp(LOG2_E * x)),
    Mistake("O is not divided by row_sum", divided=False),
    Mistake("the last tile of K and V is left out", weight=lambda tile, tiles: tile != tiles - 1),
    Mistake("the last tile of K and V counts twice", weight=lambda tile, tiles: 1 + (tile == tiles - 1)),
    Mistake("the first tile of K and V is left out", weight=lambda tile, tiles: tile != 0),
    Mistake("the first tile of K and V counts twice", weight=lambda tile, tiles: 1 + (tile == 0)),
    *_of_order(backwards=False),
    *_of_order(backwards=True),
    Mistake("each row sees one key more than it may", sees=lambda p, rows: _diagonal(p, rows) + 1, padded=True),
    Mistake("each row sees one key fewer than it may", sees=lambda p, rows: _diagonal(p, rows) - 1),
    Mistake(
        "the causal mask begins at the other corner: row i sees keys 0 to i, whatever the lengths",
        sees=lambda p, rows: np.minimum(rows, p.Nkv - 1),
    ),
    Mistake("nothing is masked beyond the diagonal", sees=lambda p, rows: np.full(len(rows), p.Nkv - 1)),
    Mistake(
        "columns beyond the last key are not masked: the rest of the last tile counts as keys of 0",
        sees=lambda p, rows: np.where(_diagonal(p, rows) < p.Nkv - 1, _diagonal(p, rows), 1 << 30), padded=True,
    ),
    Mistake(
        "columns beyond the last key are masked by the diagonal alone, which lies beyond them",
        sees=lambda p, rows: rows + p.Nkv - p.causal * p.Nq, padded=True,
    ),
    Mistake("K and V are exchanged", tensors="QVK"),
    Mistake("K is read in the place of V", tensors="QKK"),
    Mistake("V is read in the place of K", tensors="QVV"),
    Mistake("heads of Q go to the wrong heads of K and V: head h takes h % Hkv", kv_head=lambda p, h: h % p.Hkv),
    Mistake(
        "heads of Q go to the wrong heads of K and V: head h takes head h, as if there were no groups",
        kv_head=lambda p, h: min(h, p.Hkv - 1),
    ),
    Mistake("all heads take K and V of head 0", kv_head=lambda p, h: 0),
    Mistake("all batches take Q, K and V of batch 0", batch=lambda b: 0),
    Mistake("columns 8 to 15 of each 16 columns of P are exchanged with columns 0 to 7", P_columns=True),
    *(
        Mistake(
            f"the 16-byte chunks of {name}'s rows are swizzled on one side alone, in writing or in reading", turned=name
        )
        for name in "QKV"
    ),
)  # fmt: skip


def computed(mistake: Mistake, problem: Problem, inputs: dict, Bc: int) -> tuple[np.ndarray, np.ndarray]:
    """O in float64 as a kernel with this mistake computes it, with tiles of Bc keys, and softmax(S)|V| in the same way:
    (B, Hq, Nq, d) each."""
    q, k, v = (_turned(problem.values(inputs, name), problem, name == mistake.turned) for name in mistake.tensors)
    out = np.zeros((problem.B, problem.Hq, problem.Nq, problem.d_head))
    magnitude, group = np.zeros_like(out), problem.Hq // problem.Hkv
    for b, h in np.ndindex(problem.B, problem.Hq):
        kv = mistake.kv_head(problem, h) if mistake.kv_head else h // group
        source = mistake.batch(b)
        out[b, h], magnitude[b, h] = _head(mistake, problem, q[source, h], k[source, kv], v[source, kv], Bc)
    return out, magnitude


def _turned(values: np.ndarray, problem: Problem, turned: bool) -> np.ndarray:
    """A tensor whose chunks lie at the place of their number XOR the row modulo 8."""
    if not turned:
        return values
    rows, chunk = np.arange(values.shape[2]), CHUNK // problem.bits_type("Q")().itemsize
    columns = np.arange(problem.d_head)
    moved = (columns // chunk)[None, :] ^ (rows % 8)[:, None]
    places = moved * chunk + columns % chunk
    return values[:, :, rows[:, None], places] if places.max() < problem.d_head else values


def _head(mistake: Mistake, problem: Problem, q, k, v, Bc: int) -> tuple[np.ndarray, np.ndarray]:
    keys = -(-problem.Nkv // Bc) * Bc if mistake.padded else problem.Nkv
    k, v = (np.pad(one, ((0, keys - problem.Nkv), (0, 0))) for one in (k, v))
    rows = np.arange(problem.Nq)
    last = (mistake.sees or _diagonal)(problem, rows)
    scores = mistake.scale(float(np.float32(problem.scale))) * (q @ k.T)
    scores = np.where(np.arange(keys)[None, :] <= last[:, None], scores, -np.inf)
    highest, total = np.full((problem.Nq, 1), -np.inf), np.zeros((problem.Nq, 1))
    out, magnitude = np.zeros((problem.Nq, problem.d_head)), np.zeros((problem.Nq, problem.d_head))
    tiles = -(-keys // Bc)
    for step, tile in enumerate(reversed(range(tiles)) if mistake.backwards else range(tiles)):
        some = slice(tile * Bc, (tile + 1) * Bc)
        new = np.maximum(highest, scores[:, some].max(axis=1, keepdims=True))
        top = np.where(np.isfinite(new), new, 0.0)
        shrink = mistake.power(np.where(np.isfinite(highest), highest - top, -np.inf))
        weights = mistake.power(scores[:, some] - top) * mistake.weight(tile, tiles)
        P = _exchanged(_exchanged(weights, 0, mistake.P_rows), 1, mistake.P_columns)
        kept = shrink if mistake.rescales_O(step) else 1.0
        out, magnitude = out * kept + P @ v[some], magnitude * kept + P @ np.abs(v[some])
        total = total * (shrink if mistake.rescales_sum(step) else 1.0) + weights.sum(axis=1, keepdims=True)
        highest = new
    divisor = np.where(total > 0, total, 1.0) if mistake.divided else 1.0
    return out / divisor, magnitude / divisor


def _exchanged(array: np.ndarray, axis: int, wanted: bool) -> np.ndarray:
    """Places 0 to 7 of each 16 along the axis for 8 to 15; unchanged where the last 16 are not whole."""
    count = array.shape[axis]
    return np.take(array, np.arange(count) ^ 8, axis=axis) if wanted and count % 16 == 0 else array


@dataclass(frozen=True)
class _Numbers:
    """An output beside its reference; each (B, Hq, Nq, d)."""

    problem: Problem
    values: np.ndarray
    expected: np.ndarray
    magnitude: np.ndarray
    fine: np.ndarray

    @property
    def bound(self) -> np.ndarray:
        return verify.element_bound(self.magnitude, self.fine, self.problem.dtype)

    @property
    def wrong(self) -> np.ndarray:
        return verify.error_ratio(self.values, self.expected, self.bound) > 1

    def fits(self, out: np.ndarray, magnitude: np.ndarray) -> bool:
        unit = ELEMENT_LIMIT[self.problem.dtype] * UNIT_ROUNDOFF[self.problem.dtype]
        bound = unit * magnitude + self.fine + HALF_SMALLEST[OUTPUT[self.problem.dtype]]
        return bool((np.abs(self.values - out) <= bound).all())


def diagnose(problem: Problem, inputs: dict, output: np.ndarray, Br: int = 64, Bc: int = 64) -> str:
    """Of a wrong output a sentence: the mistake that it fits, else where it is wrong; "" of a right one.

    inputs, output: bit patterns in the problem's layout. Br and Bc: the kernel's tile.
    """
    with np.errstate(all="ignore"):
        values = from_bits(problem.to_bhnd(output), OUTPUT[problem.dtype]).astype(np.float64)
        numbers = _Numbers(problem, values, *verify.reference(problem, inputs))
        wrong = numbers.wrong
        if not wrong.any():
            return ""
        if np.isfinite(values).all() and problem.B * problem.Hq * problem.Nq <= MOST_ROWS:
            words = _common(numbers, inputs, Bc) or _moved(numbers, wrong)
            if words:
                return f"these are the numbers of a kernel in which {words}"
        return where(wrong, ~np.isfinite(values), Br)


def _common(numbers: _Numbers, inputs: dict, Bc: int) -> str:
    for mistake in MISTAKES:
        if numbers.fits(*computed(mistake, numbers.problem, inputs, Bc)):
            return mistake.words
    return ""


def _moved(numbers: _Numbers, wrong: np.ndarray) -> str:
    """Words where right numbers lie in wrong places: those of another head, another row, another chunk."""
    return _heads(numbers, wrong) or _rows(numbers, wrong) or _chunks(numbers, wrong)


def _heads(numbers: _Numbers, wrong: np.ndarray) -> str:
    """Where each wrong head has the numbers of another head."""
    heads, found = list(np.ndindex(wrong.shape[:2])), []
    for one in heads:
        if not wrong[one].any():
            continue
        held = (
            other for other in heads
            if (np.abs(numbers.values[one] - numbers.expected[other]) <= numbers.bound[other]).all()
        )  # fmt: skip
        other = next(held, None)
        if other is None:
            return ""
        found.append((one, other))
    (batch, head), (other_batch, other_head) = found[0]
    return (
        f"heads are in each other's place: O of batch {batch}, head {head} holds what belongs to batch {other_batch}, "
        f"head {other_head}"
    )


def _rows(numbers: _Numbers, wrong: np.ndarray) -> str:
    """Where each wrong row of a head has the numbers of another row of that head."""
    found: list[tuple[int, int]] = []
    for one in np.ndindex(wrong.shape[:2]):
        rows = np.flatnonzero(wrong[one].any(axis=1))
        for row in rows:
            fit = (np.abs(numbers.values[one][row] - numbers.expected[one]) <= numbers.bound[one]).all(axis=1)
            others = np.flatnonzero(fit)
            if not len(others):
                return ""
            found.append((int(row), int(others[0])))
    first = f"row {found[0][0]} of O holds the numbers of row {found[0][1]}"
    if all(row ^ 8 == other for row, other in found):
        return "rows 8 to 15 of each 16 rows are exchanged with rows 0 to 7"
    if len({other - row for row, other in found}) == 1:
        return f"rows are moved by {found[0][1] - found[0][0]}: {first}"
    return f"rows are in each other's place: {first}"


def _chunks(numbers: _Numbers, wrong: np.ndarray) -> str:
    """Where each wrong chunk of 16 bytes has the numbers of another chunk of its row."""
    problem = numbers.problem
    size = CHUNK // problem.bits_type("O")().itemsize
    count, found = problem.d_head // size, []

    def split(array: np.ndarray) -> np.ndarray:
        return array.reshape(*array.shape[:-1], count, size)

    values, expected, bound = split(numbers.values), split(numbers.expected), split(numbers.bound)
    for place in np.argwhere(split(wrong).any(axis=-1)):
        b, h, row, chunk = (int(one) for one in place)
        fit = (np.abs(values[b, h, row, chunk] - expected[b, h, row]) <= bound[b, h, row]).all(axis=-1)
        if not fit.any():
            return ""
        found.append((row, chunk, int(fit.argmax())))
    row, chunk, other = found[0]
    first = f"chunk {chunk} of row {row} of O holds the numbers of chunk {other}"
    if all(chunk ^ row % 8 == other for row, chunk, other in found):
        return f"the 16-byte chunks of O's rows are swizzled on one side alone, in writing or in reading: {first}"
    return f"the 16-byte chunks of a row are in each other's place: {first}"


def where(wrong: np.ndarray, unwritten: np.ndarray, Br: int) -> str:
    """Which heads, rows and columns are wrong, in words: (B, Hq, Nq, d) of bool."""
    B, Hq, Nq, d = wrong.shape
    heads = [tuple(map(int, one)) for one in np.argwhere(wrong.any(axis=(2, 3)))]
    some = f"batch and head {', '.join(map(str, heads[:3]))}{', ...' if len(heads) > 3 else ''}"
    parts = ["all heads" if len(heads) == B * Hq else some]
    parts.append(_set(np.flatnonzero(wrong.any(axis=(0, 1, 3))), Nq, "row", Br, "query tile"))
    parts.append(_set(np.flatnonzero(wrong.any(axis=(0, 1, 2))), d, "column", 0, ""))
    text = f"wrong: {'; '.join(parts)}"
    missing = unwritten & wrong
    if missing.any():
        share = "all of it" if (missing == wrong).all() else f"{int(missing.sum())} elements"
        text += f"; {share} not finite, or never written"
    return text


def _set(numbers: np.ndarray, count: int, name: str, tile: int, tile_name: str) -> str:
    """ "all rows", "rows 128 to 149 (query tile 1)", "rows whose number modulo 16 is 8 to 15", "rows 3, 5 to 7"."""
    there = set(map(int, numbers))
    if len(there) == count:
        return f"all {name}s"
    for modulus in (2, 4, 8, 16, 32, 64):
        rests = {number % modulus for number in there}
        if count >= 2 * modulus and there == {number for number in range(count) if number % modulus in rests}:
            return f"{name}s whose number modulo {modulus} is {_ranges(rests)}"
    text = f"{name}{'s' if len(there) > 1 else ''} {_ranges(there)}"
    tiles = {number // tile for number in there} if tile else set()
    if tiles and len(tiles) < -(-count // tile):
        text += f" ({tile_name}{'s' if len(tiles) > 1 else ''} {_ranges(tiles)})"
    return text


def _ranges(numbers: set[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    said = [f"{first} to {last}" if last > first else str(first) for first, last in spans[:MOST_RANGES]]
    return ", ".join(said) + (f" and {len(spans) - MOST_RANGES} more" if len(spans) > MOST_RANGES else "")
