"""Puts the package on the path, and what lies beside the tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "common/python"), str(Path(__file__).parent)]
