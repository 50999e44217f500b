"""The runtime API: what programs written for a GPU call, and what they are told when they get it wrong."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cudart import BUILD, build_program, run_program, run_ptx, simulator_environment

pytestmark = pytest.mark.simulator_only

PROGRAM = Path(__file__).parent / "programs" / "runtime" / "runtime_api.cu"
SPECIAL = ("name", "host_dereference", "freed_by_static_destructor", "properties", "memory_runs_out")
CASES = [c for c in re.findall(r"CASE\((\w+)\)", PROGRAM.read_text().split("#define CASE")[1]) if c not in SPECIAL]
LAUNCHER = BUILD / "bin" / "warpsim"
RARELY_CALLED = PROGRAM.with_name("rarely_called.cu")
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"

HELLO = r"""
#include <cstdio>
__global__ void write(int *p) { *p = 42; }
int main() {
    int *d, h = 0;
    if (cudaMalloc(&d, 4) != cudaSuccess) return 2;
    write<<<1, 1>>>(d);
    cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
    std::printf("%d %s\n", h, cudaGetErrorName(cudaGetLastError()));
    return h == 42 ? 0 : 1;
}
"""


def test_all_cases_are_found():
    assert len(CASES) >= 18


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    assert run_program(PROGRAM, [case]).check().stdout == "passed\n"


@pytest.mark.parametrize("case", re.findall(r"CASE\((\w+)\),", RARELY_CALLED.read_text()))
def test_what_is_rarely_called(case):
    assert run_program(RARELY_CALLED, [case]).check().stdout == "passed\n"


def test_graphs_of_every_kind_of_node():
    assert run_program(PROGRAM.with_name("graph_nodes.cu")).check().stdout == "passed\n"


GRAPH_MEMORY = PROGRAM.with_name("graph_memory.cu")
# What stderr says of those that are refused or fail.
GRAPH_MEMORY_WORDS = {
    "second_launch_with_unfreed_memory": "have not been freed since the launch before",
    "captured": "are freed by a node of the same graph",
    "freed_twice": "was not launched since they were freed last",
    "used_after_its_free_node": "that a graph allocates, which are not there",
    "used_after_a_free_in_the_stream": "that a graph allocates, which are not there",
    "used_before_the_launch": "the allocation has not come yet, or they have been freed",
    "what_such_graphs_cannot": "one instance at a time",
}


@pytest.mark.parametrize("case", re.findall(r"CASE\((\w+)\),", GRAPH_MEMORY.read_text()))
def test_memory_of_graphs(case):
    result = run_program(GRAPH_MEMORY, [case], report=True).check()
    assert result.stdout == "passed\n"
    assert GRAPH_MEMORY_WORDS.get(case, "") in result.stderr
    assert [h["kind"] for h in result.hazards] == (["out_of_bounds"] if case.startswith("used_") else [])


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("sm_75", "sm_75 40 SMs 65536 bytes opt-in"),
        ("sm_80", "sm_80 108 SMs 166912 bytes opt-in"),
        ("sm_86", "sm_86 82 SMs 101376 bytes opt-in"),
        ("sm_89", "sm_89 128 SMs 101376 bytes opt-in"),
        ("sm_90", "sm_90 132 SMs 232448 bytes opt-in"),
        ("H100", "sm_90 132 SMs 232448 bytes opt-in"),
    ],
)
def test_device_profiles(device, expected):
    result = run_program(PROGRAM, ["properties"], env={"WARPSIM_DEVICE": device}).check()
    assert result.stdout.splitlines()[0] == expected


def test_a_device_with_few_multiprocessors():
    result = run_program(PROGRAM, ["properties"], env={"WARPSIM_MULTIPROCESSORS": "3"}).check()
    assert result.stdout.splitlines()[0] == "sm_90 3 SMs 232448 bytes opt-in"


def test_device_addresses_are_not_the_hosts():
    assert run_program(PROGRAM, ["host_dereference"]).returncode == -11


def test_static_destructors_may_free():
    result = run_program(PROGRAM, ["freed_by_static_destructor"]).check()
    assert result.stdout == "passed\nfreed at exit: cudaSuccess\n"


def test_memory_budget():
    result = run_program(PROGRAM, ["memory_runs_out"], env={"WARPSIM_MAX_MEMORY": "100M"}).check()
    assert result.stdout.splitlines()[0] == str(100 << 20)
    assert f"{(100 << 20) + 1} bytes wanted, {100 << 20} of {100 << 20} free" in result.stderr


def test_unsupported_kernel_fails_for_good():
    source = r"""
        #include <cstdio>
        __global__ void odd() { asm volatile("{ .reg .b32 t; tcgen05.alloc.b32 t, 4; }"); }
        __global__ void even() {}
        int main() {
            odd<<<1, 1>>>();
            even<<<1, 1>>>();
            std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
        }
    """
    result = run_program(source)
    assert result.stdout == "cudaErrorNotSupported\n"
    assert "tcgen05.alloc" in result.stderr and "odd()" in result.stderr


def test_what_the_device_runtime_lacks_is_named():
    source = r"""
        #include <cstdio>
        __global__ void child() {}
        __global__ void parent(int *blocks) { cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, child, 32, 0); }
        int main() {
            parent<<<1, 1>>>(nullptr);
            std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
        }
    """
    result = run_program(source, flags=["-rdc=true", "-lcudadevrt"], architecture=("-arch=sm_80",))
    assert result.stdout == "cudaErrorNotSupported\n"
    assert "parent(int*)" in result.stderr and "this function of the device runtime" in result.stderr


def test_refusals_say_why():
    stderr = run_program(PROGRAM, ["launch_limits"]).check().stderr
    assert "block (1025, 1, 1)" in stderr and "small(int*) refused: 65 threads: __launch_bounds__ allows 64" in stderr
    assert "49152 bytes of dynamic shared memory: the limit is 48128" in stderr
    stderr = run_program(PROGRAM, ["copies_are_bounds_checked"]).check().stderr
    assert "partly past the end of the 40-byte allocation" in stderr and "that was freed" in stderr


def test_failed_launch_is_named():
    stderr = run_program(PROGRAM, ["failed_launches_stick"]).check().stderr
    assert "set(int*, int, int)<<<(1, 1, 1), (1, 1, 1), 0>>> failed with cudaErrorIllegalAddress" in stderr
    assert "runtime_api.cu:" in stderr and "16-byte allocation" in stderr


@pytest.mark.parametrize(
    "flag", ["-no-compress", "--compress-mode=speed", "--compress-mode=size", "--compress-mode=balance"]
)
def test_fat_binary_compression(flag):
    assert run_program(HELLO, flags=[flag]).check().stdout == "42 cudaSuccess\n"


@pytest.mark.long
def test_newest_usable_ptx_is_chosen():
    source = r"""
        #include <cstdio>
        #ifdef __CUDA_ARCH__
        #define ARCH __CUDA_ARCH__
        #else
        #define ARCH 0
        #endif
        __global__ void which(int *p) { *p = ARCH; }
        int main() {
            int *d, h = 0;
            cudaMalloc(&d, 4);
            which<<<1, 1>>>(d);
            cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
            std::printf("%d %s\n", h, cudaGetErrorName(cudaGetLastError()));
        }
    """
    archs = [f for a in ("75", "80", "90a", "100") for f in ("-gencode", f"arch=compute_{a},code=compute_{a}")]
    seen = {}
    for device in ("sm_75", "sm_80", "sm_89", "sm_90"):
        result = run_program(source, architecture=archs, env={"WARPSIM_DEVICE": device}).check()
        seen[device] = result.stdout.strip()
    assert seen == {
        "sm_75": "750 cudaSuccess",
        "sm_80": "800 cudaSuccess",
        "sm_89": "800 cudaSuccess",
        "sm_90": "900 cudaSuccess",
    }
    too_new = ["-gencode", "arch=compute_90,code=compute_90"]
    result = run_program(source, architecture=too_new, env={"WARPSIM_DEVICE": "sm_80"})
    assert result.stdout == "-1 cudaErrorNoKernelImageForDevice\n"  # what fresh memory holds
    assert "PTX for compute_90, which sm_80 cannot run" in result.stderr


def test_machine_code_only():
    result = run_program(HELLO, architecture=["-gencode", "arch=compute_80,code=sm_80"])
    assert result.returncode == 1 and "cudaErrorNoKernelImageForDevice" in result.stdout
    assert "no PTX and machine code for sm_80" in result.stderr and "nvcc -arch=sm_80" in result.stderr


@pytest.mark.long
def test_separate_compilation(tmp_path):
    (tmp_path / "helper.cu").write_text("""
        __device__ int shared_variable = 40;
        static __device__ int own = 1;
        __device__ int helper(int x) { return x + own; }
    """)
    (tmp_path / "main.cu").write_text(r"""
        #include <cstdio>
        extern __device__ int shared_variable;
        extern __device__ int helper(int);
        static __device__ int own = 1;
        __global__ void k(int *p) { *p = helper(shared_variable) + own; }
        int main() {
            int *d, h = 0;
            cudaMalloc(&d, 4);
            k<<<1, 1>>>(d);
            cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
            std::printf("%d %s\n", h, cudaGetErrorName(cudaGetLastError()));
        }
    """)
    command = [
        NVCC,
        "-rdc=true",
        "-arch=sm_80",
        "-lineinfo",
        "-cudart",
        "shared",
        "-o",
        "linked",
        "main.cu",
        "helper.cu",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        [tmp_path / "linked"], env=simulator_environment(), capture_output=True, text=True, check=False
    )
    assert done.stdout == "42 cudaSuccess\n", done.stderr


def test_libraries_without_ptx_are_named(tmp_path):
    (tmp_path / "blas.c").write_text("int cublasCreate_v2(void **handle) { return handle ? 1 : 7; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libcublas.so.13", "blas.c"], cwd=tmp_path, check=True)
    (tmp_path / "main.cu").write_text("""
        extern "C" int cublasCreate_v2(void **);
        int main() { void *p; return cudaMalloc(&p, 4) == cudaSuccess && cublasCreate_v2(&p) == 1 ? 0 : 1; }
    """)
    command = [
        NVCC,
        "-arch=sm_80",
        "-cudart",
        "shared",
        "-o",
        "program",
        "main.cu",
        "-L.",
        "-Xlinker",
        "-l:libcublas.so.13",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    environment = simulator_environment()
    environment["LD_LIBRARY_PATH"] += f":{tmp_path}"
    done = subprocess.run([tmp_path / "program"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "this program uses libcublas.so.13, which has no PTX" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("WARPSIM_HAZARDS", "maybe", "must be on, strict, warn or off"),
        ("WARPSIM_THREADS", "-1", "must be a number of host threads"),
        ("WARPSIM_TIMEOUT_S", "soon", "must be a number of seconds"),
        ("WARPSIM_MAX_MEMORY", "12Q", "must be a number of bytes"),
        ("WARPSIM_DEVICE", "sm_42", "no such device"),
        ("WARPSIM_TABLE", "yes", "must be 0 or 1"),
        ("WARPSIM_MULTIPROCESSORS", "few", "must be a number of multiprocessors from 1 to 1024"),
    ],
)
def test_wrong_settings_are_errors(variable, value, message):
    result = run_program(HELLO, env={variable: value})
    assert result.returncode == 2 and f"{variable}={value}" in result.stderr and message in result.stderr


def test_broken_ptx_is_an_error_that_names_the_line():
    result = run_ptx(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( { ret; }\n", "k", 1, 1)
    assert result.error_name == "cudaErrorInvalidPtx" and "PTX line 4" in result.stderr


def test_unknown_instruction_is_named():
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { frobnicate.u32 %r1; ret; }\n"
    result = run_ptx(text.replace("{", "{ .reg .b32 %r<2>;"), "k", 1, 1)
    assert not result.ok and "frobnicate" in result.stderr


def launch(*arguments, env=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSIM_") and k != "LD_LIBRARY_PATH"}
    environment.update(env or {})
    return subprocess.run(
        [LAUNCHER, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


def test_launcher_runs_a_program(tmp_path):
    program = build_program(HELLO)
    report = tmp_path / "report.json"
    done = launch("--report", report, "--table", "--device=sm_80", "--schedule", "3", "--", program)
    assert (done.returncode, done.stdout) == (0, "42 cudaSuccess\n"), done.stderr
    assert report.exists() and "PTX warp instructions" in done.stderr


def test_launcher_explains_itself(tmp_path):
    program = build_program(HELLO)
    told = launch("--help").stdout
    assert "usage: warpsim" in told and "--hazards on|strict|warn|off" in told
    for arguments, status, message in [
        ([], 125, "no program given"),
        (["--frobnicate", program], 125, "unknown option --frobnicate"),
        (["-t", program], 125, "unknown option -t"),
        (["--t", "3", program], 125, "option --t may mean --trace, --table, --threads, --timeout"),
        (["--device", "sm_1", program], 125, "no such device"),
        (["--hazards", "perhaps", program], 125, "--hazards perhaps: expected on, strict, warn or off"),
        (["--threads", "-1", program], 125, "--threads -1: expected a number of host threads from 1 to 1024"),
        (["--threads=2x", program], 125, "--threads 2x: expected a number of host threads from 1 to 1024"),
        (["--thr", "99999999999999999999", program], 125, "--threads 99999999999999999999: expected a number"),
        (["--timeout"], 125, "option --timeout wants a value, SECONDS"),
        (["--report=", program], 125, "--report '': expected a value"),
        (["--table=1", program], 125, "option --table takes no value: --table=1"),
        (["/nonexistent/program"], 127, "no such program"),
        ([tmp_path], 126, "is a folder"),
    ]:
        done = launch(*arguments)
        assert done.returncode == status and message in done.stderr, (arguments, done)


def test_launcher_leaves_the_programs_arguments_alone():
    for separator in ([], ["--"]):
        assert (
            launch("--table", *separator, "/bin/echo", "--help", "--table", "--", "-x").stdout
            == "--help --table -- -x\n"
        )


def test_launcher_names_programs_that_cannot_run(tmp_path):
    source = tmp_path / "program.cu"
    source.write_text(HELLO)
    command = [NVCC, "-arch=sm_80", "-cudart", "static", "-o", tmp_path / "static", source]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("nvcc cannot link the static CUDA runtime here")
    done = launch(tmp_path / "static")
    assert done.returncode == 126 and "nvcc -cudart shared" in done.stderr
    done = launch(build_program(HELLO, architecture=("-gencode", "arch=compute_80,code=sm_80")))
    assert done.returncode == 126 and "only machine code for sm_80" in done.stderr


def test_launcher_runs_scripts(tmp_path):
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/sh\nexec '{build_program(HELLO)}'\n")
    script.chmod(0o755)
    assert launch(script).stdout == "42 cudaSuccess\n"
