"""What ptxas says of the kernels with wgmma: of the shipped ones nothing, and of mistakes that it repairs, or that cost
speed, the note that the lesson quotes. The simulator reads PTX, so it does not see what ptxas decides."""

import re
import subprocess

import pytest
from chosen import chosen_stages

from flashladder.building import toolchain
from flashladder.core.paths import ROOT
from flashladder.ladder import mistakes, stages

CHOSEN = chosen_stages()
NOTE = re.compile(r"\((C75\d\d)\) ([^\n]*)")

# (stage, mistake of mistakes.toml): the note.
REPAIRED = {
    ("wgmma", "s_not_waited_for"): "C7517",
    ("wgmma", "newest_batch_not_waited_for"): "C7514",
    ("wgmma", "no_fence"): "C7519",
    ("wgmma", "p_rounded_in_flight"): "C7519",
    ("warp_specialization", "rescaled_in_flight"): "C7514",
}

# Changes about registers: text of kernel.cu, what takes its place, the note, and words of it.
IGNORED = {
    "launch bounds left out": (
        "__launch_bounds__(threads<Br>, 1)",
        "",
        "C7508",
        "'setmaxnreg' ignored; unable to determine register count at entry",
    ),
    "too few registers for the consumers": ("160 : 240;", "160 : 128;", "C7512", "insufficient register resources"),
}


# Spills that cost less than they save (docs/notes/fp8.md): a consumer has eight registers fewer, a transposer 16 more.
SPILLS = {"fp8": "24 bytes spill stores, 28 bytes spill loads"}


def said(source: str, tmp_path, folder=None) -> str:
    """All that ptxas says of a kernel, bf16 with d_head 128, in code for sm_90a."""
    nvcc = toolchain.find_nvcc()
    if not nvcc:
        pytest.skip("no nvcc here")
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(source)
    folders = [ROOT / "common/include", *([folder] if folder else [])]  # that of the stage's table of instances, too
    command = [nvcc, "-std=c++20", "-DFLASH_ONLY_BF16_128", *(f"-I{one}" for one in folders)]
    command += ["-gencode", "arch=compute_90a,code=sm_90a", "-Xptxas", "-v"]
    command += ["-cubin", "-o", tmp_path / "kernel.cubin", kernel]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("one", [one for one in CHOSEN if one.min_compute.specific], ids=lambda one: one.name)
def test_the_shipped_kernel_has_no_note_and_no_spill(one, tmp_path):
    words = said(one.kernel.read_text(), tmp_path, one.folder)
    assert not NOTE.findall(words), words
    assert SPILLS.get(one.slug, " 0 bytes spill stores, 0 bytes spill loads") in words, words


@pytest.mark.parametrize(("name", "mistake"), [one for one in REPAIRED if stages.get(one[0]) in CHOSEN])
def test_what_ptxas_repairs_it_says(name, mistake, tmp_path):
    words = said(mistakes.get(name, mistake).source().read_text(), tmp_path)
    assert REPAIRED[name, mistake] in [note for note, _ in NOTE.findall(words)], words


@pytest.mark.parametrize("change", IGNORED if stages.get("warp_specialization") in CHOSEN else ())
def test_what_ptxas_does_with_registers_it_says(change, tmp_path):
    old, new, note, text = IGNORED[change]
    kernel = stages.get("warp_specialization").kernel.read_text()
    assert kernel.count(old) == 1
    words = said(kernel.replace(old, new), tmp_path)
    assert any(found == note and text in told for found, told in NOTE.findall(words)), words
