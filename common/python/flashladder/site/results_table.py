"""Every recorded throughput as one table, which docs/site/static/results.js filters and sorts in the browser.

Without JavaScript the whole table stands there.
"""

from html import escape

from flashladder.measuring import recorded
from flashladder.site import kernel_pages

# (title, key of a row's data, whether it is a number); what can be chosen of has a menu.
COLUMNS = (
    ("kernel", "kernel", False),
    ("TFLOP/s", "tflops", True),
    ("GPU", "gpu", False),
    ("type", "type", False),
    ("d", "d", True),
    ("mask", "mask", False),
    ("N", "n", True),
    ("ms, median", "ms", True),
    ("20 to 80 %", "range", False),
)
MENUS = ("kernel", "gpu", "type", "d", "mask", "n")
# What is shown first; "" shows all.
FIRST = {"kernel": "", "gpu": "", "type": "bf16", "d": "128", "mask": "full", "n": "4096"}


def rows(shipped: list[dict]) -> list[dict[str, str]]:
    """One for each stage and peer that was measured, by the keys of COLUMNS, as they are shown."""
    found = []
    for results in shipped:
        for row in recorded.pick(results):
            found.append(
                {
                    "kernel": row["name"] + ("*" if recorded.is_stale(row) else ""),
                    "kind": row["kind"],
                    "gpu": results["provenance"]["device"],
                    "type": row["dtype"],
                    "d": str(row["d_head"]),
                    "mask": "causal" if row["causal"] else "full",
                    "n": str(row["Nq"]),
                    "tflops": f"{row['tflops']:.1f}",
                    "ms": f"{row['ms']['median']:.3f}",
                    "range": f"{row['ms']['p20']:.3f} to {row['ms']['p80']:.3f}",
                }
            )
    return found


def _value(row: dict, key: str) -> str:
    """What a menu chooses by: a kernel's name without its star."""
    return row[key].rstrip("*")


def _menu(key: str, title: str, values: list[str]) -> str:
    options = [("", "all"), *((value, value) for value in values)]
    chosen = FIRST[key] if FIRST[key] in values else ""
    text = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(word)}</option>'
        for value, word in options
    )
    return f'<label>{title} <select data-column="{key}">{text}</select></label>'


def table(shipped: list[dict]) -> str:
    told_at = kernel_pages.told_at()
    everything = rows(shipped)
    highest = max((float(row["tflops"]) for row in everything), default=1.0)
    titles = {key: title for title, key, _ in COLUMNS}
    lines = ['<div class="results-filter" hidden>']
    for key in MENUS:
        values = sorted({_value(row, key) for row in everything}, key=lambda text: (text.isdigit() and int(text), text))
        lines.append(_menu(key, titles[key], values))
    lines += ['<output class="results-count" aria-live="polite"></output>', "</div>", '<div class="results-scroll">']
    heads = "".join(
        f'<th scope="col" data-column="{key}" data-number="{int(number)}">{title}</th>'
        for title, key, number in COLUMNS
    )
    lines += ['<table class="results-table">', f"<thead><tr>{heads}</tr></thead>", "<tbody>"]
    for row in everything:
        cells = []
        for _, key, number in COLUMNS:
            text = escape(row[key])
            if key == "kernel" and row["kernel"].rstrip("*") in told_at:
                text = f'<a href="../{told_at[row["kernel"].rstrip("*")]}">{text}</a>'
            share = f' style="--share:{100 * float(row[key]) / highest:.1f}%"' if key == "tflops" else ""
            name = f' class="{"number" if number else "text"}{" bar" * (key == "tflops")}"'
            cells.append(f"<td{name}{share}>{text}</td>")
        data = " ".join(f'data-{key}="{escape(_value(row, key))}"' for key in MENUS)
        lines.append(f'<tr class="{row["kind"]}" {data}>{"".join(cells)}</tr>')
    return "\n".join([*lines, "</tbody>", "</table>", "</div>"])


def page() -> str:
    shipped = recorded.shipped()
    labels = [f"- {recorded.label(results)}" for results in shipped] or ["- nothing yet: `make bench` on a GPU"]
    stale = any(row["kernel"].endswith("*") for row in rows(shipped))
    note = " A star: the kernel has changed since it was measured." if stale else ""
    return "\n".join(
        [
            "# Every recorded throughput",
            "",
            "Choose a kernel, a GPU, a type, a head dimension, a mask and a length; a click on a column's title sorts "
            "by it. Times are medians, with the 20th to the 80th percentile. Causal "
            f"problems count half the FLOPs.{note} How these are measured: [benchmarks](benchmarks.md); the same as "
            "pages of tables, with ablations and counters: [results](results.md).",
            "",
            "```{raw} html",
            '<script defer src="../_static/results.js"></script>',
            table(shipped),
            "```",
            "",
            "Recorded:",
            "",
            *labels,
            "",
        ]
    )
