"""The table of instructions: what it takes and what it refuses, with the words of a refusal, against NVIDIA's ptxas."""

import shutil
import subprocess

import cudart
import numpy as np
import pytest

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .pred p, q, skip;
    .reg .b16 h, i;
    .reg .b32 r, s, t, u;
    .reg .b64 d, e;
    .reg .f32 f, g;
    .reg .f64 w;
    .shared .align 16 .b8 tile[1024];
    setp.eq.u32 skip, 0, 0;
    @skip bra END;
"""
TAIL = """
END:
    ret;
}
"""
# Forms that ptxas and the simulator take.
VALID = """
add.s32 r, s, t
add.sat.s32 r, s, t
add.rn.ftz.f32 f, g, 0f3F800000
fma.rn.f64 w, w, w, w
lop3.b32 r, s, t, u, 0xEA
lop3.or.b32 r|p, s, t, u, 0xEA, q
lop3.and.b32 r|p, s, t, u, 0x80, !q
lop3.and.b32 _|p, s, t, u, 0x80, q
mov.u32 r, s
mov.b64 d, {r, s}
mov.b64 {r, s}, d
mov.u32 r, %tid.x
cvt.rn.f32.s32 f, r
cvt.rzi.s32.f32 r, f
cvt.f64.f32 w, f
cvt.u16.u32 h, r
cvta.to.global.u64 d, e
isspacep.global p, d
selp.b32 r, s, t, p
setp.lt.s32 p, r, s
setp.lt.and.s32 p|q, r, s, p
ld.global.u32 r, [d]
ld.volatile.shared.u32 r, [tile+4]
ld.relaxed.gpu.global.u32 r, [d]
ld.global.nc.L1::no_allocate.v4.u32 {r, s, t, u}, [d]
st.global.v2.u32 [d], {r, s}
atom.global.add.u32 r, [d], s
atom.acquire.gpu.global.cas.b32 r, [d], s, t
red.global.add.u32 [d], s
prefetch.global.L2 [d]
bar.sync 0
bar.sync 15
bar.sync r, 64
bar.arrive 1, 64
bar.red.popc.u32 r, 0, p
bar.red.and.pred p, 0, q
bar.warp.sync 0xffffffff
barrier.sync.aligned 0
membar.gl
createpolicy.fractional.L2::evict_last.b64 d
createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 d, 0.5
createpolicy.range.global.L2::evict_last.L2::evict_first.b64 d, [e], 0x100000, 0x200000
createpolicy.cvt.L2.b64 d, e
fence.acq_rel.gpu
fence.sc.sys
fence.proxy.async
cp.async.ca.shared.global [r], [d], 4
cp.async.cg.shared.global.L2::128B [r], [d], 16
cp.async.ca.shared.global [r], [d], 8, s
cp.async.commit_group
cp.async.wait_group 1
cp.async.wait_all
mbarrier.init.shared.b64 [tile], 32
mbarrier.arrive.shared.b64 d, [tile]
mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [tile], r
mbarrier.arrive_drop.noComplete.shared.b64 d, [tile], 2
mbarrier.expect_tx.relaxed.cta.shared.b64 [tile], r
mbarrier.test_wait.shared.b64 p, [tile], d
mbarrier.try_wait.parity.acquire.cta.shared.b64 p, [tile], r, s
mbarrier.pending_count.b64 r, d
cp.async.mbarrier.arrive.noinc.shared.b64 [tile]
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [d], r, [tile+512]
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [d], [tile], 64, e
cp.async.bulk.prefetch.L2.global [d], 64
cp.async.bulk.wait_group.read 1
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [d], [tile], 64
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [d], [tile], 64
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d], [tile], 128
fence.proxy.tensormap::generic.acquire.sys [d], 128
cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [d, {r}], [tile+512]
cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [d, {r, s, 4}], [tile+512], e
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [d, {r, s}], [tile]
cp.async.bulk.prefetch.tensor.2d.L2.global.tile [d, {r, s}]
cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group [d, {r, s, t, u, 0}], [tile]
fence.mbarrier_init.release.cluster
shfl.sync.up.b32 r|p, s, 1, 0, 0xffffffff
shfl.sync.idx.b32 r, s, t, 31, 0xffffffff
vote.sync.ballot.b32 r, p, 0xffffffff
match.any.sync.b32 r, s, 0xffffffff
redux.sync.add.s32 r, s, 0xffffffff
activemask.b32 r
elect.sync r|p, 0xffffffff
elect.sync _|p, r
mov.pred p, %is_explicit_cluster
mapa.shared::cluster.u32 r, tile, 1
mapa.u64 d, e, s
getctarank.shared::cluster.u32 r, s
barrier.cluster.arrive.relaxed.aligned
barrier.cluster.wait.acquire
st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [r], {f, g}, [s]
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [r], d, [s]
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r], [tile], 32, [s]
cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.s32 [r], [tile], 32, [s]
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [d], 32, [tile+64], h
stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [tile], {r, s, t, u}
griddepcontrol.launch_dependents
griddepcontrol.wait
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r, s}, [tile]
movmatrix.sync.aligned.m8n8.trans.b16 r, s
nanosleep.u32 100
alloca.u64 d, e, 16
stacksave.u64 d
stackrestore.u64 d
pmevent 1
tex.1d.v4.f32.s32 {f, g, f, g}, [d, {r}]
tex.base.2d.v4.u32.f32 {r, s, t, _}, [d, {f, g}]
tex.level.1d.v4.f32.s32 {f, g, f, g}, [d, {r}], r
tex.level.a2d.v4.f32.f32 {f, g, f, g}, [d, {r, f, g, g}], f
tex.grad.cube.v4.s32.f32 {r, s, t, u}|p, [d, {f, g, f, g}], {f, g, f, g}, {f, g, f, g}
tld4.r.2d.v4.f32.f32 {f, g, f, g}, [d, {f, g}]
tld4.a.2d.v4.u32.f32 {r, s, t, u}|p, [d, {f, g}]
txq.width.b32 r, [d]
txq.level.width.b32 r, [d], s
suq.height.b32 r, [d]
suq.array_size.b32 r, [d]
suld.b.2d.v2.b32.trap {r, s}, [d, {t, u}]
suld.b.1d.b8.zero {h}, [d, {r}]
sust.b.a1d.b16.clamp [d, {r, s}], {h}
sust.b.3d.cg.v4.b32.trap [d, {r, s, t, u}], {r, s, t, u}
trap
""".strip().splitlines()
# Forms that both refuse, and what the simulator says of them.
INVALID = {
    "createpolicy.nonsense.b64 d": "createpolicy has no modifier .nonsense",
    "createpolicy.fractional.L2::evict_last.b64 d, e, e": "it has 3 operands, not 1 or 2",
    "fence.nonsense.words": "fence has no modifier .nonsense; it takes .sc, .acq_rel, .acquire",
    "fence.acq_rel": "it needs .cta, .cluster, .gpu or .sys",
    "membar.nonsense": "membar has no modifier .nonsense; it takes .cta, .gl",
    "membar": "it needs .cta, .gl or .sys",
    "bra.nonsense END": "bra has no modifier .nonsense; it takes .uni",
    "ret.nonsense": "ret has no modifier .nonsense; it takes .uni",
    "exit.uni": "exit has no modifier .uni",
    "trap.sync": "trap has no modifier .sync",
    "trap r": "it has 1 operand, not 0",
    "alloca.b32 r, s": "alloca has no modifier .b32; it takes .u32",
    "stacksave.u64": "it has 0 operands, not 1",
    "stackrestore.s64 d": "stackrestore has no modifier .s64; it takes .u32",
    "nanosleep.u64 100": "nanosleep has no modifier .u64; it takes .u32",
    "bar.sync 16": "a barrier's number is 0 to 15, not 16",
    "bar.sync": "it has 0 operands, not 1 or 2",
    "bar.sync.nonsense 0": "bar has no modifier .nonsense",
    "bar.arrive 1": "it has 1 operand, not 2",
    "mov.u32 r, d": "a source must be a register as wide as .u32",
    "mov.u64 d, r": "a source must be a register as wide as .u64",
    "mov.u32 r": "it has 1 operand, not 2",
    "mov.nonsense.u32 r, s": "mov has no modifier .nonsense",
    "cvt.f32.s32 f, r": "it needs .rn, .rz, .rm or .rp",
    "cvt.s32.f32 r, f": "it needs .rni, .rzi, .rmi or .rpi",
    "cvt.f32.f64 f, w": "it needs .rn, .rz, .rm or .rp",
    "cvt.sat.u32.u16 r, h": "every value fits: there is no .sat",
    "cvt.rn.nonsense.f32.s32 f, r": "cvt has no modifier .nonsense",
    "add.nonsense.s32 r, s, t": "add has no modifier .nonsense; it takes ",
    "add.s32 r, s": "it has 2 operands, not 3",
    "add.s32 r, s, t, u": "it has 4 operands, not 3",
    "add.s32 r, s, d": "a source must be a register as wide as .s32",
    "fma.f32 f, f, f": "it has 3 operands, not 4",
    "lop3.b32 r, s, t, u": "it has 4 operands, not 5",
    "lop3.xor.b32 r|p, s, t, u, 1, q": "lop3 has no modifier .xor; it takes .b32, .or or .and",
    "lop3.b32 r, s, t, u, s": "operand 5 must be an integer constant",
    "ld.nonsense.u32 r, [d]": "ld has no modifier .nonsense",
    "ld.global.u32 r, s": "operand 2 must be an address",
    "ld.relaxed.acquire.gpu.global.u32 r, [d]": "only one of .weak, .volatile, .relaxed or .acquire",
    "st.global.nc.u32 [d], r": "st has no modifier .nc",
    "st.global.u32 r, s": "operand 1 must be an address",
    "atom.global.u32 r, [d], s": "it needs ",
    "atom.global.add.cas.u32 r, [d], s": ".cas does not go with its other modifiers",
    "red.global.exch.b32 [d], r": "red has no modifier .exch",
    "prefetch.L3 [d]": "prefetch has no modifier .L3; it takes .global, .local, .L1",
    "cp.async.cg.shared.global [r], [d], 4": "16 for .cg",
    "cp.async.wait_group r": "operand 1 must be an integer constant",
    "cp.async.wait_all 0": "it has 1 operand, not 0",
    "mbarrier.init.shared::cluster.b64 [tile], 1": "::cluster",
    "mbarrier.arrive.relaxed.shared.b64 d, [tile]": "it needs .cta or .cluster",
    "mbarrier.arrive.shared::cluster.b64 d, [tile]": "its destination is _",
    "mbarrier.arrive.noComplete.shared.b64 d, [tile]": "it has 2 operands, not 3",
    "mbarrier.test_wait.parity.shared.b64 p, [tile], r, s": "it has 4 operands, not 3",
    "cp.async.bulk.global.shared::cta.bulk_group [d], [tile], 24": "the size is a multiple of 16",
    "cp.async.bulk.wait_group r": "operand 1 must be an integer constant",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [d], [tile], 64": "not one of that type",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [d], [tile], 64": "it needs .noftz",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [d], [tile], 64": "only .add of 16-bit floats",
    "tensormap.replace.tile.global_stride.global.b1024.b64 [d], 4, e": "0 to 3 for global_stride",
    "tensormap.replace.tile.elemtype.b1024.b32 [d], r": "operand 2 must be an integer constant",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d], [tile], 64": "size is 128",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [d, {r}], [tile]": "as many coordinates as it has dimensions",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [tile, {r}], [tile]": "a tensor map has a generic address",
    "cp.async.bulk.tensor.6d.global.shared::cta.bulk_group [d, {r}], [tile]": "cp has no modifier .6d",
    "cp.async.bulk.tensor.1d.shared::cluster.global.bulk_group [tile], [d, {r}], [tile]": "does not go with",
    "cp.reduce.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [d, {r}], [tile]": "it needs .add, .min",
    "cp.async.bulk.prefetch.tensor.1d.L2.global [d]": "as many coordinates as it has dimensions",
    "shfl.sync.sideways.b32 r, s, 1, 0, 0xffffffff": "shfl has no modifier .sideways; it takes .sync, .up",
    "shfl.sync.up.b32 r, s, 1, 0": "it has 4 operands, not 5",
    "vote.sync.most.pred p, q, 0xffffffff": "vote has no modifier .most",
    "redux.sync.and.s32 r, s, 0xffffffff": ".and does not go",
    "activemask.b64 d": "activemask has no modifier .b64; it takes .b32",
    "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {r, s, t}, [tile]": "ldmatrix has no modifier .x3",
    "pmevent": "it has 0 operands, not 1",
    "elect.sync r, 0xffffffff": "no predicate",
    "fence.proxy.async.shared": "no modifier .shared",
    "fence.mbarrier_init.acquire.cluster": "",
    "membar.proxy.async": "membar has no modifier .async",
    "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [tile], {r}": "stmatrix has no modifier .m16n8",
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [tile], r": "the fragment is a vector",
    "griddepcontrol": "it needs .launch_dependents or .wait",
    "mapa.shared::cta.u32 r, s, t": "mapa has no modifier .shared::cta",
    "barrier.cluster.arrive.acquire": "",
    "barrier.cluster.wait.relaxed": "",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [r], {r, s, t, u}, [s]": ".async does not go with its other modifiers",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u64 [r], d, [s]": "not one of that type",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [r], [tile], 32, [s]": "",
    "isspacep.nonsense p, d": "isspacep has no modifier .nonsense",
    "tex.2d.v4.f32.f64 {f, g, f, g}, [d, {f, g}]": "tex has no modifier .f64; it takes .base, .1d",
    "tex.2d.v4.f32.f32 {f, g}, [d, {f, g}]": "it writes four registers",
    "tex.2d.v4.f32.f32 {f, g, f, g}, [d, {f}]": ".2d has 2 coordinates",
    "tex.cube.v4.f32.s32 {f, g, f, g}, [d, {r, s, t, u}]": "only one of .u32, .s32 or .f32",
    "tex.level.2d.v4.f32.f32 {f, g, f, g}, [d, {f, g}]": "it has 2 operands, not 3",
    "tld4.2d.v4.f32.f32 {f, g, f, g}, [d, {f, g}]": "it needs .r, .g, .b or .a",
    "tld4.r.1d.v4.f32.f32 {f, g, f, g}, [d, {f}]": "tld4 has no modifier .1d",
    "txq.nonsense.b32 r, [d]": "txq has no modifier .nonsense; it takes .width",
    "txq.width.b64 e, [d]": "txq has no modifier .b64",
    "suq.level.width.b32 r, [d], s": "suq has no modifier .level",
    "suq.depth.b64 d, [d]": "suq has no modifier .b64",
    "suld.b.1d.b8 {h}, [d, {r}]": "it needs .trap, .clamp or .zero",
    "suld.b.1d.v4.b64.zero {d, e, d, e}, [d, {r}]": "a lane moves at most 16 bytes",
    "sust.b.2d.b32.trap [d, {r, s}]": "it has 1 operand, not 2",
    "sust.b.2d.v3.b32.trap [d, {r, s}], {r, s, t}": "sust has no modifier .v3",
}


def text_of(form):
    return f"{HEAD}    {form};{TAIL}"


def simulated(form):
    """The simulator's complaint; empty where it takes the form. Nothing is executed: the form is jumped over."""
    result = cudart.run_ptx(text_of(form), "kernel", 1, 1, args=[np.zeros(1, np.uint64)])
    return "" if result.ok else result.stderr + result.error_string


@pytest.fixture(scope="module")
def assembled(tmp_path_factory):
    """ptxas's complaint about a form; empty where it takes it."""
    ptxas = shutil.which("ptxas")
    if not ptxas:
        pytest.skip("there is no ptxas on PATH: it comes with the CUDA Toolkit's nvcc")
    source = tmp_path_factory.mktemp("forms") / "form.ptx"

    def assemble(form):
        source.write_text(text_of(form))
        command = [ptxas, "-arch=sm_90", "-O0", str(source), "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return "" if done.returncode == 0 else done.stderr or "refused"

    return assemble


@pytest.mark.simulator_only
@pytest.mark.parametrize("form", VALID)
def test_takes(form):
    assert simulated(form) == "", f"{form} is PTX"


@pytest.mark.simulator_only
@pytest.mark.parametrize(("form", "words"), INVALID.items())
def test_refuses_with_words(form, words):
    complaint = simulated(form)
    assert complaint, f"{form} is no PTX, and the simulator lowers it"
    assert words in complaint
    assert f"{form.split()[0]} (PTX line 15" in complaint, "which instruction it is, and where"


@pytest.mark.long
def test_ptxas_agrees(assembled):
    wrong = [f"ptxas refuses {form}: {assembled(form)}" for form in VALID if assembled(form)]
    wrong += [f"ptxas takes {form}" for form in INVALID if not assembled(form)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("operation", ["or", "and"])
@pytest.mark.parametrize("table", [0x80, 0xEA, 0x00, 0xFF])
def test_lop3_with_a_predicate(operation, table):
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(0, 2**32, 64, np.uint32) & rng.integers(0, 4, 64).astype(np.uint32) for _ in range(3))
    text = f""".version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 out, .param .u64 flags)
{{
    .reg .pred p, q, guard;
    .reg .b32 i, a, b, c, r, s;
    .reg .b64 d, e;
    mov.u32 i, %tid.x;
    mul.wide.u32 e, i, 4;
    ld.param.u64 d, [pa];    add.u64 d, d, e;    ld.global.u32 a, [d];
    ld.param.u64 d, [pb];    add.u64 d, d, e;    ld.global.u32 b, [d];
    ld.param.u64 d, [pc];    add.u64 d, d, e;    ld.global.u32 c, [d];
    and.b32 s, i, 1;
    setp.eq.u32 q, s, 1;
    setp.lt.u32 guard, i, 48;
    mov.u32 r, 77;
    setp.ne.u32 p, 0, 0;
    @guard lop3.{operation}.b32 r|p, a, b, c, {table}, q;
    selp.u32 s, 1, 0, p;
    ld.param.u64 d, [out];    add.u64 d, d, e;    st.global.u32 [d], r;
    ld.param.u64 d, [flags];    add.u64 d, d, e;    st.global.u32 [d], s;
    ret;
}}
"""
    empty = np.zeros(64, np.uint32)
    outputs = cudart.run_ptx(text, "kernel", 1, 64, args=[a, b, c, empty, empty]).check().outputs
    want = np.zeros(64, np.uint32)
    for k in range(8):
        if table >> k & 1:
            want |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    odd = np.arange(64) % 2 == 1
    flags = (want != 0) | odd if operation == "or" else (want != 0) & odd
    guard = np.arange(64) < 48
    np.testing.assert_array_equal(outputs[3], np.where(guard, want, 77))
    np.testing.assert_array_equal(outputs[4], np.where(guard, flags, 0))
