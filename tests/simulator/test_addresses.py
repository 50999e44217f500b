"""Wrong addresses are found, and said in words that help; no address reaches the host's memory."""

import random

import cudart
import numpy as np
import pytest
from memory_kernels import run


def failure(body, arrays=None, **keywords):
    result = run(body, [np.zeros(100, np.uint8)] if arrays is None else arrays, report=True, **keywords)
    assert not result.ok
    (hazard,) = result.hazards
    return hazard


WRONG = [
    (
        "ld.global.u32 %r1, [%rd0+100]",
        "out_of_bounds",
        0,
        "reads 4 bytes at",
        "0 bytes past the end of the 100-byte allocation",
    ),
    (
        "st.global.u32 [%rd0+200], %r1",
        "out_of_bounds",
        0,
        "writes 4 bytes at",
        "100 bytes past the end of the 100-byte",
    ),
    (
        "ld.global.u64 %rd1, [%rd0+96]",
        "out_of_bounds",
        0,
        "reads 8 bytes",
        "partly past the end of the 100-byte allocation",
    ),
    ("ld.global.u32 %r1, [%rd0+-4]", "out_of_bounds", 0, "reads 4 bytes", "4 bytes before the 100-byte allocation"),
    ("ld.global.u32 %r1, [%rd0+2]", "misaligned", 0, "reads 4 bytes", "2 bytes past a multiple of 4"),
    (
        "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd0+8]",
        "misaligned",
        0,
        "reads 16 bytes",
        "8 bytes past a multiple of 16",
    ),
    ("ld.global.u32 %r1, [0]", "invalid_address", 0, "at 0x0", "null pointer"),
    ("st.u8 [8], %rs1", "invalid_address", 0, "at 0x8", "null pointer"),
    ("red.global.add.u32 [%rd0+100], 1", "out_of_bounds", 0, "updates 4 bytes", "past the end"),
    ("atom.global.add.u32 %r1, [%rd0+1], 1", "misaligned", 0, "updates 4 bytes", "1 byte past a multiple of 4"),
    ("red.global.add.v2.f32 [%rd0+4], {%r1, %r2}", "misaligned", 0, "updates 4 bytes", "4 bytes past a multiple of 8"),
    (
        "ld.shared.u32 %r1, [smem+256]",
        "out_of_bounds",
        0,
        "reads 4 bytes at 0x100",
        "0 bytes past the end of the block's 256 bytes",
    ),
    ("st.shared.u64 [smem+252], %rd1", "out_of_bounds", 0, "writes 8 bytes", "reaches past the end"),
    ("mov.u32 %r1, -16; ld.shared.u32 %r2, [%r1]", "out_of_bounds", 0, "reads 4 bytes", "16 bytes before the start"),
    ("ld.shared.u32 %r1, [smem+6]", "misaligned", 0, "reads 4 bytes at 0x6", "2 bytes past a multiple of 4"),
    (
        "ld.shared.u32 %r1, [%rd0]",
        "invalid_address",
        0,
        "reads 4 bytes",
        "an address of global memory, not of shared memory",
    ),
    (
        "cvta.shared.u64 %rd5, 16; ld.global.u32 %r1, [%rd5]",
        "invalid_address",
        0,
        "reads 4 bytes",
        "a generic address in shared memory",
    ),
    ("cvta.shared.u64 %rd5, 16; ld.shared.u32 %r1, [%rd5]", "invalid_address", 0, "reads", "see cvta.to.shared"),
    (
        "cvta.shared.u64 %rd5, 256; ld.u32 %r1, [%rd5]",
        "out_of_bounds",
        0,
        "reads 4 bytes",
        "past the end of the block's 256 bytes",
    ),
    (
        ".local .align 8 .b8 mine[64]; ld.local.u32 %r1, [mine+4096]",
        "out_of_bounds",
        0,
        "reads 4 bytes",
        "outside of the thread's local memory",
    ),
    ("st.global.u32 [table], %r1", "invalid_address", 0, "writes 4 bytes", "constant memory cannot be written"),
    ("atom.add.u32 %r1, [table], 1", "invalid_address", 0, "updates 4 bytes", "constant memory cannot be written"),
    ("ld.const.u32 %r1, [%rd0]", "invalid_address", 0, "reads 4 bytes", "not in constant memory"),
    ("discard.global.L2 [%rd0], 128", "out_of_bounds", 0, "reads 128 bytes", "by 28 bytes"),
    ("cp.async.ca.shared.global [smem], [%rd0+98], 4", "out_of_bounds", 0, "reads 4 bytes", "by 2 bytes"),
    (
        "cp.async.cg.shared.global [smem+8], [%rd0], 16",
        "misaligned",
        0,
        "writes 16 bytes at 0x8",
        "8 bytes past a multiple of 16",
    ),
]


@pytest.mark.simulator_only
@pytest.mark.parametrize("text,kind,lane,access,why", WRONG, ids=[f"{w[1]}-{w[0][:40]}" for w in WRONG])
def test_wrong_addresses_are_named(text, kind, lane, access, why):
    text = f"setp.eq.u32 %p1, %r0, 0; @!%p1 bra DONE; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.b64 %rd1, 0; mov.b16 %rs1, 0; {text}; DONE:"
    hazard = failure(text, shared=256, declarations=".const .align 4 .u32 table[4];")
    assert hazard["kind"] == kind and hazard["lane"] == lane
    assert access in hazard["message"] and why in hazard["message"], hazard["message"]


FORGOTTEN = r"""
__global__ void reversed(int *out) {
    extern __shared__ int tile[];
#if FRONT
    __shared__ int front[32];
    front[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    tile[threadIdx.x] = front[31 - threadIdx.x];
#else
    tile[threadIdx.x] = out[threadIdx.x];
#endif
    __syncthreads();
    out[threadIdx.x] = tile[31 - threadIdx.x];
}
int main() {
    int *out;
    cudaMalloc(&out, 128);
    reversed<<<1, 32, BYTES>>>(out);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


@pytest.mark.simulator_only
@pytest.mark.parametrize("front", (0, 1))  # whether there is static shared memory, too
def test_a_launch_that_forgets_dynamic_shared_memory_is_told(front):
    flags = [f"-DFRONT={front}"]
    result = cudart.run_program(FORGOTTEN, flags=[*flags, "-DBYTES=0"], report=True)
    (hazard,) = result.hazards
    assert hazard["kind"] == "out_of_bounds"
    assert ("past the end of the block's 128 bytes" if front else "the block has no shared memory") in hazard["message"]
    assert (
        "(the launch gives tile no bytes: they are the third number in <<<grid, block, bytes>>>)" in hazard["message"]
    )
    assert not cudart.run_program(FORGOTTEN, flags=[*flags, "-DBYTES=128"], report=True).check().hazards


@pytest.mark.simulator_only
def test_the_first_bad_lane_is_named_and_the_others_counted():
    body = "shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; ld.global.u32 %r1, [%rd10];"
    hazard = failure(body)
    assert hazard["lane"] == 25 and "(and 6 more lanes)" in hazard["message"]


@pytest.mark.simulator_only
def test_warnings_let_the_good_lanes_go_on():
    body = """
    shl.b64 %rd8, %rd9, 2; add.u64 %rd10, %rd0, %rd8; add.u64 %rd11, %rd1, %rd8; mov.u32 %r1, 9;
    ld.global.u32 %r1, [%rd10]; st.global.u32 [%rd11], %r1;
    """
    result = run(
        body, [np.arange(20, dtype=np.uint32), np.zeros(32, np.uint32)], env={"WARPSIM_HAZARDS": "warn"}, report=True
    )
    assert [h["kind"] for h in result.hazards] == ["out_of_bounds"]
    assert result.outputs[1].tolist() == list(range(20)) + [9] * 12


@pytest.mark.long
@pytest.mark.simulator_only
def test_freed_memory_is_named():
    source = r"""
    __global__ void touch(int *p) { p[3] = 1; }
    int main() {
        int *p, *q;
        cudaMalloc(&p, 4000);
        cudaMalloc(&q, 4000);
        cudaFree(p);
        touch<<<1, 1>>>(p);
        return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
    }
    """
    result = cudart.run_program(source, report=True)
    assert result.returncode == 0, result.stderr
    assert "4000-byte allocation" in result.hazards[0]["message"] and "freed" in result.hazards[0]["message"]


NO_DEVICE_MEMORY = r"""
__global__ void kernel(int *x) { *x = 1; }
int main(int argc, char **) {
    int of_the_host = 0;
    kernel<<<1, 1>>>(argc > 1 ? (int *)(1 << 20) : &of_the_host);
    return cudaDeviceSynchronize() != cudaErrorIllegalAddress || of_the_host;
}
"""


@pytest.mark.parametrize("arguments, words", (([], "not device memory: a host pointer"), (["any"], "never allocated")))
def test_a_pointer_to_the_hosts_memory_is_told_from_one_to_nothing(arguments, words):
    result = cudart.run_program(NO_DEVICE_MEMORY, arguments, report=True).check()
    (hazard,) = result.hazards
    assert words in hazard["message"]


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", range(6))
def test_random_addresses_never_reach_the_host(seed):
    """Every kind of access at addresses from everywhere: each launch ends with an answer, none with a dead process."""
    rng = random.Random(seed)
    accesses = [
        "ld{s}.u8 %rs1, [{a}]",
        "ld{s}.v4.u32 {{%r10,%r11,%r12,%r13}}, [{a}]",
        "st{s}.u64 [{a}], %rd30",
        "st{s}.v2.u16 [{a}], {{%rs2,%rs3}}",
        "atom{s}.add.u32 %r14, [{a}], %r15",
        "red{s}.add.u64 [{a}], %rd30",
        "ld{s}.f64 %rd31, [{a}]",
        "atom{s}.cas.b64 %rd32, [{a}], %rd30, %rd31",
    ]
    spaces = ["", ".global", ".shared", ".local", ".const", ".volatile.global", ".volatile.shared"]
    body = "mov.u64 %rd30, 1; mov.u64 %rd31, 2; mov.u32 %r15, 3; mov.b16 %rs2, 4; mov.b16 %rs3, 5;\n.local .align 8 .b8 mine[64];\n"
    body += "mov.u64 %rd40, %rd0; mov.u64 %rd41, smem; mov.u64 %rd42, mine; cvta.shared.u64 %rd43, smem; cvta.local.u64 %rd44, mine; mov.u64 %rd45, 0;\n"
    for _ in range(60):
        text, space = rng.choice(accesses), rng.choice(spaces)
        if text.startswith(("atom", "red")) and space not in ("", ".global", ".shared"):
            space = ""
        if text.startswith("st") and space == ".const":
            space = ".global"
        offset = rng.choice([0, 8, 56, 64, 4096, 2**20, 2**31, -8, -(2**31), rng.getrandbits(31)])
        body += f"""
        mad.lo.u64 %rd50, %rd9, {rng.choice([0, 4, 8, 1 << 20, 1 << 56, (1 << 63) + 8])}, %rd{rng.randint(40, 45)};
        xor.b64 %rd50, %rd50, {rng.choice([0, 0, 0, 1, 1 << 40, 1 << 56, 1 << 57, rng.getrandbits(62)])};
        {text.format(s=space, a=f"%rd50+{offset}")};"""
    env = {"WARPSIM_HAZARDS": "warn", "WARPSIM_TIMEOUT_S": 20}
    result = run(body, [np.zeros(64, np.uint8)], shared=256, env=env)
    assert result.error_name != "workerDied", result.error_string
    assert not run(body, [np.zeros(64, np.uint8)], shared=256).ok
