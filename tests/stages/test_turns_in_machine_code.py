"""Where ptxas has a turn passed on: how many exponentials stand before the arrival."""

import pytest
from chosen import chosen_stages

from flashladder.ladder import stages
from flashladder.measuring import machine_code

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("shapes" not in [one.slug for one in chosen_stages()], reason="tests of stage shapes"),
]
CAUSAL_AT_64 = "bfloat16Li64EXtl13ConfigurationLi128ELi128ELi4ELi1ELb1ELb1E"  # two consumers, turns, Q in registers


def test_the_turn_is_passed_on_before_most_of_the_softmax():
    """In an iteration over K and V, between the products and the last arrival at a named barrier: where the arrival
    comes to stand is ptxas' choice."""
    kernel = stages.get("shapes").kernel
    kernels = machine_code.functions(machine_code.disassemble(machine_code.compile_for(kernel, "sm_90a")))
    (text,) = [text for name, text in kernels.items() if CAUSAL_AT_64 in name]
    opcodes = machine_code.opcodes(text)
    products = max(number for number, one in enumerate(opcodes) if one.startswith("HGMMA"))
    arrival = max(number for number, one in enumerate(opcodes) if one.startswith("BAR.ARV"))
    assert products < arrival
    assert sum(one.startswith("MUFU.EX2") for one in opcodes[products:arrival]) <= 16
