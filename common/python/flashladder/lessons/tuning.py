"""What `make tune` recorded of stage 12's configurations, for notebooks."""

from flashladder import plot
from flashladder.lessons.display import note, show
from flashladder.measuring import recorded
from flashladder.tuning import record


def show_tuning(d: int = 128) -> None:
    """The tuner's pictures of all recorded GPUs: each flag's worth to the winner, fast flags by length, tiles, and the
    model's bound beside the times. Without a record it says how one is made."""
    made = [one.record for one in record.of_head_dim(recorded.shipped(kind="tuning"), d)]
    if not made:
        show(note("`make tune` on a machine with a GPU does it, and this cell then shows what came out.",
                  f"No GPU has been tuned for d = {d} yet:"))  # fmt: skip
        return
    show(plot.tuning_flags(made, d=d))
    show(plot.tuning_lengths(made, d=d))
    show(plot.tuning_tiles(made))
    show(plot.tuning_predicted(made, d=d))
