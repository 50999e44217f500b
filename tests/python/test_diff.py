"""What a stage changes: text that moves into a header is no change."""

from dataclasses import replace

from flashladder.core.paths import headers, place
from flashladder.ladder import diff, stages

SCHEDULER = stages.get("tile_scheduler")


def test_text_that_moved_into_a_header_is_no_change():
    """tma_store includes the tile scheduler, whose text the stage before has itself."""
    after = stages.get("tma_store")
    (header,) = [one for one in headers() if one.name == "tile_scheduler.cuh"]
    words = "\n".join(diff.moved(SCHEDULER, after))
    assert "struct TileScheduler {" in words and "struct QueryTile {" in words
    assert all(line in header.read_text() for line in words.splitlines())
    removed = [line for line in diff.unified(SCHEDULER, after) if line.startswith("-")]
    assert not any("rank_in_pairs" in line for line in removed)
    assert any("transpose" in line for line in removed), "what no header has is a change"


def test_text_that_did_not_move_word_for_word_is_a_change():
    text = SCHEDULER.kernel.read_text().replace("rank_in_pairs", "place_in_pairs")
    folder = place("diff", "other_scheduler", "kernel.cu", text).parent
    changed = replace(SCHEDULER, folder=folder)
    after = stages.get("tma_store")
    assert diff.changed_lines(changed, after)[1] > diff.changed_lines(SCHEDULER, after)[1]
    assert not any("place_in_pairs" in one for one in diff.moved(changed, after))


def test_without_a_new_header_nothing_moved():
    assert diff.moved(stages.get("online_softmax"), stages.get("vectorized_loads")) == []
