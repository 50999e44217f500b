"""Lesson 04 compares one executed mma with the layout that its pictures draw: the comparison can fail."""

import numpy as np
import pytest

from flashladder.core.paths import simulator_library
from flashladder.lessons.one_mma import one_mma
from flashladder.plot.fragments import element

LANES = range(32)


def by_lane(which: str, matrix: np.ndarray, count: int) -> np.ndarray:
    return np.array([[matrix[element(which, lane, i)] for i in range(count)] for lane in LANES])


@pytest.mark.long
@pytest.mark.skipif(not simulator_library().exists(), reason="needs the simulator: make build")
def test_the_layouts_drawn_are_those_executed():
    random = np.random.default_rng(3)
    A, B = random.integers(-8, 9, (16, 16)), random.integers(-8, 9, (16, 8))
    a, b = by_lane("A", A, 8), by_lane("B", B, 4)
    wanted = by_lane("C", A @ B, 4)
    found = one_mma(a, b)
    wrong = np.argwhere(found != wanted)
    assert not len(wrong), f"lane {wrong[0][0]} holds another element in register {wrong[0][1]} than the picture says"
    swapped = one_mma(a[:, [2, 3, 0, 1, 4, 5, 6, 7]], b)  # A[0] and A[1] exchanged: rows 0-7 and 8-15
    assert (swapped != wanted).any(), "A with its registers exchanged gives the same product: nothing is compared"
