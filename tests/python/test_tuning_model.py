"""The model of what a configuration takes: its exact parts equal what the simulator counts, its registers are as near
to what ptxas gives as it says."""

import numpy as np
import pytest
from shares import share

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import simulator_library
from flashladder.measuring import recorded
from flashladder.tuning import explain, instances, model, registers, rules
from flashladder.tuning.configuration import of_stage, parse

# Copies through registers, rows that are not swizzled, one buffer and two, other warps than 4, the other type, Q loaded
# once: what the formulas tell apart.
QUICK = ["(FP16, 64, 64, 32, 2): async+load_0_0_0_tiles"]
MORE = [
    str(of_stage(4, "bf16", 64)),
    str(of_stage(5)),
    str(of_stage(7)),
    str(of_stage(11)),
    "(BF16, 128, 128, 32, 8): async+eager+load_2_1_1_tiles+kv_buffers_2+opt_softmax+lean",
    "(BF16, 128, 64, 64, 4): async+eager+swizzled+load_0_1_1_tiles+Q_registers+fragment_buffers_2+opt_softmax",
    "(FP16, 64, 256, 64, 8): async+eager+swizzled+load_2_2_0_tiles+kv_buffers_2+skip_rescale+lean_ldmatrix",
    "(BF16, 64, 64, 128, 2): swizzled+load_0_0_1_tiles+opt_softmax+skip_rescale+lean_ldmatrix",
]


def compare(short_form: str) -> None:
    one = parse(short_form)
    assert not rules.refusals(one)
    if not simulator_library().exists():
        pytest.skip("the simulator is not built: `make build`")
    counted, predicted = model.measured(one, instances.build(one).library), model.per_tile(one)
    assert {name: predicted[name] for name in model.EXACT} == {name: counted[name] for name in model.EXACT}
    assert rules.shared_bytes(one) == counted["shared bytes"]
    assert model.instructions(one) <= counted["instructions"], "integers and moves come on top of what is predicted"


@pytest.mark.long
@pytest.mark.parametrize("short_form", QUICK)
def test_counts_of_a_tile_are_the_simulators(short_form):
    compare(short_form)


@pytest.mark.parametrize("short_form", share([pytest.param(one, id=one, marks=pytest.mark.long) for one in MORE], 2))
def test_counts_of_a_tile_are_the_simulators_for_more_configurations(short_form):
    compare(short_form)


@pytest.fixture
def record() -> dict:
    return recorded.first("registers")


def errors(record: dict, free: bool) -> dict[str, int]:
    """What the formula is off by, by configuration; free: of those to which ptxas gave fewer registers than it may, the
    others if not."""
    rows = [(row["configuration"], row["registers"]) for row in record["rows"]]
    found = [(one, given) for one, given in rows if (given < model.register_limit(parse(one)) - 1) == free]
    return {one: model.registers(parse(one)) - given for one, given in found}


RMS, WORST = 14, 45  # in registers, where ptxas is free to choose


def test_registers_that_ptxas_was_free_to_choose_are_predicted_within_the_stated_error(record):
    off = errors(record, free=True)
    assert len(off) >= 15
    assert np.sqrt(np.mean(np.square(list(off.values())))) <= RMS, "the formula's error has grown: fit it anew"
    assert not {one: by for one, by in off.items() if abs(by) > WORST}


def test_where_ptxas_is_at_its_limit_the_model_is_nearly_there(record):
    off = errors(record, free=False)
    assert len(off) >= 5 and not {one: by for one, by in off.items() if abs(by) > WORST}


def test_the_record_is_of_the_sample(record):
    assert [row["configuration"] for row in record["rows"]] == [str(one) for one in registers.sample()]


def test_no_spill_is_missed(record):
    """That of those predicted some do not come true is said in the model."""
    for row in record["rows"]:
        one = parse(row["configuration"])
        if row["spill_bytes"] > 16:
            assert model.registers_wanted(one) > model.register_limit(one), row


def test_the_bound_is_the_busiest_unit():
    one = of_stage(11)
    clocks = model.clocks(one)
    assert model.bound(one) == ("shared memory", clocks["shared memory"]) == ("shared memory", 1280 + 256)
    assert clocks["matrix units"] == 1024 and model.clocks(one, 80)["matrix units"] == 2048
    assert model.clocks(one, 89) == model.clocks(one, 80), "of a GPU between the two the older one's are taken"


def test_resident_blocks_by_what_runs_out_first():
    one = of_stage(11)
    assert model.resident_blocks(one, 255) == 2  # registers: 65536 / (256 * 128)
    assert model.resident_blocks(one, 64) == 2  # shared memory: 228 KB / 97 KB
    assert model.resident_blocks(parse("(BF16, 64, 64, 32, 4): load_0_0_0_tiles"), 32) == 13


def test_errors_are_shown_with_their_sign():
    assert explain.Row("x", 10, 8).error == "+2 (+25.0%)"
    assert explain.Row("x", 10, None, 10).error == "exact"
    assert explain.Row("x", 10).error == "" and explain.Row("x", 4, 0).error == "+4"


def test_every_field_is_explained_in_words():
    from dataclasses import fields

    for one in (of_stage(4), of_stage(11)):
        rows = explain.in_words(one)
        assert [name for name, _, _ in rows] == [field.name for field in fields(one)]
        assert all(words for _, _, words in rows)


def test_explain_refuses_with_the_reasons_and_a_status(flashladder):
    done = flashladder("stage", "12", "explain", "--", "(BF16, 128, 128, 48, 4): eager+load_0_0_0_tiles")
    rule = next(rule for rule in rules.RULES if rule.name == "eager_needs_async")
    assert done.returncode == 1 and rule.name in done.stdout and rule.reason in done.stdout


def test_what_is_no_configuration_is_told():
    with pytest.raises(FlashLadderError, match="is no configuration"):
        parse("fast please")
