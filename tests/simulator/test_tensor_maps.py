"""Copies of boxes of tensors (TMA): random boxes of every kind against a model that moves one element at a time."""

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from cudart import run_program
from fault_marks import HOPPER, HOPPER_A, cases, check_fault_and_twin

PROGRAMS = Path(__file__).parent / "programs" / "tensor_maps"
# In the order of CUtensorMapDataType: bytes, and what a reduction computes with.
TYPES = [np.uint8, np.uint16, np.uint32, np.int32, np.uint64, np.int64, np.float16, np.float32, np.float64, np.uint16]
TYPES += [np.float32] * 3  # FLOAT32_FTZ, TFLOAT32, TFLOAT32_FTZ
FLOATS = (6, 7, 8, 9)
F16, BF16 = 6, 9
NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 = range(4)
LOAD, STORE, ADD, MIN, MAX, AND, OR, XOR, INC, DEC = range(10)


@dataclass
class Box:
    operation: int
    type: int
    swizzle: int
    fill: int
    size: list
    stride: list  # bytes; [0] is not used
    box: list
    step: list
    at: list
    address: int
    offset: int
    tensor: np.ndarray
    shared: np.ndarray
    interleave: int = 0  # 1, 2: slices of 16 and 32 bytes

    @property
    def element(self):
        """Bytes of what dimension 0 counts."""
        return 8 << self.interleave if self.interleave else np.dtype(TYPES[self.type]).itemsize

    @property
    def piece(self):
        """Bytes that a swizzle moves as a whole."""
        return min(self.element, 16)

    @property
    def steps(self):
        return [self.step[0] if self.interleave else 1, *self.step[1:]]

    @property
    def counts(self):
        """Elements that are copied, by dimension. Of slices, which the last dimension but one numbers, one."""
        counts = [-(-b // s) for b, s in zip(self.box, self.steps, strict=True)]
        if self.interleave:
            counts[-2] = 1
        return counts

    @property
    def bytes(self):
        return int(np.prod(self.counts)) * self.element

    def record(self):
        def five(values, fill):
            return [*values, *[fill] * (5 - len(values))]

        numbers = [self.operation, self.type, len(self.size), self.swizzle, self.fill, self.interleave]
        for values, fill in ((self.size, 1), (self.stride, 0), (self.box, 1), (self.step, 1), (self.at, 0)):
            numbers += five(values, fill)
        numbers += [self.address, self.offset, len(self.tensor), len(self.shared), self.bytes]
        return np.array(numbers, np.int64).tobytes() + self.tensor.tobytes() + self.shared.tobytes()

    def elements(self, base):
        """(place in the tensor's memory or None, place in the piece of shared memory), element by element."""
        steps = self.steps
        place = base + self.offset
        for index in itertools.product(*(range(n) for n in reversed(self.counts))):
            where = [c + i * s for c, i, s in zip(self.at, reversed(index), steps, strict=True)]
            inside = all(0 <= w < s for w, s in zip(where, self.size, strict=True))
            strides = [self.element, *self.stride[1:]]
            at = self.address + sum(w * s for w, s in zip(where, strides, strict=True))
            for part in range(0, self.element, self.piece):
                there = place + part
                if self.swizzle != NONE:
                    there ^= (there >> 7 & (1 << self.swizzle) - 1) << 4
                yield at + part if inside else None, there - base
            place += self.element

    def expected(self, base):
        """The tensor's memory and shared memory afterwards; where shared memory holds NaN, whichever."""
        tensor, shared, nan = self.tensor.copy(), self.shared.copy(), []
        kind, n = TYPES[self.type], self.piece
        for at, there in self.elements(base):
            if self.operation == LOAD:
                shared[there : there + n] = tensor[at : at + n] if at is not None else 0
                if at is None and self.fill:
                    nan.append(there)
            elif at is not None:
                a, b = (memory[i : i + n].copy().view(kind) for memory, i in ((tensor, at), (shared, there)))
                of = combine_bf16 if self.type == BF16 and self.operation > STORE else combine
                tensor[at : at + n] = of(self.operation, a, b).astype(kind).view(np.uint8)
        return tensor, shared, nan


def combine_bf16(operation, a, b):
    """Of whole numbers: sums are rounded to 8 bits, to nearest."""
    x, y = (np.array(v.astype(np.uint32) << 16).view(np.float32) for v in (a, b))
    bits = np.asarray(combine(operation, x, y), np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def combine(operation, a, b):
    if operation == INC:
        return np.where(a >= b, 0, a + 1)
    if operation == DEC:
        return np.where((a == 0) | (a > b), b, a - 1)
    return {
        STORE: lambda: b,
        ADD: lambda: a + b,
        MIN: lambda: np.minimum(a, b),
        MAX: lambda: np.maximum(a, b),
        AND: lambda: a & b,
        OR: lambda: a | b,
        XOR: lambda: a ^ b,
    }[operation]()


def random_box(rng, operation, dimensions, swizzle):
    """A box that NVIDIA's encoder takes, of at most 8 KB, somewhere about the tensor's edges."""
    ordered = [2, 3, 4, 5, F16, BF16]
    kinds = {ADD: [2, 3, 4, 7, F16, BF16], MIN: ordered, MAX: ordered, INC: [2], DEC: [2]}
    kind = rng.choice(kinds.get(operation, [2, 3, 4, 5] if operation > STORE else range(10)))
    element = np.dtype(TYPES[kind]).itemsize
    row = 16 << swizzle if swizzle else 16 * rng.randint(1, 12)
    row = min(row, 256 * element)
    if swizzle and row < 16 << swizzle:
        return random_box(rng, operation, dimensions, swizzle)
    box, step = [row // element], [rng.randint(1, 8)]
    left = 8192 // row
    for _ in range(1, dimensions):
        step.append(rng.choice([1, 1, 1, 2, 3, 8]))
        box.append(rng.randint(1, max(1, min(left, 12))) if rng.random() < 0.7 else rng.randint(1, min(left, 256)))
        left = max(1, left // -(-box[-1] // step[-1]))
    size = [rng.choice([b, max(1, b - 1), b + rng.randint(1, 9), rng.randint(1, 2 * b)]) for b in box]
    size = [min(s, 40 if dimensions > 2 else 300) for s in size]
    stride, span = [0], size[0] * element
    for d in range(1, dimensions):
        stride.append(-(-span // 16) * 16 + 16 * rng.choice([0, 0, 1, 5]))
        span = stride[-1] * size[d]
    low = -8 if operation == LOAD else 0
    at = [rng.choice([0, 0, rng.randint(low, s + 4)]) for s in size]
    if rng.random() < 0.05:
        at[rng.randrange(dimensions)] = rng.choice([2**31 - 1, -(2**31) if operation == LOAD else 2**31 - 1])
    at[0] -= at[0] % (16 // element)  # no box begins between 16 bytes of a row
    address = 16 * rng.randint(0, 8)
    tensor_bytes = address + size[0] * element + sum(s * (n - 1) for s, n in zip(stride[1:], size[1:], strict=True))
    offset = 128 * rng.randint(0, 9)
    fill = int(operation == LOAD and kind in FLOATS and rng.random() < 0.5)
    case = Box(operation, kind, swizzle, fill, size, stride, box, step, at, address, offset, None, None)
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    case.tensor = numbers.integers(0, 256, tensor_bytes, np.uint8)
    case.shared = numbers.integers(0, 256, -(-(offset + case.bytes) // 16) * 16 + 64, np.uint8)
    if kind in FLOATS and operation > STORE:  # sums of whole numbers are exact
        for memory in (case.tensor[address : address + (tensor_bytes - address) // 4 * 4], case.shared):
            count = len(memory) // element
            values = numbers.integers(-1000, 1000, count).astype(np.float16 if kind == F16 else np.float32)
            memory[:] = ((values.view(np.uint32) >> 16).astype(np.uint16) if kind == BF16 else values).view(np.uint8)
    return case


def run_boxes(boxes, folder, **keywords):
    """What `boxes` made of each case: (place of the piece of shared memory, tensor's memory, shared memory)."""
    path, results = folder / "cases", folder / "results"
    path.write_bytes(b"".join(case.record() for case in boxes))
    result = run_program(PROGRAMS / "boxes.cu", [path, results], architecture=HOPPER, **keywords)
    assert result.check().stdout == f"{len(boxes)} cases\n"
    found, data = [], np.fromfile(results, np.uint8)
    for case in boxes:
        parts = np.split(data, np.cumsum([8, len(case.tensor), len(case.shared)]))
        found.append((int(parts[0].view(np.int64)[0]), parts[1], parts[2]))
        data = parts[3]
    return result, found


def check(boxes, folder):
    result, found = run_boxes(boxes, folder, report=True)
    for number, (case, (base, tensor, shared)) in enumerate(zip(boxes, found, strict=True)):
        what = f"case {number}: {case}"
        expected_tensor, expected_shared, nan = case.expected(base)
        for place in nan:
            bits = shared[place : place + case.element].view(TYPES[case.type])[0]
            value = (np.array([int(bits) << 16], np.uint32).view(np.float32)[0]) if case.type == 9 else bits
            assert np.isnan(value), what
            expected_shared[place : place + case.element] = shared[place : place + case.element]
        assert np.array_equal(tensor, expected_tensor), what
        assert np.array_equal(shared, expected_shared), what
    return result


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("operation", [LOAD, STORE], ids=["load", "store"])
def test_boxes(operation, dimensions, tmp_path):
    rng = random.Random(10 * dimensions + operation)
    swizzles = [NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128]
    boxes = [random_box(rng, operation, dimensions, rng.choice(swizzles)) for _ in range(40)]
    result = check(boxes, tmp_path)
    if result.report:
        for case, launch in zip(boxes, result.report["launches"], strict=True):
            count = launch["tensor_copies"]["load" if operation == LOAD else "store"]
            assert (count["copies"], count["bytes"], count["sectors"]) == (1, case.bytes, sectors(case)), case


def random_interleaved_box(rng, operation, dimensions, interleave):
    """A box of an interleaved tensor, of at most 8 KB; what lies in a slice of a pixel is moved as it is."""
    kind = rng.choice([0, 1, 7])
    element, pitch = np.dtype(TYPES[kind]).itemsize, 8 << interleave
    row = 16 // element * rng.choice([1, 2] if element > 1 else [1])
    box = [row] + [rng.randint(1, 5) for _ in range(1, dimensions)]
    box[-2] = rng.randint(1, 40)
    step = [rng.choice([1, 1, 2]) for _ in box]
    size = [rng.randint(1, 24)] + [rng.randint(1, 9) for _ in range(1, dimensions)]
    stride, span = [0], size[0] * pitch
    for d in range(1, dimensions):
        stride.append(span + pitch * rng.choice([0, 1]))
        span = stride[-1] * size[d]
    low = -3 if operation == LOAD else 0
    at = [rng.randint(low, s) for s in size]
    swizzle = SWIZZLE_32 if interleave == 2 else rng.choice([NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128])
    address, offset = 32 * rng.randint(0, 4), 128 * rng.randint(0, 9)
    case = Box(operation, kind, swizzle, 0, size, stride, box, step, at, address, offset, None, None, interleave)
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    case.tensor = numbers.integers(0, 256, address + span, np.uint8)
    case.shared = numbers.integers(0, 256, offset + case.bytes + 64, np.uint8)
    return case


@pytest.mark.parametrize("dimensions", [3, 4, 5])
@pytest.mark.parametrize("operation", [LOAD, STORE], ids=["load", "store"])
def test_interleaved_boxes(operation, dimensions, tmp_path):
    rng = random.Random(7 * dimensions + operation)
    check([random_interleaved_box(rng, operation, dimensions, rng.choice([1, 2])) for _ in range(20)], tmp_path)


# What an H100 made of these bits in a map of TFLOAT32 or TFLOAT32_FTZ, and with what it filled the rest.
BITS = [0x3F800FFF, 0x3F801000, 0x3F803000, 0x3F801001, 0xBF801000, 0xBF803000, 0x7F7FFFFF, 0x7F800001]
BITS += [0x7FC01FFF, 0xFF800000, 0x00000001, 0x00001000, 0x00003000, 0x007FFFFF, 0x80000001, 0x00801FFF]
AS_TF32 = [0x3F800000, 0x3F800000, 0x3F804000, 0x3F802000, 0xBF800000, 0xBF804000, 0x7F800000, 0x7FFFE000]
AS_TF32 += [0x7FFFE000, 0xFF800000, 0x00000000, 0x00000000, 0x00004000, 0x00800000, 0x80000000, 0x00802000]
NAN_FILL = 0x7FF77FF7


@pytest.mark.parametrize("operation", [LOAD, STORE], ids=["load", "store"])
@pytest.mark.parametrize("kind", [7, 10, 11, 12], ids=["f32", "f32.ftz", "tf32", "tf32.ftz"])
def test_numbers_of_fp32(kind, operation, tmp_path):
    """A load into a map of tf32 rounds; all else leaves the bits as they are."""
    bits = np.array(BITS, np.uint32)
    zeros = np.zeros(128, np.uint8)
    filled = int(operation == LOAD)
    box = Box(operation, kind, NONE, filled, [16], [0], [32], [1], [0], 0, 0, zeros[:64], zeros)
    if operation == LOAD:
        box.tensor = bits.view(np.uint8)
    else:
        box.shared = np.tile(bits, 2).view(np.uint8)
    _, ((_, tensor, shared),) = run_boxes([box], tmp_path)
    if operation == STORE:
        assert tensor.view(np.uint32).tolist() == BITS
        return
    assert shared.view(np.uint32)[:16].tolist() == (AS_TF32 if kind in (11, 12) else BITS)
    assert set(shared.view(np.uint32)[16:]) == {NAN_FILL}


def sectors(case):
    """Sectors of 32 bytes that the rows of the box touch, each row by itself."""
    row = case.counts[0]
    places = [at for at, _ in case.elements(0)]
    total = 0
    # The tensor's memory begins at a multiple of 32 bytes.
    for begin in range(0, len(places), row):
        touched = {
            byte // 32 for at in places[begin : begin + row] if at is not None for byte in (at, at + case.element - 1)
        }
        total += len(touched)
    return total


def test_reductions(tmp_path):
    rng = random.Random(3)
    operations = [ADD, MIN, MAX, AND, OR, XOR, INC, DEC]
    check([random_box(rng, op, rng.randint(1, 5), rng.randint(0, 3)) for op in operations for _ in range(8)], tmp_path)


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", cases(PROGRAMS / "faults.cu"))
def test_fault_and_mended_twin(name, seed):
    check_fault_and_twin(PROGRAMS / "faults.cu", name, seed)


@pytest.mark.simulator_only
@pytest.mark.parametrize("name", cases(PROGRAMS / "changed_maps.cu"))
def test_changed_maps_and_their_mended_twins(name):
    check_fault_and_twin(PROGRAMS / "changed_maps.cu", name, 0, architecture=HOPPER_A)


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", cases(PROGRAMS / "left_behind.cu"))
def test_blocks_that_end_under_their_copies_and_mended_twins(name, seed):
    check_fault_and_twin(PROGRAMS / "left_behind.cu", name, seed)


@pytest.mark.simulator_only
@pytest.mark.parametrize("name", ["copy_left", "box_left"])
def test_what_nobody_has_waited_for_arrives_when_the_block_ends(name):
    """With hazards as warnings: the same numbers as with the wait, and one hazard, of the launch without it."""
    env = {"WARPSIM_HAZARDS": "warn"}
    result = run_program(PROGRAMS / "left_behind.cu", [name, 0, 1], env=env, report=True, architecture=HOPPER).check()
    assert result.stdout.splitlines()[1].startswith("cudaSuccess 0 "), result.stdout
    assert [one["kind"] for one in result.hazards] == ["async_pending"]


# 801, CUDA_ERROR_NOT_SUPPORTED: what NVIDIA's encoder takes and the simulator does not.
REFUSALS = {
    "no_dimension": (1, "0 dimensions"),
    "six_dimensions": (1, "6 dimensions, and 1 to 5"),
    "map_misaligned": (1, "the map's own address is no multiple of 64"),
    "address_misaligned": (1, "the tensor's address is no multiple of 16"),
    "stride_misaligned": (1, "the stride in dimension 2 (globalStrides[1]) is 4104 bytes"),
    "stride_2_to_the_40": (1, "a multiple of 16 below 2^40"),
    "size_zero": (1, "the tensor has 0 elements in dimension 1"),
    "size_over_2_to_the_32": (1, "the tensor has 4294967297 elements in dimension 1"),
    "box_zero": (1, "the box has 0 elements in dimension 1"),
    "box_257": (1, "the box has 257 elements in dimension 1, and 1 to 256"),
    "row_not_16_bytes": (1, "a row of the box has 24 bytes (12 of f16), which is no multiple of 16"),
    "row_wider_than_swizzle": (1, "128 bytes (64 of f16), and the swizzle takes rows of 64"),
    "step_zero": (1, "the element stride in dimension 1 is 0"),
    "step_9": (1, "the element stride in dimension 1 is 9, and 1 to 8"),
    "nan_for_integers": (1, "elements of u16 cannot be filled with NaN"),
    "box_of_256_KB": (1, "the box has 262144 bytes"),
    "no_such_type": (1, "no such element type"),
    "no_such_swizzle": (1, "no such swizzle"),
    "interleaved_2_dimensions": (1, "it is interleaved and has 2 dimensions"),
    "slices_of_32_bytes_swizzled_by_128": (1, "slices of 32 bytes (CU_TENSOR_MAP_INTERLEAVE_32B) have a swizzle of 32"),
    "slices_of_32_bytes_at_16": (1, "the tensor's address is no multiple of 32"),
    "slices_of_32_bytes_and_stride": (1, "is 4112 bytes: it must be a multiple of 32"),
    "atom_32": (801, "newer than the simulated device"),
}


# CUDA's manual asks for an address of the map that is a multiple of 64; the driver (580.159, an H100) does not look.
UNSEEN_BY_THE_DRIVER = ("map_misaligned",)


@pytest.mark.long
def test_what_the_encoder_takes_and_refuses():
    result = run_program(PROGRAMS / "encoder.cu", architecture=HOPPER, report=True).check()
    errors = dict(line.split() for line in result.stdout.splitlines())
    assert len(errors) == 37
    for name, error in errors.items():
        expected = REFUSALS.get(name, (0, ""))[0]
        if not result.report and name in UNSEEN_BY_THE_DRIVER:
            continue
        assert int(error) == expected or (expected == 801 and not result.report), name
    if not result.report:
        return
    said = result.report["refused_calls"]
    assert [call["name"] for call in said] == ["cuTensorMapEncodeTiled"] * len(REFUSALS)
    for call, (_, words) in zip(said, REFUSALS.values(), strict=True):
        assert words in call["why"]
        assert f"cuTensorMapEncodeTiled refuses: {call['why']}" in result.stderr


@pytest.mark.simulator_only
def test_an_older_device_has_no_tensor_maps():
    result = run_program(PROGRAMS / "encoder.cu", architecture=HOPPER, env={"WARPSIM_DEVICE": "sm_80"})
    assert "as_it_is 801" in result.stdout and "compute capability 9.0" in result.stderr


@pytest.mark.simulator_only
def test_rows_narrower_than_the_swizzle_are_refused_in_words(tmp_path):
    rng = random.Random(5)
    box = random_box(rng, LOAD, 2, SWIZZLE_128)
    box.box[0] //= 2
    path = tmp_path / "cases"
    path.write_bytes(box.record())
    result = run_program(PROGRAMS / "boxes.cu", [path, tmp_path / "results"], architecture=HOPPER, report=True)
    assert result.hazards[0]["kind"] == "invalid_argument"
    assert "rows of 64 bytes and a swizzle of 128" in result.hazards[0]["message"]


@pytest.mark.simulator_only
def test_boxes_are_logged(tmp_path):
    rng = random.Random(8)
    boxes = [random_box(rng, rng.choice([LOAD, STORE]), rng.randint(1, 4), rng.randint(0, 3)) for _ in range(12)]
    result, found = run_boxes(boxes, tmp_path, report=True, env={"WARPSIM_ACCESSES": 1})
    for case, (base, _, _), launch in zip(boxes, found, result.report["launches"], strict=True):
        (one,) = launch["boxes"]
        assert (one["kind"], one["lane"], one["warp"]) == ("load" if case.operation == LOAD else "store", 0, 0)
        assert (one["shared"], one["element"]) == (base + case.offset, case.element)
        assert one["swizzle"] == (16 << case.swizzle if case.swizzle else 0)
        assert (one["coordinates"], one["counts"]) == (case.at, case.counts)
        places = [at for at, _ in case.elements(base)]
        rows = [places[i : i + case.counts[0]] for i in range(0, len(places), case.counts[0])]
        first = [next((at for at in row if at is not None), None) for row in rows]
        start = next((a - b for a, b in zip(one["rows"], first, strict=True) if b is not None), 0)
        assert one["rows"] == [None if at is None else at + start for at in first]
        assert one["sectors"] == sectors(case)


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_a_pipeline_of_boxes_is_clean_and_counted(seed):
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    result = run_program(PROGRAMS / "pipeline.cu", env=env, report=True, architecture=HOPPER)
    assert result.check().stdout == "OK\n" and result.hazards == []
    if not result.report:
        return
    (launch,) = result.report["launches"]
    # 3 blocks of 7 boxes of 2 KB; 100 rows of 88 floats, cut into rows of 4, 4 and 3 sectors.
    expected = {"copies": 21, "bytes": 21 * 2048, "sectors": 100 * 11}
    assert launch["tensor_copies"] == {"load": expected, "store": expected}
    by_line = {
        kind: [line[kind] for line in launch["lines"] if kind in line] for kind in ("bulk_bytes", "tensor_sectors")
    }
    assert by_line == {"bulk_bytes": [21 * 2048] * 2, "tensor_sectors": [1100] * 2}
    assert sum(line.get("mbarrier_waits", 0) for line in launch["lines"]) == launch["mbarriers"]["waits"] > 0
    # The swizzle keeps the warps' accesses free of conflicts.
    assert launch["shared"]["load"]["wavefronts"] == launch["shared"]["load"]["ideal"]
