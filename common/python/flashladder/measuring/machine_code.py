"""What the assembler made of a kernel's loop over K and V: which machine instructions, how many, in which order.

Needs nvcc and nvdisasm and no GPU. `make stage-09 order` shows one kernel, `make machine-code` records them all, with
the variants of `make ablations`, in docs/results/sm_90-machine-code.json.
"""

import argparse
import concurrent.futures
import hashlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from flashladder.building import build, toolchain
from flashladder.core.console import progress, say, table
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import RECORDED, ROOT, build_directory, headers, whole
from flashladder.ladder import ablations, stages
from flashladder.measuring import recorded

ARCH = "sm_90"
HEAD_DIMS = (64, 128)
# A class of instructions: its letter in the order, its name, and how its opcodes begin. The first that fits counts.
_CLASSES = (
    ("M", "mma", ("HMMA",)),
    ("L", "ldmatrix", ("LDSM",)),
    ("G", "cp.async", ("LDGSTS",)),
    ("c", "commit, wait", ("LDGDEPBAR",)),
    ("w", "commit, wait", ("DEPBAR",)),
    ("W", "wgmma", ("HGMMA", "QGMMA")),
    ("f", "wgmma's fence, commit, wait", ("WARPGROUP",)),
    ("T", "TMA", ("UTMALDG",)),
    # And the fences of arrivals at another block.
    ("B", "mbarrier", ("SYNCS", "MEMBAR", "CGAERRBAR", "ERRBAR", "CCTL")),
    ("|", "barrier", ("BAR", "WARPSYNC")),
    ("g", "global load, store", ("LDG", "STG")),
    ("s", "shared load, store", ("STS",)),
    ("l", "shared load, store", ("LDS",)),
    ("<", "spill load, store", ("LDL",)),
    (">", "spill load, store", ("STL",)),
    ("e", "ex2", ("MUFU.EX2",)),
    ("r", "other MUFU", ("MUFU",)),
    ("*", "FP32 multiply", ("FMUL", "FFMA")),
    ("+", "FP32 add", ("FADD",)),
    ("^", "FP32 maximum", ("FMNMX",)),
    ("?", "FP32 compare", ("FSETP",)),
    ("~", "shuffle", ("SHFL",)),
    ("y", "vote", ("VOTE", "VOTEU", "ELECT")),
    ("v", "conversion", ("F2FP", "F2F", "I2F", "F2I")),
    ("m", "move", ("MOV", "IMAD.MOV", "UMOV", "CS2R", "SEL", "FSEL", "PRMT", "R2UR", "HFMA2")),  # HFMA2: of a constant
    ("b", "branch", ("BRA", "BSSY", "BSYNC", "CALL", "RET", "EXIT")),
    ("n", "nothing", ("NOP", "YIELD")),
    ("i", "integer, address", ()),  # _INTEGER
)
NAMES = tuple(dict.fromkeys(name for _, name, _ in _CLASSES))
CLASS = {letter: name for letter, name, _ in _CLASSES}
_INTEGER = re.compile(
    r"(IMAD|IADD|VIADD|LEA|LOP3|SHF|ISETP|PLOP3|IMNMX|VIMNMX|LDC|S2R|S2UR|P2R|R2P|POPC|ULDC|"
    r"U(IMAD|IADD|LEA|LOP|SHF|ISETP|PLOP|SEL|PRMT|P2UR|FLO))"
)
AT_ONCE = 8  # instructions: whoever reads what an ldmatrix brings nearer than that behind it has to wait for it
_SHOWN = "MWLGTBfw|gsl<>e~"  # in the picture of `order`; all others are dots
LEGEND = (
    "M mma   L ldmatrix   G cp.async   w its wait   g global load   s l shared store, load   | barrier\n"
    "W wgmma   f its fence and wait   T TMA   B mbarrier   e ex2   ~ shuffle\n"
    "< > spilled register loaded, stored   . everything else"
)
_INSTRUCTION = re.compile(
    r"\s+/\*[0-9a-f]{4,}\*/\s+(?P<predicate>@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)(?P<rest>[^;]*);"
)
_LABEL = re.compile(r"\.(L_x_\d+):")


@dataclass(frozen=True)
class Loop:
    """The loop over K and V of one kernel: a letter for each machine instruction, in order.

    order: as the instructions lie in memory. inner: (first, last) of the loops inside, such as one that copies a tile.
    first_uses: for each ldmatrix, in order, how many instructions further the first one stands that reads what it
    brings: 1 is the very next. Behind the loop's end it goes on at its begin.
    """

    order: str
    inner: tuple[tuple[int, int], ...] = ()
    first_uses: tuple[int, ...] = ()

    def executed(self, copies: int) -> dict[str, int]:
        """Instructions that a warp executes in a turn over a K/V tile, by class; all of NAMES.

        copies: of 16 bytes from global memory that a thread makes in a turn. They tell how often the inner loops are
        passed, all of them equally often; those that wait for an mbarrier, or ask TMA lane by lane, are passed once.
        FlashLadderError where they do not tell it.
        """
        is_copy = [letter in "Gg" for letter in self.order]
        inner = [(first, last) for first, last in self.inner if not set("BT") & set(self.order[first : last + 1])]
        inside = [index for first, last in inner for index in range(first, last + 1)]
        passes = 1
        if inside:
            looped = sum(is_copy[index] for index in inside)
            left = copies - sum(is_copy) + looped
            if not all(any(is_copy[first : last + 1]) for first, last in inner) or left % looped:
                raise FlashLadderError("The loop over K and V has a loop inside that is passed who knows how often.")
            passes = left // looped
        counts = dict.fromkeys(NAMES, 0)
        weight = dict.fromkeys(inside, passes)
        for index, letter in enumerate(self.order):
            counts[CLASS[letter]] += weight.get(index, 1)
        return counts


def letter_of(opcode: str, predicate: str = "") -> str:
    """The letter of an opcode such as HMMA.16816.F32.BF16; FlashLadderError for one of an unknown class."""
    if predicate.strip() == "@!PT":  # never carried out
        return "n"
    for letter, _, begins in _CLASSES:
        if any(re.match(rf"{re.escape(begin)}(?![A-Z0-9])", opcode) for begin in begins):
            return letter
    if not _INTEGER.match(opcode):
        raise FlashLadderError(f"{opcode}: an instruction of no known class; add it to machine_code.py.")
    return "i"


def functions(sass: str) -> dict[str, str]:
    """The text of each kernel in what nvdisasm prints, by its mangled name."""
    parts = re.split(r"^\.text\.(\w+):\n", sass, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def _find_loop(sass: str) -> tuple[list[tuple[str, str, str]], tuple[tuple[int, int], ...]] | None:
    """(opcode, predicate, operands) of the loop over K and V, and the loops inside. See loop_of()."""
    code, labels, jumps = [], {}, []
    for line in sass.splitlines():
        label, found = _LABEL.match(line), _INSTRUCTION.match(line)
        if label:
            labels[label[1]] = len(code)
        if found:
            target = re.search(r"\.(L_x_\d+)", found["rest"])
            if found["opcode"].startswith("BRA") and target:
                jumps.append((len(code), target[1]))
            code.append((found["opcode"], found["predicate"] or "", found["rest"]))
    last = max((at for at, (opcode, _, _) in enumerate(code) if opcode == "EXIT"), default=len(code))
    loops = [(labels[name], at) for at, name in jumps if labels.get(name, at + 1) <= at < last]

    def count(loop: tuple[int, int], *begins: str) -> int:
        return sum(opcode.startswith(begins) for opcode, _, _ in code[loop[0] : loop[1] + 1])

    multiplying = [loop for loop in loops if count(loop, "HMMA", "HGMMA", "QGMMA")]
    if not multiplying:
        return None
    exponentials = max(count(loop, "MUFU.EX2") for loop in multiplying)
    whole = [loop for loop in multiplying if 4 * count(loop, "MUFU.EX2") >= exponentials]
    begin, end = min(whole, key=lambda loop: loop[1] - loop[0])
    inner = tuple((first - begin, last - begin) for first, last in loops if begin < first and last < end)
    return code[begin : end + 1], inner


def opcodes(sass: str) -> list[str]:
    """Of the loop over K and V in a function's text, in order; see loop_of()."""
    found = _find_loop(sass)
    return [opcode for opcode, _, _ in found[0]] if found else []


def loop_of(sass: str) -> Loop | None:
    """The loop over K and V in a function's text: of those with mma or wgmma the shortest one with at least a quarter
    of the exponentials that any has; None where there is none. (Longer ones are loops over query tiles, which may have
    products of their own and the exponentials of their first tile: worked on apart, in the way into the loop and in the
    way round. Behind the last EXIT stand waits that failed: a jump back from there closes no loop.)"""
    found = _find_loop(sass)
    if found is None:
        return None
    code, inner = found
    order = "".join(letter_of(opcode, predicate) for opcode, predicate, _ in code)
    return Loop(order, inner, _first_uses([(opcode, rest) for opcode, _, rest in code]))


def _first_uses(code: list[tuple[str, str]]) -> tuple[int, ...]:
    """Loop.first_uses of (opcode, operands); an ldmatrix that nobody reads is left out."""
    found = []
    for index, (opcode, operands) in enumerate(code):
        if opcode.startswith("LDSM"):
            first = int(re.match(r"\s*R(\d+)", operands)[1])
            brought = range(first, first + int(opcode[-1]))  # LDSM.16.M88.4: 4 registers
            following = (*code[index + 1 :], *code[:index])
            found += [far for far, one in enumerate(following, 1) if not _read(*one).isdisjoint(brought)][:1]
    return tuple(found)


def _read(opcode: str, operands: str) -> set[int]:
    """The numbers of the registers that an instruction reads, as far as ldmatrix can have written them."""
    numbers = [int(number) for number in re.findall(r"\bR(\d+)", operands)]
    if opcode.startswith("HMMA"):  # D, A, B, C: of 4, 4, 2 and 4 registers
        return {*range(numbers[1], numbers[1] + 4), *range(numbers[2], numbers[2] + 2)}
    stores = opcode.startswith(("ST", "LDGSTS"))  # they have no destination
    return set(numbers if stores else numbers[1:])


def copies_in_a_turn(stage: stages.Stage, d: int) -> int:
    """16-byte copies that each thread makes for a tile of K and one of V; none where TMA brings them."""
    launch = stage.data["launch"][-1]
    if stage.hopper:
        return 0
    return 2 * launch["Bc"] * d // 8 // launch["threads"]


# ---- from a kernel.cu to its loops ----


def compile_for(kernel: Path, arch: str = ARCH, folder: Path | None = None) -> Path:
    """Machine code of a kernel.cu for an architecture such as sm_90, in build/machine-code; cached by content.

    folder: of the stage whose headers a patched copy includes. Beside NAME.cubin lies NAME.txt, what ptxas says of
    registers and spills.
    """
    folder = folder or kernel.parent
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise FlashLadderError(f"'{arch}' is no architecture: name one as sm_90 or sm_80.")
    nvcc = toolchain.require_nvcc()
    included = sorted([*headers(), *headers(kernel.parent), *headers(folder)])
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in (kernel, *included)))
    digest.update(repr((arch, str(nvcc), toolchain.nvcc_version(nvcc))).encode())
    cubin = build_directory() / "machine-code" / arch / f"{digest.hexdigest()[:16]}.cubin"
    if cubin.exists():
        return cubin
    command = [nvcc, "-std=c++20", "-O3", "-lineinfo", "-cubin", f"-arch={arch}", "-Xptxas", "-v"]
    command += [f"-I{ROOT / 'common/include'}", f"-I{folder}", kernel, "-o"]
    with whole(cubin) as partial:
        done = subprocess.run([*map(str, command), partial], capture_output=True, text=True)
        if done.returncode:
            raise FlashLadderError(f"{kernel} does not compile for {arch}:\n{(done.stdout + done.stderr)[-3000:]}")
        cubin.with_suffix(".txt").write_text(done.stderr)
    return cubin


def disassemble(cubin: Path) -> str:
    tool = toolchain.require_nvdisasm()
    done = subprocess.run([tool, "-c", cubin], capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError(f"{tool} cannot read {cubin}:\n{(done.stdout + done.stderr).strip()[:2000]}")
    return done.stdout


def _resources(text: str, name: str) -> tuple[int, int]:
    """(registers, bytes of the stack frame: spills) that ptxas reports for the kernel of a mangled name."""
    own = text.split(f"Compiling entry function '{name}'", 1)[-1].split("Compiling entry function", 1)[0]
    frame, used = re.search(r"(\d+) bytes stack frame", own), re.search(r"Used (\d+) registers", own)
    if not frame or not used:
        raise FlashLadderError(f"ptxas says nothing about registers of {name}.")
    return int(used[1]), int(frame[1])


def _first_instances(kernel: Path, folder: Path) -> dict[int, str]:
    """By head dim, for bf16: how the mangled name tells the first instance of the table instances.h from the others;
    empty where there is no table."""
    tables = [place / "instances.h" for place in (kernel.parent, folder) if (place / "instances.h").exists()]
    lines = (
        re.findall(r'^INSTANCE\(__nv_bfloat16, (\d+), "[^"]*", (.*)\)$', tables[0].read_text(), re.M) if tables else []
    )
    mangled = {"true": "Lb1E", "false": "Lb0E"}
    return {int(d): "".join(mangled.get(one, f"Li{one}E") for one in values.split(", ")) for d, values in lines[::-1]}


def measure(kernel: Path, arch: str = ARCH, folder: Path | None = None) -> dict[int, dict]:
    """By head dim, for bf16 (or the stage's one type): {"registers", "spill_bytes", "loop": Loop or None where no loop
    has an mma, "copies"}.

    copies: the opcodes, with all that they say, of the kernel's cp.async. folder: of the stage whose headers a changed
    copy includes. Of a kernel with a table of instances it is the first of the type and head dim.
    """
    cubin = compile_for(kernel, arch, folder)
    instances = _first_instances(kernel, folder or kernel.parent)
    report = cubin.with_suffix(".txt").read_text()
    found = {}
    for name, text in functions(disassemble(cubin)).items():
        d = re.search(r"(?:bfloat16|flash_kernelI)Li(\d+)E", name)  # the second: a stage of one type
        if d and instances.get(int(d[1]), "") in name:
            registers, spills = _resources(report, name)
            copies = sorted(set(re.findall(r"LDGSTS[\w.]*|UTMALDG[\w.]*", text)))
            found[int(d[1])] = {"registers": registers, "spill_bytes": spills, "copies": copies, "loop": loop_of(text)}
    return found


def _arch(stage: stages.Stage, arch: str) -> str:
    """sm_90a in place of sm_90 for a stage with instructions that no other GPU has."""
    return arch + "a" if stage.min_compute.specific and arch == f"sm_{int(stage.min_compute)}" else arch


# ---- make stage-NN order ----


def picture(order: str, width: int = 120) -> str:
    text = "".join(letter if letter in _SHOWN else "." for letter in order)
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


def show(stage: stages.Stage, arguments: list[str] = ()) -> None:
    """Prints the loop of a stage. arguments: --arch sm_80, --d 64."""
    parser = argparse.ArgumentParser(prog=f"make stage-{stage.id} order ARGS=...", description=show.__doc__)
    parser.add_argument("--arch", default=ARCH, help="architecture to compile for (default: %(default)s)")
    parser.add_argument("--d", type=int, default=128, choices=HEAD_DIMS, help="head dim (default: %(default)s)")
    options = parser.parse_args(list(arguments))
    found = measure(stage.kernel, _arch(stage, options.arch)).get(options.d)
    if not found or not found["loop"]:
        raise FlashLadderError(f"{stage.name} has no loop with an mma; stages 04 and later do.")
    loop = found["loop"]
    say(f"{stage.name}, bf16, d = {options.d}, {options.arch}: the loop over K and V has {len(loop.order)} machine "
        f"instructions; {found['registers']} registers, {found['spill_bytes']} bytes of spills\n")  # fmt: skip
    say(picture(loop.order))
    say(f"\n{LEGEND}\n")
    say(f"Instructions from each ldmatrix to the first that reads what it brings, sorted: "
        f"{' '.join(map(str, sorted(loop.first_uses)))}\n")  # fmt: skip
    counts = loop.executed(copies_in_a_turn(stage, options.d))
    rows = [[name, str(count)] for name, count in counts.items() if count]
    rows.append(["all", str(sum(counts.values()))])
    table("executed by a warp for a K/V tile", ["class", "instructions"], rows, (1,))


# ---- the record ----


def toolkit() -> str:
    """Of this machine's nvcc, e.g. 13.0."""
    return ".".join(map(str, toolchain.nvcc_version(toolchain.require_nvcc())))


def record(arch: str = ARCH) -> dict:
    """Of all stages with an mma, and their ablations: see record_file() for the file it goes to."""
    one_each = [(stage, stage.name, "stage", stage.kernel) for stage in stages.all_stages()]
    variants = [(one.stage, f"{one.stage.id} {one.title}", "variant", one) for one in ablations.ablations()]
    everything = [(stage, name, kind, source if isinstance(source, Path) else source.source())
                  for stage, name, kind, source in [*one_each, *variants]]  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
        measured = pool.map(lambda one: measure(one[3], _arch(one[0], arch), one[0].folder), everything)
        measured = list(progress(measured, "machine code", total=len(everything)))
    rows = []
    for (stage, name, kind, kernel), by_head_dim in zip(everything, measured, strict=True):
        for d, found in sorted(by_head_dim.items()):
            loop = found.pop("loop")
            if loop:
                counts = loop.executed(copies_in_a_turn(stage, d))
                sha256 = stage.kernel_hash()
                if kind == "variant":
                    sha256 = stage.kernel_hash(kernel.read_bytes())
                row = {"name": name, "kind": kind, "d_head": d, "kernel_sha256": sha256}
                code = {"order": loop.order, "inner_loops": loop.inner, "first_uses": loop.first_uses}
                rows.append(row | found | {"in_a_turn": counts} | code)
    # No date and no commit: the hashes say of which kernels this is, and the same kernels give the same file.
    return {"version": 1, "provenance": {"device": arch, "toolkit": toolkit()}, "rows": rows}


def record_file(arch: str = ARCH) -> Path:
    return RECORDED / f"{arch}-machine-code.json"


def write_record(arch: str = ARCH) -> Path:
    return recorded.write(record(arch), record_file(arch))


def recorded_rows(*which: int | str, d: int = 128, arch: str = ARCH, kinds: tuple[str, ...] = ("stage",)) -> list[dict]:
    """The recorded rows of stages (by number) and variants (by name, e.g. "09 kv_stages 1"), in the order asked for.

    Without names: all of these kinds, "stage" and "variant".
    """
    rows = {row["name"]: row for row in _load(arch)["rows"] if row["d_head"] == d}
    names = [stages.get(one).name if isinstance(one, int) else one for one in which]
    names = names or [row["name"] for row in rows.values() if row["kind"] in kinds]
    missing = [name for name in names if name not in rows]
    if missing:
        raise FlashLadderError(f"No machine code is recorded for {missing[0]}, d = {d}. There is: {', '.join(rows)}.")
    return [rows[name] for name in names]


def _load(arch: str = ARCH) -> dict:
    if not record_file(arch).exists():
        raise FlashLadderError(f"{record_file(arch)} does not exist: `make machine-code` writes it.")
    return recorded.to_read(record_file(arch))


def is_stale(row: dict) -> bool:
    """True where kernel.cu (for a variant: kernel.cu with its edits) is no longer the one whose code was recorded."""
    if row["kind"] == "stage":
        return recorded.is_stale(row)
    one = next((one for one in ablations.ablations() if f"{one.stage.id} {one.title}" == row["name"]), None)
    return one is None or one.stage.kernel_hash(one.text().encode()) != row["kernel_sha256"]


def label(arch: str = ARCH) -> str:
    """machine code for sm_90 by nvcc 13.0"""
    return f"machine code for {arch} by nvcc {_load(arch)['provenance']['toolkit']}"


def used_at_once(row: dict) -> int:
    """How many ldmatrix of a recorded loop are read fewer than AT_ONCE instructions further."""
    return sum(far < AT_ONCE for far in row["first_uses"])


def in_a_turn(*which: int | str, d: int = 128) -> tuple[list[str], list[list[str]]]:
    """(columns, rows) of a table: what a warp executes for a K/V tile, by class, as recorded."""
    rows = recorded_rows(*which, d=d)
    columns = ["instructions of a warp for a K/V tile", *(row["name"] + ("*" if is_stale(row) else "") for row in rows)]
    body = [[name, *(f"{row['in_a_turn'].get(name, 0):,}" for row in rows)] for name in NAMES]
    body = [line for line in body if any(cell != "0" for cell in line[1:])]
    body.append(["all", *(f"{sum(row['in_a_turn'].values()):,}" for row in rows)])
    for key in ("registers", "spill_bytes"):
        body.append([key.replace("_", " "), *(str(row[key]) for row in rows)])
    body.append([f"ldmatrix used fewer than {AT_ONCE} instructions later", *(str(used_at_once(row)) for row in rows)])
    body.append(["copied by", *(", ".join(row["copies"]) or "LDG, STS" for row in rows)])
    return columns, body
