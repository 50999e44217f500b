"""make stage-12 explain CONFIG="...": a configuration in words, the rules that refuse it, and what it takes."""

from flashladder.building import build
from flashladder.core.console import coloured, count, say, table
from flashladder.tuning import explain, model, rules
from flashladder.tuning.configuration import Configuration, parse

ARCH = 90


def show(words: list[str], targets: list[str] = ()) -> int:
    """Explains the configuration in the words, the shipped choice if there is none; 1 where a rule refuses it.

    targets: built before it is, if no rule refuses it.
    """
    text = " ".join(words).strip()
    one = parse(text) if text else explain.shipped_choice()
    if not text:
        say('The shipped choice for N = 4096, bf16, d = 128; CONFIG="..." explains another.')
    table(str(one), ["field", "", "what it does"], explain.in_words(one))
    if show_broken(rules.refusals(one)):
        return 1
    say(f"\nNone of the {len(rules.RULES)} rules refuses it.")
    if targets:
        build.build(targets)
    show_resources(one)
    return 0


def show_broken(broken: list[rules.Rule]) -> bool:
    """The rules that refuse a configuration, of either stage that has some; whether there are any."""
    if broken:
        title = coloured(f"Refused by {len(broken)} rule{'s' * (len(broken) > 1)}", "red")
        table(title, ["rule", "reason"], [(rule.name, rule.reason) for rule in broken])
    return bool(broken)


def show_resources(one: Configuration) -> None:
    rows = explain.resources(one, ARCH)
    title = (
        f"What it takes: the model, ptxas (sm_{ARCH}) and the simulator; counts of warps, a block, a tile of K and V"
    )
    body = [(row.name, *(_number(value) for value in (row.model, row.ptxas, row.simulator)), row.error) for row in rows]
    table(title, ["", "model", "ptxas", "simulator", "error of the model"], body, right=(1, 2, 3, 4))
    say("Of all instructions, integers, addresses, moves and branches are not predicted; they are the simulator's, of "
        "PTX.\nThe formulas: common/python/flashladder/tuning/model.py")  # fmt: skip
    busy = sorted(model.clocks(one, ARCH).items(), key=lambda item: -item[1])
    title = f"Clocks of a multiprocessor (sm_{ARCH}) that a tile keeps its units busy; it takes no less than the most"
    table(title, ["unit", "clocks"], [(unit, f"{clocks:,.0f}") for unit, clocks in busy], right=(1,))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value == round(value) else count(value)
