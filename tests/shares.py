"""Long tests whose cases differ in little: `make test-long` tries a share of them, FLASHLADDER_WHOLE=1 all."""

import os


def share(cases: list, of: int) -> list:
    """Of the cases (pytest.param) that are marked long each of-th, and all that are not."""
    if os.environ.get("FLASHLADDER_WHOLE"):
        return cases
    long = [case for case in cases if any(mark.name == "long" for mark in case.marks)]
    left_out = [case for number, case in enumerate(long) if number % of]
    return [case for case in cases if not any(case is one for one in left_out)]
