"""Configurations of stage 12: their short form and aggregate, the rules, the table of instances, the choice."""

import re
import subprocess
from dataclasses import replace

import pytest
from hostcc import ROOT, compile_cpp

from flashladder import configuration as public
from flashladder.core.errors import FlashLadderError
from flashladder.tuning import instances
from flashladder.tuning.configuration import Configuration, of_stage, parse
from flashladder.tuning.rules import RULES, Device, refusals
from flashladder.tuning.space import admitted

pytest.importorskip("hypothesis", reason="hypothesis is not installed: pip install hypothesis")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

COUNTS = st.integers(0, 512)
ANY = st.builds(
    Configuration,
    dtype=st.sampled_from(("bf16", "fp16")),
    d_head=COUNTS,
    Br=COUNTS,
    Bc=COUNTS,
    warps=COUNTS,
    async_copy=st.booleans(),
    eager=st.booleans(),
    swizzled=st.booleans(),
    load_Q=COUNTS,
    load_K=COUNTS,
    load_V=COUNTS,
    Q_in_registers=st.booleans(),
    kv_stages=COUNTS,
    fragment_stages=COUNTS,
    fast_softmax=st.booleans(),
    skip_rescale=st.booleans(),
    lean=st.booleans(),
    lean_ldmatrix=st.booleans(),
    resident_blocks=COUNTS,
)


def test_it_is_a_public_name():
    assert public.parse is parse


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(ANY)
def test_the_short_form_is_read_back_exactly(configuration):
    assert parse(str(configuration)) == configuration


@settings(max_examples=50, derandomize=True, database=None, deadline=None)
@given(ANY, st.randoms(use_true_random=False))
def test_its_words_may_stand_in_any_order(configuration, dice):
    head, _, words = str(configuration).partition(": ")
    shuffled = words.split("+")
    dice.shuffle(shuffled)
    assert parse(f"{head}: {'+'.join(shuffled)}") == configuration


def test_the_form_of_the_texts_is_understood():
    text = "(BF16, 128, 64, 64, 4): async+eager+swizzled+load_0_2_2_tiles+opt_softmax"
    got = parse(text)
    assert (got.d_head, got.Br, got.Bc, got.warps, got.load_Q, got.load_K) == (128, 64, 64, 4, 0, 2)
    assert str(got) == text


@pytest.mark.parametrize(
    "text, words",
    [
        ("fast", "'fast' is no configuration; one is written like '(BF16, 128, 128, 64, 4): load_0_0_0_tiles'"),
        ("(FP8, 128, 128, 64, 4): load_0_0_0_tiles", "'FP8' in"),
        ("(BF16, 128, 128, 64, 4): async", "does not say load_q_k_v_tiles"),
        ("(BF16, 128, 128, 64, 4): load_0_0_0_tiles+quick", "'quick' in"),
        ("(BF16, 128, 128, 64, 4): load_0_0_0_tiles+async+async", "'async' stands twice"),
        ("(BF16, 128, 128, 64, 4): load_0_0_0_tiles+kv_buffers_1+kv_buffers_2", "'kv_buffers' stands twice"),
    ],
)
def test_what_cannot_be_read_is_refused(text, words):
    with pytest.raises(FlashLadderError) as refusal:
        parse(text)
    assert words in str(refusal.value)


def test_the_stages_are_configurations():
    assert str(of_stage(4)) == "(BF16, 128, 128, 64, 4): load_0_0_0_tiles"
    words = "async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax+skip_rescale+lean+lean_ldmatrix"
    assert str(of_stage(11, "fp16", 64)) == f"(FP16, 64, 128, 64, 4): {words}"
    for number in range(4, 12):
        assert not refusals(of_stage(number)), f"stage {number:02d} breaks a rule"
    for number in (3, 12):
        with pytest.raises(FlashLadderError, match="Stages 04 to 11 are configurations"):
            of_stage(number)


def test_the_aggregate_has_the_fields_of_the_kernels_struct_in_their_order():
    kernel = (ROOT / "stages/12_autotune/kernel.cu").read_text()
    struct = re.sub(r"//.*", "", re.search(r"struct Configuration \{(.*?)\n\};", kernel, re.S)[1])
    names = [name.strip() for part in re.findall(r"(?:int|bool)\s+([^;]+);", struct) for name in part.split(",")]
    of_python = [field for field in Configuration.__dataclass_fields__ if field not in ("dtype", "d_head")]
    assert ["async" if name == "async_copy" else name for name in of_python] == names
    assert of_stage(9).cpp() == "{128, 64, 4, true, true, true, 2, 2, 2, false, 2, 1, false, false, false, false, 0}"


# ---- the rules ----

WHOLE = of_stage(11)  # breaks no rule
# For each rule a configuration, or one and a GPU, that breaks it alone.
BROKEN = {
    "types": replace(of_stage(4), d_head=96),
    "threads": replace(of_stage(4), d_head=64, Br=1024, Bc=256, warps=64),
    "warp_rows": replace(of_stage(4), Br=96),
    "tile_rows": replace(of_stage(4), Bc=24),
    "copy_rounds": replace(WHOLE, d_head=64, warps=8, Bc=16),
    "load_Q": replace(WHOLE, load_Q=6),
    "load_K": replace(WHOLE, load_K=6),
    "load_V": replace(WHOLE, load_V=3),
    "Q_loaded_once": replace(WHOLE, Q_in_registers=True),
    "stages": replace(WHOLE, fragment_stages=3),
    "eager_needs_async": replace(of_stage(4), eager=True),
    "buffers_need_eager": replace(of_stage(6), kv_stages=2),
    "lean_needs_async": replace(of_stage(5), lean=True),
    "lean_needs_rounds_of_8": replace(WHOLE, Br=64, warps=2),
    "fragment_buffers_need_groups": replace(of_stage(7), fragment_stages=2),
    "shared_memory": (replace(WHOLE, Br=256, warps=8), Device(shared_a_block=99 * 1024)),
    "resident_shared_memory": (replace(WHOLE, resident_blocks=2), Device(shared_a_multiprocessor=164 * 1024)),
    "resident_threads": (replace(WHOLE, resident_blocks=2), Device(threads_a_multiprocessor=255)),
    "accumulators": replace(WHOLE, Br=256),
    "resident_registers": (replace(WHOLE, resident_blocks=2), Device(registers_a_multiprocessor=32768)),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_is_broken_alone(rule):
    entry = BROKEN[rule.name]
    configuration, device = entry if isinstance(entry, tuple) else (entry, Device())
    assert [one.name for one in refusals(configuration, device)] == [rule.name]


def test_rules_have_names_of_their_own_and_say_a_sentence():
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names) == len(BROKEN)
    for rule in RULES:
        assert rule.reason[0].isupper() and rule.reason.endswith("."), rule.name


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(ANY)
def test_a_rule_answers_whatever_the_others_would_say(configuration):
    """No division by zero, no exception: a reader's configuration may be wrong in several ways."""
    refusals(configuration)


def test_what_is_refused_is_counted_by_rule():
    space = [WHOLE, replace(WHOLE, async_copy=False), replace(WHOLE, Br=96)]
    found = admitted(space)
    assert found.admitted == (WHOLE,)
    refused = {name: count for name, count in found.by_rule.items() if count}
    assert refused == {"eager_needs_async": 1, "lean_needs_async": 1, "warp_rows": 1}


# ---- the table of instances ----


def test_the_committed_table_is_the_one_that_is_written():
    assert instances.TABLE.read_text() == instances.shipped(), f"{instances.TABLE} is old: run `make results`"


def test_the_table_builds_the_flags_of_stage_11_first_for_every_type():
    built = instances.configurations_built()
    for dtype in ("fp16", "bf16"):
        for d_head in (64, 128):
            first = next(one for one in built if (one.dtype, one.d_head) == (dtype, d_head))
            assert first == of_stage(11, dtype, d_head)
    assert not [str(one) for one in built if refusals(one)]


def record(*rows) -> dict:
    """A record of `make tune` that chose (Nq, configuration)."""
    chosen = [{"dtype": c.dtype, "d_head": c.d_head, "Nq": length, "configuration": str(c)} for length, c in rows]
    provenance = {"device": "NVIDIA H200", "compute_capability": 9.0}
    return {"version": 1, "provenance": provenance, "multiprocessors": 132, "chosen": chosen}


def test_lengths_between_two_that_were_timed_are_divided_in_the_middle():
    short, long = replace(WHOLE, Br=64), WHOLE
    got = instances.choices(record((4096, long), (512, short), (1024, short), (16384, long)))
    assert [(one.configuration, one.first, one.last) for one in got] == [
        (short, 1, 2048),
        (long, 2049, instances.LONGEST),
    ]
    assert (got[0].gpu, got[0].compute, got[0].multiprocessors) == ("NVIDIA H200", 90, 132)


def test_types_and_head_dims_are_chosen_apart():
    got = instances.choices(record((512, WHOLE), (512, of_stage(11, "fp16", 64)), (512, of_stage(11, "bf16", 64))))
    assert len(got) == 3 and all((one.first, one.last) == (1, instances.LONGEST) for one in got)


def test_a_choice_is_a_line_of_the_table():
    (choice,) = instances.choices(record((512, WHOLE)))
    line = instances.table([WHOLE, WHOLE], [choice]).splitlines()
    assert sum(one.startswith("INSTANCE") for one in line) == 1
    assert f'CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1, 1073741824, "{WHOLE}")' in line


def gpu(name: str, *configurations, multiprocessors: int = 132, compute: int = 90) -> list[instances.Choice]:
    return [instances.Choice(name, compute, multiprocessors, one) for one in configurations]


def names(gpus) -> list[str]:
    return [one[0].gpu for one in gpus]


def test_a_gpu_that_chose_what_its_neighbour_did_has_no_lines():
    other = replace(WHOLE, Br=64)
    first, same = gpu("first", WHOLE), gpu("same", WHOLE, multiprocessors=130)
    assert names(instances.needed([first, same])) == ["first"] and instances.needed([first]) == [first]
    assert names(instances.needed([first, gpu("another", other)])) == ["first", "another"]
    assert names(instances.needed([first, gpu("older", WHOLE, compute=80)])) == ["first", "older"], "none is near it"
    # "same" would find "nearer" without lines of its own, and that chose another.
    nearer = gpu("nearer", other, multiprocessors=129)
    assert names(instances.needed([first, same, nearer])) == ["first", "same", "nearer"]
    # Two that chose alike, each of which stands for the other, and a third: one of them is left.
    assert names(instances.needed([first, gpu("second", WHOLE), gpu("third", WHOLE)])) == ["first"]
    shorter = [replace(first[0], gpu="shorter", last=1000), replace(first[0], gpu="shorter", first=1001)]
    assert names(instances.needed([first, shorter])) == ["first", "shorter"], "it says less of lengths"


# ---- the choice, in C++ ----

CHOICES = """
    CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1, 1000, "narrow"),
    CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1001, 1 << 30, "wide"),
    CHOICE("NVIDIA H100 PCIe", 90, 114, FLASH_BF16, 128, 1, 1 << 30, "small"),
    CHOICE("NVIDIA A100", 80, 108, FLASH_BF16, 128, 1, 1 << 30, "gone"),
"""


@pytest.fixture(scope="module")
def choose(tmp_path_factory):
    """choose(device, Nq, configuration="", Nkv=1024, d_head=128) -> the name that C++ chooses, or "none"."""
    folder = tmp_path_factory.mktemp("choose")
    (folder / "choose.cpp").write_text(
        """
#include <cstdio>
#include "configured.h"
#define CHOICE(...) {__VA_ARGS__}
using namespace flash;
static void kernel(FlashParams) {}
int main(int, char **words) {
    const Instance instances[] = {{"first", FLASH_BF16, 128, kernel, 128, 64, 128, 96 << 10},
                                  {"wide", FLASH_BF16, 128, kernel, 256, 64, 256, 160 << 10},
                                  {"narrow", FLASH_BF16, 128, kernel, 64, 64, 128, 48 << 10},
                                  {"small", FLASH_BF16, 128, kernel, 64, 128, 128, 80 << 10},
                                  {"not built", FLASH_BF16, 64, nullptr, 64, 64, 128, 48 << 10}};
    const Choice choices[] = {"""
        + CHOICES
        + """};
    const Device device{words[1], std::atoi(words[2]), std::atoi(words[3]), size_t(std::atoi(words[4])) << 10};
    FlashParams params{};
    params.dtype = FLASH_BF16;
    params.Nq = std::atoi(words[5]), params.Nkv = std::atoi(words[6]), params.d_head = std::atoi(words[7]);
    params.configuration = *words[8] ? words[8] : nullptr;
    const Instance *one = choose_instance(params, instances, choices, device);
    std::puts(one ? one->configuration : "none");
}
"""
    )
    program = compile_cpp(folder / "choose.cpp", folder / "choose")

    def call(device: tuple, Nq: int, configuration: str = "", Nkv: int = 1024, d_head: int = 128) -> str:
        words = [program, *map(str, device), str(Nq), str(Nkv), str(d_head), configuration]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    return call


H200 = ("NVIDIA H200", 90, 132, 227)


def test_a_tuned_gpu_has_its_own_choice_by_length(choose):
    assert [choose(H200, length) for length in (512, 1024, 4096)] == ["narrow", "wide", "wide"]


def test_another_gpu_takes_the_nearest_of_its_generation(choose):
    assert choose(("NVIDIA H200 (warpsim)", 90, 132, 227), 1024) == "wide"
    assert choose(("NVIDIA H100 NVL", 90, 120, 227), 1024) == "small", "114 multiprocessors are nearer to 120 than 132"
    assert choose(("NVIDIA B200", 100, 148, 227), 1024) == "first", "no GPU of its generation was tuned"
    assert choose(("", 0, 0, 0), 1024) == "first", "no device at all"


def test_what_was_chosen_and_does_not_fit_gives_way_to_the_first_that_does(choose):
    assert choose(H200, 1024 + 128) == "first", "tiles of 256 rows do not divide 1152"
    assert choose(("NVIDIA H200", 90, 132, 100), 1024) == "first", "160 KB of shared memory are more than 100"
    assert choose(("NVIDIA A30", 80, 56, 163), 1024) == "first", "what was chosen is not in this build"
    assert choose(H200, 4096 + 64) == "narrow"
    assert choose(H200, 4096 + 8) == "first", "no tile divides it: refused by the limits of the first"


def test_a_name_is_taken_at_its_word(choose):
    assert choose(H200, 8, "small") == "small", "the limits refuse the length, and say why"
    assert choose(H200, 1024, "slow") == "none"
    assert choose(H200, 1024, "not built", d_head=64) == "none"
    assert choose(H200, 1024, "small", d_head=64) == "none", "a name counts for its type and head dim"
