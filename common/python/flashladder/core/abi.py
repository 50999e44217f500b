"""The stages' C ABI (common/include/attention.h, attention_backward.h, attention_decode.h, attention_ring.h) as ctypes;
tests/python checks sizes and offsets against C."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_float, c_int32, c_int64, c_size_t, c_void_p

FP16, BF16, E4M3 = 0, 1, 2
DTYPES = {"fp16": FP16, "bf16": BF16}  # of two bytes, which all stages but that of FP8 take
TYPE_NUMBERS = DTYPES | {"e4m3": E4M3}
STATUS = {0: "ok", 1: "invalid argument", 2: "unsupported", 3: "device too old", 4: "CUDA error"}


# Fields that several structs have: the sizes of a problem, and what stands behind them.
_SIZES = [(name, c_int32) for name in ("B", "Hq", "Hkv", "Nq", "Nkv", "d_head", "dtype", "causal")]
_CALL = [
    ("scale", c_float),
    ("log_sum_exp", c_void_p),
    ("workspace", c_void_p),
    ("workspace_bytes", c_size_t),
    ("configuration", c_char_p),
]


class FlashTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("stride_batch", c_int64),
        ("stride_head", c_int64),
        ("stride_row", c_int64),
    ]


class FlashParams(Structure):
    _fields_ = [
        *((name, FlashTensor) for name in "QKVO"),
        *_SIZES,
        *_CALL,
        *((f"{name}_scales", c_void_p) for name in "QKV"),
    ]


class FlashDescription(Structure):
    _fields_ = [
        ("title", c_char_p),
        ("min_compute", c_int32),
        ("Br", c_int32),
        ("Bc", c_int32),
        ("threads", c_int32),
        ("shared_bytes", c_int32),
        ("grid", c_int32 * 3),
        ("supports_log_sum_exp", c_int32),
        ("multiple_Nq", c_int32),
        ("multiple_Nkv", c_int32),
        ("supports_causal", c_int32),
        ("supports_gqa", c_int32),
        ("positive_scale", c_int32),
        ("registers", c_int32),
        ("spill_bytes", c_int32),
        ("resident_blocks", c_int32),
        ("workspace_bytes", c_size_t),
        ("configuration", c_char_p),
    ]

    def as_dict(self) -> dict:
        values = {name: getattr(self, name) for name, _ in self._fields_}
        words = {name: (getattr(self, name) or b"").decode() for name in ("title", "configuration")}
        return values | words | {"grid": list(self.grid)}


TENSORS = ("Q", "K", "V", "O", "dO", "dQ", "dK", "dV")  # of a backward problem; the first four of a forward one


class FlashBackwardParams(Structure):
    _fields_ = [
        *((name, FlashTensor) for name in TENSORS),
        *_SIZES,
        *_CALL,
    ]


class FlashBackwardDescription(Structure):
    _fields_ = [
        ("main", FlashDescription),
        ("zeroed_workspace", c_int32),
        ("deterministic", c_int32),
    ]

    def as_dict(self) -> dict:
        """Of the main kernel's description, with what is said of the stage beside it."""
        return self.main.as_dict() | {
            "zeroed_workspace": bool(self.zeroed_workspace),
            "deterministic": bool(self.deterministic),
        }


class FlashDecodeParams(Structure):
    _fields_ = [
        *((name, FlashTensor) for name in "QKVO"),
        ("block_table", c_void_p),
        ("pages", c_int32),
        ("page_size", c_int32),
        ("max_pages", c_int32),
        ("lengths", c_void_p),
        ("B", c_int32),
        ("Hq", c_int32),
        ("Hkv", c_int32),
        ("Nq", c_int32),
        ("Nmax", c_int32),
        ("d_head", c_int32),
        ("dtype", c_int32),
        *_CALL,
    ]


class FlashDecodeDescription(Structure):
    _fields_ = [
        ("main", FlashDescription),
        ("splits", c_int32),
        ("page_multiple", c_int32),
        ("optional_lengths", c_int32),
        ("zeroed_bytes", c_size_t),
    ]

    def as_dict(self) -> dict:
        """Of the main kernel's description, with what is said of the stage beside it."""
        return self.main.as_dict() | {
            "splits": self.splits,
            "page_multiple": self.page_multiple,
            "optional_lengths": bool(self.optional_lengths),
            "zeroed_bytes": self.zeroed_bytes,
        }


# Called with its context, rank, work, source, 0 before and 1 after the work is queued, and the stream.
FlashRingMark = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_int32, c_int32, c_int32, c_void_p)
RING_WORK = ("pull", "attention", "merge")


class FlashRingParams(Structure):
    _fields_ = [
        ("ranks", c_int32),
        ("B", c_int32),
        ("Hq", c_int32),
        ("Hkv", c_int32),
        ("N", c_int32),
        ("d_head", c_int32),
        ("dtype", c_int32),
        ("causal", c_int32),
        ("scale", c_float),
        ("forward", c_char_p),
        ("configuration", c_char_p),
        ("mark", FlashRingMark),
        ("mark_context", c_void_p),
    ]


class FlashRank(Structure):
    _fields_ = [
        ("device", c_int32),
        ("stream", c_void_p),
        ("copy_stream", c_void_p),
        *((name, FlashTensor) for name in "QKVO"),
        ("log_sum_exp", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
    ]


class FlashRingPiece(Structure):
    _fields_ = [
        ("first", c_int32),
        ("rows", c_int32),
    ]


class FlashRingDescription(Structure):
    _fields_ = [
        ("title", c_char_p),
        ("min_compute", c_int32),
        ("pieces", FlashRingPiece * 2),
        ("workspace_bytes", c_size_t),
        ("zeroed_workspace", c_int32),
        ("pulled_bytes", c_int64),
        ("scores", c_int64),
    ]

    def as_dict(self) -> dict:
        """With pieces as (first, rows), without the empty ones."""
        values = {name: getattr(self, name) for name, _ in self._fields_}
        pieces = [(piece.first, piece.rows) for piece in self.pieces if piece.rows]
        return values | {"title": self.title.decode(), "pieces": pieces}


class StageRefused(Exception):
    """A stage returned a status other than FLASH_OK; `status` is its code, str() its message."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Library:
    """libstage_NN.so, loaded into this process with whatever libcudart.so.13 the process has."""

    ENTRY: str  # the function that queues the kernels
    DESCRIBE: str
    PARAMS: type[Structure]
    DESCRIPTION: type[Structure]

    def __init__(self, path):
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        self._library.flash_last_error.restype = c_char_p
        self._entry, self._describe = (getattr(self._library, name) for name in (self.ENTRY, self.DESCRIBE))
        self._entry.argtypes = [POINTER(self.PARAMS), c_void_p]
        self._describe.argtypes = [POINTER(self.PARAMS), POINTER(self.DESCRIPTION)]

    def _check(self, status: int) -> None:
        if status:
            message = (self._library.flash_last_error() or b"").decode(errors="replace")
            raise StageRefused(status, message or STATUS.get(status, f"status {status}"))

    def describe(self, params):
        """The DESCRIPTION of the problem in PARAMS."""
        description = self.DESCRIPTION()
        self._check(self._describe(ctypes.byref(params), ctypes.byref(description)))
        return description

    def launch(self, params, stream: int = 0) -> None:
        """Queues the stage's kernels on the stream (0: the default stream)."""
        self._check(self._entry(ctypes.byref(params), stream))


class StageLibrary(Library):
    """Of a stage that computes attention."""

    ENTRY, DESCRIBE = "flash_forward", "flash_describe"
    PARAMS, DESCRIPTION = FlashParams, FlashDescription


class BackwardLibrary(Library):
    """Of a stage that computes gradients."""

    ENTRY, DESCRIBE = "flash_backward", "flash_describe_backward"
    PARAMS, DESCRIPTION = FlashBackwardParams, FlashBackwardDescription


class DecodeLibrary(Library):
    """Of a decode stage."""

    ENTRY, DESCRIBE = "flash_decode", "flash_describe_decode"
    PARAMS, DESCRIPTION = FlashDecodeParams, FlashDecodeDescription


class RingLibrary(Library):
    """Of a stage for several GPUs. Its calls take the rank, or all ranks, in place of a stream."""

    ENTRY, DESCRIBE = "flash_ring", "flash_describe_ring"
    PARAMS, DESCRIPTION = FlashRingParams, FlashRingDescription

    def __init__(self, path):
        super().__init__(path)
        self._entry.argtypes = [POINTER(FlashRingParams), POINTER(FlashRank)]
        self._describe.argtypes = [POINTER(FlashRingParams), c_int32, POINTER(FlashRingDescription)]

    def describe(self, params: FlashRingParams, rank: int) -> FlashRingDescription:
        description = FlashRingDescription()
        self._check(self._describe(ctypes.byref(params), rank, ctypes.byref(description)))
        return description

    def launch(self, params: FlashRingParams, ranks: ctypes.Array) -> None:
        """Queues the work of all ranks, an array of FlashRank."""
        self._check(self._entry(ctypes.byref(params), ranks))
