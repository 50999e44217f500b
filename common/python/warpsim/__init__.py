"""warpsim from Python: CUDA programs on the CPU, with their hazards and counters by source line.

import warpsim

report = warpsim.run(["./program", "1024"], device="sm_80")
warpsim.assert_clean(report)
report.counters["saxpy(int, float, float const*, float*)"]["global load sectors"]
"""

from pathlib import Path

from warpsim.report import Hazard, Report, assert_clean, read
from warpsim.running import SETTINGS, WarpsimError, environment, run

# For `::add-matcher::` of GitHub Actions: the lines that warpsim-report prints become annotations.
PROBLEM_MATCHER = Path(__file__).with_name("problem-matcher.json")

__all__ = [
    "PROBLEM_MATCHER",
    "SETTINGS",
    "Hazard",
    "Report",
    "WarpsimError",
    "assert_clean",
    "environment",
    "read",
    "run",
]
