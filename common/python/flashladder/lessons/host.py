"""The lesson of stage 00, which is a program of the host and no kernel."""

from flashladder import plot
from flashladder.building import build
from flashladder.core import device
from flashladder.ladder import host_streams, mistakes, source
from flashladder.ladder.host_streams import VARIANTS
from flashladder.lessons.display import code, note, show, step, table, whole
from flashladder.lessons.trial import plant
from flashladder.lessons.writing import Writing
from flashladder.measuring import recorded, stream_times


class HostLesson(Writing):
    """Stage 00. Prints where it runs."""

    def __init__(self):
        self.stage = host_streams.stage()
        self.begin_writing()
        where = device.choose(self.stage.min_compute).in_a_sentence
        show(note(f"runs on {where}.", f"Stage {self.stage.id}, {self.stage.title},"))

    @property
    def on_gpu(self) -> bool:
        return device.choose(self.stage.min_compute).kind == "gpu"

    def show(self, *names: str) -> None:
        """Named parts of host_streams.cpp with their line numbers, e.g. "copy_in" or "many streams"."""
        for name in names:
            part = source.find(self.stage.source, name)
            show(code(part.text, part.first, f"stages/{self.stage.name}/host_streams.cpp, {name}"))

    def program(self) -> None:
        """The whole host_streams.cpp, folded, below the command that the build compiles it with."""
        show(whole(self.stage.source))

    def build(self) -> None:
        with step("Building stage 00, stage 03 and the simulator", "Built stage 00, stage 03 and the simulator."):
            build.build([*self.stage.targets, "stage_09"])

    def verify(self, chunks: int = 4, streams: int = 2, **options) -> None:
        """Runs every variant and compares each result with the reference. AssertionError where one is wrong."""
        with step("Running the variants", f"The variants, with {chunks} chunks and {streams} streams:"):
            result = host_streams.run(VARIANTS, chunks, streams, **options)
        columns = ("variant", "what it does", "host memory", "chunks", "streams", "ms", "")
        rows = [
            [one.variant, one.title, one.memory, one.chunks, one.streams, f"{one.ms['median']:.2f}" if one.ms else "-",
             "verified" if one.passed else "WRONG"]
            for one in result.runs
        ]  # fmt: skip
        show(table(f"On {result.device.short}", columns, rows, right=(3, 4, 5)))
        if not result.passed:
            raise AssertionError(f"stage 00 is wrong.\n{result.message}")

    def timeline(self, *variants: str, chunks: int = 4, streams: int = 2, simulator: bool = False, **options):
        """A picture of what overlaps, one panel for each variant: CUDA events on a GPU, order on the simulator."""
        where = "sim" if simulator else None
        shown = [host_streams.run(one, chunks, streams, where, **options).timeline() for one in variants]
        return plot.timeline(shown)

    def recorded(self):
        """A picture of what was recorded on a GPU: bandwidths, and time by chunks and streams."""
        record = recorded.first("host-streams")
        if not record:
            show(note("no results of stage 00 are recorded yet."))
            return None
        return plot.transfers(record)

    def recorded_timeline(self, case: int = 1):
        """A picture of what overlapped on a GPU when it was recorded; case: 0, 1 or 2, as in recorded()."""
        return plot.timeline(stream_times.recorded_timelines(recorded.first("host-streams"), case))

    def break_it(self, name: str) -> None:
        """Plants a classic mistake and shows who catches it and how. AssertionError if nobody does."""
        plant(mistakes.get(0, name))
