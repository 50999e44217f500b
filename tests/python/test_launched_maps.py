"""Tensor maps without the launcher: the driver's numbers, and what the driver is asked for."""

import ctypes
import re

import pytest

from flashladder.building import toolchain
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.running import tensor_maps
from flashladder.running.cudart import CudaError


def enumerators(text: str) -> dict[str, int]:
    """Of C enumerations: name -> value."""
    found = {}
    for body in re.findall(r"^typedef enum \w+ \{(.*?)\}", text, re.S | re.M):
        value = -1
        for name, given in re.findall(r"^\s*(CU_TENSOR_MAP_\w+)\s*(?:=\s*(\d+))?", body, re.M):
            value = int(given) if given else value + 1
            found[name] = value
    return found


def test_the_drivers_numbers_are_those_that_the_launcher_names():
    nvcc = toolchain.find_nvcc()
    header = nvcc and nvcc.resolve().parent.parent / "include/cuda.h"
    if not header or not header.exists():
        pytest.skip("no CUDA toolkit with a cuda.h here")
    known = enumerators(header.read_text(errors="replace"))
    assert re.search(rf"\bO_box_rows = {tensor_maps.O_ROWS};", (ROOT / "common/include/tensor_maps.h").read_text())
    named = set(re.findall(r"CU_TENSOR_MAP_\w+", (ROOT / "common/host/tensor_maps.cpp").read_text()))
    ours = {
        "CU_TENSOR_MAP_DATA_TYPE_UINT8": tensor_maps.UINT8,
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT16": tensor_maps.FLOAT16,
        "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16": tensor_maps.BFLOAT16,
        "CU_TENSOR_MAP_INTERLEAVE_NONE": tensor_maps.NO_INTERLEAVE,
        "CU_TENSOR_MAP_SWIZZLE_64B": tensor_maps.SWIZZLE_64B,
        "CU_TENSOR_MAP_SWIZZLE_128B": tensor_maps.SWIZZLE_128B,
        "CU_TENSOR_MAP_L2_PROMOTION_L2_256B": tensor_maps.PROMOTE_256B,
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE": tensor_maps.ZEROS_OUTSIDE,
    }
    decode_alone = {"CU_TENSOR_MAP_L2_PROMOTION_NONE"}  # whose stages are launched by their own host code
    assert set(ours) == named - decode_alone, "the launcher asks for something else now"
    assert {name: known[name] for name in ours} == ours


class Driver:
    """A runtime whose entry point writes down what it is asked for, and returns `status`."""

    def __init__(self, status: int = 0):
        self.status, self.asked = status, []
        kinds = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, *[ctypes.c_void_p] * 5, *[ctypes.c_int] * 4)
        self._function = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(self._encode)

    def _encode(self, place, kind, rank, address, sizes, strides, box, every, *modes):
        wide = [list((ctypes.c_uint64 * count).from_address(at)) for count, at in ((rank, sizes), (rank - 1, strides))]
        self.asked.append((place, kind, address, *wide, list((ctypes.c_uint32 * rank).from_address(box)), modes[1]))
        return self.status

    def call(self, name, symbol, function, *rest):
        assert (name, symbol) == ("cudaGetDriverEntryPointByVersion", b"cuTensorMapEncodeTiled")
        function._obj.value = ctypes.cast(self._function, ctypes.c_void_p).value
        rest[-1]._obj.value = 0


def test_boxes_of_16_bit_types_have_panels_of_64_columns():
    driver = Driver()
    problem = Problem(B=2, Hq=4, Hkv=2, Nq=100, Nkv=300, d_head=128, layout="bnhd")
    maps = tensor_maps.make(driver, problem.params({"Q": 4096, "K": 8192, "V": 12288, "O": 16384}), 128, 64)
    (q, k, v, o) = driver.asked
    assert [one[0] - ctypes.addressof(maps) for one in driver.asked] == [0, 128, 256, 384]
    assert ctypes.addressof(maps) % 64 == 0
    assert q[1:] == (9, 4096, [64, 100, 2, 4, 2], [4 * 256, 128, 256, 100 * 4 * 256], [64, 128, 2, 1, 1], 3)
    assert k[1:] == (9, 8192, [64, 300, 2, 2, 2], [2 * 256, 128, 256, 300 * 2 * 256], [64, 64, 2, 1, 1], 3)
    assert v[2:] == (12288, *k[3:])
    assert o[1:] == (9, 16384, *q[3:5], [64, 16, 2, 1, 1], 3), "a box of O is a warp's 16 rows"


def test_bytes_have_panels_of_128_and_what_is_one_has_any_stride():
    driver = Driver()
    for d_head, swizzle in ((128, 3), (64, 2)):
        problem = Problem(B=1, Hq=1, Nq=100, d_head=d_head, dtype="e4m3")
        tensor_maps.make(driver, problem.params({"Q": 4096, "O": 8192}), 128, 128)
        sizes, strides = [d_head, 100, 1, 1, 1], [d_head] * 4
        assert driver.asked[-4][1:] == (0, 4096, sizes, strides, [d_head, 128, 1, 1, 1], swizzle)
        panels, strides = d_head // 64, [2 * d_head, 128, 128, 128]  # O is bf16
        assert driver.asked[-1][1:] == (9, 8192, [64, 100, panels, 1, 1], strides, [64, 16, panels, 1, 1], 3)


def test_a_refusal_names_the_tensor():
    with pytest.raises(CudaError, match="tensor map of Q .CUresult 1."):
        tensor_maps.make(Driver(1), Problem().params({}), 64, 64)
