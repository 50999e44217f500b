"""fp16 and bf16 as 16-bit patterns in NumPy, e4m3 as bytes, and inputs from other libraries.

Inside the package a tensor is an array of bit patterns and the name of its type: uint16 of "fp16" and "bf16", uint8 of
"e4m3", of which Q, K and V may be; what a stage makes of them is bf16 (OUTPUT).
"""

import ctypes
import re

import numpy as np

from flashladder.core.abi import TYPE_NUMBERS
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT


def _constant(name: str) -> float:
    """The number behind `name = `, a regular expression, in the lines that the runners are compiled from."""
    text = (ROOT / "common/host/bounds.h").read_text(encoding="utf-8")
    (value,) = re.findall(rf"{name} = ([^,;}}\s]+)", text)
    return float.fromhex(value) if value.startswith("0x") else float(value)


def _bounds(field: str) -> dict[str, float]:
    """That field of each type's bounds."""
    return {dtype: _constant(rf"bounds_{dtype}{{[^}}]*\.{field}") for dtype in TYPE_NUMBERS}


# Half the distance from 1 to the next number: the unit of the error bounds.
UNIT_ROUNDOFF = _bounds("unit_roundoff")
# Half the smallest positive number: what rounding moves a result by where the type has no finer numbers.
HALF_SMALLEST = _bounds("half_smallest")
# What P of a row's largest score is at least, in the scale in which P is rounded.
LEAST_WEIGHT = _bounds("weight")
# Units of softmax(S)|V| that an element may be off by, and the limit of the relative Frobenius error.
ELEMENT_LIMIT, FROBENIUS_LIMIT = _bounds("element"), _bounds("frobenius")
# How much of the norm of `fine` the whole may be off besides.
ROOM = {dtype: 1.0 for dtype in TYPE_NUMBERS} | {"e4m3": _constant(r"bounds_e4m3{[^}]*\.room")}
# e4m3: the error of a score is counted in this, of so many numbers of d_head at a time.
SCORE_ERROR_UNIT, SCORE_GROUP = _constant("score_error_unit"), int(_constant("score_group"))
# e4m3: what the tensor cores may cut from a tile's sum of P, of itself.
SUM_ERROR_UNIT = _constant("sum_error_unit")
# What the bound of a row's log-sum-exp is counted in.
LOG_SUM_EXP_UNIT = _constant("log_sum_exp_unit")


# What O is where Q, K and V are of the type.
OUTPUT = {dtype: "bf16" if dtype == "e4m3" else dtype for dtype in TYPE_NUMBERS}

E4M3_LARGEST = 448.0


def bits_type(dtype: str) -> type:
    """What a pattern of the type is in NumPy."""
    return np.uint8 if dtype == "e4m3" else np.uint16


def to_bits(values: np.ndarray, dtype: str) -> np.ndarray:
    """Rounds to nearest even; any float array -> patterns of the same shape. e4m3 has no infinity: what is above 448
    becomes 448, as cvt.rn.satfinite has it."""
    if dtype == "fp16":
        return np.asarray(values).astype(np.float16).view(np.uint16)
    if dtype == "e4m3":
        return _to_e4m3(np.asarray(values, np.float64))
    if dtype != "bf16":
        raise FlashLadderError(f"dtype '{dtype}': choose {', '.join(TYPE_NUMBERS)}")
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # Adding could carry a NaN's payload into infinity.
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FFF, rounded).astype(np.uint16)


def _to_e4m3(values: np.ndarray) -> np.ndarray:
    size = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.maximum(np.frexp(size)[1] - 1, -6)  # of the normal numbers; below 2^-6 they are as far apart
    eighths = np.rint(np.ldexp(size, 3 - exponent))  # np.rint: ties to even; 16 is the next power of two
    code = np.where(eighths < 8, eighths, (exponent + 7) * 8 + eighths - 8)
    code = np.where(np.isnan(values), 0x7F, np.minimum(code, 0x7E)).astype(np.uint8)
    return code | (np.signbit(values).astype(np.uint8) << 7)


def _e4m3_values() -> np.ndarray:
    codes = np.arange(128)
    exponent, fraction = codes >> 3, codes & 7
    values = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    values[0x7F] = np.nan
    return np.concatenate([values, -values]).astype(np.float32)


_E4M3 = _e4m3_values()


def from_bits(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Patterns -> float32, exactly."""
    if dtype == "e4m3":
        return _E4M3[np.asarray(bits, np.uint8)]
    bits = np.ascontiguousarray(bits, dtype=np.uint16)
    if dtype == "fp16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_native(bits: np.ndarray, dtype: str) -> np.ndarray:
    """uint16 patterns -> float16, or ml_dtypes.bfloat16 (float32 where ml_dtypes is not installed)."""
    if dtype == "fp16":
        return bits.view(np.float16)
    try:
        import ml_dtypes
    except ImportError:
        return from_bits(bits, dtype)
    return bits.view(ml_dtypes.bfloat16)


def _from_device(interface: dict) -> np.ndarray:
    """Copies a contiguous device array (__cuda_array_interface__) to the host, through the runtime that owns it."""
    if interface.get("strides"):
        raise FlashLadderError("Arrays in device memory must be contiguous: copy this one first.")
    array = np.empty(interface["shape"], np.dtype(interface["typestr"]))
    library = ctypes.CDLL("libcudart.so.13")  # the process already has the one that made the array
    size = ctypes.c_size_t(array.nbytes)
    status = library.cudaMemcpy(ctypes.c_void_p(array.ctypes.data), ctypes.c_void_p(interface["data"][0]), size, 2)
    if status:
        raise FlashLadderError(f"Copying the array from the device failed (cudaError {status}).")
    return array


def as_values(array) -> np.ndarray:
    """float64 of what as_bits() takes, float32 and float64 as exact as they are."""
    if isinstance(array, np.ndarray) and array.dtype.kind == "f":
        return array.astype(np.float64)
    return from_bits(*as_bits(array)).astype(np.float64)


def as_bits(array, dtype: str | None = None) -> tuple[np.ndarray, str]:
    """(uint16 patterns, "fp16" or "bf16") of a NumPy array, or of anything with DLPack or __cuda_array_interface__.

    float16 and bfloat16 keep their type unless dtype says otherwise; float32 and float64 are rounded to dtype
    (bf16 where none is given).
    """
    if type(array).__module__.partition(".")[0] == "torch":  # NumPy has no bfloat16, so DLPack cannot carry it over
        import torch

        array = array.detach().cpu().contiguous()
        if array.dtype == torch.bfloat16:
            bits = array.view(torch.int16).numpy().view(np.uint16)
            return (bits, "bf16") if dtype in (None, "bf16") else (to_bits(from_bits(bits, "bf16"), dtype), dtype)
        array = array.numpy()
    elif not isinstance(array, np.ndarray):
        if hasattr(array, "__cuda_array_interface__"):
            array = _from_device(array.__cuda_array_interface__)
        elif hasattr(array, "__dlpack__"):
            array = np.from_dlpack(array)
        else:
            array = np.asarray(array)
    if array.dtype == np.float16 and dtype in (None, "fp16"):
        return np.ascontiguousarray(array).view(np.uint16), "fp16"
    if array.dtype.name == "bfloat16" and dtype in (None, "bf16"):
        return np.ascontiguousarray(array).view(np.uint16), "bf16"
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        raise FlashLadderError(f"Inputs must be floating point, not {array.dtype}.")
    dtype = dtype or ("fp16" if array.dtype == np.float16 else "bf16")
    return to_bits(array.astype(np.float32), dtype), dtype
