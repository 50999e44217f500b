"""warpsim from Python: CUDA programs on the CPU, with their hazards and counters by source line.

import warpsim

report = warpsim.run(["./program", "1024"], device="sm_80")
warpsim.assert_clean(report)
report.counters["saxpy(int, float, float const*, float*)"]["global load sectors"]
"""

from warpsim.report import Hazard, Report, assert_clean, read
from warpsim.running import SETTINGS, WarpsimError, environment, run

__all__ = ["SETTINGS", "Hazard", "Report", "WarpsimError", "assert_clean", "environment", "read", "run"]
