"""Random kernels in PTX whose threads wait for each other, rightly or not, and do what is reported in between."""

import random

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 where)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %a<3>;
    .shared .align 8 .b8 memory[64];
    ld.param.u64 %a0, [where];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
"""

# {n}, {m}: small numbers; {flag}: the offset of a flag; {count}: threads; {mask}: lanes; {id}: of the statement
STATEMENTS = [
    "bar.sync {n};",
    "bar.sync {n}, {count};",
    "bar.arrive {n}, {count};",
    "barrier.sync {n}, {count};",
    "barrier.cluster.arrive;",
    "barrier.cluster.wait;",
    "bar.warp.sync {mask};",
    "shfl.sync.idx.b32 %r2, %r0, 1, 31, {mask};",
    "vote.sync.any.pred %p1, %p0, {mask};",
    "mbarrier.init.shared.b64 [memory], {m};",
    "mbarrier.inval.shared.b64 [memory];",
    "mbarrier.arrive.shared.b64 _, [memory];",
    "mbarrier.arrive.expect_tx.shared.b64 _, [memory], 16;",
    "again{id}: mbarrier.try_wait.parity.shared.b64 %p1, [memory], {n}; @!%p1 bra again{id};",
    "mov.u32 %r3, 0; again{id}: mbarrier.test_wait.parity.shared.b64 %p1, [memory], {n}; add.u32 %r3, %r3, 1;"
    " setp.gt.u32 %p2, %r3, 100; or.pred %p1, %p1, %p2; @!%p1 bra again{id};",
    "again{id}: ld.volatile.global.u32 %r2, [%a0+{flag}]; setp.eq.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: ld.global.u32 %r2, [%a0+{flag}]; setp.eq.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: atom.global.cas.b32 %r2, [%a0+{flag}], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: ld.acquire.gpu.global.u32 %r2, [%a0+{flag}]; nanosleep.u32 20; setp.lt.u32 %p1, %r2, {m};"
    " @%p1 bra again{id};",
    "again{id}: mov.u32 %r2, %clock; setp.ne.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: ld.volatile.shared.u32 %r2, [memory+32]; setp.ne.u32 %p1, %r2, {n}; @%p1 bra again{id};",
    "again{id}: bra again{id};",
    "again{id}: atom.global.add.u32 %r2, [%a0+{flag}], 1; st.global.u32 [%a0+1048576], %r2; bra again{id};",
    "again{id}: st.shared.u32 [memory+4096], %r0; add.u32 %r0, %r0, 1; setp.ne.u32 %p1, %r0, 0; @%p1 bra again{id};",
    "st.volatile.global.u32 [%a0+{flag}], {m};",
    "atom.global.add.u32 %r2, [%a0+{flag}], 1;",
    "atom.global.exch.b32 %r2, [%a0+{flag}], 0;",
    "membar.gl;",
    "st.global.u32 [%a0+1048576], %r0;",
    "ld.global.u32 %r2, [%a0+2];",
    "st.shared.u32 [memory+32], %r0;",
    "ld.shared.u32 %r2, [memory+36]; st.global.u32 [%a0+128], %r2;",
    "cp.async.ca.shared.global [memory+16], [%a0], 4; cp.async.commit_group;",
    "cp.async.wait_group 0;",
    "exit;",
]
GUARDS = [
    "",
    "setp.lt.u32 %p0, %r0, {n}; @!%p0 bra behind{id};",
    "and.b32 %r4, %r0, 31; setp.gt.u32 %p0, %r4, {m}; @!%p0 bra behind{id};",
    "setp.ge.u32 %p0, %r0, 32; @!%p0 bra behind{id};",
    "setp.eq.u32 %p0, %r1, {n}; @!%p0 bra behind{id};",
]


def waiting_kernel(seed):
    """PTX of `kernel`, which takes the address of 256 bytes, and the numbers of its blocks and threads."""
    rng = random.Random(seed)
    lines = []
    for number in range(rng.randint(2, 9)):
        names = {
            "id": number,
            "n": rng.randint(0, 2),
            "m": rng.randint(1, 30),
            "flag": 4 * rng.randint(0, 7),
            "count": rng.choice([32, 64, 96, 4096, 40]),
            "mask": rng.choice([-1, -1, 0xFFFF, 1]),
        }
        text = rng.choice(GUARDS) + " " + rng.choice(STATEMENTS) + " behind{id}:"
        lines.append("    " + text.format(**names))
    text = HEAD + "\n".join(lines) + "\n    ret;\n}\n"
    return text, rng.choice([1, 2, 70]), rng.choice([32, 64, 96, 160])
