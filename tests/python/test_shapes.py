"""The configurations of shapes: their short form, the rules, the table and what it is predicted from, the tuner with
times that are made up, and the choice by mask in C++. No figure here is of a machine."""

import re
import subprocess
from dataclasses import dataclass, fields, replace

import pytest
from hostcc import compile_cpp

from flashladder.building import build
from flashladder.commands import tune_shapes
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import describe
from flashladder.measuring import bench, gpu_memory, recorded
from flashladder.tuning import gpu_times, instances, shape_table, shape_tuner, shapes, space
from flashladder.tuning.shape_table import as_launched
from flashladder.tuning.shapes import Configuration, parse, refusals
from flashladder.tuning.store import Known, Place, Store, Times
from flashladder.tuning.tune import TimingFailed

WIDE = Configuration("bf16", 64, 192, 128, 3, 1, True, False, 32, 160)
TWO_BLOCKS = Configuration("bf16", 64, 64, 128, 2, 1, False, False, 24, 232, 2)
ADMITTED = [one for d in (64, 128) for one in space.admitted(shapes.space("bf16", d), among=shapes.RULES).admitted]


@pytest.mark.parametrize("one", [*ADMITTED, as_launched("fp16", 64)], ids=str)
def test_the_short_form_is_parsed_back(one):
    assert parse(str(one)) == one and not refusals(one)


def test_each_switch_has_its_word_and_its_place_in_the_struct():
    both = replace(as_launched(), parts=1, turns=True, Q_in_registers=True)
    assert str(both) == "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+q_in_registers+registers_24_240"
    assert both.cpp() == "{128, 128, 2, 1, true, true, 24, 240, 1}"
    assert replace(both, turns=False).cpp() == "{128, 128, 2, 1, false, true, 24, 240, 1}"
    struct = stages.get("shapes").kernel.read_text().split("struct Configuration {")[1].split("};")[0]
    code = re.sub(r"//.*|constexpr.*", "", struct)
    found = [
        (kind, name.strip()) for kind, names in re.findall(r"(int|bool) ([^;]+);", code) for name in names.split(",")
    ]
    assert [name for _, name in found] == stages.get("shapes").data["launch"][-1]["fields"]
    assert [kind for kind, _ in found] == [field.type.__name__ for field in fields(Configuration)][2:]


@pytest.mark.parametrize("text, words", (
    ("(BF16, 64, 192, 128, 12): kv_buffers_3+turns+registers_32_160", "says 12 warps; with Br = 192 a block has 16"),
    ("(FP32, 64, 192, 128, 16): kv_buffers_3+registers_32_160", "no configuration of"),
    ("(BF16, 64, 192, 128, 16): turns+kv_buffers_3+registers_32_160", "no configuration of"),
    ("(BF16, 64, 128, 128, 12): kv_buffers_2+q_in_registers+turns+registers_24_240", "no configuration of"),
))  # fmt: skip
def test_what_is_no_configuration_is_refused_in_words(text, words):
    with pytest.raises(FlashLadderError, match=words):
        parse(text)


@pytest.mark.parametrize("rule, wrong", (
    ("types", replace(WIDE, dtype="fp32")),
    ("rows", replace(WIDE, Br=160)),
    ("columns", replace(WIDE, Bc=64)),
    ("stages", replace(WIDE, kv_stages=1)),
    ("parts", replace(WIDE, turns=False, parts=3)),
    ("turns_need_whole_P", replace(WIDE, Br=128, producer_registers=24, consumer_registers=240, parts=2)),
    ("setmaxnreg", replace(WIDE, producer_registers=20)),
    ("given_and_taken", replace(WIDE, Br=128, consumer_registers=160)),
    ("register_file", replace(WIDE, producer_registers=40)),
    ("accumulators", replace(WIDE, d_head=128, kv_stages=2, consumer_registers=160, Br=192)),
    ("accumulators", replace(WIDE, Q_in_registers=True)),
    ("accumulators", replace(WIDE, turns=False, parts=2)),
    ("accumulators", replace(TWO_BLOCKS, Q_in_registers=True, consumer_registers=160)),
    ("shared_memory", replace(WIDE, kv_stages=6)),
    ("blocks", replace(WIDE, blocks=0)),
    ("resident_shared_memory", replace(TWO_BLOCKS, kv_stages=4)),
))  # fmt: skip
def test_each_rule_refuses_what_breaks_it_alone(rule, wrong):
    names = [one.name for one in refusals(wrong)]
    alone = [rule] if rule != "accumulators" else ["accumulators", "shared_memory"]
    assert names == [one for one in alone if one in names] and rule in names, names


def test_one_consumer_takes_no_turns_and_a_box_has_256_rows():
    assert "turns_need_two" in [one.name for one in refusals(replace(WIDE, Br=64))]
    assert "box_rows" in [one.name for one in refusals(replace(WIDE, Br=320))]


def test_registers_at_the_launch_and_what_they_are_shared_into():
    assert [one.launch_registers for one in (as_launched(), WIDE, TWO_BLOCKS)] == [168, 128, 128]
    assert 2 * 240 + 24 == 3 * 168 and 3 * 160 + 32 == 4 * 128 and 232 + 24 == 2 * 128
    assert "register_file" in [one.name for one in refusals(replace(TWO_BLOCKS, consumer_registers=240))]


def test_three_consumers_have_no_registers_at_d_head_128():
    """What choices.toml says."""
    assert not [one for one in ADMITTED if one.d_head == 128 and one.consumers > 2]


def test_q_in_registers_takes_those_of_its_fragments():
    """A thread has four registers for each 16 columns of Q; without them all else of the configuration stays."""
    for one in ADMITTED:
        other = replace(one, Q_in_registers=not one.Q_in_registers)
        more, fewer = (one, other) if one.Q_in_registers else (other, one)
        assert more.accumulators - fewer.accumulators == 4 * one.d_head // 16
        assert more.shared_bytes == fewer.shared_bytes and not refusals(fewer)


def test_q_in_registers_is_for_one_or_two_consumers_that_have_more_than_160():
    having = [one for one in ADMITTED if one.Q_in_registers]
    assert {(one.d_head, one.Br, one.consumer_registers) for one in having} == {
        (64, 128, 240), (64, 64, 232), (128, 128, 240),
    }  # fmt: skip
    # And all of them have it: no other rule looks at the field.
    others = [one for one in ADMITTED if not one.Q_in_registers and one.consumer_registers > 160]
    assert {replace(one, Q_in_registers=True) for one in others} == set(having)


@pytest.mark.parametrize("d_head, looked_at, left", ((64, 144, 29), (128, 144, 6)))
def test_what_is_looked_at_and_what_the_rules_leave(d_head, looked_at, left):
    """Six shapes and registers, two to four buffers, P whole or in two parts, turns or none, Q here or there."""
    every = list(shapes.space("bf16", d_head))
    assert len(every) == len(set(every)) == looked_at == 6 * 3 * 2 * 2 * 2
    assert sum(one.d_head == d_head for one in ADMITTED) == left


def test_the_record_has_timed_what_the_rules_leave():
    (made,) = recorded.shipped(kind="shapes")
    assert {row["configuration"] for row in made["configurations"]} >= {str(one) for one in ADMITTED}


def test_refused_is_counted_by_rule():
    counts = space.admitted([WIDE, replace(WIDE, parts=2), replace(WIDE, kv_stages=6)], among=shapes.RULES).by_rule
    wanted = {"turns_need_whole_P": 1, "accumulators": 1, "shared_memory": 1}
    assert {name: count for name, count in counts.items() if count} == wanted


# ---- the table ----


def test_the_committed_table_is_the_one_that_is_written():
    assert shape_table.TABLE.read_text() == shape_table.shipped(), f"{shape_table.TABLE} is old: run `make results`"


def test_every_type_head_dim_mask_and_length_has_one_choice_and_it_is_built():
    """On the first GPU of the table: of what it has measured, and what is predicted of the rest."""
    built = shape_table.configurations_built()
    choices = shape_table.choices(recorded.shipped(kind="shapes")[:1], shape_table.predicted())
    for dtype in ("fp16", "bf16"):
        for d_head in (64, 128):
            assert as_launched(dtype, d_head) in built
            for mask in shape_table.MASKS:
                found = [one for one in choices if one.group == (dtype, d_head, mask)]
                ends = sorted((one.first, one.last) for one in found)
                assert ends[0][0] == 1 and ends[-1][1] == shape_table.LONGEST
                assert all(last + 1 == first for (_, last), (first, _) in zip(ends, ends[1:], strict=False))
                assert {one.configuration for one in found} <= set(built)
    assert not [str(one) for one in built if refusals(one)]


def test_a_prediction_says_from_what():
    assert all(one.predicted_from for one in shape_table.predicted())
    text = shape_table.PREDICTED.read_text()
    with pytest.raises(FlashLadderError, match="predicted_from not empty"):
        shape_table.predicted(text.replace('predicted_from = "counting', 'predicted_from = "" # "counting'))
    with pytest.raises(FlashLadderError, match="full or causal"):
        shape_table.predicted(text.replace('mask = "full"', 'mask = "window"'))


def record(*rows) -> dict:
    """A record of the tuner that chose (causal, Nq, configuration)."""
    chosen = [
        {"dtype": c.dtype, "d_head": c.d_head, "causal": causal, "Nq": length, "configuration": str(c)}
        for causal, length, c in rows
    ]
    provenance = {"device": "NVIDIA H200", "compute_capability": 9.0}
    return {"version": 1, "provenance": provenance, "multiprocessors": 132, "chosen": chosen}


def test_what_was_measured_takes_the_place_of_what_was_predicted():
    short = as_launched("bf16", 64)
    made = record((False, 4096, WIDE), (False, 1024, short), (True, 4096, WIDE), (False, 16384, WIDE))
    found = shape_table.choices([made], shape_table.predicted())
    own = [(one.configuration, one.first, one.last) for one in found if one.group == ("bf16", 64, "full")]
    assert own == [(short, 1, 2048), (WIDE, 2049, shape_table.LONGEST)]
    assert [one.predicted_from for one in found if one.group == ("bf16", 64, "causal")] == [""]
    others = [one for one in found if one.group not in (("bf16", 64, "full"), ("bf16", 64, "causal"))]
    assert {one.group for one in others} == {one.group for one in shape_table.predicted()} - {
        ("bf16", 64, "full"), ("bf16", 64, "causal"),
    }  # fmt: skip
    assert all(one.predicted_from for one in others)


def test_a_line_says_whether_its_choice_was_measured():
    (choice,) = shape_table.measured(record((True, 512, WIDE)))
    assert choice.line().endswith(f'"{WIDE}", flash::causal, "")')
    guess = replace(choice, predicted_from='a "run"')
    assert guess.line().endswith(f'"{WIDE}", flash::causal, "predicted from a \\"run\\"")')


# ---- the choice, in C++ ----


@pytest.fixture(scope="module")
def choose(tmp_path_factory):
    """choose(Nq, causal) -> (the name that C++ chooses, multiple_Nq that the limits ask for)."""
    folder = tmp_path_factory.mktemp("choose")
    (folder / "choose.cpp").write_text(
        """
#include <cstdio>
#include "configured.h"
using namespace flash;
static void kernel(FlashParams) {}
FlashStatus flash::check_sizes(const FlashParams *, const Limits &) { return FLASH_OK; }
FlashStatus flash::fail(FlashStatus status, const char *, ...) { return status; }
FlashStatus flash::check(const FlashParams *, const Limits &, size_t) { return FLASH_OK; }
FlashStatus flash::launch(const Launch &, const FlashParams &, cudaStream_t) { return FLASH_OK; }
FlashStatus flash::describe(const Limits &, const Launch &, size_t, FlashDescription *) { return FLASH_OK; }
dim3 flash::persistent(int works, int blocks) { return dim3(std::min(works, 10 * blocks)); }
cudaError_t cudaGetDevice(int *number) { *number = 0; return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *one, int) {
    std::strcpy(one->name, "NVIDIA H200");
    one->major = 9, one->minor = 0, one->multiProcessorCount = 132, one->sharedMemPerBlockOptin = 227 << 10;
    return cudaSuccess;
}
int main(int, char **words) {
    const auto one = [](const char *name, int Br, int blocks = 1) {
        return instance<__nv_bfloat16>(name, 64, kernel, Br, 128, 128, blocks, 96 << 10);
    };
    const Table table = {{one("first", 128), one("short", 128), one("long", 192), one("masked", 128, 2)},
                         {{"NVIDIA H200", 90, 132, FLASH_BF16, 64, 1, 1000, "short", full, "predicted from nothing"},
                          {"NVIDIA H200", 90, 132, FLASH_BF16, 64, 1001, 1 << 30, "long", full},
                          {"NVIDIA H200", 90, 132, FLASH_BF16, 64, 1, 2000, "masked", causal}}};
    FlashParams params{};
    params.dtype = FLASH_BF16, params.d_head = 64, params.Hq = params.B = 1;
    params.Nq = params.Nkv = std::atoi(words[1]), params.causal = std::atoi(words[2]);
    Limits limits{};
    Launch launch;
    plan(&params, table, limits, launch);
    std::printf("%s %d %d %d\\n", limits.configuration, limits.multiple_Nq, limits.Br, launch.grid.x);
}
"""
    )
    program = compile_cpp(folder / "choose.cpp", folder / "choose")

    def call(Nq: int, causal: bool) -> list[str]:
        words = [program, str(Nq), str(int(causal))]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()

    return call


@pytest.mark.long
def test_the_mask_and_the_length_choose(choose):
    assert choose(512, False) == ["short", "1", "128", "4"]
    assert choose(4001, False) == ["long", "1", "192", "10"], "any length: no tile has to divide it"
    assert choose(2000, True) == ["masked", "1", "128", "16"], "20 blocks would fit on 10 multiprocessors"
    assert choose(4001, True)[0] == "first", "nothing was chosen for it"


# ---- the tuner ----

PLACE = Place("made-up GPU", "1", "13.0", "0" * 64)
PLAN = shape_tuner.Plan(tuple(ADMITTED[:4]), lengths=(512, 4096))
YARDSTICK = "a peer"


class MadeUp:
    """Workshop and Timer: the n-th candidate takes n milliseconds more, but for what `faster` says, and `hard` of
    hard inputs."""

    peers = (YARDSTICK,)

    def __init__(
        self,
        faster: dict[tuple[str, int, bool], float] | None = None,
        bad: str = "",
        hard: dict[str, float] | None = None,
        bad_on_hard: str = "",
    ):
        self.faster, self.bad, self.heats, self.prepared = faster or {}, bad, [], []
        self.on_hard, self.hard, self.bad_on_hard = hard or {}, hard is not None, bad_on_hard

    def prepare(self, configurations):
        for one in configurations:
            self.prepared.append(one)
            yield one, Known(registers=168, spill_bytes=0)

    def at_hand(self, configurations):
        pass

    def heat(self, problem, configurations, seconds, numbers=(), inputs="normal"):
        self.heats.append((problem, configurations, numbers))
        found = {}
        for one in configurations:
            if str(one) == (self.bad if inputs == "normal" else self.bad_on_hard):
                raise TimingFailed(one, "wrong at element 3")
            ms = self.faster.get((str(one), problem.Nq, problem.causal), 10.0 + PLAN.candidates.index(one))
            if inputs != "normal":
                ms = self.on_hard[str(one)]
            found[str(one)] = Times("configuration", (ms, ms * 1.01, ms * 0.99))
        return found | {YARDSTICK: Times("peer", (12.0,) * 3)}


def tuned(tmp_path, machine: MadeUp) -> shape_tuner.Outcome:
    store = Store(tmp_path / "store", PLACE)
    try:
        return shape_tuner.run(PLAN, store, machine, machine)
    finally:
        store.close()


def test_it_chooses_by_mask_and_length(tmp_path):
    first, second, third, _ = PLAN.candidates
    machine = MadeUp({(str(second), 4096, True): 9.0, (str(third), 512, False): 9.96})
    outcome = tuned(tmp_path, machine)
    got = {(problem.Nq, problem.causal): one for problem, one in outcome.chosen.items()}
    assert got[512, False] == got[4096, False] == first, "less than half a percent is no difference"
    assert got[512, True] == first and outcome.winners["bf16", 64, True] == second
    assert got[4096, True] == second
    assert all(names == ("no_gap",) for _, _, names in machine.heats)
    assert {problem.B * problem.Nq for problem, _, _ in machine.heats} == {16384}


def test_who_is_level_and_yet_faster_is_chosen(tmp_path):
    """0.7 percent ahead of the winner: both run on huge scores, too, where neither is far behind."""
    first, _, third, _ = PLAN.candidates
    machine = MadeUp({(str(third), 512, False): 9.93}, hard={str(first): 18.0, str(third): 18.5})
    outcome = tuned(tmp_path, machine)
    got = {(problem.Nq, problem.causal): one for problem, one in outcome.chosen.items()}
    assert got[512, False] == third and got[4096, False] == first


@pytest.mark.parametrize(
    "hard, chosen", [({0: 20.0, 2: 18.0}, 2), ({0: 18.5, 2: 18.0}, 0), ({0: 10.0, 2: 20.0}, 0), (None, 0)]
)
def test_of_those_that_are_level_one_that_loses_its_bets_gives_way(tmp_path, hard, chosen):
    """hard: milliseconds on huge scores by candidate. The third is 0.4 percent ahead at one length, of which the
    first is the winner; at all others nobody is level with the fastest."""
    names = [str(one) for one in PLAN.candidates]
    machine = MadeUp({(names[2], 512, False): 9.96}, hard=hard and {names[number]: ms for number, ms in hard.items()})
    outcome = tuned(tmp_path, machine)
    got = {(problem.Nq, problem.causal): one for problem, one in outcome.chosen.items()}
    assert got[512, False] == PLAN.candidates[chosen] and outcome.winners["bf16", 64, False] == PLAN.candidates[0]
    assert [(problem.Nq, problem.causal) for problem in outcome.hard] == ([(512, False)] if hard else [])
    again = MadeUp({(names[2], 512, False): 9.96}, hard=hard and machine.on_hard)
    assert tuned(tmp_path, again).chosen == outcome.chosen and not again.heats


def test_one_that_is_wrong_on_hard_inputs_is_not_chosen(tmp_path):
    first, _, third, _ = PLAN.candidates
    machine = MadeUp({(str(third), 512, False): 9.96}, hard={str(third): 18.0}, bad_on_hard=str(first))
    outcome = tuned(tmp_path, machine)
    got = {(problem.Nq, problem.causal): one for problem, one in outcome.chosen.items()}
    assert list(outcome.failures) == [first] and got[512, False] == third


def test_a_second_run_measures_nothing_anew(tmp_path):
    before = tuned(tmp_path, MadeUp())
    again = MadeUp()
    after = tuned(tmp_path, again)
    assert not again.heats and not again.prepared and after.chosen == before.chosen


def test_what_fails_when_it_is_timed_is_left_out_and_told(tmp_path):
    first = PLAN.candidates[0]
    outcome = tuned(tmp_path, MadeUp(bad=str(first)))
    assert list(outcome.failures) == [first] and first not in outcome.chosen.values()
    assert len(outcome.chosen) == 4


# ---- the commands ----


@pytest.mark.long
def test_shared_memory_is_what_the_launcher_asks_for():
    for c in shape_table.configurations_built():
        described = describe("shapes", Problem(Nq=300, d_head=c.d_head, dtype=c.dtype), configuration=str(c))
        assert described["shared_bytes"] == c.shared_bytes, c


def test_explain_names_the_rules_that_refuse(capsys):
    assert tune_shapes.explain(["(BF16, 128, 192, 128, 16): kv_buffers_2+turns+registers_32_160"]) == 1
    said = capsys.readouterr().out
    assert "Refused by 2 rules" in said and "accumulators" in said and "spills" in said and "shared_memory" in said


@dataclass(frozen=True)
class Few(shape_tuner.Plan):
    seconds: float = 0.0


@pytest.fixture
def tune_on_fake(fake, fake_device, monkeypatch, tmp_path):
    """`make tune ARGS="--stage shapes"` from end to end on the fake runtime, as if it were a GPU: four
    configurations, two lengths. Its times are of no machine."""

    def run(refused: str = "") -> tuple[int, dict]:
        fake(0).with_suffix(".log").write_text("0 bytes stack frame\nUsed 42 registers\n")

        def build_one(configuration, compute=None, kernel=None):
            if str(configuration) == refused:
                raise FlashLadderError("nvcc: no such instruction")
            return instances.Built(configuration, fake(0))

        monkeypatch.setattr(shape_table, "build", build_one)
        monkeypatch.setattr(shapes, "space", lambda dtype, d: iter([*ADMITTED[:4], replace(ADMITTED[0], parts=3)]))
        monkeypatch.setattr(build, "build", lambda targets: None)
        monkeypatch.setattr(build, "info", lambda: {"nvcc_version": "13.0", "build_type": "Release"})
        small = Problem(B=1, Hq=2, Nq=16, Nkv=32, d_head=64)
        monkeypatch.setattr(gpu_times, "verification", lambda one: small)
        monkeypatch.setattr(gpu_memory, "torch", None)
        monkeypatch.setattr(gpu_memory, "loaded_cudart", lambda: None)
        monkeypatch.setattr(bench, "cudart", lambda device: fake.cudart)
        monkeypatch.setattr(bench, "stage_library", lambda number: fake(0))
        monkeypatch.setattr(bench, "check_build", lambda device: None)
        fill = bench.Cudart.fill
        monkeypatch.setattr(bench.Cudart, "fill", lambda *call: fill(*call[:3], min(call[3], 1 << 16)))
        monkeypatch.setattr(tune_shapes, "Plan", Few)
        options = tune_shapes.Options(
            head_dims=(64,), tokens=64, heads=2, lengths=(16, 32), store=tmp_path / "store", out=tmp_path / "made.json"
        )
        return tune_shapes.run(options, Device("gpu", fake_device)), recorded.load(options.out)["shapes"]

    return run


def test_it_times_chooses_and_writes_a_record_that_the_table_takes(tune_on_fake, capsys):
    status, made = tune_on_fake()
    assert status == 0 and made["kernel_sha256"] == shape_table.kernel_hash()
    assert sorted((row["causal"], row["Nq"]) for row in made["chosen"]) == [
        (False, 16), (False, 32), (True, 16), (True, 32),
    ]  # fmt: skip
    names = {str(one) for one in ADMITTED[:4]}
    assert {row["configuration"] for row in made["configurations"]} == names
    assert {row["name"] for row in made["measurements"]} == names | {stages.get("no_gap").name}
    assert all(row["ms"]["p20"] <= row["ms"]["median"] <= row["ms"]["p80"] for row in made["measurements"])
    found = shape_table.measured(made)
    assert {one.group for one in found} == {("bf16", 64, "full"), ("bf16", 64, "causal")}
    assert shape_table.table(ADMITTED[:4], found).count('"")') == len(found)
    said = capsys.readouterr().out
    assert "Configurations that each rule refuses" in said and "What runs where" in said


def test_what_does_not_build_makes_the_status_1_and_is_not_chosen(tune_on_fake):
    status, made = tune_on_fake(refused=str(ADMITTED[0]))
    failed = {row["configuration"]: row["failed"] for row in made["configurations"] if row["failed"]}
    assert status == 1 and failed == {str(ADMITTED[0]): "build"}
    assert str(ADMITTED[0]) not in {row["configuration"] for row in made["chosen"]}
