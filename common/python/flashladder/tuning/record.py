"""What a run of the tuner leaves: docs/results/GPU-tuning.json, and what tables and pictures take from one."""

import statistics
from dataclasses import asdict, dataclass

import numpy as np

from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import bench, provenance
from flashladder.tuning import instances, model, rules
from flashladder.tuning.configuration import Configuration, of_stage, parse
from flashladder.tuning.space import Refusals
from flashladder.tuning.store import Times
from flashladder.tuning.tune import PAYS, YARDSTICK, Heat, Outcome, Plan


def file_name(device: Device) -> str:
    return f"{bench.slug(device.short)}-tuning.json"


def make(
    outcome: Outcome,
    plan: Plan,
    refused: dict[tuple[str, int], Refusals],
    device: Device,
    multiprocessors: int,
    space: str = "",
) -> dict:
    """The record. refused: by dtype and d_head. space: what was looked at, in words; "": the space of `make tune`."""
    return head(plan, device, multiprocessors, instances.kernel_hash()) | {
        "space": space,
        "refused": [
            {"dtype": dtype, "d_head": d_head, "enumerated": one.enumerated, "admitted": len(one.admitted),
             "by_rule": one.by_rule, "by_this_rule_alone": one.by_one_alone}
            for (dtype, d_head), one in refused.items()
        ],
        "configurations": [_of_configuration(one, outcome) for one in outcome.known],
        "measurements": [
            row for heat in outcome.heats if heat.round in ("finals", "flags") for row in _rows(heat)
        ],
        "chosen": [
            {**_shape(problem), "configuration": str(one), "tflops": _final(outcome, problem, str(one))}
            for problem, one in outcome.chosen.items()
        ],
        "stages": [row for heat in outcome.heats if heat.round == "stages" for row in _beside_stages(heat, plan)],
        "winners": [
            {"dtype": dtype, "d_head": d_head, "configuration": str(one)}
            for (dtype, d_head), one in outcome.winners.items()
        ],
        "flags": [
            {"dtype": dtype, "d_head": d_head, "flag": one.flag, "besides": list(one.besides),
             "configuration": str(one.configuration)}
            for (dtype, d_head), several in outcome.neighbours.items()
            for one in several
        ],
    }  # fmt: skip


def head(plan, device: Device, multiprocessors: int, kernel: str) -> dict:
    """How a record of either stage begins; plan: that stage's Plan, kernel: the hash of its kernel."""
    return {
        "version": 1,
        "provenance": provenance.collect(device),
        "kernel_sha256": kernel,
        "multiprocessors": multiprocessors,
        "settings": {name: value for name, value in asdict(plan).items() if name != "candidates"},
    }


def _shape(problem: Problem) -> dict:
    return {name: getattr(problem, name) for name in ("dtype", "d_head", "B", "Hq", "Nq")}


def figures_of(problem: Problem, times: Times) -> dict:
    return bench.figures(problem.flops(), times.ms, times.sm_mhz)


def _rows(heat: Heat) -> list[dict]:
    return [
        {
            "round": heat.round,
            "name": name,
            "kind": times.kind,
            **_shape(heat.problem),
            **figures_of(heat.problem, times),
        }
        for name, times in heat.times.items()
    ]


def _beside_stages(heat: Heat, plan: Plan) -> list[dict]:
    """Each stage beside stage 12's kernel with its flags."""
    rows = []
    for number in plan.stages:
        stage, configured = stages.get(number), str(of_stage(number, heat.problem.dtype, heat.problem.d_head))
        if stage.name in heat.times and configured in heat.times:
            own, other = (figures_of(heat.problem, heat.times[name]) for name in (stage.name, configured))
            facts = {"name": stage.name, "kind": "stage", "kernel_sha256": stage.kernel_hash()}
            figures = {"tflops": own["tflops"], "configured_tflops": other["tflops"], "ms": own["ms"]}
            shape = _shape(heat.problem)
            rows.append(facts | {"configuration": configured} | shape | figures | {"configured_ms": other["ms"]})
    return rows


def _final(outcome: Outcome, problem: Problem, name: str) -> float:
    heat = next(one for one in outcome.heats if (one.round, one.problem) == ("finals", problem))
    return figures_of(problem, heat.times[name])["tflops"]


def _of_configuration(one: Configuration, outcome: Outcome) -> dict:
    """A configuration, what it takes, and its times of the first heats, each with the yardstick's median beside it."""
    known = outcome.known[one]
    row = {
        "configuration": str(one),
        "dtype": one.dtype,
        "d_head": one.d_head,
        "shared_bytes": rules.shared_bytes(one),
        "registers": known.registers,
        "spill_bytes": known.spill_bytes,
        "resident_blocks": known.resident_blocks,
    }
    if known.failed:
        return row | {"failed": known.failed, "message": known.message[:500]}
    row["first"] = [
        {"Nq": heat.problem.Nq, **figures_of(heat.problem, heat.times[str(one)]),
         "yardstick_ms": round(statistics.median(heat.times[YARDSTICK].ms), 5) if YARDSTICK in heat.times else None}
        for heat in outcome.heats
        if heat.round == "first" and str(one) in heat.times
    ]  # fmt: skip
    return row


# ---- read ----


def is_stale(record: dict) -> bool:
    """Whether kernel.cu is no longer the one that was tuned."""
    return record["kernel_sha256"] != instances.kernel_hash()


def groups(record: dict) -> list[tuple[str, int]]:
    """(dtype, d_head) of which there is a winner."""
    return [(row["dtype"], row["d_head"]) for row in record["winners"]]


def _of(rows: list[dict], dtype: str, d: int, **wanted) -> list[dict]:
    wanted |= {"dtype": dtype, "d_head": d}
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def winner(record: dict, dtype: str, d: int) -> str:
    rows = _of(record["winners"], dtype, d)
    if not rows:
        raise FlashLadderError(f"Nothing is tuned for {dtype}, d = {d} on {record['provenance']['device']}.")
    return rows[0]["configuration"]


def chosen(record: dict, dtype: str, d: int) -> dict[int, dict]:
    """By length: the row of the chosen configuration in the finals, and those of the peers under "peers" by name."""
    found = {}
    for row in sorted(_of(record["chosen"], dtype, d), key=lambda row: row["Nq"]):
        rows = _of(record["measurements"], dtype, d, round="finals", Nq=row["Nq"])
        own = next(one for one in rows if one["name"] == row["configuration"])
        found[row["Nq"]] = own | {"peers": {one["name"]: one for one in rows if one["kind"] == "peer"}}
    return found


@dataclass(frozen=True)
class Worth:
    """What a flag is worth: by length, how many times as long the winner takes without it."""

    flag: str
    besides: tuple[str, ...]  # off, too, since the rules do not allow them without it
    times_as_long: dict[int, float]

    @property
    def name(self) -> str:
        return f"without {self.flag}" + (f" (nor {', '.join(self.besides)})" if self.besides else "")


def worth(record: dict, dtype: str, d: int) -> list[Worth]:
    """Of each flag that the winner has on, the most valuable first: from the heat at each length that all share."""
    own = winner(record, dtype, d)
    rows = _of(record["measurements"], dtype, d, round="flags")
    by_key = {(row["name"], row["Nq"]): row["ms"]["median"] for row in rows}
    lengths = sorted({row["Nq"] for row in rows})
    found = []
    for row in _of(record["flags"], dtype, d):
        ratios = {
            n: by_key[row["configuration"], n] / by_key[own, n]
            for n in lengths
            if (row["configuration"], n) in by_key and (own, n) in by_key
        }
        if ratios:
            found.append(Worth(row["flag"], tuple(row["besides"]), ratios))
    return sorted(found, key=lambda one: -statistics.geometric_mean(one.times_as_long.values()))


def does_not_pay(record: dict, dtype: str, d: int) -> dict[int, list[str]]:
    """By length: the flags without which the winner takes at most PAYS times as long."""
    flags = worth(record, dtype, d)
    lengths = sorted({n for one in flags for n in one.times_as_long})
    return {n: [one.flag for one in flags if one.times_as_long.get(n, np.inf) <= PAYS] for n in lengths}


def first_rows(record: dict, dtype: str, d: int, length: int) -> list[tuple[Configuration, dict]]:
    """(configuration, its figures) in the first heats at a length, the fastest first."""
    found = [
        (parse(row["configuration"]), figures)
        for row in _of(record["configurations"], dtype, d)
        for figures in row.get("first", [])
        if figures["Nq"] == length
    ]
    return sorted(found, key=lambda pair: pair[1]["ms"]["median"])


def fastest(record: dict, dtype: str, d: int, count: int) -> list[Configuration]:
    """So many at each length of the first heats, the fastest first; each once, though it may be fast at several."""
    lengths = record["settings"]["short_list"]
    return list(dict.fromkeys(one for n in lengths for one, _ in first_rows(record, dtype, d, n)[:count]))


def best_by_tile(record: dict, dtype: str, d: int, length: int) -> dict[tuple[int, int], tuple[Configuration, dict]]:
    """(Br, Bc) -> the fastest configuration with that tile in the first heats, and its figures."""
    found: dict = {}
    for one, figures in first_rows(record, dtype, d, length):
        found.setdefault((one.Br, one.Bc), (one, figures))
    return found


def beside_stages(record: dict, dtype: str, d: int) -> dict[str, dict[int, float]]:
    """By stage and length: how many times the stage's throughput stage 12's kernel has with its flags."""
    found: dict[str, dict[int, float]] = {}
    for row in _of(record["stages"], dtype, d):
        found.setdefault(row["name"], {})[row["Nq"]] = row["ms"]["median"] / row["configured_ms"]["median"]
    return found


@dataclass(frozen=True)
class Predicted:
    configuration: Configuration
    unit: str  # that the model finds the busiest
    least_ms: float  # by model.least_ms at the clock that was seen
    ms: float


def predicted(record: dict, dtype: str, d: int, length: int) -> list[Predicted]:
    """The model's bound beside the measured time of each configuration of the first heats, the fastest first."""
    compute = round(10 * record["provenance"]["compute_capability"])
    problem = bench.problem_at(length, record["settings"]["tokens"], record["settings"]["heads"], d, dtype)
    found = []
    for one, figures in first_rows(record, dtype, d, length):
        if figures["sm_mhz"]:
            least = model.least_ms(one, problem, figures["sm_mhz"], record["multiprocessors"], compute)
            found.append(Predicted(one, model.bound(one, compute)[0], least, figures["ms"]["median"]))
    return found
