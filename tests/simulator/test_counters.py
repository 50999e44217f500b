"""Shared-memory wavefronts, global sectors and bytes against cases counted by hand and against a plain restatement."""

import json
from pathlib import Path

import numpy as np
import pytest
from memory_kernels import run

pytestmark = pytest.mark.simulator_only

LANES = range(32)


def launch(body, arrays=(), **keywords):
    result = run(body, arrays, report=True, env={"WARPSIM_HAZARDS": "off"}, **keywords).check()
    return result.report["launches"][0]


def access(space, form, addresses, store=False, mask=0xFFFFFFFF):
    """Counts of one instruction whose lane i uses the given byte address (an offset in shared or global memory)."""
    size = int(form.split("b")[-1]) // 8
    count = int(form[1]) if form[0] == "v" else 1
    reg = {1: "%rs", 2: "%rs", 4: "%r", 8: "%rd"}[size]
    names = ", ".join(f"{reg}{30 + i}" for i in range(count))
    names = f"{{{names}}}" if count > 1 else names
    body = "".join(f"mov.b{8 * max(2, size)} {reg}{30 + i}, 1;" for i in range(count))
    # The addresses come as parameters of the kernel's constant memory, which nothing counts.
    table = f".const .align 4 .u32 table[32] = {{{', '.join(str(a) for a in addresses)}}};"
    base = "mov.u64 %rd6, smem;" if space == "shared" else "mov.u64 %rd6, %rd0;"
    body += f"""
    shl.b64 %rd4, %rd9, 2; mov.u64 %rd5, table; add.u64 %rd5, %rd5, %rd4; ld.const.u32 %r1, [%rd5];
    {base} cvt.u64.u32 %rd7, %r1; add.u64 %rd7, %rd6, %rd7;
    mov.u32 %r3, {mask}; shr.u32 %r3, %r3, %r0; and.b32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0;
    @%p1 {"st" if store else "ld"}.{space}.{form} {f"[%rd7], {names}" if store else f"{names}, [%rd7]"};
    """
    report = launch(body, [np.zeros(1 << 18, np.uint8)], declarations=table, shared=40960)
    return report[space]["store" if store else "load"]


def shared(form, addresses, **keywords):
    counts = access("shared", form, addresses, **keywords)
    return counts["wavefronts"], counts["ideal"]


def sectors(form, addresses, **keywords):
    counts = access("global", form, addresses, **keywords)
    return counts["sectors"], counts["ideal"], counts["bytes"]


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize(
    "form,addresses,wavefronts,ideal",
    [
        ("b32", [4 * i for i in LANES], 1, 1),  # neighbours
        ("b32", [4 * (31 - i) for i in LANES], 1, 1),  # backwards
        ("b32", [4 * (i * 7 % 32) for i in LANES], 1, 1),  # permuted
        ("b32", [64] * 32, 1, 1),  # broadcast
        ("b32", [8 * i for i in LANES], 2, 1),
        ("b32", [16 * i for i in LANES], 4, 1),
        ("b32", [12 * i for i in LANES], 1, 1),  # an odd number of words
        ("b32", [128 * i for i in LANES], 32, 1),  # a column of a 32-word row
        ("b32", [132 * i for i in LANES], 1, 1),  # the same with padding
        ("b32", [128 * (i // 8) + 4 * (i % 8) for i in LANES], 4, 1),
        ("b32", [128 * (i % 2) for i in LANES], 2, 1),  # two words of one bank, each broadcast
        ("b32", [4 * (i // 16) for i in LANES], 1, 1),
        ("b32", [256 * (i // 16) + 4 * (i % 16) for i in LANES], 2, 1),
        ("b8", [i for i in LANES], 1, 1),  # four lanes in a word
        ("b8", [128 * i for i in LANES], 32, 1),
        ("b16", [2 * i for i in LANES], 1, 1),
        ("b16", [4 * i + 2 * (i % 2) for i in LANES], 1, 1),
        ("b16", [64 * i for i in LANES], 16, 1),
        ("b16", [66 * i for i in LANES], 1, 1),  # rows of 33 halves: a bank of its own for each lane
        ("b64", [8 * i for i in LANES], 2, 2),
        ("v2.b32", [16 * i for i in LANES], 4, 2),
        ("b64", [128 * i for i in LANES], 32, 2),
        ("b64", [8 * (i % 16) for i in LANES], 2, 2),
        ("v4.b16", [136 * i for i in LANES], 2, 2),
        ("v4.b32", [16 * i for i in LANES], 4, 4),
        ("v4.b32", [32 * i for i in LANES], 8, 4),
        ("v4.b32", [128 * i for i in LANES], 32, 4),
        ("v4.b32", [144 * i for i in LANES], 4, 4),  # rows of 128 bytes, padded by 16
        ("v2.b64", [256 * i for i in LANES], 32, 4),
        ("v4.b32", [128 * i + 16 * (i % 8) for i in LANES], 4, 4),  # swizzled: row i's chunk i
    ],
)
def test_shared_wavefronts(form, addresses, wavefronts, ideal, store):
    assert shared(form, addresses, store=store) == (wavefronts, ideal)


# Of loads two phases go as one where all lanes i and i ^ 1, or all i and i ^ 2, have one place; of stores they do not.
@pytest.mark.parametrize(
    "form,addresses,loads,stores",
    [
        ("b64", [8] * 32, (1, 1), (2, 2)),
        ("v2.b32", [8 * (i // 2) for i in LANES], (1, 1), (2, 2)),
        ("b64", [8 * (i // 4 * 2 + i % 2) for i in LANES], (1, 1), (2, 2)),
        ("b64", [8 * (i // 8 * 4 + i % 4) for i in LANES], (2, 2), (2, 2)),  # i and i ^ 4
        ("b64", [8 * (i // 2) if i < 16 else 8 * (i // 4 * 2 + i % 2) for i in LANES], (2, 2), (2, 2)),  # a half each
        ("b64", [512 * (i % 2) for i in LANES], (2, 1), (4, 2)),
        ("v4.b32", [16 * (i // 8) for i in LANES], (2, 2), (4, 4)),
        ("v4.b32", [16] * 32, (2, 2), (4, 4)),
        ("v2.b64", [16 * (i // 2) for i in LANES], (2, 2), (4, 4)),
        ("v4.b32", [16 * (i // 2) if i < 16 else 16 * i for i in LANES], (4, 4), (4, 4)),
    ],
)
def test_phases_of_loads_that_go_as_one(form, addresses, loads, stores):
    assert shared(form, addresses) == loads
    assert shared(form, addresses, store=True) == stores


@pytest.mark.parametrize(
    "form,mask,loads,stores",
    [
        ("b64", 0x55555555, (1, 1), (2, 2)),  # no lane's partner takes part
        ("b64", 0x33333333, (1, 1), (2, 2)),
        ("b64", 0x77777777, (2, 2), (2, 2)),
        ("v4.b32", 0x77777777, (4, 4), (4, 4)),
        ("v4.b32", 0x99999999, (2, 2), (4, 4)),
        ("v4.b32", 0x11111111, (2, 2), (4, 4)),
        ("v4.b32", 0x55005500, (2, 2), (2, 2)),
    ],
)
def test_partners_that_take_no_part(form, mask, loads, stores):
    size = 8 if form == "b64" else 16
    addresses = [size * i % 128 for i in LANES]
    assert shared(form, addresses, mask=mask) == loads
    assert shared(form, addresses, mask=mask, store=True) == stores


RECORDED = Path(__file__).parent / "recorded" / "H200-shared-loads.json"


@pytest.mark.parametrize("size", [8, 16])
def test_loads_as_a_gpu_counted_them(size):
    """Wavefronts and bank conflicts of one warp's loads, each pattern of addresses and lanes by itself."""
    rows = [row for row in json.loads(RECORDED.read_text())["loads"] if row[0] == size]
    assert len(rows) >= 100
    offsets = np.array([row[2] for row in rows], np.uint32) * size
    masks = np.array([row[1] for row in rows], np.uint32)
    body = f"""
    mov.u32 %r10, 0; shl.b64 %rd4, %rd9, 2; add.u64 %rd4, %rd4, %rd0; mov.u64 %rd5, %rd1;
    AGAIN:
    ld.global.u32 %r1, [%rd4]; ld.global.u32 %r2, [%rd5];
    mov.u32 %r3, smem; add.u32 %r3, %r3, %r1; shr.u32 %r2, %r2, %r0; and.b32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0;
    @%p1 ld.shared.{"v2" if size == 8 else "v4"}.b32 {{%r20, %r21{"" if size == 8 else ", %r22, %r23"}}}, [%r3];
    add.u64 %rd4, %rd4, 128; add.u64 %rd5, %rd5, 4; add.u32 %r10, %r10, 1;
    setp.lt.u32 %p2, %r10, {len(rows)}; @%p2 bra AGAIN;
    """
    env = {"WARPSIM_HAZARDS": "off", "WARPSIM_ACCESSES": str(len(rows))}
    launch = run(body, [offsets, masks], report=True, env=env).check().report["launches"][0]
    found = [
        (one["wavefronts"], one["wavefronts"] - one["ideal"]) for one in launch["accesses"] if one["space"] == "shared"
    ]
    assert found == [tuple(row[3:]) for row in rows]


@pytest.mark.parametrize(
    "form,mask,loads,stores",
    [
        ("b32", 0x1, (1, 1), (1, 1)),
        ("b32", 0x3, (2, 1), (2, 1)),  # 128 bytes apart
        ("b32", 0x0F0F0F0F, (16, 1), (16, 1)),
        ("b64", 0xFFFF, (16, 1), (16, 1)),  # one phase of two
        ("b64", 0x00010001, (2, 1), (2, 2)),
        ("v4.b32", 0xFF, (8, 1), (8, 1)),
        ("v4.b32", 0x80000000, (1, 1), (1, 1)),
        ("v4.b32", 0x01010101, (4, 2), (4, 4)),
        ("v4.b32", 0x03030303, (8, 2), (8, 4)),
    ],
)
def test_shared_wavefronts_of_some_lanes(form, mask, loads, stores):
    addresses = [128 * i for i in LANES]
    assert shared(form, addresses, mask=mask) == loads
    assert shared(form, addresses, mask=mask, store=True) == stores


def plain_wavefronts(size, addresses, mask, loads):
    lanes = 32 if size <= 4 else 128 // size
    if loads and size in (8, 16):
        both = {apart: [i for i in LANES if mask >> i & mask >> (i ^ apart) & 1] for apart in (1, 2)}
        joined = (all(addresses[i] == addresses[i ^ apart] for i in both[apart]) for apart in (1, 2))
        lanes *= 2 if any(joined) else 1
    total = 0
    for first in range(0, 32, lanes):
        banks = {}
        for lane in range(first, first + lanes):
            if mask >> lane & 1:
                for word in range(addresses[lane] // 4, (addresses[lane] + size + 3) // 4):
                    banks.setdefault(word % 32, set()).add(word)
        total += max((len(words) for words in banks.values()), default=0)
    return total


@pytest.mark.parametrize("form,size", [("b8", 1), ("b16", 2), ("b32", 4), ("b64", 8), ("v4.b32", 16)])
def test_random_shared_accesses(form, size):
    rng = np.random.default_rng(size)
    for span, apart in ((256, 0), (2048, 0), (32768, 0), (256, 1), (256, 2), (2048, 2)):
        addresses = (rng.integers(0, span // size, 32) * size).tolist()
        addresses = [addresses[i & ~apart] for i in LANES]
        mask = int(rng.choice([0xFFFFFFFF, int(rng.integers(1, 1 << 32))]))
        for store in (False, True):
            expected = plain_wavefronts(size, addresses, mask, not store)
            assert shared(form, addresses, mask=mask, store=store)[0] == expected


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize(
    "form,addresses,count,ideal",
    [
        ("b32", [4 * i for i in LANES], 4, 4),
        ("b32", [16 + 4 * i for i in LANES], 5, 4),  # does not begin at a sector
        ("b32", [4 * (31 - i) for i in LANES], 4, 4),
        ("b32", [4 * (i * 5 % 32) for i in LANES], 4, 4),
        ("b32", [8 * i for i in LANES], 8, 4),
        ("b32", [32 * i for i in LANES], 32, 4),
        ("b32", [4096 * i for i in LANES], 32, 4),
        ("b32", [512] * 32, 1, 1),
        ("b32", [4 * (i // 4) for i in LANES], 1, 1),  # 32 different bytes
        ("b32", [1024 * (i // 16) + 4 * (i % 16) for i in LANES], 4, 4),
        ("b32", [1024 * (i % 2) + 4 * (i // 2) for i in LANES], 4, 4),  # two rows, lanes take turns
        ("b8", [i for i in LANES], 1, 1),
        ("b8", [3 + i for i in LANES], 2, 1),
        ("b16", [2 * i for i in LANES], 2, 2),
        ("b16", [30 + 2 * i for i in LANES], 3, 2),
        ("b64", [8 * i for i in LANES], 8, 8),
        ("v4.b32", [16 * i for i in LANES], 16, 16),
        ("v4.b32", [256 * (i // 4) + 16 * (i % 4) for i in LANES], 16, 16),
        ("v4.b32", [64 * i for i in LANES], 32, 16),
        ("v2.b64", [16 + 16 * i for i in LANES], 17, 16),
        ("v4.b32", [32] * 32, 1, 1),
    ],
)
def test_global_sectors(form, addresses, count, ideal, store):
    size = int(form.split("b")[-1]) // 8 * (int(form[1]) if form[0] == "v" else 1)
    assert sectors(form, addresses, store=store) == (count, ideal, 32 * size)


@pytest.mark.parametrize("mask", [0x1, 0x80000000, 0xFF, 0x0F0F0F0F, 0x55555555])
@pytest.mark.parametrize("stride", [4, 8, 32, 1024])
def test_global_sectors_of_some_lanes(stride, mask):
    active = [stride * i for i in LANES if mask >> i & 1]
    expected = (len({a // 32 for a in active}), -(-len(active) * 4 // 32), 4 * len(active))
    assert sectors("b32", [stride * i for i in LANES], mask=mask) == expected


@pytest.mark.parametrize("form,size", [("b8", 1), ("b16", 2), ("b32", 4), ("b64", 8), ("v4.b32", 16)])
def test_random_global_accesses(form, size):
    rng = np.random.default_rng(size)
    for span in (64, 1024, 65536):
        addresses = (rng.integers(0, span // size, 32) * size).tolist()
        mask = int(rng.choice([0xFFFFFFFF, int(rng.integers(1, 1 << 32))]))
        active = [a for i, a in enumerate(addresses) if mask >> i & 1]
        unique = len(set(active)) * size
        assert sectors(form, addresses, mask=mask) == (
            len({a // 32 for a in active}),
            -(-unique // 32),
            size * len(active),
        )


def test_generic_accesses_count_where_they_lead():
    body = """
    shl.b64 %rd4, %rd9, 3; cvta.shared.u64 %rd5, smem; add.u64 %rd5, %rd5, %rd4; add.u64 %rd6, %rd0, %rd4;
    mov.u32 %r1, 1; st.u32 [%rd5], %r1; st.u32 [%rd6], %r1; ld.u32 %r2, [%rd5]; ld.u32 %r2, [%rd6];
    .local .align 4 .b8 mine[4]; mov.u64 %rd7, mine; cvta.local.u64 %rd7, %rd7; st.u32 [%rd7], %r1;
    """
    report = launch(body, [np.zeros(64, np.uint32)])
    for kind in ("load", "store"):
        assert report["shared"][kind] == {"wavefronts": 2, "ideal": 1}
        assert report["global"][kind] == {"sectors": 8, "ideal": 4, "bytes": 128}
    assert report["instructions"]["by_class"]["load_generic"] == 2
    assert report["instructions"]["by_class"]["store_generic"] == 3


def test_local_constant_and_parameter_accesses_are_not_counted_as_global():
    body = """
    .local .align 4 .b8 mine[64]; st.local.u32 [mine+4], %r0; ld.local.u32 %r1, [mine+4]; ld.const.u32 %r1, [table];
    """
    report = launch(body, [np.zeros(4, np.uint32)], declarations=".const .align 4 .u32 table[4];")
    assert report["global"]["load"]["sectors"] == report["global"]["store"]["sectors"] == 0
    assert report["shared"]["load"]["wavefronts"] == 0
    classes = report["instructions"]["by_class"]
    assert [classes[name] for name in ("load_local", "store_local", "load_constant", "load_param")] == [1, 1, 1, 1]


def test_atomics_are_counted_apart():
    body = """
    shl.b64 %rd4, %rd9, 2; add.u64 %rd5, %rd0, %rd4; mov.u64 %rd6, smem; add.u64 %rd6, %rd6, %rd4;
    mov.u32 %r1, 1; red.global.add.u32 [%rd5], %r1; atom.global.add.u32 %r2, [%rd0], %r1;
    red.shared.add.u32 [%rd6], %r1; red.shared.add.u32 [smem], %r1;
    """
    report = launch(body, [np.zeros(32, np.uint32)])
    assert report["global"]["atomic"] == {"sectors": 5, "ideal": 5, "bytes": 256}
    assert report["shared"]["atomic"]["wavefronts"] == 1 + 32  # all lanes at one word wait for one another
    assert report["global"]["load"]["sectors"] == report["shared"]["load"]["wavefronts"] == 0
    assert report["instructions"]["by_class"]["atomic"] == 4


def test_a_vector_of_atomics_counts_all_of_its_elements():
    body = """
    shl.b64 %rd4, %rd9, 4; add.u64 %rd5, %rd0, %rd4; mov.u32 %r1, 0x3f800000;
    red.global.add.v4.f32 [%rd5], {%r1, %r1, %r1, %r1};
    atom.global.add.v2.f32 {%r2, %r3}, [%rd0], {%r1, %r1};
    """
    report = launch(body, [np.zeros(128, np.float32)])
    assert report["global"]["atomic"] == {"sectors": 16 + 1, "ideal": 16 + 1, "bytes": 32 * 16 + 32 * 8}
    assert report["instructions"]["by_class"]["atomic"] == 2


def test_async_copies_are_counted_apart():
    body = """
    shl.b64 %rd4, %rd9, 4; add.u64 %rd5, %rd0, %rd4; mov.u64 %rd6, smem; add.u64 %rd6, %rd6, %rd4;
    cp.async.cg.shared.global [%rd6], [%rd5], 16; cp.async.wait_all;
    """
    report = launch(body, [np.zeros(512, np.uint8)])
    assert report["shared"]["cp_async"]["wavefronts"] == 4
    assert report["shared"]["store"]["wavefronts"] == 0
    total = sum(report["global"].get(kind, {"sectors": 0})["sectors"] for kind in ("load", "cp_async"))
    assert total == 16


def test_counts_add_up_over_warps_blocks_and_loops():
    body = """
    mul.wide.u32 %rd4, %r0, 4; add.u64 %rd5, %rd0, %rd4; mov.u32 %r5, 0;
    LOOP: ld.global.u32 %r1, [%rd5]; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 5; @%p1 bra LOOP;
    """
    report = launch(body, [np.zeros(96, np.uint32)], block=96, grid=7)
    assert report["global"]["load"] == {"sectors": 4 * 3 * 7 * 5, "ideal": 4 * 3 * 7 * 5, "bytes": 128 * 3 * 7 * 5}
    assert report["instructions"]["by_class"]["load_global"] == 3 * 7 * 5


def test_an_instruction_without_lanes_counts_nothing():
    body = "setp.gt.u32 %p1, %r0, 99; @%p1 ld.global.u32 %r1, [%rd0]; @%p1 ld.shared.u32 %r1, [smem];"
    report = launch(body, [np.zeros(4, np.uint32)])
    assert report["global"]["load"] == {"sectors": 0, "ideal": 0, "bytes": 0}
    assert report["shared"]["load"]["wavefronts"] == 0 and "load_global" not in {
        k: v for k, v in report["instructions"]["by_class"].items() if v
    }
