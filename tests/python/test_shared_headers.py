"""What later stages share: each header has the text of the stage that teaches it, and no later kernel repeats it. And
how kernels from tma on read: short functions, nothing that captures everything."""

import re
from functools import cache
from pathlib import Path

import pytest

from flashladder.core.paths import headers, included
from flashladder.ladder import stages

# What no stage teaches: the C ABI, launches, conversions, one function per instruction; and the mask, which stages have
# with a tile's columns as a constant, or in parts.
PLAIN = {
    "attention.h", "attention_backward.h", "attention_decode.h", "attention_ring.h", "command_line.h", "configured.h",
    "json_writer.h", "kernel_queue.h", "launch.h", "launch_backward.h", "launch_decode.h", "launch_ring.h", "mask.cuh",
    "numbers.cuh", "ptx.cuh", "ptx_cluster.cuh", "ptx_decode.cuh", "ptx_hopper.cuh", "ptx_ring.cuh", "show.cuh",
    "tensor_maps.h", "wgmma.cuh", "decode_maps.h", "decode_plan.cuh", "backward_maps.h", "backward_passes.cuh",
    "cut_units.cuh", "gradient_rows.cuh", "ptx_backward.cuh", "row_statistics.cuh", "unit_tiles.cuh",
    "wgmma_backward.cuh",
}  # fmt: skip
OTHERS = list(stages.other_parts())


def of_another_part(header: Path) -> bool:
    """Whether a stage of another part teaches it, one that computes gradients, of decode or for several GPUs."""
    return any(header.read_text().startswith(f"// Stage {one.slug} teaches ") for one in OTHERS)


TEACHING = [one for one in headers() if one.name not in PLAIN and not of_another_part(one)]
MOST = {"function": 120, "kernel": 180, "file": 450}  # lines
READABLE = [stage for stage in stages.all_stages() if stage.hopper]


def teacher(header: Path) -> stages.Kernel:
    """The stage that the header's first sentence names: "Stage pipeline ..."."""
    match = re.match(r"// Stage (\w+) ", header.read_text())
    assert match, f"{header.name} begins with the stage that teaches it: // Stage NAME teaches ..."
    return stages.get(match[1])


@cache
def blocks(file: Path) -> tuple[str, ...]:
    """The paragraphs of a file without its head: what stands between blank lines, if it is more than an #include; in a
    struct or a function they are paragraphs of their own, so a text is the same wherever it is put."""
    text = re.sub(r"\A(?://[^\n]*\n)+", "", file.read_text())
    found = [part.strip("\n") for part in re.split(r"\n\s*\n", text)]
    return tuple(part for part in found if part and not all(line.startswith("#") for line in part.splitlines()))


def code(block: str) -> str:
    """Without comments and with one blank for each space; "" where that is less than two lines."""
    lines = [re.sub(r"//.*", "", line).strip() for line in block.splitlines()]
    lines = [line for line in lines if len(line) > 1]
    return " ".join(lines) if len(lines) > 1 else ""


def taught_in(stage: stages.Kernel) -> str:
    """All that the stage's own headers have."""
    return "\n".join(header.read_text() for header in TEACHING if teacher(header) == stage)


@pytest.mark.parametrize("header", TEACHING, ids=lambda one: one.name)
def test_a_shared_header_is_the_text_of_the_stage_that_teaches_it(header):
    stage = teacher(header)
    kernel = stage.kernel.read_text()
    assert f'#include "{header.name}"' not in kernel, f"{stage.slug} teaches {header.name}, and has its text itself"
    missing = [block for block in blocks(header) if block not in kernel]
    assert not missing, f"not word for word in stages/{stage.name}/kernel.cu:\n" + "\n\n".join(missing)


@pytest.mark.parametrize("header", [one for one in headers() if of_another_part(one)], ids=lambda one: one.name)
def test_a_header_of_another_part_is_included_by_later_stages_alone(header):
    """Its functions take as parameters what the stage that teaches them has as members."""
    users = [one.slug for one in OTHERS if f'#include "{header.name}"' in one.kernel.read_text()]
    slugs = [one.slug for one in OTHERS]
    taught = re.match(r"// Stage (\w+) teaches", header.read_text())[1]
    indirect = any(f'#include "{header.name}"' in other.read_text() for other in headers() if other != header)
    assert users or indirect, f"no later stage includes {header.name}"
    assert all(slugs.index(user) > slugs.index(taught) for user in users)


def test_a_merge_is_the_text_of_the_stage_that_teaches_it():
    (header,) = (one for one in headers() if one.name == "merge_parts.cuh")
    kernel = stages.entry("ring").kernel.read_text()
    missing = [block for block in blocks(header) if block not in kernel]
    assert not missing, "not word for word in the stage ring:\n" + "\n\n".join(missing)


@pytest.mark.parametrize("header", TEACHING, ids=lambda one: one.name)
def test_no_later_stage_repeats_a_shared_header(header):
    """But for what it teaches itself, for those after it, and what the stage before the teacher has, too. Stages of
    other parts may use it as well."""
    first = teacher(header)
    before = stages.previous_of(first)
    known = code(before.kernel.read_text()) if before else ""
    found = [code(block) for block in blocks(header) if code(block)]
    wanted = [block for block in found if block not in known]
    assert wanted, f"{header.name} has nothing in it"
    users = [one for one in OTHERS if f'#include "{header.name}"' in one.kernel.read_text()]
    for stage in stages.since(first)[1:]:
        text = stage.kernel.read_text()
        repeated = [one for one in wanted if one in code(text) and one not in code(taught_in(stage))]
        assert not repeated, f"{stage.slug} has what it could include ({header.name}): {repeated[0][:100]} ..."
        users += [stage] if f'#include "{header.name}"' in text else []
    indirect = any(f'#include "{header.name}"' in other.read_text() for other in TEACHING if other != header)
    assert users or indirect, f"no later stage includes {header.name}"


def before_the_launch(stage: stages.Kernel) -> list[str]:
    """The kernel without its launcher, which is the host's."""
    return stage.kernel.read_text().partition("// ---- launch ----")[0].splitlines()


def functions(lines: list[str]) -> list[tuple[str, int, bool]]:
    """(first line's words, length in lines, whether it is a kernel) of each function of the device: from the line with
    __device__ or __global__ to the brace that ends it."""
    found, number = [], 0
    while number < len(lines):
        line = re.sub(r"//.*", "", lines[number])
        if not re.search(r"\b__(device|global)__\b", line):
            number += 1
            continue
        first, depth, opened = number, 0, False
        while number < len(lines):
            text = re.sub(r"//.*|\"[^\"]*\"", "", lines[number])
            depth += text.count("{") - text.count("}")
            opened |= "{" in text
            ends = opened and depth <= 0 and text.rstrip().endswith("}") or not opened and text.rstrip().endswith(";")
            number += 1
            if ends:
                break
        found.append((line.strip(), number - first, "__global__" in line))
    return found


def test_lengths_of_functions_are_counted():
    text = """__device__ int one() { return 1; }
struct X {
    __device__ X(int a)
        : a(a),
          b{2} {}
    __device__ void two() {
        if (a) {
        }
    }
};
__device__ int declared(int x);
__global__ void
    kernel(int a) {
    x();
}""".splitlines()
    assert [(length, kernel) for _, length, kernel in functions(text)] == [
        (1, False), (3, False), (4, False), (1, False), (4, True),
    ]  # fmt: skip


@pytest.mark.parametrize("stage", READABLE, ids=lambda stage: stage.name)
def test_kernels_for_hopper_have_short_functions_and_capture_nothing_unnamed(stage):
    lines = before_the_launch(stage)
    found = functions(lines)
    assert any(kernel for _, _, kernel in found), f"{stage.name}: no __global__ function was found"
    for name, length, kernel in found:
        most = MOST["kernel" if kernel else "function"]
        assert length <= most, f"{stage.name}: {name} has {length} lines, more than {most}"
    captures = [number for number, line in enumerate(lines, 1) if re.search(r"\[[&=]\]", line)]
    assert not captures, f"{stage.name}: lambdas that capture everything in lines {captures}"
    length = len(stage.kernel.read_text().splitlines())
    assert length <= MOST["file"], f"{stage.kernel} has {length} lines, more than {MOST['file']}"


@pytest.mark.parametrize("header", TEACHING, ids=lambda one: one.name)
def test_shared_headers_have_short_functions_and_capture_nothing_unnamed(header):
    lines = header.read_text().splitlines()
    assert all(length <= MOST["function"] for _, length, _ in functions(lines))
    assert not re.search(r"\[[&=]\]", header.read_text())


def test_headers_are_followed_through_headers(tmp_path):
    """Round a circle, too; those of other folders, and what nobody includes, are left out."""
    files = {"kernel.cu": ["a.h", "stdio.h"], "a.h": ["b.cuh"], "b.cuh": ["a.h"], "unused.h": ["a.h"]}
    for name, names in files.items():
        (tmp_path / name).write_text("".join(f'#include "{one}"\n' for one in names))
    assert [one.name for one in included([tmp_path / "kernel.cu"], tmp_path)] == ["a.h", "b.cuh"]
