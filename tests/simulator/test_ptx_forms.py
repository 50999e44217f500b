"""What ptxas takes and refuses, the simulator takes and refuses: on forms generated from the manual's syntax lines."""

import random
import re
import shutil

import ptx_forms
import pytest
from cudart import BUILD

pytestmark = pytest.mark.simulator_only
INSPECT = BUILD / "bin" / "warpsim-inspect"
TARGETS = ["sm_90a", "sm_75", "sm_100a"]
# What ptxas takes for sm_90a and the simulator does not.
LEFT_OUT = [
    (r"mma\.sp", "sparse matrices: the manual shows the places of their metadata in figures alone"),
    (r"fma.*\.oob", "which NaN stands for what is out of bounds is not said"),
    (r"fma\.r[zmp].*bf16|rcp\.r[nzmp]\.ftz\.f64|(addc|subc|madc).*\.u16", "the manual has no such form"),
    (r"istypep", "refused by name"),
    (r"cp\..*tensor.*im2col", "only boxes of tensors are copied"),
    (r"(mapa|getctarank)\.u32", "a generic address of 32 bits"),
    (r"st(\.weak)?\.param.*\[d1\]", "a register that points to a parameter, which only calls could make"),
]


def opcode(form):
    return re.split(r"[. ]", form)[0]


@pytest.fixture(scope="module")
def ptxas():
    found = shutil.which("ptxas")
    if not found:
        pytest.skip("there is no ptxas on PATH: it comes with the CUDA Toolkit's nvcc")
    return found


@pytest.fixture(scope="module")
def complaints(ptxas):
    """What ptxas says of every form for sm_90a, empty where it takes the form: asked once."""
    return ptx_forms.ptxas_takes(ptx_forms.every_form(), "sm_90a", ptxas)


def check_known(complaints):
    """All that ptxas takes the simulator takes, but for LEFT_OUT. complaints: {form: what ptxas says for sm_90a}"""
    ours = ptx_forms.simulator_takes([form for form in complaints if not complaints[form]], INSPECT)
    missing = [f"{form} | {words}" for form, words in ours.items() if words]
    missing = [complaint for complaint in missing if not left_out(complaint)]
    assert not missing, f"{len(missing)} forms are PTX and not known:\n" + "\n".join(missing[:20])


def check_refused(forms, ptxas):
    """What the simulator takes ptxas takes for one of the targets: it is asked about the forms that the simulator takes
    and that it took for no target before."""
    ours = ptx_forms.simulator_takes(forms, INSPECT)
    extra = {form: "" for form in forms if not ours[form]}
    for target in TARGETS:
        said = ptx_forms.ptxas_takes(list(extra), target, ptxas)
        extra = {form: words for form, words in said.items() if words}
    told = [f"{form} | {words}" for form, words in extra.items()]
    assert not extra, f"{len(extra)} forms are no PTX and are taken:\n" + "\n".join(told[:20])


def sample(forms, each, seed):
    """A few forms of each opcode."""
    generator, by_opcode = random.Random(seed), {}
    for form in forms:
        by_opcode.setdefault(opcode(form), []).append(form)
    return [form for group in by_opcode.values() for form in generator.sample(group, min(each, len(group)))]


def left_out(complaint):
    return any(re.match(pattern, complaint) for pattern, _ in LEFT_OUT)


@pytest.mark.long
def test_a_sample_of_all_forms(ptxas):
    forms = sample(ptx_forms.every_form(), 20, 1)
    check_known(ptx_forms.ptxas_takes(forms, "sm_90a", ptxas))
    check_refused(forms, ptxas)


@pytest.mark.long
def test_all_forms(complaints, ptxas):
    check_known(complaints)
    check_refused(list(complaints), ptxas)


def check_wrong_forms(complaints, each, ptxas):
    check_refused(ptx_forms.wrong_forms(sample([form for form in complaints if not complaints[form]], each, 3)), ptxas)


@pytest.mark.long
def test_wrong_orders_missing_and_unknown_modifiers(ptxas):
    check_wrong_forms(ptx_forms.ptxas_takes(sample(ptx_forms.every_form(), 20, 2), "sm_90a", ptxas), 1, ptxas)


@pytest.mark.long
def test_more_wrong_orders_missing_and_unknown_modifiers(complaints, ptxas):
    check_wrong_forms(complaints, 12, ptxas)


def test_what_is_left_out_is_refused_with_words(ptxas):
    forms = [
        ("istypep.texref p, d1", "does not simulate istypep"),
        (
            "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 <r4>, <r2>, <r2>, <r4>, r9, 0",
            "mma has no modifier .sp",
        ),
    ]
    for form, words in forms:
        (text,) = ptx_forms.forms_of(*form.split(" ", 1))
        (complaint,) = ptx_forms.simulator_takes([text], INSPECT).values()
        assert words in complaint, f"{text}: {complaint}"
        assert not ptx_forms.ptxas_takes([text], "sm_90a", ptxas)[text], f"{text} is PTX"
