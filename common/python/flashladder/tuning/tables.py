"""Tables of a record of the tuner, as (columns, rows) of text: for terminals, documents and notebooks."""

from flashladder.tuning.configuration import parse
from flashladder.tuning.record import Tuned
from flashladder.tuning.tune import PAYS, YARDSTICK

Table = tuple[list[str], list[list[str]]]


def chosen(of: Tuned) -> Table:
    """By length: the configuration, its TFLOP/s, and how many times a peer's they are."""
    found = of.chosen()
    names = list(dict.fromkeys(name for row in found.values() for name in row["peers"]))
    rows = []
    for length, row in found.items():
        ratios = [
            f"{row['tflops'] / row['peers'][name]['tflops']:.3f}" if name in row["peers"] else "-" for name in names
        ]
        rows.append([str(length), f"{row['tflops']:.1f}", *ratios, _unprefixed(row["name"])])
    return ["N", "TFLOP/s", *(f"times {name}" for name in names), "configuration"], rows


def _unprefixed(short_form: str) -> str:
    """(BF16, 64, 128, 32, 4): x -> (128, 32, 4): x; the table's title has type and head dim."""
    c = parse(short_form)
    return f"({c.Br}, {c.Bc}, {c.warps}):{short_form.split(':', 1)[1]}"


def worth(of: Tuned) -> Table:
    """By flag and length: how many times as long the winner takes without it."""
    return _by_length({one.name: one.times_as_long for one in of.worth()})


def stages(of: Tuned) -> Table:
    """By stage and length: how many times its throughput stage 12's kernel has with its flags, in one heat."""
    return _by_length(of.beside_stages())


def _by_length(ratios: dict[str, dict[int, float]]) -> Table:
    lengths = sorted({n for found in ratios.values() for n in found})
    rows = [[name, *(f"{found[n]:.3f}" if n in found else "-" for n in lengths)] for name, found in ratios.items()]
    return ["", *(f"N = {n}" for n in lengths)], rows


def advice(of: Tuned) -> Table:
    """By length: the flags that do not pay there."""
    percent = f"{100 * (PAYS - 1):.0f}%"
    rows = [[str(n), ", ".join(flags) or "-"] for n, flags in of.does_not_pay().items()]
    return ["N", f"flags without which the winner takes at most {percent} longer"], rows


def refused(made: dict) -> Table:
    """How many configurations each rule refused, by type and head dim."""
    groups = made["refused"]
    rules = [name for name in groups[0]["by_rule"] if any(one["by_rule"][name] for one in groups)] if groups else []
    rows = [["enumerated", *(str(one["enumerated"]) for one in groups)]]
    rows += [[name, *(str(one["by_rule"][name]) for one in groups)] for name in rules]
    rows += [["left", *(str(one["admitted"]) for one in groups)]]
    return ["rule", *(f"{one['dtype']}, d = {one['d_head']}" for one in groups)], rows


def fastest(of: Tuned, length: int) -> Table:
    """The ten fastest configurations of the first heats at a length, with what they take and what the model says."""
    by_name = {row["configuration"]: row for row in of.record["configurations"]}
    predicted = {str(one.configuration): one for one in of.predicted(length)}
    rows = []
    for one, figures in of.first_rows(length)[:10]:
        known, guess = by_name[str(one)], predicted.get(str(one))
        beside = figures["yardstick_ms"]
        rows.append(
            [
                _unprefixed(str(one)),
                f"{figures['tflops']:.1f}",
                f"{beside / figures['ms']['median']:.3f}" if beside else "-",
                str(known["registers"]),
                str(known["spill_bytes"]),
                str(known["resident_blocks"]),
                f"{guess.unit}, {guess.ms / guess.least_ms:.2f}" if guess else "-",
            ]
        )
    head = ["configuration", "TFLOP/s", f"times {YARDSTICK}", "registers", "spilled bytes", "resident blocks"]
    return [*head, "busiest unit, times its least"], rows
