"""The driver API (libcuda.so.1): alone, beside the runtime, loaded when the program runs, and from Python."""

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cudart import BUILD, LIBRARY, PROGRAMS, run_program, simulator_environment

pytestmark = pytest.mark.simulator_only

DRIVER = PROGRAMS / "driver"
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
SYMBOLS = PROGRAMS.parents[2] / "common" / "simulator" / "driver" / "symbols.h"


def cases(macro):
    texts = [source.read_text() for source in sorted((DRIVER / "driver_api").glob("*.cpp"))]
    return [name for text in texts for name in re.findall(rf"^{macro}\((\w+)\)", text, re.MULTILINE)]


CASES, CASES_OF_TWO_DEVICES = cases("CASE"), cases("CASE_OF_TWO_DEVICES")
WORKS = LIBRARY.parent / "libcuda.so.1"

# Name in the folder: source and nvcc's options.
MODULES = {
    "kernels.ptx": ("kernels.cu", ["-ptx", "-arch=compute_80"]),
    "kernels_sm_90.ptx": ("kernels.cu", ["-ptx", "-arch=compute_90"]),
    "kernels.fatbin": ("kernels.cu", ["-fatbin", "-gencode=arch=compute_80,code=[compute_80,sm_80]"]),
    "kernels.cubin": ("kernels.cu", ["-cubin", "-arch=sm_80"]),
    "linked_part.ptx": ("linked_part.cu", ["-ptx", "-arch=compute_80", "-rdc=true"]),
    "linked_main.ptx": ("linked_main.cu", ["-ptx", "-arch=compute_80", "-rdc=true"]),
    "copy_box.ptx": ("copy_box.cu", ["-ptx", "-arch=compute_90a"]),
}


def cuda_include():
    return Path(NVCC).resolve().parents[1] / "include"


def cached(name, sources, make):
    """BUILD/tests/driver-HASH/name, made by make(path) once for these sources and this nvcc."""
    text = "\0".join([NVCC, name, *(source.read_text() for source in sources)])
    folder = BUILD / "tests" / f"driver-{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            make(folder / name)
    return folder / name


def run(*command):
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """A folder with all that the programs load."""
    folder = tmp_path_factory.mktemp("modules")
    headers = sorted(PROGRAMS.glob("*.h"))
    for name, (source, options) in MODULES.items():
        path = cached(
            name,
            [DRIVER / source, *headers],
            lambda to, source=source, options=options: run(
                NVCC,
                "-std=c++17",
                "-O3",
                "-lineinfo",
                "-Wno-deprecated-gpu-targets",
                *options,
                "-o",
                to,
                DRIVER / source,
            ),
        )
        shutil.copy(path, folder / name)
    return folder


def build_host(name, *options):
    """A host program, one file or a folder of them, linked with this build's libcuda.so unless `options` are given."""
    sources = sorted((DRIVER / name).glob("*.cpp")) or [DRIVER / f"{name}.cpp"]
    headers = [DRIVER / "driver.h", *(DRIVER / name).glob("*.h")]
    libraries = list(options) if options else ["-L", LIBRARY.parent, "-lcuda"]
    return cached(
        "-".join([name, *(o.strip("-") for o in options)]).replace("/", "_")[-60:],
        [*sources, *headers],
        lambda to: run(
            "g++", "-std=c++17", "-g", "-I", cuda_include(), *sources, "-o", to, *libraries, "-ldl", "-pthread"
        ),
    )


def start(program, *arguments, env=None):
    return subprocess.run(
        [program, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=simulator_environment(env),
    )


def needed(program):
    listing = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", listing)


def test_all_cases_are_found():
    assert len(CASES) >= 30 and CASES_OF_TWO_DEVICES


@pytest.mark.parametrize("case", CASES)
def test_case(case, modules):
    done = start(build_host("driver_api"), case, modules)
    assert (done.stdout, done.returncode) == ("passed\n", 0), done.stderr
    assert "bypasses the CUDA runtime" not in done.stderr


@pytest.mark.parametrize("case", CASES_OF_TWO_DEVICES)
def test_case_of_two_devices(case, modules):
    done = start(build_host("driver_api"), case, modules, env={"WARPSIM_DEVICES": 2})
    assert (done.stdout, done.returncode) == ("passed\n", 0), done.stderr


def test_the_program_needs_the_driver_alone():
    names = needed(build_host("driver_api"))
    assert "libcuda.so.1" in names and "libcudart.so.13" not in names


@pytest.mark.long
def test_linked_with_the_toolkits_stub(modules):
    stubs = [p.parent for p in Path(NVCC).resolve().parents[1].rglob("stubs/libcuda.so")]
    if not stubs:
        pytest.skip("the CUDA Toolkit here has no stub of libcuda.so")
    program = build_host("driver_api", f"-L{stubs[0]}", "-lcuda")
    done = start(program, "add_from_ptx", modules)
    assert done.stdout == "passed\n", done.stderr


def test_what_is_missing_is_named(modules):
    said = start(build_host("driver_api"), "what_is_not_supported", modules).stderr
    assert "warpsim: cuIpcGetMemHandle is not supported" in said
    assert "warpsim: cuMulticastCreate is not supported" in said


def test_an_error_in_ptx_is_said_with_its_line(modules):
    said = start(build_host("driver_api"), "bad_ptx", modules).stderr
    assert "the PTX given to cuModuleLoadDataEx" in said and "line 5" in said


def test_a_kernels_hazard_is_reported_with_its_line(modules):
    said = start(build_host("driver_api"), "illegal_address", modules).stderr
    line = 1 + (DRIVER / "kernels.cu").read_text().splitlines().index("    if (i <= n) c[i] = a[i] + b[i];")
    assert f"kernels.cu:{line}" in said and "past the end of the 400-byte allocation" in said
    assert "add_one_too_many<<<(1, 1, 1), (128, 1, 1), 0>>> failed with cudaErrorIllegalAddress" in said


def test_calls_are_reported_by_the_drivers_names(modules, tmp_path):
    report = tmp_path / "report.json"
    done = start(build_host("driver_api"), "add_from_ptx", modules, env={"WARPSIM_REPORT": report})
    assert done.returncode == 0, done.stderr
    names = set(re.findall(r'"name":"(cu\w+)","stream"', report.read_text()))
    assert {"cuLaunchKernel", "cuMemcpyHtoD", "cuStreamSynchronize", "cuMemFree", "cuModuleUnload"} <= names
    assert not any(name.startswith("cuda") for name in names)


def test_copies_name_the_drivers_function(modules):
    said = start(build_host("driver_api"), "copies", modules).stderr
    assert "cuMemcpyHtoD: the destination, 1200 bytes" in said
    assert "cuMemcpyDtoH: the source is host memory, and the copy's kind says device" in said


@pytest.mark.long
def test_both_apis_in_one_program(modules):
    flags = ["-L", str(LIBRARY.parent), "-lcuda"]
    assert run_program(DRIVER / "mixed.cu", [modules], flags=flags).check().stdout == "passed\n"


def test_tensor_map(modules):
    program = build_host("tensor_map")
    done = start(program, modules, 1)
    assert done.stdout == "passed\n", done.stderr
    done = start(program, modules, 0)
    assert done.returncode == 0, done.stdout
    line = 1 + (DRIVER / "copy_box.cu").read_text().splitlines().index("    out[threadIdx.x] = box[threadIdx.x];")
    assert f"copy_box.cu:{line}" in done.stderr


def test_loaded_when_the_program_runs(modules):
    program = build_host("loaded", "-O0")
    assert not any("cuda" in name for name in needed(program))
    done = start(program, modules)
    assert (done.stdout, done.returncode) == ("passed\n", 0), done.stderr


@pytest.mark.parametrize(
    "options, answer", [((), "the legacy one"), (("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",), "its own")]
)
def test_default_stream(options, answer, modules):
    done = start(build_host("per_thread", *options, f"-L{LIBRARY.parent}", "-lcuda"), modules)
    assert done.stdout == answer + "\n", done.stderr


def test_started_by_the_launcher(modules):
    program = build_host("driver_api")
    environment = simulator_environment()
    environment.pop("LD_LIBRARY_PATH")
    command = [BUILD / "bin" / "warpsim", "--table", program, "add_from_ptx", modules]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.stdout == "passed\n", done.stderr
    assert "add" in done.stderr


@pytest.mark.long
def test_started_by_the_launcher_with_an_old_rpath(modules, tmp_path):
    """DT_RPATH beats LD_LIBRARY_PATH: the launcher has to load the simulator first."""
    other = tmp_path / "libcuda.so.1"
    run("g++", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c++", "/dev/null", "-o", other)
    rpath = f"-Wl,--disable-new-dtags,-rpath,{tmp_path}"
    program = build_host("driver_api", f"-L{LIBRARY.parent}", "-lcuda", rpath)
    command = [BUILD / "bin" / "warpsim", program, "devices", modules]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=simulator_environment())
    assert done.stdout == "passed\n", done.stderr


HOST_ONLY = r"""
#include <cuda.h>
#include <cstdio>
int main() { std::printf("%d\n", cuInit(0)); }
"""


@pytest.mark.long
def test_compiled_by_nvcc_without_kernels(tmp_path):
    """nvcc puts its runtime into the program, which nothing calls where there are no kernels."""
    source, program = tmp_path / "host.cu", tmp_path / "host"
    source.write_text(HOST_ONLY)
    run(NVCC, "-o", program, source, f"-L{LIBRARY.parent}", "-lcuda")
    done = subprocess.run([BUILD / "bin" / "warpsim", program], check=False, capture_output=True, text=True)
    assert done.stdout == "0\n", done.stderr
    source.write_text(HOST_ONLY + "__global__ void k() {}\nvoid launch() { k<<<1, 1>>>(); }\n")
    run(NVCC, "-o", program, source, f"-L{LIBRARY.parent}", "-lcuda")
    done = subprocess.run([BUILD / "bin" / "warpsim", program], check=False, capture_output=True, text=True)
    assert done.returncode == 126 and "contains the CUDA runtime itself" in done.stderr


def test_a_kernel_that_is_compiled_when_the_program_runs():
    nvrtc = next(iter(cuda_include().parent.rglob("libnvrtc.so.13")), None)
    if not nvrtc:
        pytest.skip("the CUDA Toolkit here has no NVRTC")
    rpath = f"-Wl,-rpath,{nvrtc.parent}"
    done = start(build_host("compiled", f"-L{LIBRARY.parent}", "-lcuda", str(nvrtc), rpath))
    assert (done.stdout, done.stderr, done.returncode) == ("passed\n", "", 0)


PYTHON = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
out = ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuModuleLoadData", ctypes.byref(module), open(sys.argv[1], "rb").read() + b"\\0")
call("cuModuleGetFunction", ctypes.byref(function), module, b"read_globals")
call("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(16))
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(out))
call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
values = (ctypes.c_float * 4)()
call("cuMemcpyDtoH_v2", values, out, ctypes.c_size_t(16))
print(list(values))
"""


def test_from_python(modules):
    done = start(sys.executable, "-c", PYTHON, modules / "kernels.ptx")
    assert done.stdout == "[5.0, 10.0, 15.0, 20.0]\n", done.stderr


def exported(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[2].split("@")[0] for line in listing.splitlines() if re.search(r" [TWi] cu[A-Z]", line)}


def test_both_libraries_export_the_same_functions():
    assert exported(WORKS) == exported(LIBRARY) and len(exported(WORKS)) > 600


def newest_first(names):
    """{(name, per thread): symbols by version, newest first}"""
    groups = {}
    for symbol in names:
        base, version, thread = re.fullmatch(r"(\w+?)(?:_v(\d))?(_ptsz|_ptds)?", symbol).groups()
        groups.setdefault((base, bool(thread)), []).append((int(version or 1), symbol))
    return {key: [symbol for _, symbol in sorted(group, reverse=True)] for key, group in groups.items()}


def symbols_of(header, declared):
    """The symbols of the functions that a header declares, older versions and per-thread twins among them."""
    text = (cuda_include() / header).read_text()
    twins = {}
    for kind in ("PTDS", "PTSZ"):
        for symbol in re.findall(rf"__CUDA_API_{kind}\((cu\w+)\)", text):
            twins[symbol] = f"{symbol}_{kind.lower()}"
    renamed = dict(re.findall(r"#define (cu\w+) +(cu\w+)$", text, re.MULTILINE))
    symbols = set(declared.findall(text)) | set(twins) | set(renamed.values())
    return {symbol for symbol in symbols if not symbol.startswith("cuWGL")} | set(twins.values())


def test_the_table_of_functions_is_the_toolkits():
    """Names from its stub library and the headers for graphics, versions from the types that other headers have for
    pointers to the functions."""
    stubs = list(Path(NVCC).resolve().parents[1].rglob("stubs/libcuda.so"))
    if not stubs:
        pytest.skip("the CUDA Toolkit here has no stub of libcuda.so")
    versions = {}
    for header in cuda_include().glob("cuda*Typedefs.h"):
        for name, version, thread in re.findall(r"\*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", header.read_text()):
            versions.setdefault((name, bool(thread)), set()).add(int(version))
    wanted = set()
    names = exported(stubs[0])
    # The stub lacks those for graphics: what their headers declare, by the names that programs link to.
    declared = re.compile(r"CUDAAPI\s+(cu(?:GL|EGL|VDPAU|Graphics|EventCreateFromEGL)\w+)\(")
    for header in ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"):
        names |= symbols_of(header, declared)
    for (name, thread), symbols in newest_first(names).items():
        for symbol, version in zip(symbols, sorted(versions[name, thread], reverse=True), strict=True):
            wanted.add((symbol, name, str(version), str(thread).lower()))
    table = SYMBOLS.read_text()
    rows = re.findall(r"^SYMBOL\((\w+), (\w+),\s+(\d+), (\w+)\)", table, re.MULTILINE)
    assert set(rows) == wanted and len(rows) == len(wanted)


def test_the_driver_is_a_filter_of_the_runtime():
    text = subprocess.run(["readelf", "-d", WORKS], check=True, capture_output=True, text=True).stdout
    assert re.search(r"\(FILTER\).*libcudart.so.13", text)
