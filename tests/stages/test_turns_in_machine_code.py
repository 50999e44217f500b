"""Where ptxas has a turn passed on, of which lesson 30 tells: how many exponentials stand before the arrival."""

import pytest
from chosen import chosen_stages

from flashladder.ladder import ablations, stages
from flashladder.measuring import machine_code

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(30 not in [one.number for one in chosen_stages()], reason="tests of stage 30"),
]
CAUSAL_AT_64 = "bfloat16Li64EXtl13ConfigurationLi128ELi128ELi4ELi1ELb1ELb1E"  # two consumers, turns, Q in registers


def exponentials_before_the_turn(kernel) -> int:
    """In a turn of the loop over K and V, between the products and the last arrival at a named barrier."""
    stage = stages.get(30)
    kernels = machine_code.functions(machine_code.disassemble(machine_code.compile_for(kernel, "sm_90a", stage.folder)))
    (text,) = [text for name, text in kernels.items() if CAUSAL_AT_64 in name]
    opcodes = machine_code.opcodes(text)
    products = max(number for number, one in enumerate(opcodes) if one.startswith("HGMMA"))
    arrival = max(number for number, one in enumerate(opcodes) if one.startswith("BAR.ARV"))
    assert products < arrival
    return sum(one.startswith("MUFU.EX2") for one in opcodes[products:arrival])


def test_the_turn_is_passed_on_before_most_of_the_softmax_and_with_threads_that_store_behind_it():
    """The same line of the source, behind the wait for PV; where its arrival comes to stand is ptxas' choice."""
    stage = stages.get(30)
    (variant,) = [one for one in ablations.ablations() if one.stage == stage and one.name == "stored_by_threads"]
    assert exponentials_before_the_turn(stage.kernel) <= 16
    assert exponentials_before_the_turn(variant.source()) >= 60
