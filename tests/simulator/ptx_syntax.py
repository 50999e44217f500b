"""Syntax lines of the PTX manual with operands for them, as ptx_forms.py expands them."""

import itertools
import re

BITS = {"f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "f32x2": 64, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16}


def bits(kind):
    if kind in BITS:
        return BITS[kind]
    number = re.fullmatch(r"[usbf](8|16|32|64|128)|bf(16)", kind)
    return int(number[1] or number[2]) if number else 0


INTEGER = "{u16,u32,u64,s16,s32,s64}"
INTEGER8 = "{u8,u16,u32,u64,s8,s16,s32,s64}"
FLOAT = "{f16,f16x2,bf16,bf16x2,f32,f32x2,f64}"
BIT = "{b16,b32,b64}"
ROUND = "{.rn,.rz,.rm,.rp}"
COMPARE = "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs,equ,neu,ltu,leu,gtu,geu,num,nan}"
ALL = "{b16,b32,b64,u16,u32,u64,s16,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}"
MEMORY = "{b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}"
SPACES = "{.global,.shared,.shared::cta,.local,.const,.param}"
L2 = "{.L2::evict_first,.L2::evict_last,.L2::evict_normal}"
SIZES = "{.L2::64B,.L2::128B,.L2::256B}"
SHARED = "{.shared,.shared::cta,.shared::cluster}"
SCOPES = "{.cta,.cluster,.gpu,.sys}"


def tensor_copy_lines():
    """Coordinates are as many as there are dimensions, and in some lines one less."""
    shared = "{.shared,.shared::cta,.shared::cluster}"
    bytes_, hint = "{.mbarrier::complete_tx::bytes}", "{.L2::cache_hint}"
    operations = "{.add,.min,.max,.inc,.dec,.and,.or,.xor}"
    im2col = "{.im2col,.im2col::w,.im2col::w::128}"
    for dimensions in range(1, 6):
        name = f"tensor.{dimensions}d"
        at = "{" + ", ".join(f"r{k + 10}" for k in range(dimensions)) + "}"
        offsets = "{" + ", ".join(f"h{k}" for k in range(max(1, dimensions - 2))) + "}"
        load, store = f"cp.async.bulk.{name}{shared}.global", f"cp.async.bulk.{name}.global{{.shared,.shared::cta}}"
        yield f"{load}{{.tile}}{bytes_}", f"[r1], [d1, {at}], [r2]"
        yield f"{load}.tile.mbarrier::complete_tx::bytes.L2::cache_hint", f"[r1], [d1, {at}], [r2], d2"
        yield f"{load}.mbarrier::complete_tx::bytes{hint}", f"[r1], [d1, {at}], [r2]"
        yield f"{load}.mbarrier::complete_tx::bytes.multicast::cluster", f"[r1], [d1, {at}], [r2], h1"
        yield f"{load}{im2col}.mbarrier::complete_tx::bytes", f"[r1], [d1, {at}], [r2], {offsets}"
        yield (
            f"{load}{im2col}.mbarrier::complete_tx::bytes.multicast::cluster",
            f"[r1], [d1, {at}], [r2], {offsets}, h1",
        )
        yield f"{store}{{.tile,.im2col_no_offs}}{{.bulk_group}}", f"[d1, {at}], [r1]"
        yield f"{store}.tile.bulk_group.L2::cache_hint", f"[d1, {at}], [r1], d2"
        yield f"{store}.bulk_group", "[d1, {r1, r2}], [r1]"
        reduce = f"cp.reduce.async.bulk.{name}.global.shared::cta{operations}"
        yield f"{reduce}{{.tile,.im2col_no_offs}}.bulk_group", f"[d1, {at}], [r1]"
        yield f"{reduce}.tile{{.bulk_group}}.L2::cache_hint", f"[d1, {at}], [r1], d2"
        prefetch = f"cp.async.bulk.prefetch.{name}{{.L2}}{{.global}}"
        yield f"{prefetch}{{.tile}}", f"[d1, {at}]"
        yield f"{prefetch}.tile.L2::cache_hint", f"[d1, {at}], d2"
        yield f"{prefetch}{im2col}", f"[d1, {at}], {offsets}"


LINES = [
    # integers
    (f"{{add,sub}}{{.sat}}.{INTEGER}", "$0, $02, $03"),
    ("{add,sub,min,max}{.relu}{.sat}.{u16x2,s16x2}", "$0, $02, $03"),
    ("{add,sub,addc,subc}{.cc}.{u32,s32,u64,s64,u16}", "$0, $02, $03"),
    (f"mul.{{lo,hi}}.{INTEGER}", "$0, $02, $03"),
    (f"mul.wide.{INTEGER}", "$w, $02, $03"),
    (f"mul{{.sat}}.{INTEGER}", "$0, $02, $03"),
    (f"mad.{{lo,hi}}{{.sat}}{{.cc}}.{INTEGER}", "$0, $02, $03, $04"),
    (f"mad.wide{{.sat}}.{INTEGER}", "$w, $02, $03, $w4"),
    ("madc.{lo,hi}{.cc}.{u32,s32,u64,s64,u16}", "$0, $02, $03, $04"),
    ("mul24.{lo,hi,wide}{.sat}.{u32,s32,u16}", "$0, $02, $03"),
    ("mad24.{lo,hi}{.sat}.{u32,s32,u16}", "$0, $02, $03, $04"),
    (f"sad.{INTEGER}", "$0, $02, $03, $04"),
    (f"{{div,rem,min,max}}{{.relu}}.{INTEGER}", "$0, $02, $03"),
    (f"{{abs,neg,cnot}}.{INTEGER8}", "$0, $02"),
    (f"{{popc,clz}}.{BIT}", "r1, $02"),
    ("bfind{.shiftamt}.{u32,s32,u64,s64,u16}", "r1, $02"),
    ("fns.b32", "r1, r2, r3, r4"),
    (f"brev.{BIT}", "$0, $02"),
    ("bfe.{u32,s32,u64,s64,u16,b32}", "$0, $02, r3, r4"),
    ("bfi.{b16,b32,b64,u32}", "$0, $02, $03, r4, r5"),
    ("szext.{wrap,clamp}.{u32,s32,u64}", "r1, r2, r3"),
    ("bmsk.{wrap,clamp}.{b32,b64}", "r1, r2, r3"),
    ("dp4a.{u32,s32}.{u32,s32}", "r1, r2, r3, r4"),
    ("dp2a{.lo,.hi}.{u32,s32}.{u32,s32}", "r1, r2, r3, r4"),
    # logic
    ("{and,or,xor,not}.{pred,b8,b16,b32,b64,b128,u32}", "$0, $02, $03"),
    ("not.{pred,b8,b16,b32,b64,u32}", "$0, $02"),
    (f"cnot.{BIT}", "$0, $02"),
    ("shl.{b16,b32,b64,u32}", "$0, $02, r3"),
    ("shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64}", "$0, $02, r3"),
    ("shf{.l,.r}{.clamp,.wrap}.{b32,b64}", "$0, $02, $03, r4"),
    ("lop3.b32", "r1, r2, r3, r4, 0x1a"),
    ("lop3{.or,.and}.b32", "r1|p, r2, r3, r4, 0x1a, q"),
    ("prmt{.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}.b32", "r1, r2, r3, r4"),
    ("prmt.b32{.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "r1, r2, r3, r4"),
    # floats
    (f"{{add,sub,mul}}{ROUND}{{.ftz}}{{.sat}}.{FLOAT}", "$0, $02, $03"),
    (f"{{fma,mad}}{ROUND}{{.ftz}}{{.sat}}{{.relu}}{{.oob}}.{FLOAT}", "$0, $02, $03, $04"),
    ("{add,sub}{.rn,.rz}{.sat}.f32.{f16,bf16}", "r1, h2, r3"),
    ("fma{.rn,.rz}{.sat}.f32.{f16,bf16}", "r1, h2, h3, r4"),
    ("{fma,add,sub,mul}{.rn}{.sat}.{bf16,f16,f32}.{bf16,f16,f32}", "$0, $02, $03, $04"),
    (f"div{{.approx,.full,.rn,.rz,.rm,.rp}}{{.ftz}}.{FLOAT}", "$0, $02, $03"),
    (f"{{rcp,sqrt}}{{.approx,.rn,.rz,.rm,.rp}}{{.ftz}}.{FLOAT}", "$0, $02"),
    (f"{{rsqrt,sin,cos,lg2,ex2,tanh}}{{.approx}}{{.ftz}}.{FLOAT}", "$0, $02"),
    (f"{{abs,neg}}{{.ftz}}.{FLOAT}", "$0, $02"),
    (f"{{min,max}}{{.ftz}}{{.NaN}}{{.xorsign}}{{.abs}}.{FLOAT}", "$0, $02, $03"),
    ("{min,max}{.ftz}{.NaN}{.abs}.{f32,f64,f16}", "$0, $02, $03, $04"),
    (f"copysign.{FLOAT}", "$0, $02, $03"),
    ("testp.{finite,infinite,number,notanumber,normal,subnormal}.{f16,f32,f64}", "p, $02"),
    # comparisons and selections
    (f"setp.{COMPARE}{{.ftz}}.{ALL}", "p, $02, $03"),
    (f"setp.{COMPARE}{{.ftz}}.{ALL}", "p|q, $02, $03"),
    ("setp.{eq,ltu,lo,nan}.{and,or,xor}{.ftz}." + ALL, "p|q, $02, $03, !q"),
    ("setp.{eq,ge}.{and,or,xor}{.ftz}." + ALL, "p, $02, $03, q"),
    (f"set.{COMPARE}{{.ftz}}.{{u32,s32,f32,u16,s16,f16,bf16,u64}}.{ALL}", "$1, $02, $03"),
    ("set.{eq,gt,ls,neu}{.and,.or,.xor}{.ftz}.{u32,s32,f32,u16,s16,f16,bf16,f16x2,bf16x2}." + ALL, "$1, $02, $03, q"),
    ("set.{eq,gt,ltu}{.ftz}.{f16x2,bf16x2,u32}.{f16x2,bf16x2}", "$1, $02, $03"),
    (f"selp.{ALL}", "$0, $02, $03, p"),
    ("selp.{pred,b8,b128}", "$0, $02, $03, p"),
    (f"slct{{.ftz}}.{ALL}.{{s32,f32,u32,f16}}", "$1, $12, $13, $04"),
    # moves and conversions
    ("mov.{pred,b8,b16,b32,b64,b128,u8,u16,u32,u64,s16,s32,s64,f16,bf16,f16x2,f32,f64}", "$0, $02"),
    ("mov.b32", "<h2>, r1"),
    ("mov.b64", "<h4>, d1"),
    ("mov.b64", "<r2>, d1"),
    ("mov.b128", "<d2>, x1"),
    ("mov.{b16,b32,b64,b128,u32,f32,u64,f64}", "$0, <h4>"),
    ("mov.{b16,b32,b64,b128,u32,f32,u64,f64}", "$0, <h2>"),
    ("mov.{b16,b32,b64,b128,u32,f32,u64,f64}", "$0, <r2>"),
    ("mov.{b64,b128}", "$0, <r4>"),
    ("mov.{b128,b64}", "$0, <d2>"),
    ("cvta{.to}.{global,shared,shared::cta,shared::cluster,local,const,param,param::entry}.{u32,u64}", "$0, $02"),
    ("isspacep.{global,shared,shared::cta,shared::cluster,local,const,param,param::entry}", "p, d1"),
    ("istypep.{texref,samplerref,surfref}", "p, d1"),
    (
        "cvt{.rn,.rz,.rm,.rp,.rni,.rzi,.rmi,.rpi,.rna}{.ftz}{.sat}."
        "{u8,u16,u32,u64,s8,s16,s32,s64,f16,bf16,f32,f64}.{u8,u16,u32,u64,s8,s16,s32,s64,f16,bf16,f32,f64}",
        "$1, $02",
    ),
    ("cvt{.rn,.rz,.rna}{.relu}{.satfinite}{.ftz}.{f16,bf16,tf32}.{f32,f16,bf16,f64}", "$1, $02"),
    ("cvt{.rn,.rz}{.satfinite}{.relu}{.ftz}.{f16x2,bf16x2,e4m3x2,e5m2x2}.f32", "$1, r2, r3"),
    ("cvt{.rn,.rz}{.satfinite}{.relu}.{f16x2,bf16x2,e4m3x2,e5m2x2}.{f16x2,bf16x2,e4m3x2,e5m2x2}", "$1, $02"),
    ("cvt.pack{.sat}.{u2,s2,u4,s4,u8,s8,u16,s16,u32}.{s32,u32}", "r1, r2, r3"),
    ("cvt.pack{.sat}.{u2,s2,u4,s4,u8,s8,u16,s16}.{s32,u32}.{b32,u32}", "r1, r2, r3, r4"),
    # memory
    (f"ld{SPACES}.{MEMORY}", "$0, [d1]"),
    (f"ld{SPACES}{{.v2,.v4}}.{MEMORY}", "{{$00, $01}}, [d1]"),
    (f"ld{SPACES}.v4.{MEMORY}", "{{$00, $01, $02, $03}}, [d1]"),
    (f"ld{{.weak,.volatile,.relaxed,.acquire}}{{.mmio}}{SCOPES}{SPACES}.b32", "r1, [d1]"),
    (f"ld{{.weak,.volatile}}{SPACES}{{.ca,.cg,.cs,.lu,.cv}}{{.nc}}.b32", "r1, [d1]"),
    (
        "ld.global{.nc}{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate}"
        + f"{L2}{SIZES}.b64",
        "d2, [d1]",
    ),
    (f"ld.global{{.ca,.cg}}{{.nc}}.L2::cache_hint{SIZES}.b64", "d2, [d1], d3"),
    ("ld.global{.L2::evict_first}{.v8}.{b32,f32,u32}", "<r8>, [d1]"),
    ("ld.global.v4.{b64,f64}", "<d4>, [d1]"),
    (f"ldu{{.global}}.{MEMORY}", "$0, [d1]"),
    (f"ldu{{.global}}.v2.{MEMORY}", "{{$00, $01}}, [d1]"),
    (f"st{SPACES}.{MEMORY}", "[d1], $0"),
    (f"st{SPACES}.v2.{MEMORY}", "[d1], {{$00, $01}}"),
    (f"st{SPACES}.v4.{MEMORY}", "[d1], {{$00, $01, $02, $03}}"),
    (f"st{{.weak,.volatile,.relaxed,.release}}{{.mmio}}{SCOPES}{SPACES}.b32", "[d1], r1"),
    (f"st{{.weak,.volatile}}{SPACES}{{.wb,.cg,.cs,.wt}}.b32", "[d1], r1"),
    (
        "st.global{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate}"
        + f"{L2}.b64",
        "[d1], d2",
    ),
    ("st.global{.wb}.L2::cache_hint.b64", "[d1], d2, d3"),
    ("prefetch{.global,.local,.const,.param,.shared}.{L1,L2,L2::evict_last,L2::evict_normal,tensormap}", "[d1]"),
    ("prefetchu.{L1,L2}", "[d1]"),
    ("discard{.global}.L2", "[d1], 128"),
    ("applypriority{.global}.L2::evict_normal", "[d1], 128"),
    ("{discard,applypriority}{.global}.{L2,L2::evict_last}", "[d1], 64"),
    (
        "createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}"
        "{.L2::evict_first,.L2::evict_unchanged,.L2::evict_last}.b64",
        "d1, 0.5",
    ),
    ("createpolicy.range{.global}.{L2::evict_last,L2::evict_normal}{.L2::evict_first}.b64", "d1, [d2], 128, 256"),
    ("createpolicy.cvt.L2.b64", "d1, d2"),
    # atomics
    (
        "{atom}{.global,.shared,.shared::cta}.{add,min,max,and,or,xor,inc,dec,exch}{.noftz}.{b16,b32,b64,b128,u16,u32,"
        "u64,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}",
        "$0, [d1], $02",
    ),
    (
        "{red}{.global,.shared,.shared::cta}.{add,min,max,and,or,xor,inc,dec}{.noftz}.{b16,b32,b64,u32,"
        "u64,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}",
        "[d1], $02",
    ),
    ("atom{.global,.shared}.cas.{b16,b32,b64,b128,u32,u64,s32,f32,f16}", "$0, [d1], $02, $03"),
    (f"atom{{.relaxed,.acquire,.release,.acq_rel}}{SCOPES}{{.global,.shared}}.{{add,exch}}.u32", "r1, [d1], r2"),
    (f"red{{.relaxed,.release,.acquire}}{SCOPES}{{.global,.shared}}.add.u32", "[d1], r2"),
    ("atom{.global}.{add,min,max}{.noftz}.v2.{f32,f16,bf16,f16x2,bf16x2,u32}", "{{$00, $01}}, [d1], {{$02, $03}}"),
    (
        "atom{.global}.{add,min,max}{.noftz}.v4.{f32,f16,bf16,f16x2,bf16x2,f64}",
        "{{$00, $01, $02, $03}}, [d1], {{$04, $05, $06, $07}}",
    ),
    ("atom{.global}.{add,min,max}{.noftz}.v8.{f16,bf16}", "<h8>, [d1], <h8>"),
    ("red{.global}.{add,min,max}{.noftz}.v2.{f32,f16,bf16,f16x2,bf16x2,u32}", "[d1], {{$02, $03}}"),
    ("red{.global}.{add,min,max}{.noftz}.v4.{f32,f16,bf16,f16x2,bf16x2,f64}", "[d1], {{$04, $05, $06, $07}}"),
    ("red{.global}.{add,min,max}{.noftz}.v8.{f16,bf16}", "[d1], <h8>"),
    ("atom.global.add.L2::cache_hint.{u32,f32}", "r1, [d1], r2, d3"),
    ("red.global.add.L2::cache_hint.{u32,f32}", "[d1], r2, d3"),
    ("atom.global.{add,exch,cas}.{u64,b64,b128}", "$0, [d1], $02"),
    # copies in the background
    ("cp.async.{ca,cg}.{shared,shared::cta}.global{.L2::cache_hint}" + SIZES, "[r1], [d1], 16"),
    ("cp.async.{ca,cg}.{shared,shared::cta}.global" + SIZES, "[r1], [d1], 16, r2"),
    ("cp.async.{ca,cg}.shared.global", "[r1], [d1], 4"),
    ("cp.async.{ca,cg}.shared.global", "[r1], [d1], 8, p"),
    ("cp.async.ca.shared.global.L2::cache_hint", "[r1], [d1], 8, r2, d2"),
    ("cp.async.{commit_group,wait_all}", ""),
    ("cp.async.wait_group", "3"),
    # mbarriers and bulk copies
    (f"mbarrier.init{SHARED}.b64", "[d1], r2"),
    (f"mbarrier.inval{SHARED}.b64", "[d1]"),
    (f"mbarrier.{{arrive,arrive_drop}}{{.release,.relaxed,.acquire}}{{.cta,.cluster,.gpu}}{SHARED}.b64", "d2, [d1]"),
    (f"mbarrier.{{arrive,arrive_drop}}{{.release,.relaxed}}{{.cta,.cluster}}{SHARED}.b64", "_, [d1], r2"),
    (
        f"mbarrier.{{arrive,arrive_drop}}{{.expect_tx,.noComplete}}{{.release,.relaxed}}{{.cta}}{SHARED}.b64",
        "d2, [d1], r2",
    ),
    (f"mbarrier.{{arrive,arrive_drop}}{{.noComplete}}{SHARED}.b64", "d2, [d1]"),
    (f"mbarrier.{{arrive,arrive_drop}}.expect_tx{{.release}}{{.cluster}}{SHARED}.b64", "_, [d1], r2"),
    (f"mbarrier.{{expect_tx,complete_tx}}{{.relaxed,.release}}{{.cta,.cluster}}{SHARED}.b64", "[d1], r2"),
    (f"mbarrier.{{test_wait,try_wait}}{{.acquire,.relaxed,.release}}{{.cta,.cluster,.gpu}}{SHARED}.b64", "p, [d1], d2"),
    (f"mbarrier.{{test_wait,try_wait}}.parity{{.acquire,.relaxed}}{{.cta,.cluster}}{SHARED}.b64", "p, [d1], r2"),
    (f"mbarrier.{{test_wait,try_wait}}{{.parity}}{SHARED}.b64", "p, [d1], $02, r2"),
    ("mbarrier.pending_count{.shared}.b64", "r1, d1"),
    (f"cp.async.mbarrier.arrive{{.noinc}}{SHARED}.b64", "[d1]"),
    (
        "cp.async.bulk{.shared,.shared::cta,.shared::cluster}.global{.mbarrier::complete_tx::bytes}{.L2::cache_hint}",
        "[r1], [d1], 32, [r2]",
    ),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint", "[r1], [d1], r3, [r2], d2"),
    ("cp.async.bulk.shared::cluster.{shared::cta,shared}.mbarrier::complete_tx::bytes", "[r1], [r3], 32, [r2]"),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
        "[r1], [d1], 32, [r2], h1",
    ),
    ("cp.async.bulk.global{.shared,.shared::cta}{.bulk_group}", "[d1], [r1], r2"),
    ("cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}", "[d1], [r1], 48, d2"),
    ("cp.async.bulk.global.shared::cta.bulk_group", "[d1], [r1], 24"),
    ("cp.async.bulk.prefetch{.L2}{.global}", "[d1], 16"),
    ("cp.async.bulk.prefetch.L2.global.L2::cache_hint", "[d1], 16, d2"),
    ("cp.async.bulk.commit_group", ""),
    ("cp.async.bulk.wait_group{.read}", "2"),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group{.add,.min,.max,.inc,.dec,.and,.or,.xor}{.noftz}."
        "{b32,b64,u32,u64,s32,s64,f32,f64,f16,bf16}",
        "[d1], [r1], 16",
    ),
    (
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        ".{add,min,max,inc,dec,and,or,xor}{.noftz}.{b32,b64,u32,u64,s32,s64,f16,bf16}",
        "[r1], [r3], 16, [r2]",
    ),
    # copies of boxes of tensors
    *tensor_copy_lines(),
    # changes of their maps
    ("tensormap.replace.tile.{global_address,rank,box_dim}{.global,.shared::cta,.shared}.b1024.{b32,b64}", "[d1], $02"),
    (
        "tensormap.replace{.tile}.{box_dim,global_dim,global_stride,element_stride}{.global,.shared::cta}.b1024"
        ".{b32,b64}",
        "[d1], 3, $02",
    ),
    ("tensormap.replace.tile.{box_dim,element_stride}.shared::cta.b1024.{b32,b64}", "[tile], 4, $02"),
    (
        "tensormap.replace.tile.{elemtype,interleave_layout,swizzle_mode,fill_mode,rank}{.global,.shared::cta}"
        "{.b1024}.{b32,b64}",
        "[d1], 0",
    ),
    ("tensormap.replace.tile.{elemtype,swizzle_mode,fill_mode}.shared::cta.b1024.b32", "[r1], 10"),
    ("tensormap.replace.tile.{elemtype,fill_mode}.b1024.b32", "[d1], r2"),
    (
        "tensormap.cp_fenceproxy{.global}.shared::cta.tensormap::generic.{release,acquire}.{cta,cluster,gpu,sys}"
        "{.sync}{.aligned}",
        "[d1], [r1], 128",
    ),
    ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned", "[d1], [tile], 64"),
    ("fence.proxy.tensormap::generic.acquire{.cta,.cluster,.gpu,.sys}", "[d1], 128"),
    ("fence.proxy.tensormap::generic.acquire.gpu", "[d1], 64"),
    ("fence.proxy.tensormap::generic.release{.cta,.cluster,.gpu,.sys}", ""),
    ("fence.mbarrier_init{.release,.acquire}.{cluster,cta}", ""),
    # control, barriers, warps
    ("{ret,exit,trap,brkpt}{.uni}", ""),
    ("pmevent{.mask}", "3"),
    ("nanosleep.{u32,u64}", "r1"),
    ("bar{.cta}{.sync,.arrive}", "1, 64"),
    ("bar{.cta}.sync", "0"),
    ("bar{.cta}.red{.popc,.and,.or}.{u32,pred}", "$0, 1, 64, q"),
    ("bar{.cta}.red{.popc,.and,.or}.{u32,pred}", "$0, 1, !q"),
    ("barrier{.cta}{.sync,.arrive}{.aligned}", "1, 64"),
    ("barrier{.cta}.red{.popc,.and,.or}{.aligned}.{u32,pred}", "$0, 1, q"),
    ("bar.warp.sync", "-1"),
    ("barrier.cluster.{arrive,wait}{.release,.relaxed,.acquire}{.aligned}", ""),
    ("mapa{.shared::cluster,.shared,.shared::cta}.{u32,u64}", "$0, $02, r3"),
    ("mapa{.shared::cluster}.{u32,u64}", "$0, tile, 1"),
    ("getctarank{.shared::cluster,.shared}.{u32,u64}", "r1, $02"),
    (
        "st.async{.weak,.relaxed}{.shared::cluster,.shared,.shared::cta}.mbarrier::complete_tx::bytes"
        ".{b16,b32,b64,u32,u64,s32,s64,f32,f64}",
        "[r1], $03, [r2]",
    ),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.{v2,v4}.{b32,u32,s32,f32,b64}", "[r1], <r4>, [r2]"),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.{v2,v4}.{b64,u64,s64,f64,b32}", "[r1], <d2>, [r2]"),
    (
        "red.async{.relaxed}{.cluster,.gpu}{.shared::cluster,.shared::cta}{.mbarrier::complete_tx::bytes}"
        ".{inc,dec,min,max,and,or,xor,add}.{b32,u32,s32,u64,s64,f32}",
        "[r1], $03, [r2]",
    ),
    (
        "fence.proxy.async::generic.{acquire,release}.{sync_restrict::shared::cta,sync_restrict::shared::cluster}"
        ".{cluster,cta}",
        "",
    ),
    ("mov.pred", "p, %is_explicit_cluster"),
    ("membar.{cta,gl,sys,gpu}", ""),
    ("fence{.sc,.acq_rel,.acquire,.release}.{cta,cluster,gpu,sys}", ""),
    ("fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}", ""),
    ("shfl{.sync}.{up,down,bfly,idx}.{b32,b64}", "r1, r2, r3, r4, -1"),
    ("shfl.sync.{up,down,bfly,idx}.b32", "r1|p, r2, r3, r4, -1"),
    ("shfl.{up,down,bfly,idx}.b32", "r1|p, r2, r3, r4"),
    ("vote.sync.{all,any,uni,ballot}.{pred,b32}", "$0, q, -1"),
    ("vote.{all,any,uni,ballot}.{pred,b32}", "$0, q"),
    ("match.{any,all}.sync.{b32,b64}", "r1, $02, -1"),
    ("match.{any,all}.sync.{b32,b64}", "r1|p, $02, -1"),
    ("redux.sync.{add,min,max,and,or,xor}{.abs}{.NaN}.{u32,s32,b32,f32}", "r1, r2, -1"),
    ("activemask.b32", "r1"),
    ("elect.sync", "r1|p, -1"),
    ("griddepcontrol.{launch_dependents,wait}", ""),
    ("setmaxnreg.{inc,dec}.sync.aligned.u32", "64"),
    ("alloca.{u32,u64}", "$0, $02"),
    ("alloca.{u32,u64}", "$0, 64, 16"),
    ("stacksave.{u32,u64}", "$0"),
    ("stackrestore.{u32,u64}", "$0"),
    # matrices
    ("ldmatrix.sync.aligned.m8n8.x1{.trans}{.shared,.shared::cta}.{b16,b8}", "<r1>, [r5]"),
    ("ldmatrix.sync.aligned.m8n8.x2{.trans}{.shared,.shared::cta}.{b16,b8}", "<r2>, [r5]"),
    ("ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared,.shared::cta}.{b16,b8}", "<r4>, [r5]"),
    ("stmatrix.sync.aligned.m8n8.x1{.trans}{.shared,.shared::cta}.b16", "[r5], <r1>"),
    ("stmatrix.sync.aligned.m8n8.x4{.trans}{.shared,.shared::cta}.b16", "[r5], <r4>"),
    ("movmatrix.sync.aligned.m8n8{.trans}.b16", "r1, r2"),
    # video
    (
        "{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2,vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4}.{u32,s32}.{u32,s32}.{u32,"
        "s32}{.sat,.add}",
        "r0, r1, r2, r3",
    ),
    ("{vset2,vset4}.{u32,s32}.{u32,s32}.{eq,ne,lt,le,gt,ge}{.add}", "r0, r1, r2, r3"),
]


def matrix_lines():
    """mma: shapes, types and the registers of their fragments."""

    def registers(kind, count, first):
        return "{" + ", ".join(f"{kind}{(first + k) % (32 if kind == 'r' else 16)}" for k in range(count)) + "}"

    def elements(kind):
        return {"b1": 1, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "tf32": 32}.get(kind) or bits(kind)

    kinds = [
        (["f16", "f32"], ["f16"], ["m8n8k4"]),
        (["f16", "f32"], ["f16"], ["m16n8k8", "m16n8k16", "m16n8k32"]),
        (["f32", "f16"], ["bf16"], ["m16n8k8", "m16n8k16", "m16n8k32"]),
        (["f32"], ["tf32"], ["m16n8k4", "m16n8k8", "m16n8k16"]),
        (["f64"], ["f64"], ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"]),
        (["s32"], ["s8", "u8"], ["m8n8k16", "m16n8k16", "m16n8k32", "m16n8k64"]),
        (["s32"], ["s4", "u4"], ["m8n8k32", "m16n8k32", "m16n8k64", "m16n8k128"]),
        (["f32", "f16"], ["e4m3", "e5m2"], ["m16n8k16", "m16n8k32", "m16n8k64"]),
        (["s32"], ["b1"], ["m8n8k128", "m16n8k128", "m16n8k256"]),
    ]
    lines = []
    for results, inputs, shapes in kinds:
        for shape, result, a, b in itertools.product(shapes, results, inputs, inputs):
            rows, columns, depth = map(int, re.findall(r"\d+", shape))
            register = "d" if a == "f64" else "r"
            word = 64 if a == "f64" else 32
            for c in results:
                volta = shape == "m8n8k4" and a == "f16"
                d_count = (8 if result == "f32" else 4) if volta else rows * columns * elements(result) // 32 // word
                c_count = (8 if c == "f32" else 4) if volta else rows * columns * elements(c) // 32 // word
                a_count = 2 if volta else max(1, rows * depth * elements(a) // 32 // word)
                b_count = 2 if volta else max(1, columns * depth * elements(b) // 32 // word)
                tail = f"{result}.{a}.{b}.{c}"
                layout = ".{row,col}.{row,col}" if volta else ".row.{col,row}"
                rest = ".{xor,and}.popc" if a == "b1" else ""
                fragments = [
                    registers(register, d_count, 0),
                    registers(register, a_count, 8),
                    registers(register, b_count, 16),
                    registers(register, c_count, 0),
                ]
                lines.append((f"mma.sync.aligned.{shape}{layout}{{.satfinite}}.{tail}{rest}", ", ".join(fragments)))
                if rows == 16 and a != "f64" and a != "b1" and (a_count + 1) // 2 >= 1:
                    fragments[1] = registers(register, max(1, a_count // 2), 8)
                    for selector in ("0x0", "0x1"):
                        lines.append(
                            (
                                f"mma.sp{{::ordered_metadata}}.sync.aligned.{shape}.row.col{{.satfinite}}.{tail}",
                                ", ".join([*fragments, "r30", selector]),
                            )
                        )
    return lines


def wmma_lines():
    lines = []
    floats = ["m16n16k16", "m32n8k16", "m8n32k16"]
    whole = [(shape, kind) for shape in floats for kind in ("f16", "bf16", "s8", "u8")]
    whole += [("m16n16k8", "tf32"), ("m8n8k4", "f64"), ("m8n8k32", "s4"), ("m8n8k32", "u4"), ("m8n8k128", "b1")]
    for (shape, kind), part, count in itertools.product(whole, "ab", (1, 2, 4, 8)):
        register = "d" if kind == "f64" else "r"
        lines.append(
            (
                f"wmma.load.{part}.sync.aligned.{{row,col}}.{shape}{{.global,.shared,.shared::cta}}.{kind}",
                f"<{register}{count}>, [d1], r31",
            )
        )
    outputs = [(shape, kind) for shape in floats for kind in ("f16", "f32", "s32")]
    outputs += [("m16n16k8", "f32"), ("m8n8k4", "f64"), ("m8n8k32", "s32"), ("m8n8k128", "s32")]
    for (shape, kind), count in itertools.product(outputs, (1, 2, 4, 8)):
        register = "d" if kind == "f64" else "r"
        lines.append((f"wmma.load.c.sync.aligned.{{row,col}}.{shape}{{.global}}.{kind}", f"<{register}{count}>, [d1]"))
        lines.append(
            (f"wmma.store.d.sync.aligned.{{row,col}}.{shape}{{.shared}}.{kind}", f"[d1], <{register}{count}>, r31")
        )
    sizes = {("f16", s): (8, 8) for s in floats}
    sizes |= {(k, "m16n16k16"): (4, 4) for k in ("bf16",)} | {(k, "m16n16k16"): (2, 2) for k in ("s8", "u8")}
    sizes |= {("bf16", "m32n8k16"): (8, 2), ("bf16", "m8n32k16"): (2, 8), ("tf32", "m16n16k8"): (4, 4)}
    sizes |= {(k, "m32n8k16"): (4, 1) for k in ("s8", "u8")} | {(k, "m8n32k16"): (1, 4) for k in ("s8", "u8")}
    sizes |= {(k, "m8n8k32"): (1, 1) for k in ("s4", "u4")} | {("b1", "m8n8k128"): (1, 1)}
    for (kind, shape), (a, b) in sizes.items():
        ab = f"<r{a}>, <r{b}>"
        if kind == "f16":
            for d, c in itertools.product(("f16", "f32"), repeat=2):
                d_text, c_text = (f"<r{4 if k == 'f16' else 8}>" for k in (d, c))
                line = f"wmma.mma.sync.aligned.{{row,col}}.{{row,col}}.{shape}.{d}.{c}{{.satfinite}}"
                lines.append((line, f"{d_text}, {ab}, {c_text}"))
        elif kind in ("bf16", "tf32"):
            line = f"wmma.mma.sync.aligned.{{row,col}}.{{row,col}}.{shape}.f32.{kind}.{kind}.f32{{.satfinite}}"
            lines.append((line, f"<r8>, {ab}, <r8>"))
        else:
            n = 2 if shape.startswith("m8n8") else 8
            operation = ".{xor,and}.popc" if kind == "b1" else ""
            others = {"s8": "{s8,u8}", "s4": "{s4,u4}"}.get(kind, kind)
            line = f"wmma.mma{operation}.sync.aligned.{{row,col}}.{{row,col}}.{shape}.s32.{kind}.{others}.s32{{.satfinite}}"
            lines.append((line, f"<r{n}>, {ab}, <r{n}>"))
    for name in ("rn", "rz", "rm", "rp", ""):
        dot = f".{name}" if name else ""
        line = f"wmma.mma.sync.aligned.{{row,col}}.{{row,col}}.m8n8k4{dot}.f64.f64.f64.f64{dot}"
        lines.append((line, "<d2>, <d1>, <d1>, <d2>"))
    return lines
