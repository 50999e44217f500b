"""What the model of the warps' timeline says of a configuration of stage shapes: clocks, and no measurement.

It is of turns within a query tile: from one to the next the difference of two lengths has nothing. docs/timeline.md has
the model and how far off it is.
"""

import tempfile
from pathlib import Path

from flashladder.core.problem import Problem
from flashladder.ladder.run import run_problem
from flashladder.simulator import clocks, replay, steps, trace
from flashladder.tuning import shape_table
from flashladder.tuning.shapes import Configuration

_LENGTHS = (512, 1536)  # of K and V; what they differ by are turns alone


def clocks_a_step(c: Configuration) -> float:
    """Of a multiprocessor with one block, for 64 rows of Q and a tile of K and V, on and on."""
    first, last = (_end(c, length) for length in _LENGTHS)
    return (last - first) / ((_LENGTHS[1] - _LENGTHS[0]) / c.Bc * c.consumers)


def _end(c: Configuration, length: int) -> float:
    built = c in shape_table.configurations_built()
    library = None if built else shape_table.build(c).library
    problem = Problem(B=1, Hq=1, Nq=c.Br, Nkv=length, d_head=c.d_head, dtype=c.dtype)
    with tempfile.TemporaryDirectory(prefix="flashladder-") as folder:
        file = Path(folder) / "trace.json"
        # As many multiprocessors as the device has: one block for the one query tile.
        variables = {"WARPSIM_TRACE": str(file), "WARPSIM_TRACE_BLOCKS": "1", "WARPSIM_MULTIPROCESSORS": "0"}
        run_problem(shape_table.STAGE, problem, None, "sim", library, environment=variables, configuration=str(c))
        (launch,) = trace.load(file)
    numbers = clocks.load()
    return replay.replay(steps.programs(launch, numbers), numbers).end
