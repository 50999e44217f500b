"""The PTX front end, through warpsim-inspect: what nvcc writes for many kinds of programs, PTX written by hand, fat
binaries in every compression, and text that is broken on purpose."""

import json
import os
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import cudart
import pytest

INSPECT = cudart.BUILD / "bin" / "warpsim-inspect"
PROGRAMS = Path(__file__).parent / "programs" / "front_end"
HEAD = ".version 9.0\n.target sm_80\n.address_size 64\n"

pytestmark = pytest.mark.simulator_only


@pytest.fixture(scope="module", autouse=True)
def needs_inspect():
    if not INSPECT.exists():
        pytest.fail(f"no {INSPECT}: run `make build` or set WARPSIM_BUILD", pytrace=False)


@pytest.fixture(scope="module")
def nvcc():
    path = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not path:
        pytest.skip("compiles CUDA programs: no nvcc on PATH")
    return path


def inspect(path, *options):
    run = subprocess.run([INSPECT, path, "--json", *options], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["images"]


def inspect_text(tmp_path, text):
    path = tmp_path / "text.ptx"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return subprocess.run([INSPECT, path, "--json"], capture_output=True, text=True, errors="replace", timeout=60)


def module(tmp_path, text):
    run = inspect_text(tmp_path, HEAD + text)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["images"][0]


def kernel(tmp_path, body):
    """The parsed kernel with this body, as warpsim-inspect tells it."""
    return module(tmp_path, ".visible .entry k(.param .b64 p)\n{\n" + body + "\nret;\n}\n")["functions"][0]


def variables(tmp_path, text):
    return {v["name"]: v for v in module(tmp_path, text)["variables"]}


def refusal(tmp_path, text):
    run = inspect_text(tmp_path, HEAD + text)
    assert run.returncode == 1, run.stdout
    return run.stderr.strip()


# ---- Programs by nvcc

COMPUTE = ("75", "80", "90a")


@pytest.fixture(scope="module")
def compiled(nvcc, tmp_path_factory):
    folder = tmp_path_factory.mktemp("front_end")
    objects = {}
    for source in sorted(PROGRAMS.glob("*.cu")):
        objects[source.stem] = folder / (source.stem + ".o")
        codes = [a for c in COMPUTE for a in ("-gencode", f"arch=compute_{c},code=compute_{c}")]
        subprocess.run([nvcc, "-c", "-lineinfo", *codes, source, "-o", objects[source.stem]], check=True)
    return {name: inspect(path, "--check") for name, path in objects.items()}


def functions(image):
    return {f["name"]: f for f in image["functions"]}


@pytest.mark.long
@pytest.mark.parametrize("program", sorted(p.stem for p in PROGRAMS.glob("*.cu")))
def test_parses_what_nvcc_writes(compiled, program):
    images = compiled[program]
    assert [i["target"] for i in images] == [f"compute_{c}" for c in COMPUTE]
    for image in images:
        assert "error" not in image
        kernels = [f for f in image["functions"] if f["role"] == "kernel"]
        assert kernels and all(k["opcodes"].get("ret", 0) >= 1 for k in kernels)
        for k in kernels:
            assert sum(k["opcodes"].values()) == k["instructions"] > 10
            files = {image["files"][line.split(":")[0]] for line in k["lines"]}
            assert str(PROGRAMS / f"{program}.cu") in files


def test_tables_keep_values_and_addresses(compiled):
    table = {v["name"]: v for v in compiled["cpp_features"][1]["variables"]}
    assert table["addresses"]["relocations"] == [
        {"offset": 0, "symbol": "numbers", "addend": 4, "generic": True, "byte": None},
        {"offset": 8, "symbol": "numbers", "addend": 12, "generic": True, "byte": None},
    ]
    assert [r["symbol"] for r in table["functions"]["relocations"]] == ["_Z5twicei", "_Z6thricei"]
    weights = bytes.fromhex(table["weights"]["initial"]).ljust(24, b"\0")
    assert struct.unpack("<6f", weights) == (1.5, -2, 3, 4, 0, 0)
    assert table["dynamic"]["external"] and table["dynamic"]["bytes"] == 0
    assert any(b'two "quoted"' in bytes.fromhex(v["initial"]) for v in table.values())
    vtable = table["_ZTV6Square"]
    assert "_ZNK6Square4areaEv" in [r["symbol"] for r in vtable["relocations"]]


def test_signatures_and_directives(compiled):
    known = functions(compiled["cpp_features"][2])
    assert known["features"]["directives"] == {"maxntid": [128], "minnctapersm": [2]} or known["features"][
        "directives"
    ] == {"maxntid": [128, 1, 1], "minnctapersm": [2]}
    assert known["features"]["parameters"] == [8, 36, 4, 2, 1]
    values = next(f for name, f in known.items() if "shuffle_values" in name)
    assert values["parameters"] == [36, 4] and values["returns"] == [36]
    assert known["vprintf"]["role"] == "declared"


@pytest.mark.long
def test_opcode_counts_match_the_text(nvcc, tmp_path):
    """Counts the statements of the PTX text independently, with a regular expression."""
    for source in PROGRAMS.glob("*.cu"):
        path = tmp_path / "p.ptx"
        subprocess.run([nvcc, "-ptx", "-arch=compute_80", source, "-o", path], check=True)
        text = re.sub(r"//[^\n]*", "", path.read_text())
        text = re.sub(r"\.section[^{]*\{.*?\n\s*\}", "", text, flags=re.S)
        text = re.sub(r"^\.[^;{=]*\{", "", text, flags=re.M)  # a function's head
        # A statement ends with ';'. Braces and labels may stand before it; declarations start with a dot.
        statements = [re.sub(r"^(\s|[{}]|[\w$]+\s*:)*", "", s) for s in text.split(";")]
        expected = sum(1 for s in statements if s and not s.startswith("."))
        assert expected > 40
        assert sum(f["instructions"] for f in inspect(path)[0]["functions"]) == expected


def test_check_knows_every_instruction(compiled):
    for program, images in compiled.items():
        for image in images:
            for f in image["functions"]:
                assert "unsupported" not in f, f"{program}, {image['target']}: {f['unsupported']}"


def test_check_names_what_is_unknown(tmp_path):
    path = tmp_path / "unknown.ptx"
    path.write_text(HEAD + ".entry good() { ret; }\n.entry bad() { .reg .b32 a;\n frobnicate.b32 a, a; ret; }\n")
    run = subprocess.run([INSPECT, path, "--check", "--json"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    known = functions(json.loads(run.stdout)["images"][0])
    assert "unsupported" not in known["good"]
    assert "frobnicate.b32" in known["bad"]["unsupported"] and "PTX line 6" in known["bad"]["unsupported"]


# ---- PTX by hand


def test_handwritten(nvcc, tmp_path):
    path = PROGRAMS / "handwritten.ptx"
    ptxas = Path(nvcc).parent / "ptxas"
    subprocess.run([ptxas, "-arch=sm_90a", path, "-o", tmp_path / "cubin"], check=True)  # the text itself is valid
    (image,) = inspect(path)
    assert image["target"] == "sm_90a" and image["ptx_version"] == 85 and image["files"] == {"1": "dir/a b.cu"}
    known = functions(image)
    assert "other" not in known  # an alias is its target
    entry = known["kernel"]
    assert entry["directives"] == {"maxntid": [128, 2, 1], "minnctapersm": [2], "reqnctapercluster": [2, 1, 1]}
    assert entry["parameters"] == [8, 24]
    assert set(entry["lines"]) == {"1:12", "1:14"}
    assert entry["opcodes"]["lop3.or.b32"] == 1 and entry["opcodes"]["call"] == 6 and entry["opcodes"]["bra"] == 2
    table = {v["name"]: v for v in image["variables"]}
    assert struct.unpack("<4f", bytes.fromhex(table["floats"]["initial"])) == (
        1.5,
        2,
        -2,
        struct.unpack("f", struct.pack("f", 1e-3))[0],
    )
    assert struct.unpack("<6i", bytes.fromhex(table["matrix"]["initial"]).ljust(24, b"\0")) == (1, 2, 3, 4, 5, 0)
    assert struct.unpack("<8I", bytes.fromhex(table["unsized"]["initial"])) == (1, 16, 8, 5, 5, 17, 14, 32)
    assert [r["byte"] for r in table["bytes"]["relocations"]] == list(range(8))
    assert [(r["addend"], r["generic"]) for r in table["table"]["relocations"]] == [(4, True), (8, False)]
    assert table["vec"]["bytes"] == table["vec"]["align"] == 16


@pytest.mark.parametrize(
    "written, path",
    [
        (r"/a/\303\274/k.cu", "/a/ü/k.cu"),
        (r"\"b\"\\c.cu", '"b"\\c.cu'),
        (r"\1018.cu", "A8.cu"),
        ("plain.cu", "plain.cu"),
    ],
)
def test_a_files_name_is_as_it_was_before_nvcc_wrote_it(tmp_path, written, path):
    image = module(tmp_path, f'.file 1 "{written}"\n.entry k() {{ .loc 1 3 0 ret; }}')
    assert image["files"] == {"1": path}


def test_register_parameters_become_moves(tmp_path):
    text = """.func (.reg .u32 r) f (.reg .u32 x, .reg .u64 y) { .reg .pred p; setp.eq.u32 p, x, 0; @p ret;
    mov.u32 r, x; }
    .entry k() { .reg .u32 a; .reg .u64 b; call (a), f, (a, b); call (_), f, (1, b); }"""
    known = functions(module(tmp_path, text))
    assert known["f"]["opcodes"] == {
        "ld.param.u32": 1,
        "ld.param.u64": 1,
        "mov.u32": 1,
        "ret": 1,
        "setp.eq.u32": 1,
        "st.param.u32": 2,
    }
    assert known["k"]["opcodes"] == {"call": 2, "ld.param.u32": 1, "st.param.u32": 2, "st.param.u64": 2}


@pytest.mark.parametrize("literal, value", [
    ("017", 15), ("0x1F", 31), ("0b101", 5), ("-1", 0xFFFFFFFF), ("~0", 0xFFFFFFFF), ("4294967295U", 0xFFFFFFFF),
    ("1+2*3", 7), ("(1+2)*3", 9), ("1<<4|1", 17), ("7 % 4 - 1", 2), ("-8/3", 0xFFFFFFFE), ("5>3 && 2!=2", 0),
    ("0xff^0x0f", 0xF0), ("WARP_SZ*2", 64), ("(.s64)-1>>63", 0xFFFFFFFF), ("!0", 1),
])  # fmt: skip
def test_constant_expressions(tmp_path, literal, value):
    found = variables(tmp_path, f".global .u32 x = {literal};\n")["x"]
    assert struct.unpack("<I", bytes.fromhex(found["initial"]))[0] == value


@pytest.mark.parametrize("type_, literal, expected", [
    ("f32", "0f3F800000", struct.pack("<f", 1)), ("f32", "1.5", struct.pack("<f", 1.5)),
    ("f32", "-0f3F800000", struct.pack("<f", -1)), ("f32", "2", struct.pack("<f", 2)),
    ("f64", "0d4000000000000000", struct.pack("<d", 2)), ("f64", "1.0e-3", struct.pack("<d", 1e-3)),
    ("f64", "0f40000000", struct.pack("<d", 2)), ("f32", "1e999", struct.pack("<f", float("inf"))),
    ("b64", "0x123456789abcdef0", struct.pack("<Q", 0x123456789ABCDEF0)), ("s8", "-3", b"\xfd"),
])  # fmt: skip
def test_initial_values(tmp_path, type_, literal, expected):
    assert bytes.fromhex(variables(tmp_path, f".global .{type_} x = {literal};\n")["x"]["initial"]) == expected


def test_scopes(tmp_path):
    """Registers, labels and .param variables may repeat in inner scopes; inner scopes see the labels of outer ones."""
    k = kernel(
        tmp_path,
        """
        .reg .b32 x; .reg .pred p;
        { .reg .f32 x; .param .b32 a; mov.f32 x, 0f00000000; st.param.f32 [a], x; L: @p bra L; bra OUT; }
        { .reg .b64 x; .param .b32 a; mov.b64 x, 0; L: { @p bra L; @!p bra.uni OUT; } }
        OUT: mov.b32 x, 1;""",
    )
    assert k["opcodes"] == {
        "mov.f32": 1,
        "st.param.f32": 1,
        "bra": 3,
        "mov.b64": 1,
        "bra.uni": 1,
        "mov.b32": 1,
        "ret": 1,
    }
    assert k["registers"] == 4


def test_ranges_make_only_registers_that_are_used(tmp_path):
    assert kernel(tmp_path, ".reg .b32 %r<2000000000>; mov.b32 %r7, %r1999999999;")["registers"] == 2


@pytest.mark.parametrize("text, message", [
    (".entry k() { .reg .b32 a; mov.u32 a, 1 }", "PTX line 4: expected ';' before '}'"),
    (".entry k() {\n mov.u32 %r1, 1; }", "PTX line 5: register '%r1' is not declared"),
    (".entry k() { .reg .b32 %r<3>; mov.u32 %r3, 1; }", "PTX line 4: register '%r3' is not declared"),
    (".entry k() {\n bra AWAY;\n }", "PTX line 5: label 'AWAY' is not defined"),
    (".entry k() { L: L: ret; }", "PTX line 4: label 'L' is defined twice"),
    (".entry k() { { L: ret; } bra L; }", "PTX line 4: label 'L' is not defined"),
    (".entry k() { .reg .b32 a, a; }", "PTX line 4: register 'a' is declared twice"),
    (".entry k() { .reg .b32 a; @a ret; }", "guard 'a' is no predicate register"),
    (".entry k() { ret;", "expected an instruction before end of text"),
    (".entry k() { ret; } .entry k() { ret; }", "function 'k' is defined twice"),
    (".entry k() { .reg .f32 a; mov.f32 a, 0f3F; }", "a float literal needs 8 hex digits"),
    (".global .b8 x[2] = {1, 2, 3};", "more initial values than the array has elements"),
    (".global .b8 x[4] = {{{1}}};", "initialiser is nested too deeply"),
    (".global .b32 x[1/0];", "division by zero"),
    (".global .b32 x[1099511627776];", "an array that is too large"),
    (".global .b32 x = 99999999999999999999;", "number does not fit into 64 bits"),
    (".global .align 3 .b32 x;", "alignment must be a power of two"),
    ("/* never closed", "PTX line 4: comment is not closed"),
    ("\x01", "unexpected character '?'"),
    (".entry k() .maxwarps 3 { ret; }", "unknown function directive '.maxwarps'"),
    (".address_size 32", "only .address_size 64 is supported"),
    (".global .b32 x = " + "(" * 10000 + "1;", "expression is nested too deeply"),
    (".entry k() " + "{" * 10000, "'{' is nested too deeply"),
    (".global .b32 x[100][1000000] = {" + ",".join(["{1}"] * 100) + "};", "an initialiser that is too sparse"),
])  # fmt: skip
def test_refusals_name_the_place(tmp_path, text, message):
    assert message in refusal(tmp_path, text)


# ---- Fat binaries

TINY = "__global__ void tiny(int *p) { *p = 42; }\nint main() { tiny<<<1, 1>>>(nullptr); }\n"


@pytest.mark.parametrize("mode", ["default", "speed", "size", "balance", "none", "-no-compress"])
def test_compressed_fat_binaries(nvcc, tmp_path, mode):
    source, program = tmp_path / "tiny.cu", tmp_path / "tiny"
    source.write_text(TINY)
    flag = [] if mode == "default" else [mode] if mode.startswith("-") else [f"--compress-mode={mode}"]
    subprocess.run([nvcc, "-cudart", "shared", *flag, "-gencode", "arch=compute_80,code=sm_80",
                    "-gencode", "arch=compute_90a,code=compute_90a", source, "-o", program], check=True)  # fmt: skip
    images = [i for i in inspect(program) if i["kind"] == "ptx"]
    assert [i["target"] for i in images] == ["compute_90a"]
    assert [f["name"] for f in images[0]["functions"]] == ["_Z4tinyPi"]
    assert any(i["kind"] == "elf" and i["target"] == "sm_80" for i in inspect(program))


def test_damaged_fat_binaries_are_refused_or_read(nvcc, tmp_path):
    source, program = tmp_path / "tiny.cu", tmp_path / "tiny.o"
    source.write_text(TINY)
    subprocess.run([nvcc, "-c", "-gencode", "arch=compute_80,code=compute_80", source, "-o", program], check=True)
    whole = program.read_bytes()
    at = whole.index(struct.pack("<I", 0xBA55ED50))
    assert "tiny" in str(inspect(program))
    refused = 0
    for offset in range(4, 16 + 80 + 100, 3):
        broken = bytearray(whole)
        broken[at + offset] ^= 0xFF
        run = inspect_text(tmp_path, bytes(broken))
        assert run.returncode in (0, 1), f"byte {offset}: {run.stderr}"
        refused += run.returncode
    assert refused > 20


def test_wrong_files_are_refused(tmp_path):
    run = subprocess.run([INSPECT, "/bin/sh"], capture_output=True, text=True)
    assert run.returncode == 1 and "no fat binary" in run.stderr
    run = subprocess.run([INSPECT, tmp_path / "nonesuch"], capture_output=True, text=True)
    assert run.returncode == 1 and "No such file" in run.stderr
    run = subprocess.run([INSPECT], capture_output=True, text=True)
    assert run.returncode == 2 and "no program or PTX file given" in run.stderr


# ---- Hostile text


def mutate(random_, text):
    pieces = """{ } ( ) [ ] < > , ; @ | % _ .reg <4000000000> ={ call generic( 0xff00( " /* 99999999999999999999
        -9223372036854775808 .branchtargets""".split()
    for _ in range(random_.randint(1, 6)):
        a, b = random_.randrange(len(text)), random_.randrange(len(text))
        action = random_.randrange(5)
        if action == 0:
            text = text[:a] + chr(random_.randrange(1, 256)) + text[a + 1 :]
        elif action == 1:
            text = text[:a] + text[a + random_.randrange(40) :]
        elif action == 2:
            text = text[:a] + text[b : b + random_.randrange(200)] + text[a:]
        elif action == 3:
            text = text[:a] + random_.choice(pieces) + text[a:]
        else:
            text = text[: a + 200]
    return text


def test_hostile_text_never_crashes(tmp_path):
    random_ = random.Random(20)
    text = (PROGRAMS / "handwritten.ptx").read_text()
    outcomes = set()
    for case in range(int(os.environ.get("WARPSIM_FUZZ_CASES", "300"))):
        mutant = mutate(random_, text)
        run = inspect_text(tmp_path, mutant.encode("latin-1"))
        assert run.returncode in (0, 1), f"case {case}: {run.stderr}\n{mutant}"
        assert run.returncode == 0 or "PTX line" in run.stderr
        outcomes.add(run.returncode)
    assert outcomes == {0, 1}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "no program or PTX file given"),
        (["a.ptx", "b.ptx"], "unexpected argument 'b.ptx'"),
        (["a.ptx", "--chekc"], "unknown option --chekc"),
        (["--json=yes", "a.ptx"], "option --json takes no value"),
    ],
)
def test_inspect_refuses_wrong_arguments(arguments, message):
    done = subprocess.run([INSPECT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and message in done.stderr and not done.stdout, done


def test_inspect_explains_itself():
    done = subprocess.run([INSPECT, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--check" in done.stdout and not done.stderr, done
