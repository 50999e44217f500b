"""Kernels with one or more wgmma, and where its operands lie: in shared memory as descriptors say, and in registers."""

import numpy as np
from cudart import run_ptx

# 8.4: the first that has products of s8 and u8.
HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s32": 32}
LAYOUTS = {128: 1, 64: 2, 32: 3, 0: 0}  # row bytes: the descriptor's code
NUMPY = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def descriptor(start, leading, stride, row_bytes, base_offset=0):
    return (
        (start & 0x3FFFF) >> 4
        | (leading & 0x3FFFF) >> 4 << 16
        | (stride & 0x3FFFF) >> 4 << 32
        | base_offset << 49
        | LAYOUTS[row_bytes] << 62
    )


def swizzle(address, row_bytes, base_offset=0):
    """XORs the bits of an address of shared memory."""
    mask = {128: 7, 64: 3, 32: 1, 0: 0}[row_bytes]
    return address ^ (((address >> 7) - base_offset & mask) << 4)


class Tile:
    """A matrix [m or n, k] of bit patterns in shared memory from `start` on, in one of the eight layouts."""

    def __init__(self, start, row_bytes, mn_major=False, padding=0, base_offset=0):
        self.start, self.row_bytes, self.mn_major, self.padding = start, row_bytes, mn_major, padding
        self.base_offset = base_offset

    def strides(self, rows, element):
        """(leading, stride) byte offsets; padded by `padding`, so that each of them matters."""
        if self.mn_major and self.row_bytes:  # rows are k: 8 of them, then the next panel of m or n
            stride = 8 * self.row_bytes + 1024 * self.padding
            return 4 * stride, stride  # room for 32 k
        if self.mn_major:
            return 128 + 16 * self.padding, 4 * (128 + 16 * self.padding)
        if self.row_bytes:
            return 16 * self.padding, 8 * self.row_bytes + 1024 * self.padding
        return 128 + 16 * self.padding, 2 * (128 + 16 * self.padding)

    def descriptor(self, rows, element):
        leading, stride = self.strides(rows, element)
        return descriptor(self.start, leading, stride, self.row_bytes, self.base_offset)

    def address(self, row, k, element, rows):
        leading, stride = self.strides(rows, element)
        if not self.mn_major:
            at = k * element
            if not self.row_bytes:
                return self.start + row // 8 * stride + row % 8 * 16 + at // 16 * leading + at % 16
            start = self.start + row // 8 * stride + row % 8 * self.row_bytes + at
            return swizzle(start, self.row_bytes, self.base_offset)
        at = row * element
        if not self.row_bytes:
            return self.start + at // 16 * stride + k // 8 * leading + k % 8 * 16 + at % 16
        panel, at = divmod(at, self.row_bytes)
        start = self.start + panel * leading + k // 8 * stride + k % 8 * self.row_bytes + at
        return swizzle(start, self.row_bytes, self.base_offset)

    def put(self, image, matrix):
        element = matrix.itemsize
        data = np.ascontiguousarray(matrix).view(np.uint8).reshape(*matrix.shape, element)
        for row, k in np.ndindex(matrix.shape):
            at = self.address(row, k, element, len(matrix))
            image[at : at + element] = data[row, k]


def d_places(n, bits):
    """[register, thread, element in it] -> (row, column)"""
    per = 32 // bits
    t = np.arange(128)
    w, lane = t // 32, t % 32
    places = np.zeros((n // 2 // per, 128, per, 2), int)
    for i in range(n // 2 // per):
        for j in range(per):
            e = i * per + j
            places[i, :, j, 0] = 16 * w + lane // 4 + 8 * (e // 2 % 2)
            places[i, :, j, 1] = 8 * (e // 4) + 2 * (lane % 4) + e % 2
    return places


def a_places(bits):
    """The same of A in registers; (row, k)"""
    per = 32 // bits
    t = np.arange(128)
    w, lane = t // 32, t % 32
    places = np.zeros((4, 128, per, 2), int)
    for i in range(4):
        for j in range(per):
            places[i, :, j, 0] = 16 * w + lane // 4 + 8 * (i % 2)
            places[i, :, j, 1] = per * (lane % 4) + 4 * per * (i // 2) + j
    return places


def pack(matrix, places):
    """-> [register, thread] of 32 bits"""
    elements = np.ascontiguousarray(matrix[places[..., 0], places[..., 1]])
    return elements.view(np.uint32).reshape(places.shape[:2])


def unpack(registers, places, kind, shape):
    matrix = np.zeros(shape, kind)
    matrix[places[..., 0], places[..., 1]] = np.ascontiguousarray(registers).view(kind).reshape(places.shape[:3])
    return matrix


def mma_text(n, d_kind, a_kind, b_kind, registers=False, scale_a=1, scale_b=1, tn=(0, 0), tail="", d="d", p="p"):
    """The instruction, with descriptors in %da and %db, fragments in %d0... and %a0..."""
    k = 256 // BITS[a_kind]
    count = n // 2 * BITS[d_kind] // 32
    fragment = ", ".join(f"%{d}{i}" for i in range(count))
    a = "{%a0, %a1, %a2, %a3}" if registers else "%da"
    operands = f"{{{fragment}}}, {a}, %db, %{p}"
    if a_kind not in ("s8", "u8"):
        operands += f", {scale_a}, {scale_b}"
    if BITS[a_kind] == 16:
        operands += (f", {tn[0]}" if not registers else "") + f", {tn[1]}"
    return f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d_kind}.{a_kind}.{b_kind}{tail} {operands};"


def kernel(body, n, d_kind, shared=49152, threads=128, target=HEAD):
    """Shared memory from `image`, D from and to `pd`, A's registers from `pa`; %p is whether D counts.

    The descriptors given count from the image's beginning. Where that lies, only the kernel knows: CUDA keeps the first
    1,024 bytes of shared memory on Hopper.
    """
    count = n // 2 * BITS[d_kind] // 32
    loads = "\n".join(f"ld.global.b32 %d{i}, [%pd+{512 * i}];" for i in range(count))
    stores = "\n".join(f"st.global.b32 [%pd+{512 * i}], %d{i};" for i in range(count))
    return f"""{target}
    .visible .entry test(.param .u64 pd, .param .u64 pa, .param .u64 image, .param .u64 da, .param .u64 db,
                         .param .u32 adds) {{
        .reg .b32 %t, %x, %s, %adds, %d<{count}>, %a<4>; .reg .b64 %pd, %pa, %pi, %t4, %da, %db; .reg .pred %p, %more;
        .shared .align 1024 .b8 tile[{shared}];
        mov.u32 %t, %tid.x; mul.wide.u32 %t4, %t, 4;
        ld.param.u64 %pd, [pd]; ld.param.u64 %pa, [pa]; ld.param.u64 %pi, [image];
        ld.param.u64 %da, [da]; ld.param.u64 %db, [db]; ld.param.u32 %adds, [adds]; setp.ne.b32 %p, %adds, 0;
        add.u64 %pd, %pd, %t4; add.u64 %pa, %pa, %t4; add.u64 %pi, %pi, %t4;
        {loads}
        ld.global.b32 %a0, [%pa]; ld.global.b32 %a1, [%pa+512];
        ld.global.b32 %a2, [%pa+1024]; ld.global.b32 %a3, [%pa+1536];
        mov.u32 %s, tile;
        {{ .reg .b64 %from; shr.u32 %x, %s, 4; cvt.u64.u32 %from, %x; add.u64 %da, %da, %from; add.u64 %db, %db, %from; }}
        mad.lo.u32 %s, %t, 4, %s; mov.u32 %x, 0;
    copy:
        {{ .reg .b32 %v; ld.global.b32 %v, [%pi]; st.shared.b32 [%s], %v; }}
        add.u64 %pi, %pi, {4 * threads}; add.u32 %s, %s, {4 * threads}; add.u32 %x, %x, {4 * threads};
        setp.lt.u32 %more, %x, {shared}; @%more bra copy;
        fence.proxy.async.shared::cta;
        bar.sync 0;
        {body}
        {stores}
        ret; }}"""


FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned 0;"


def wgmma(a, b, d, a_kind, b_kind, d_kind, a_tile, b_tile, adds=1, scales=(1, 1), tail="", shared=49152, env=None):
    """D + A B as bits: A [64, k], B [n, k] and D [64, n] of bit patterns. a_tile None: A in registers."""
    n = len(b)
    image = np.zeros(shared, np.uint8)
    b_tile.put(image, b)
    if a_tile:
        a_tile.put(image, a)
        registers = np.zeros((4, 128), np.uint32)
    else:
        registers = pack(a, a_places(BITS[a_kind]))
    transposed = (int(bool(a_tile and a_tile.mn_major)), int(b_tile.mn_major))
    instruction = mma_text(n, d_kind, a_kind, b_kind, a_tile is None, *scales, transposed, tail)
    text = kernel("\n".join([FENCE, instruction, COMMIT, WAIT]), n, d_kind, shared)
    places = d_places(n, BITS[d_kind])
    arguments = [
        pack(d, places).copy(), registers, image,
        np.uint64(a_tile.descriptor(64, a.itemsize) if a_tile else 0), np.uint64(b_tile.descriptor(n, b.itemsize)),
        np.uint32(adds),
    ]  # fmt: skip
    result = run_ptx(text, "test", 1, 128, arguments, env=env or {}).check()
    return unpack(result.outputs[0], places, NUMPY[BITS[d_kind]], (64, n))


def wgmma_of_image(a, values, at, n, b_tile, shared=49152):
    """(A B in f32, the hazards): A [64, k] of f16, B where `b_tile` says in shared memory, which holds `values` at `at`."""
    image = np.zeros(shared, np.uint8)
    image[at : at + len(values)] = values
    a_tile = Tile(0, 128)
    a_tile.put(image, a)
    text = kernel("\n".join([FENCE, mma_text(n, "f32", "f16", "f16"), COMMIT, WAIT]), n, "f32", shared)
    places = d_places(n, 32)
    arguments = [
        np.zeros((n // 2, 128), np.uint32), np.zeros((4, 128), np.uint32), image,
        np.uint64(a_tile.descriptor(64, 2)), np.uint64(b_tile.descriptor(n, 2)), np.uint32(0),
    ]  # fmt: skip
    result = run_ptx(text, "test", 1, 128, arguments, report=True, env={"WARPSIM_HAZARDS": "warn"}).check()
    return unpack(result.outputs[0], places, np.float32, (64, n)), result.hazards
