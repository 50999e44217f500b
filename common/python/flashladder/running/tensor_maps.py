"""The tensor maps of Q, K, V and O as common/host/tensor_maps.cpp makes them, for whoever launches a stage's kernel
without its host code. The standard library alone."""

import ctypes
from ctypes import byref, c_char, c_int, c_uint, c_uint32, c_uint64, c_ulonglong, c_void_p

from flashladder.core.abi import E4M3, FP16, FlashParams, FlashTensor
from flashladder.running.cudart import CudaError, Cudart

BYTES, ALIGNMENT = 128, 64  # of one map; the driver asks for the alignment
MAPS = 4
O_ROWS = 16  # of a box: a warp's rows of wgmma's accumulators
# Of the driver's enumerations CUtensorMap...: what the launcher names.
UINT8, FLOAT16, BFLOAT16 = 0, 6, 9
NO_INTERLEAVE, SWIZZLE_64B, SWIZZLE_128B, PROMOTE_256B, ZEROS_OUTSIDE = 0, 2, 3, 3, 0


def make(cudart: Cudart, params: FlashParams, Q_rows: int, KV_rows: int) -> ctypes.Array:
    """The struct TensorMaps of tensor_maps.h for params whose pointers are those of the device; a box has Q_rows rows
    of Q, of K and V KV_rows, of O O_ROWS. CudaError where the driver has no such function, or refuses."""
    encode = _encode(cudart)
    room = (c_char * (MAPS * BYTES + ALIGNMENT))()
    maps = (c_char * (MAPS * BYTES)).from_buffer(room, -ctypes.addressof(room) % ALIGNMENT)
    at = ctypes.addressof(maps)
    for name, rows, heads, box_rows in (
        ("Q", params.Nq, params.Hq, Q_rows),
        ("K", params.Nkv, params.Hkv, KV_rows),
        ("V", params.Nkv, params.Hkv, KV_rows),
        ("O", params.Nq, params.Hq, O_ROWS),
    ):
        narrow = params.dtype == E4M3 and name != "O"
        status = encode(c_void_p(at), *_described(getattr(params, name), rows, heads, params, box_rows, narrow))
        if status:
            raise CudaError(f"cuTensorMapEncodeTiled refuses the tensor map of {name} (CUresult {status})")
        at += BYTES
    return maps


def _encode(cudart: Cudart):
    function, found = c_void_p(), c_int(1)
    name, version, default = b"cuTensorMapEncodeTiled", c_uint(12000), c_ulonglong(0)
    cudart.call("cudaGetDriverEntryPointByVersion", name, byref(function), version, default, byref(found))
    if found.value or not function.value:
        raise CudaError("the CUDA driver has no cuTensorMapEncodeTiled: it is too old for TMA")
    pointers, numbers = [c_void_p] * 5, [c_int] * 4
    return ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_uint32, *pointers, *numbers)(function.value)


def _described(tensor: FlashTensor, rows: int, heads: int, params: FlashParams, box_rows: int, narrow: bool) -> tuple:
    """What cuTensorMapEncodeTiled takes behind the map: five dimensions, from a panel's columns to the batches. narrow:
    an element is a byte."""
    element = 1 if narrow else 2
    panel = min(128 // element, params.d_head)
    panels = params.d_head // panel

    def stride(size: int, elements: int) -> int:  # of a dimension of size 1 it says nothing
        return panel * element if size == 1 else elements * element

    strides = (
        stride(rows, tensor.stride_row),
        panel * element,
        stride(heads, tensor.stride_head),
        stride(params.B, tensor.stride_batch),
    )
    return (
        UINT8 if narrow else FLOAT16 if params.dtype == FP16 else BFLOAT16,
        5,
        tensor.data,
        (c_uint64 * 5)(panel, rows, panels, heads, params.B),
        (c_uint64 * 4)(*strides),
        (c_uint32 * 5)(panel, box_rows, panels, 1, 1),
        (c_uint32 * 5)(1, 1, 1, 1, 1),
        NO_INTERLEAVE,
        SWIZZLE_128B if panel * element == 128 else SWIZZLE_64B,
        PROMOTE_256B,
        ZEROS_OUTSIDE,
    )
