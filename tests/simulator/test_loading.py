"""Code that a program loads is taken at no word: damaged fat binaries, wild pointers and sizes beyond the device's are
errors that say so, and cost neither the process nor its memory."""

import json
import struct
import subprocess
import sys

import cudart
import pytest
from cudart import build_program, simulator_environment

pytestmark = pytest.mark.simulator_only

SOURCE = """
__device__ float table[64];
__global__ void scale(float *p, float factor) { p[threadIdx.x] = table[threadIdx.x] * factor; }
__global__ void fill(int *p) { p[blockIdx.x] = 7; }
int main() { scale<<<1, 32>>>(nullptr, 2); fill<<<1, 32>>>(nullptr); }
"""

# Runs in a process of its own, which may crash: prints what it is about to do, then what came of it.
CHILD = r"""
import ctypes, json, mmap, sys
api, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
api.cudaGetErrorName.restype = ctypes.c_char_p
start = getattr(api, "__cudaRegisterFatBinary")
start.restype = ctypes.c_void_p
libc.mmap.restype = ctypes.c_void_p
PAGE = mmap.PAGESIZE

def at_the_end_of_memory(data):
    "Address of a copy of `data`, 8-byte aligned but for padding, behind which nothing can be read."
    data += bytes(-len(data) % 8)
    size = (len(data) + PAGE - 1) // PAGE * PAGE
    base = libc.mmap(None, ctypes.c_size_t(size + PAGE), 3, 0x22, -1, ctypes.c_long(0))
    libc.mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(PAGE), 0)
    ctypes.memmove(base + size - len(data), data, len(data))
    return base + size - len(data), lambda: libc.munmap(ctypes.c_void_p(base), ctypes.c_size_t(size + PAGE))

def name(code):
    return api.cudaGetErrorName(code).decode()

def load(address):
    "Loads what is there and asks for its kernels: the error's name."
    library, count = ctypes.c_void_p(), ctypes.c_uint()
    code = api.cudaLibraryLoadData(ctypes.byref(library), ctypes.c_void_p(address), None, None, 0, None, None, 0)
    if not code:
        code = api.cudaLibraryGetKernelCount(ctypes.byref(count), library)
        api.cudaLibraryUnload(library)
    return name(code)

def register(address):
    "What a program's own start-up code does with it, and the first use of a kernel."
    stub, attributes = ctypes.create_string_buffer(1), ctypes.create_string_buffer(4096)
    handle = start(ctypes.c_void_p(address))
    getattr(api, "__cudaRegisterFunction")(
        ctypes.c_void_p(handle), stub, None, b"_Z4fillPi", -1, None, None, None, None, None)
    return name(api.cudaFuncGetAttributes(attributes, stub))

def done(result):
    print(json.dumps(result), flush=True)
"""


def child(script, *arguments, env=None):
    """Runs CHILD and `script`; the JSON lines that it printed and its stderr. Fails where it crashed."""
    command = [sys.executable, "-c", CHILD + script, str(cudart.LIBRARY), *map(str, arguments)]
    run = subprocess.run(command, env=simulator_environment(env), capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"exit status {run.returncode} after {lines[-1:]}\n{run.stderr[-2000:]}"
    return lines, run.stderr


def fat_binary(flags):
    """The bytes of the fat binary that nvcc put into the program."""
    data = build_program(SOURCE, flags).read_bytes()
    found = []
    at = data.find(MAGIC)
    while at >= 0:
        header, rest = struct.unpack_from("<HQ", data, at + 6)
        if header == 16 and rest <= len(data) - at:
            found.append(data[at : at + header + rest])
        at = data.find(MAGIC, at + 1)
    return max(found, key=len)  # the other one is empty


# argv: the fat binary's file. Every byte of the headers takes other values, and some bytes of the rest; ends are cut off;
# the wrapper, which holds pointers, takes other values at every byte.
DAMAGE = r"""
import os, random, struct
whole = open(sys.argv[2], "rb").read()
rng = random.Random(5)
places = list(range(16))
at = struct.unpack_from("<H", whole, 6)[0]
while at < len(whole):
    header, payload = struct.unpack_from("<IQ", whole, at + 4)
    places += range(at, at + 64)
    at += header + payload
places += [rng.randrange(len(whole)) for _ in range(60)]
variants = [("nothing", 0, 0)]
variants += [("byte", i, value) for i in places for value in (0, 0xFF, whole[i] ^ 0x80, whole[i] ^ 1)]
variants += [("end", rng.randrange(8, len(whole)), 0) for _ in range(40)]
# Of the wrapper's pointers only where nothing guards the memory that a wrong one may happen to meet.
wrapper = range(8) if "libasan" in os.environ.get("LD_PRELOAD", "") else range(24)
variants += [("wrapper", i, value) for i in wrapper for value in (0, 1, 2, 0x7F, 0xFF)]
for kind, i, value in variants:
    data = bytearray(whole)
    if kind == "byte":
        data[i] = value
    if kind == "end":
        del data[i:]
    address, free = at_the_end_of_memory(bytes(data))
    # As the device linker leaves it: a fat binary of its own, here empty, and a list of those that it linked.
    linker, free_linker = at_the_end_of_memory(whole[:8] + bytes(8))
    linked, free_linked = at_the_end_of_memory(struct.pack("<QQ", address, 0))
    wrapper = bytearray(struct.pack("<IIQQ", 0x466243B1, 2, linker, linked))
    if kind == "wrapper":
        wrapper[i] = value
    wrapped, free_wrapped = at_the_end_of_memory(bytes(wrapper))
    done({"about": [kind, i, value]})
    done({"bare": load(address), "wrapped": load(wrapped), "registered": register(wrapped)})
    free(), free_linker(), free_linked(), free_wrapped()
"""


@pytest.mark.long
@pytest.mark.parametrize("flags", [(), ("-no-compress",)], ids=["compressed", "plain"])
def test_damaged_fat_binaries_are_errors(tmp_path, flags):
    """Lengths and pointers that lead out of memory are refused: the copies lie where every byte too far is a crash."""
    (tmp_path / "fatbin").write_bytes(fat_binary(flags))
    lines, _ = child(DAMAGE, tmp_path / "fatbin")
    told, results = lines[::2], lines[1::2]
    assert set(results[0].values()) == {"cudaSuccess"}, f"the undamaged fat binary: {results[0]}"
    assert len(results) > 500
    refused = [told[i]["about"] for i, result in enumerate(results) if set(result.values()) != {"cudaSuccess"}]
    kinds = {kind for kind, _, _ in refused}
    assert kinds == {"byte", "end", "wrapper"}, f"damage that was never noticed: {kinds}"


def test_pointers_to_nowhere_are_errors():
    script = """
text = b".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { ret; }\\n"
for address in (8, 1 << 46, at_the_end_of_memory(text)[0] + PAGE, at_the_end_of_memory(text + b" " * (-len(text) % 8))[0]):
    done(load(address))
done(load(at_the_end_of_memory(text + b"\\0")[0]))
done(register(1 << 46))
"""
    names, words = child(script)
    assert names[4] == "cudaSuccess"
    assert all(name == "cudaErrorInvalidValue" for name in names[:4]), names
    assert names[5] == "cudaErrorInvalidKernelImage", names
    assert "no memory where the code should be" in words and "a null character must follow" in words


MAGIC = struct.pack("<I", 0xBA55ED50)
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
CHAIN = "".join(
    f".func f{i}() {{ .local .b8 a[500000]; .reg .b64 %d<2>; mov.u64 %d1, a; st.u8 [%d1], 1;"
    + (f" call f{i - 1}, ();" if i else "")
    + " ret; }\n"
    for i in range(40)
)
SIZES = {
    "global": (".global .b8 big[2000000000];", "", ["big", "2000000000", "WARPSIM_MAX_MEMORY"]),
    "const": (".const .b8 big[2000000000];", "", ["big", "2000000000", "WARPSIM_MAX_MEMORY"]),
    "two": (".global .b8 a[200000000];\n.global .b8 b[200000000];", "", ["up to b", "400000000", "WARPSIM_MAX_MEMORY"]),
    "inside": ("", ".global .b8 big[2000000000];", ["big", "2000000000", "WARPSIM_MAX_MEMORY"]),
    "shared": ("", ".shared .b8 big[2000000000]; .reg .b32 %r<2>; mov.u32 %r1, big;", ["big", "too large"]),
    "dynamic shared": (".extern .shared .align 1048576 .b8 s[];", ".reg .b32 %r<2>; mov.u32 %r1, s;", []),
    "local": ("", ".local .b8 big[2000000000]; .reg .b64 %d<2>; mov.u64 %d1, big;", ["big", "local memory"]),
    "param": ("", ".param .b8 big[2000000000];", ["big", "local memory"]),
    "stack": (CHAIN, "call f39, ();", ["local memory", "WARPSIM_MAX_MEMORY"]),
    "overflow": (".global .b8 big[1099511627776][16777216];", "", ["too large"]),
    "overflow without a first size": (".global .b8 big[][1099511627776][16777216] = {{{1}}};", "", ["too large"]),
}
LAUNCH = """
text = open(sys.argv[2], "rb").read() + b"\\0"
library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
code = api.cudaLibraryLoadData(ctypes.byref(library), text, None, None, 0, None, None, 0)
code = code or api.cudaLibraryGetKernel(ctypes.byref(kernel), library, b"k")
class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]
code = code or api.cudaLaunchKernel(kernel, Dim3(4, 1, 1), Dim3(256, 1, 1), None, ctypes.c_size_t(0), None)
code = code or api.cudaDeviceSynchronize()
# (Not getrusage: its peak is also that of the process that started this one.)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
done([name(code), int(peak.split()[1]) >> 10])
"""


def launch(tmp_path, outside, body, env):
    """Loads and launches a kernel: the error's name, the process's peak of memory in MiB, stderr."""
    path = tmp_path / "module.ptx"
    path.write_text(f"{HEAD}{outside}\n.visible .entry k()\n{{ {body} ret; }}\n")
    lines, words = child(LAUNCH, path, env=env)
    return *lines[0], words


@pytest.mark.parametrize("place", SIZES)
def test_declared_sizes_count_before_memory_is_taken(tmp_path, place):
    outside, body, wanted = SIZES[place]
    error, peak, words = launch(tmp_path, outside, body, {"WARPSIM_MAX_MEMORY": "256M"})
    assert error != "cudaSuccess" or not wanted, "the declaration was accepted"
    assert all(word in words for word in wanted), words
    assert peak < 200, f"{peak} MiB of memory"


def test_parameters_are_bounded(tmp_path):
    path = tmp_path / "module.ptx"
    path.write_text(f"{HEAD}.visible .entry k(.param .b8 big[2000000000])\n{{ ret; }}\n")
    lines, words = child(LAUNCH, path)
    assert lines[0][0] != "cudaSuccess" and "32 KiB of parameters" in words and lines[0][1] < 200, (lines, words)


def test_a_large_variable_costs_what_is_used_of_it(tmp_path):
    body = """
        .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p;
        mov.u64 %d1, big; st.global.u32 [%d1+1000000000], 5; ld.global.u32 %r1, [%d1+1000000004];
        setp.ne.u32 %p, %r1, 0; @%p trap;"""
    error, peak, words = launch(tmp_path, ".global .align 4 .b8 big[1500000000];", body, {"WARPSIM_MAX_MEMORY": "2G"})
    assert error == "cudaSuccess", words
    assert peak < 200, f"{peak} MiB of memory"
