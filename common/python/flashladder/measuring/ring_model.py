"""When communication hides behind attention on several GPUs: a rule from two rates, and a model of who copies and
computes when. A model, no measurement: each link is a rank's own, and no time passes between two events. MEASURED has
the two rates alone; COSTS also what a copy, a launch and the merge take besides, as spans and links of four H200 have
it (docs/results/ring.md)."""

import heapq
from dataclasses import dataclass

from flashladder.core.errors import FlashLadderError
from flashladder.core.ring_problem import RingProblem
from flashladder.running.timeline import Span, Timeline

SLUGS = ("gather", "ring", "zigzag", "one_launch")
TFLOPS, GB_S = 700.0, 370.0  # of a GPU's attention, and of a link in one direction


BR = 128  # rows of a query tile of one_launch


@dataclass(frozen=True)
class Rates:
    tflops: float = TFLOPS
    gb_s: float = GB_S
    multiprocessors: int = 132
    copy_us: float = 0.0  # of a copy, besides its bytes
    launch_us: float = 0.0  # of a launch, whose blocks begin and end at different times
    merge_gb_s: float = 0.0  # that a merge reads and writes; 0: it takes no time
    meeting_us: float = 0.0  # in which each rank's stream waits for those of all others

    def pull_ms(self, problem: RingProblem, keys: int, part: float = 1.0) -> float:
        """To copy so many rows of K and V, of 2 bytes a number, of a part of the heads."""
        return 2e-3 * self.copy_us + 4 * part * problem.B * problem.Hkv * keys * problem.d_head / self.gb_s / 1e6

    def attention_ms(self, problem: RingProblem, scores: int, launches: int = 0) -> float:
        """For so many scores of each head of Q: two products of d_head multiplications and additions each."""
        of_scores = 4 * problem.B * problem.Hq * scores * problem.d_head / self.tflops / 1e9
        return of_scores + 1e-3 * launches * self.launch_us

    def merge_ms(self, problem: RingProblem, parts: int) -> float:
        """To read so many parts of a rank's O, and to write it."""
        numbers = problem.B * problem.Hq * problem.Nq // problem.ranks * problem.d_head
        return 2 * (parts + 1) * numbers / self.merge_gb_s / 1e6 if self.merge_gb_s else 0.0

    def tile_ms(self, problem: RingProblem, keys: int) -> float:
        """For one query tile and so many keys, on one multiprocessor."""
        return 4 * BR * keys * problem.d_head * self.multiprocessors / self.tflops / 1e9


MEASURED = Rates()
COSTS = Rates(gb_s=388, copy_us=11, launch_us=20, merge_gb_s=2300, meeting_us=24)


def least_length(ranks: int, Hq: int, Hkv: int, causal: bool = False, rates: Rates = MEASURED) -> float:
    """The N above which all of a rank's copies take less time than its attention. A rank copies (P - 1) / P of the
    4 Hkv N d bytes of K and V, and does 1 / P of the 4 Hq N² d operations, half of that with a causal mask: so
    N Hq / Hkv > (P - 1) operations per second / bytes per second, and twice that with the mask."""
    return (2 if causal else 1) * (ranks - 1) * Hkv / Hq * rates.tflops * 1e3 / rates.gb_s


@dataclass(frozen=True)
class Step:
    """What a rank does with the K and V of one rank."""

    source: int
    keys: int  # that it copies; 0 of its own
    scores: int  # of one head of Q


def steps(slug: str, problem: RingProblem, rank: int) -> list[Step]:
    """Of a rank of a stage for several GPUs, in their order. Rows are divided evenly here."""
    P, rows = problem.ranks, problem.Nq // problem.ranks
    if slug not in SLUGS:
        raise FlashLadderError(f"There is no model of '{slug}': choose {', '.join(SLUGS[:-1])} or {SLUGS[-1]}.")
    # With a mask half of the square of the own rows, of a zigzag rank's two pieces, too.
    found = [Step(rank, 0, rows * (rows + 1) // 2 if problem.causal else rows * rows)]
    for source in ((rank - step) % P for step in range(1, P)):
        if not problem.causal:
            found.append(Step(source, rows, rows * rows))
        elif slug in ("zigzag", "one_launch"):
            found.append(Step(source, rows // 2 if source < rank else rows, rows * rows // 2))
        elif source < rank:
            found.append(Step(source, rows, rows * rows))
    return found


def modelled(slug: str, problem: RingProblem, rates: Rates = MEASURED) -> Timeline:
    """The spans of all ranks; a lane for the copies of each and one for its kernels."""
    if slug in ("one_launch", "heads_first"):
        of_rank = one_launch if slug == "one_launch" else heads_first
        spans = [span for rank in range(problem.ranks) for span in of_rank(problem, rank, rates)]
    else:
        spans = _stepped(slug, problem, rates)
    where = f"a model: {rates.tflops:g} TFLOP/s, {rates.gb_s:g} GB/s"
    note = "A model, no measurement. The numbers are those of the GPU whose K and V are copied or attended to."
    return Timeline("ms", where, f"{slug}, {problem}", spans, note).check()


def _stepped(slug: str, problem: RingProblem, rates: Rates) -> list[Span]:
    """Of the stages that launch a kernel for each step, or one after all copies."""
    work = [steps(slug, problem, rank) for rank in range(problem.ranks)]
    pulled = [[0.0] * len(one) for one in work]  # when each step's copy ends
    computed = [[0.0] * len(one) for one in work]
    spans = []
    for number in range(problem.ranks):
        for rank, own in enumerate(work):
            if number >= len(own):
                continue
            step = own[number]
            if step.keys:
                start = max([pulled[rank][number - 1], *_before_copy(slug, number, rank, pulled, computed)])
                pulled[rank][number] = start + rates.pull_ms(problem, step.keys)
                spans.append(_span(rank, "copies", step, start, pulled[rank][number]))
            else:
                pulled[rank][number] = pulled[rank][number - 1] if number else 0.0
            if slug != "gather":
                start = max(pulled[rank][number], computed[rank][number - 1] if number else 0.0)
                launches = 2 if slug == "zigzag" and problem.causal and not step.keys else 1
                computed[rank][number] = start + rates.attention_ms(problem, step.scores, launches)
                spans.append(_span(rank, "kernel", step, start, computed[rank][number]))
    if slug == "gather":
        for rank, own in enumerate(work):
            start = max(pulled[rank])
            end = start + rates.attention_ms(problem, sum(step.scores for step in own), 1)
            spans.append(Span(f"GPU {rank} kernel", "compute", "all", start, end))
    elif rates.merge_gb_s:
        for rank, own in enumerate(work):
            start, ms = max(computed[rank]), rates.merge_ms(problem, len(own))
            spans.append(Span(f"GPU {rank} kernel", "compute", "merge", start, start + ms))
    return spans


def _before_copy(slug: str, number: int, rank: int, pulled: list[list[float]], computed: list[list[float]]):
    """When what a step's copy waits for, besides the copy before, is done: a free buffer, and the neighbour's copy."""
    found = []
    if slug != "gather" and number > 2:
        found.append(computed[rank][number - 2])
    if slug == "ring" and number > 1:
        found.append(pulled[(rank - 1) % len(pulled)][number - 1])
    return found


def groups(problem: RingProblem) -> int:
    """Into how many groups the heads' copies of one_launch are divided."""
    K_bytes = 2 * problem.B * problem.Hkv * (problem.Nq // problem.ranks) * problem.d_head
    return min(max(K_bytes // (16 << 20), 1), 4)


def one_launch(problem: RingProblem, rank: int, rates: Rates = MEASURED, divided: int = 0) -> list[Span]:
    """A rank's copies, group by group, and its kernel: each multiprocessor takes one query tile after the other, and
    of it the keys of one rank after the other, as soon as these are there. divided: into so many groups of heads."""
    heads = problem.B * problem.Hkv
    group = -(-heads // (divided or groups(problem)))
    _, *others = steps("one_launch", problem, rank)
    pulled, spans, end = {}, [], 0.0
    for first in range(0, heads, group):
        for step in others:
            start, part = end, min(group, heads - first) / heads
            end = pulled[first // group, step.source] = start + rates.pull_ms(problem, step.keys, part)
            spans.append(_span(rank, "copies", step, start, end))
    rows = problem.Nq // problem.ranks
    free = [1e-3 * rates.launch_us] * rates.multiprocessors  # when each is
    for head in range(heads):
        for row in sorted(range(0, rows, BR), reverse=problem.causal):
            for _ in range(problem.Hq // problem.Hkv):
                now = heapq.heappop(free) + rates.tile_ms(problem, row + BR // 2 if problem.causal else rows)
                for step in others:
                    if problem.causal and step.source > rank and row < rows // 2:
                        continue  # the early rows see none of these keys
                    now = max(now, pulled[head // group, step.source]) + rates.tile_ms(problem, step.keys)
                heapq.heappush(free, now)
    return [*spans, Span(f"GPU {rank} kernel", "compute", "all", 0.0, max(free))]


def heads_first(problem: RingProblem, rank: int, rates: Rates = MEASURED) -> list[Span]:
    """Of stages/63_one_launch/heads_first.cu: its heads of K and V one after the other, of which each rank has its
    rows already, and the kernel, which begins when the first has come. Q and O travel meanwhile. Before and after it
    all ranks wait for each other."""
    heads = problem.B * problem.Hkv // problem.ranks
    one = rates.pull_ms(problem, problem.Nq - problem.Nq // problem.ranks, 1 / (problem.B * problem.Hkv))
    one -= 2e-3 * rates.copy_us  # no copy engine does it
    met = 1e-3 * rates.meeting_us
    scores = problem.Nq**2 // problem.ranks // (2 if problem.causal else 1)
    whole, of_head = rates.attention_ms(problem, scores, 1), rates.attention_ms(problem, scores) / heads
    end = met + max(one + whole, heads * one + of_head) + met
    copies = [
        Span(f"GPU {rank} copies", "copy in", f"head {rank * heads + n}", met + n * one, met + (n + 1) * one)
        for n in range(heads)
    ]
    return [*copies, Span(f"GPU {rank} kernel", "compute", "all", met + one, end)]


def of_ideal(slug: str, problem: RingProblem, rates: Rates = COSTS) -> float:
    """The part of the ideal that a stage reaches: of the time in which all GPUs together do the same attention."""
    scores = problem.Nq**2 // problem.ranks // (2 if problem.causal else 1)
    end = max(span.end for span in modelled(slug, problem, rates).spans)
    return rates.attention_ms(problem, scores) / end


def _span(rank: int, lane: str, step: Step, start: float, end: float) -> Span:
    return Span(f"GPU {rank} {lane}", "copy in" if lane == "copies" else "compute", str(step.source), start, end)


def recorded(spans: list[dict], title: str, where: str) -> Timeline:
    """From the events of a timed run (running.ring.Marks.spans)."""
    note = "From CUDA events. Each GPU's times count from its own first event, before which it waited for the others."
    return Timeline("ms", where, title, [
        Span(
            f"GPU {one['rank']} {'copies' if one['work'] == 'pull' else 'kernel'}",
            "copy in" if one["work"] == "pull" else "compute",
            "merge" if one["work"] == "merge" else "all" if one["source"] < 0 else str(one["source"]),
            one["start_ms"], one["end_ms"],
        )
        for one in spans
    ], note).check()  # fmt: skip
