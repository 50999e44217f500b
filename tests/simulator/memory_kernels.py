"""Small PTX kernels around one memory instruction, for the tests of memory and of the counters."""

import numpy as np
from cudart import run_ptx

SHARED_BYTES = 49152 - 4096


def module(body, parameters=1, shared=SHARED_BYTES, declarations="", target="sm_90"):
    """A kernel `k` with pointers %rd0, %rd1, ... and %tid.x in %r0 (64-bit in %rd9); it may use further registers."""
    names = [f"p{i}" for i in range(parameters)]
    loads = "\n    ".join(f"ld.param.u64 %rd{i}, [{name}];" for i, name in enumerate(names))
    memory = f".shared .align 16 .b8 smem[{shared}];" if shared else ""
    return f"""
.version 8.8
.target {target}
.address_size 64
{declarations}
.visible .entry k({", ".join(f".param .u64 {name}" for name in names)})
{{
    .reg .pred %p<8>;
    .reg .b16 %rs<60>;
    .reg .b32 %r<60>;
    .reg .b64 %rd<60>;
    .reg .b128 %q<8>;
    {memory}
    {loads}
    mov.u32 %r0, %tid.x;
    cvt.u64.u32 %rd9, %r0;
    {body}
    ret;
}}
"""


def run(body, arrays=(), block=32, grid=1, **keywords):
    """Runs a module's kernel on arrays; keywords of module() and of run_ptx()."""
    own = {name: keywords.pop(name) for name in ("shared", "declarations", "target") if name in keywords}
    text = module(body, len(arrays), **own)
    return run_ptx(text, "k", grid, block, list(arrays), **keywords)


def bytes_of(count, seed=1):
    """Random bytes, as an array of uint8."""
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


def register(size):
    """The prefix of registers that hold elements of `size` bytes."""
    return {2: "%rs", 4: "%r", 8: "%rd"}[size]
