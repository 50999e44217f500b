"""What `make results` writes about the clocks of a change of query tile."""

from flashladder.commands.markdown import NOTHING, STALE_NOTE, caption, is_causal, table
from flashladder.ladder import stages
from flashladder.measuring import query_tile_clocks, recorded


def change_of_query_tile(d: str, mask: str = "") -> str:
    """By what lies between the marks; a column for each warpgroup of each kernel."""
    parts = []
    for record in recorded.shipped(kind="query-tile-clocks"):
        rows = [row for row in record["rows"] if (row["d_head"], row["causal"]) == (int(d), is_causal(mask))]
        if not rows:
            continue
        stale = any(row["kernel_sha256"] != stages.get(row["name"]).kernel_hash() for row in rows)
        columns = [query_tile_clocks.of_a_change(row["clocks"]) for row in rows]
        words = [one for one in query_tile_clocks.PLACES.values() if any(one in column for column in columns)]
        body = [[one, *(f"{column[one]:,.0f}" if one in column else "-" for column in columns)] for one in words]
        body.append(["all of the change", *(f"{sum(column.values()):,.0f}" for column in columns)])
        star = "\\*" if stale else ""
        head = ["clocks", *(f"{row['name'][:2]}, warpgroup {row['warpgroup']}{star}" for row in rows)]
        text = f"bf16, d = {d}{', causal' if mask else ''}, N = {rows[0]['Nq']}, kernels with marks, mean"
        parts.append(f"{caption(record, text)}\n\n{table(head, body)}" + (f"\n\n{STALE_NOTE}" if stale else ""))
    return "\n\n".join(parts) or NOTHING
