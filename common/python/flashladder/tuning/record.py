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


@dataclass(frozen=True)
class Worth:
    """What a flag is worth: by length, how many times as long the winner takes without it."""

    flag: str
    besides: tuple[str, ...]  # off, too, since the rules do not allow them without it
    times_as_long: dict[int, float]

    @property
    def name(self) -> str:
        return f"without {self.flag}" + (f" (nor {', '.join(self.besides)})" if self.besides else "")


@dataclass(frozen=True)
class Predicted:
    configuration: Configuration
    unit: str  # that the model finds the busiest
    least_ms: float  # by model.least_ms at the clock that was seen
    ms: float


@dataclass(frozen=True)
class Tuned:
    """What a record has of a type and head dim."""

    record: dict
    dtype: str
    d: int

    def __str__(self) -> str:
        return f"{self.dtype}, d = {self.d}"

    def _rows(self, key: str, **wanted) -> list[dict]:
        wanted |= {"dtype": self.dtype, "d_head": self.d}
        return [row for row in self.record[key] if all(row[name] == value for name, value in wanted.items())]

    @property
    def winner(self) -> str:
        rows = self._rows("winners")
        if not rows:
            raise FlashLadderError(f"Nothing is tuned for {self} on {self.record['provenance']['device']}.")
        return rows[0]["configuration"]

    def chosen(self) -> dict[int, dict]:
        """By length: the row of the chosen configuration in the finals, and the peers' rows under "peers" by name."""
        found = {}
        for row in sorted(self._rows("chosen"), key=lambda row: row["Nq"]):
            rows = self._rows("measurements", round="finals", Nq=row["Nq"])
            own = next(one for one in rows if one["name"] == row["configuration"])
            found[row["Nq"]] = own | {"peers": {one["name"]: one for one in rows if one["kind"] == "peer"}}
        return found

    def worth(self) -> list[Worth]:
        """Of each flag that the winner has on, the most valuable first: from the heat at each length that all share."""
        own, rows = self.winner, self._rows("measurements", round="flags")
        by_key = {(row["name"], row["Nq"]): row["ms"]["median"] for row in rows}
        lengths = sorted({row["Nq"] for row in rows})
        found = []
        for row in self._rows("flags"):
            ratios = {
                n: by_key[row["configuration"], n] / by_key[own, n]
                for n in lengths
                if (row["configuration"], n) in by_key and (own, n) in by_key
            }
            if ratios:
                found.append(Worth(row["flag"], tuple(row["besides"]), ratios))
        return sorted(found, key=lambda one: -statistics.geometric_mean(one.times_as_long.values()))

    def does_not_pay(self) -> dict[int, list[str]]:
        """By length: the flags without which the winner takes at most PAYS times as long."""
        flags = self.worth()
        lengths = sorted({n for one in flags for n in one.times_as_long})
        return {n: [one.flag for one in flags if one.times_as_long.get(n, np.inf) <= PAYS] for n in lengths}

    def first_rows(self, length: int) -> list[tuple[Configuration, dict]]:
        """(configuration, its figures) in the first heats at a length, the fastest first."""
        found = [
            (parse(row["configuration"]), figures)
            for row in self._rows("configurations")
            for figures in row.get("first", [])
            if figures["Nq"] == length
        ]
        return sorted(found, key=lambda pair: pair[1]["ms"]["median"])

    def fastest(self, count: int) -> list[Configuration]:
        """So many at each length of the first heats, the fastest first; each once, though it may be fast at several."""
        lengths = self.record["settings"]["short_list"]
        return list(dict.fromkeys(one for n in lengths for one, _ in self.first_rows(n)[:count]))

    def best_by_tile(self, length: int) -> dict[tuple[int, int], tuple[Configuration, dict]]:
        """(Br, Bc) -> the fastest configuration with that tile in the first heats, and its figures."""
        found: dict = {}
        for one, figures in self.first_rows(length):
            found.setdefault((one.Br, one.Bc), (one, figures))
        return found

    def beside_stages(self) -> dict[str, dict[int, float]]:
        """By stage and length: how many times the stage's throughput stage 12's kernel has with its flags."""
        found: dict[str, dict[int, float]] = {}
        for row in self._rows("stages"):
            found.setdefault(row["name"], {})[row["Nq"]] = row["ms"]["median"] / row["configured_ms"]["median"]
        return found

    def predicted(self, length: int) -> list[Predicted]:
        """The model's bound beside the measured time of each configuration of the first heats, the fastest first."""
        compute, settings = round(10 * self.record["provenance"]["compute_capability"]), self.record["settings"]
        problem = bench.problem_at(length, settings["tokens"], settings["heads"], self.d, self.dtype)
        found = []
        for one, figures in self.first_rows(length):
            if figures["sm_mhz"]:
                least = model.least_ms(one, problem, figures["sm_mhz"], self.record["multiprocessors"], compute)
                found.append(Predicted(one, model.bound(one, compute)[0], least, figures["ms"]["median"]))
        return found


def tuned(record: dict) -> list[Tuned]:
    """Each type and head dim of which there is a winner."""
    return [Tuned(record, row["dtype"], row["d_head"]) for row in record["winners"]]


def of_head_dim(records: list[dict], d: int, dtype: str = "bf16") -> list[Tuned]:
    """Of the records that have a winner for it."""
    return [one for made in records for one in tuned(made) if (one.dtype, one.d) == (dtype, d)]


def head_dims(records: list[dict]) -> list[int]:
    """Of the winners in bf16."""
    return sorted({one.d for made in records for one in tuned(made) if one.dtype == "bf16"})
