"""How a problem's tensors lie in memory."""

import numpy as np
import pytest

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem


@pytest.mark.parametrize("layout", ("bhnd", "bnhd", "gaps"))
@pytest.mark.parametrize("dtype", ("bf16", "e4m3"))
def test_what_is_written_to_a_view_is_read_from_it(layout, dtype):
    problem = Problem(B=2, Hq=3, Hkv=1, Nq=5, Nkv=4, d_head=64, dtype=dtype, layout=layout)
    for name in "QKVO":
        memory = np.zeros(problem.bytes(name), np.uint8)
        view = problem.view(name, memory)
        numbers = np.arange(view.size).reshape(view.shape).astype(view.dtype)
        view[...] = numbers
        assert (problem.view(name, memory) == numbers).all()
        elements = memory.view(view.dtype)
        assert (elements.size == view.size) == (layout != "gaps")
        tensor = problem.tensor(name, 0)
        last = [size - 1 for size in problem.to_bhnd(view).shape]
        place = last[0] * tensor.stride_batch + last[1] * tensor.stride_head + last[2] * tensor.stride_row + last[3]
        assert elements[place] == numbers.reshape(-1)[-1]


def test_with_gaps_no_two_strides_are_equal():
    problem = Problem(B=2, Hq=2, Nq=64, d_head=128, layout="gaps")
    tensors = [problem.tensor(name, 0) for name in "QKVO"]
    strides = [one for t in tensors for one in (t.stride_batch, t.stride_head, t.stride_row)]
    assert len(set(strides)) == len(strides) and not any(one * 2 % 16 for one in strides)


@pytest.mark.parametrize("field, words", (("dtype", "choose fp16, bf16, e4m3"), ("layout", "choose bhnd or bnhd")))
def test_what_makes_no_problem_is_refused(field, words):
    with pytest.raises(FlashLadderError, match=f"{field} 'other': {words}"):
        Problem(**{field: "other"})
