"""Machine code: the loop over K and V is found and counted in what nvdisasm prints, and the record says what is so."""

import re
import sys

import pytest

from flashladder.building import toolchain
from flashladder.commands import results
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import ablations, stages
from flashladder.measuring import machine_code, recorded

KERNEL = "_Z12flash_kernelI13__nv_bfloat16Li128EEv11FlashParams"
# As nvdisasm -c prints it, shortened: a loop that copies Q, the loop over K and V with one that copies a tile.
SASS = f"""\
\t.target\tsm_90
        .type           {KERNEL},@function
.text.{KERNEL}:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   LDGSTS.E.BYPASS.128 [R145], desc[UR12][R4.64] ;
        /*0020*/              @!P0 BRA `(.L_x_0) ;
.L_x_1:
        /*0030*/                   DEPBAR.LE SB0, 0x0 ;
        /*0040*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0050*/               @P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0060*/              @!PT LDS RZ, [RZ] ;
        /*0070*/                   LDGSTS.E.BYPASS.128 [R145], desc[UR12][R4.64] ;
        /*0080*/                   LDGSTS.E.BYPASS.128 [R146], desc[UR12][R6.64] ;
        /*0090*/              @!P0 BRA `(.L_x_2) ;
.L_x_3:
        /*00a0*/                   LDGDEPBAR ;
        /*00b0*/                   LDSM.16.M88.4 R48, [R213] ;
        /*00c0*/                   IMAD.MOV.U32 R50, RZ, RZ, R48 ;
        /*00d0*/                   IMAD R4, R8, UR8, RZ ;
        /*00e0*/                   HMMA.16816.F32.BF16 R52, R144.reuse, R148, R52 ;
        /*00f0*/              @!P2 FMUL R197, R197, 0.5 ;
        /*0100*/                   MUFU.EX2 R209, R166 ;
        /*0110*/                   F2FP.BF16.F32.PACK_AB R147, R225, R219 ;
        /*0120*/              @!P0 BRA `(.L_x_1) ;
        /*0130*/                   MUFU.RCP R3, R4 ;
.L_x_4:
        /*0140*/                   BRA `(.L_x_4);
"""


def test_the_loop_is_found_in_a_disassembly():
    (name,) = machine_code.functions(SASS)
    loop = machine_code.loop_of(machine_code.functions(SASS)[name])
    assert name == KERNEL
    assert loop.order == "w|bnGGbcLmiM*evb"
    assert loop.inner == ((3, 6),)
    assert loop.first_uses == (1,)  # the move right behind LDSM reads R48


@pytest.mark.parametrize(
    "reader, far",
    [
        ("HMMA.16816.F32.BF16 R52, R144, R50, R52", 2),  # B: R50 and R51
        ("HMMA.16816.F32.BF16 R52, R47.reuse, R148, R52", 2),  # A: R47 to R50
        ("HMMA.16816.F32.BF16 R48, R44, R148, R52", None),  # writes it
        ("STS.128 [R51], R8", 2),
        ("STL [R1+0x8], R50", 2),
        ("MOV R48, R52", None),
        ("IADD3 R4, R4, 0x1, R51", 2),
    ],
)
def test_who_reads_first_what_an_ldmatrix_brings(reader, far):
    code = [("NOP", ""), ("LDSM.16.M88.4", " R48, [R213+UR4+0x50]"), ("NOP", ""), tuple(reader.split(" ", 1))]
    assert machine_code._first_uses(code) == (() if far is None else (far,))


def test_a_load_at_the_loops_end_is_used_at_its_begin():
    code = [("MOV", " R2, R9"), ("MOV", " R3, R49"), ("LDSM.16.M88.2", " R48, [R213]")]
    assert machine_code._first_uses(code) == (2,)
    assert machine_code._first_uses([("MOV", " R3, R50"), *code[2:]]) == ()  # .2 brings R48 and R49


def test_inner_loops_are_passed_as_often_as_the_copies_say():
    loop = machine_code.loop_of(SASS)
    counts = loop.executed(copies=6)  # two at a time: three passes
    assert (counts["cp.async"], counts["nothing"], counts["branch"]) == (6, 3, 5)
    assert counts["mma"] == counts["ex2"] == counts["barrier"] == 1
    assert sum(counts.values()) == len(loop.order) + 2 * 4


# Behind the function's end stands a wait that failed: it jumps back to where it came from, out of the loop and into it.
WAITING = SASS.replace(
    """        /*0130*/                   MUFU.RCP R3, R4 ;
""",
    """        /*0130*/                   EXIT ;
.L_x_9:
        /*0138*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R247], R44 ;
        /*013c*/                   BRA `(.L_x_2) ;
""",
)


def test_a_wait_that_the_compiler_put_behind_the_end_is_no_part_of_the_loop():
    assert WAITING != SASS and "L_x_2:" in SASS
    assert machine_code.loop_of(WAITING).order == machine_code.loop_of(SASS).order


def test_a_wait_of_a_shorter_stretch_with_products_and_exponentials_closes_no_loop():
    """As where the next query tile's first tile is worked on behind the loop: that is passed once."""
    products = "        /*012c*/                   HMMA.16816.F32.BF16 R52, R144, R148, R52 ;\n"
    exponential = "        /*012e*/                   MUFU.EX2 R209, R166 ;\n"
    end = "        /*0130*/                   EXIT ;\n"
    text = WAITING.replace(end, f".L_x_8:\n{products}{exponential}{end}")
    text = text.replace("/*013c*/                   BRA `(.L_x_2) ;", "/*013c*/                   BRA `(.L_x_8) ;")
    assert text.count("HMMA") == text.count("MUFU.EX2") == 2 and text.count("L_x_8") == 2
    assert machine_code.loop_of(text).order == machine_code.loop_of(SASS).order


def test_a_loop_over_query_tiles_with_more_products_is_not_taken_for_it():
    """It has a product before and one behind, and a division that no turn has."""
    product = "        /*002c*/                   HMMA.16816.F32.BF16 R52, R144, R148, R52 ;\n"
    division = "        /*0028*/                   I2FP.F32.S32 R3, R4 ;\n"
    text = SASS.replace(".L_x_1:\n", f".L_x_7:\n{division}{product}.L_x_1:\n")
    jump = "        /*0134*/               @P1 BRA `(.L_x_7) ;\n"
    text = text.replace("        /*0130*/                   MUFU.RCP R3, R4 ;\n", product + jump)
    assert text.count("HMMA") == 3
    assert machine_code.loop_of(text).order == machine_code.loop_of(SASS).order


def test_a_first_maximum_before_the_loop_is_no_part_of_it():
    """A loop over query tiles that takes one, or works on each one's first tile apart, has up to three times the
    exponentials of the loop over K and V, and some more."""
    exponential = "        /*0100*/                   MUFU.EX2 R209, R166 ;\n"
    many = SASS.replace(exponential, exponential * 20)
    text = many.replace(".L_x_1:\n", f".L_x_7:\n{exponential * 55}.L_x_1:\n")
    jump = "        /*0134*/               @P1 BRA `(.L_x_7) ;\n"
    text = text.replace("        /*0130*/                   MUFU.RCP R3, R4 ;\n", jump)
    assert text.count("EX2") == 75
    assert machine_code.loop_of(text).order == machine_code.loop_of(many).order


def test_loops_that_wait_are_passed_once():
    counts = machine_code.Loop("MBbTyb", ((1, 2), (3, 5))).executed(copies=0)
    assert (counts["mbarrier"], counts["TMA"], counts["branch"], counts["mma"]) == (1, 1, 2, 1)


def test_copies_that_do_not_fit_are_told():
    with pytest.raises(FlashLadderError, match="who knows how often"):
        machine_code.loop_of(SASS).executed(copies=5)
    with pytest.raises(FlashLadderError, match="who knows how often"):
        machine_code.Loop("Miib", ((1, 2),)).executed(copies=8)


def test_a_function_without_mma_has_no_loop():
    assert machine_code.loop_of(SASS.replace("HMMA", "FFMA")) is None


@pytest.mark.parametrize(
    "opcode, name",
    [
        ("HMMA.16816.F32", "mma"),
        ("LDGSTS.E.BYPASS.128", "cp.async"),
        ("LDG.E.128", "global load, store"),
        ("LDL.LU", "spill load, store"),
        ("IMAD.MOV.U32", "move"),
        ("IMAD.WIDE.U32", "integer, address"),
        ("F2FP.BF16.F32.PACK_AB", "conversion"),
        ("FMNMX", "FP32 maximum"),
        ("MUFU.RCP", "other MUFU"),
        ("FSEL", "move"),
    ],
)
def test_classes(opcode, name):
    assert machine_code.CLASS[machine_code.letter_of(opcode)] == name


def test_unknown_instructions_are_not_hidden():
    with pytest.raises(FlashLadderError, match="IGMMA.64: an instruction of no known class"):
        machine_code.letter_of("IGMMA.64")


def test_missing_nvdisasm_is_told_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setattr(toolchain, "_nvdisasm_candidates", lambda: iter([tmp_path / "nvdisasm"]))
    with pytest.raises(FlashLadderError) as told:
        machine_code.disassemble(tmp_path / "some.cubin")
    assert f"{sys.executable} -m pip install 'nvidia-cuda-nvdisasm>=13.2,<14'" in str(told.value)
    assert "PTX" not in str(told.value)


@pytest.mark.parametrize("variable", ["PATH", "CUDA_HOME", "wheel"])
def test_nvdisasm_is_found(monkeypatch, tmp_path, variable):
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(toolchain, "USUAL_CUDA_ROOTS", ())
    places = {"PATH": "bin", "CUDA_HOME": "cuda/bin", "wheel": "site-packages/nvidia/cu13/bin"}
    folders = {"scripts": tmp_path / "scripts", "purelib": tmp_path / "site-packages"}
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda kind: str(folders[kind]))
    assert toolchain.find_nvdisasm() is None
    tool = tmp_path / places[variable] / "nvdisasm"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    if variable == "PATH":
        monkeypatch.setenv("PATH", str(tool.parent))
    if variable == "CUDA_HOME":
        monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert toolchain.find_nvdisasm() == tool


@pytest.mark.parametrize("arch", ["90", "sm_9", "sm_90;rm"])
def test_bad_architecture(arch):
    with pytest.raises(FlashLadderError, match="is no architecture: name one as sm_90"):
        machine_code.compile_for(stages.get(9).kernel, arch)


# ---- the record ----


def rows():
    return recorded.load(machine_code.record_file())["rows"]


def test_every_stage_with_mma_and_every_variant_is_recorded():
    names = {(row["name"], row["d_head"]) for row in rows()}
    wanted = [f"{one.stage.id} {one.title}" for one in ablations.ablations()]
    with_products = [one for one in stages.all_stages() if re.search(r"ptx::w?g?mma", one.kernel.read_text())]
    wanted += [one.name for one in with_products]
    missing = [(name, d) for name in wanted for d in machine_code.HEAD_DIMS if (name, d) not in names]
    assert not missing, "run `make machine-code`"


def test_the_record_is_of_these_kernels():
    old = sorted({row["name"] for row in rows() if machine_code.is_stale(row)})
    assert not old, f"changed since their machine code was recorded (run `make machine-code`): {', '.join(old)}"


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['name']}-{row['d_head']}")
def test_counts_follow_from_the_order(row):
    stage = stages.get(row["name"][:2])
    loop = machine_code.Loop(row["order"], tuple(map(tuple, row["inner_loops"])))
    copies = machine_code.copies_in_a_turn(stage, row["d_head"])
    assert loop.executed(copies) == row["in_a_turn"]
    assert row["in_a_turn"]["cp.async"] + row["in_a_turn"]["global load, store"] == copies
    assert len(row["first_uses"]) == row["in_a_turn"]["ldmatrix"]
    if row["in_a_turn"]["wgmma"]:  # S and PV: one for each step of 32 bytes along what is summed over
        step = 32 if stage.dtypes == ("e4m3",) else 16
        assert row["in_a_turn"]["wgmma"] == row["d_head"] // step + stage.data["launch"][-1]["Bc"] // step
    else:
        assert row["in_a_turn"]["mma"] == 2 * row["d_head"]  # S and PV: 2 x 8 pieces for each step of 16 columns


def test_registers_and_spills_are_those_that_a_gpu_reported():
    measured = {
        (row["name"], row["d_head"]): row
        for row in recorded.pick(recorded.shipped()[0], dtype="bf16", Nq=4096, causal=False)
    }
    pairs = [(row, measured.get((row["name"], row["d_head"]))) for row in rows()]
    pairs = [(ours, theirs) for ours, theirs in pairs if theirs and not recorded.is_stale(theirs)]
    # Of a table of instances the machine code is the first one's; the GPU ran the one that its tuner chose.
    pairs = [pair for pair in pairs if not (stages.get(pair[0]["name"]).source.parent / "instances.h").exists()]
    assert pairs, "no recorded stage has its present kernel"
    for ours, theirs in pairs:
        assert (ours["registers"], ours["spill_bytes"]) == (theirs["registers"], theirs["spill_bytes"]), ours["name"]


@pytest.mark.parametrize("d", machine_code.HEAD_DIMS)
def test_fragments_of_v_make_no_difference_to_the_machine_code(d):
    """As the README of stage 08 says: from 07 to 08, what matters is where Q's and K's fragments are loaded."""
    before, with_whole_q_and_k = machine_code.recorded_rows(7, "08 whole-block fragments of Q and K", d=d)
    assert before["order"] == with_whole_q_and_k["order"], "mend the text of stages/08_fragment_tiles/README.md"


def test_what_the_text_of_stage_08_says_of_loads_at_d_64():
    used = {row["name"]: machine_code.used_at_once(row) for row in machine_code.recorded_rows(d=64)}
    short = {name for name in ("06_cp_async", "07_eager_kv", "08_fragment_tiles", "09_double_buffering") if used[name]}
    assert short == {"07_eager_kv", "08_fragment_tiles"}, "mend the text of stages/08_fragment_tiles/README.md"
    promised = [f"{stage} two blocks a multiprocessor promised" for stage in ("07", "08")]
    first, second = machine_code.recorded_rows(*promised, d=64)
    assert first["order"] == second["order"] and machine_code.used_at_once(first) == 0


@pytest.mark.parametrize(
    "one, other, d",
    [
        (8, "09 kv_stages 1", 64),
        (8, "09 kv_stages 1", 128),
        (7, "09 kv_stages 1, fragment_stages 2", 64),
    ],
)
def test_variants_of_stage_09_that_its_text_calls_earlier_stages(one, other, d):
    first, second = machine_code.recorded_rows(one, other, d=d)
    assert first["order"] == second["order"], "mend the text of stages/09_double_buffering/README.md"


def test_only_cg_passes_the_l1_by():
    as_it_is, with_ca = machine_code.recorded_rows(6, "06 cp.async.ca")
    assert as_it_is["copies"] == ["LDGSTS.E.BYPASS.128"]
    assert with_ca["copies"] == ["LDGSTS.E.128"]


def test_a_changed_kernel_is_marked(monkeypatch):
    monkeypatch.setattr(stages.Kernel, "kernel_hash", lambda self: "another")
    columns, _ = machine_code.in_a_turn(9)
    assert columns[1] == "09_double_buffering*"
    assert results.STALE_NOTE in results.machine_code_table("128", "9")


def test_what_is_not_recorded_is_told():
    with pytest.raises(FlashLadderError, match="No machine code is recorded for 09 nonsense, d = 128. There is: 04_"):
        machine_code.recorded_rows("09 nonsense")


def test_table_has_the_variants_by_their_titles():
    text = results.machine_code_table("128", "8", "09_kv_stages_1")
    assert "| 08_fragment_tiles | 09 kv_stages 1 |" in text and "| mma | 256 | 256 |" in text


def test_pictures_carry_what_they_show():
    pytest.importorskip("matplotlib")
    from flashladder import plot
    from flashladder.plot.style import in_words

    assert "07_eager_kv: 1" in in_words(plot.order(7)) and "bytes of spills" in in_words(plot.order(7))
    (axes,) = plot.instruction_mix(9).axes
    total = sum(machine_code.recorded_rows(9)[0]["in_a_turn"].values())
    assert f"{total:,}" in [text.get_text() for text in axes.texts]
    assert sum(patch.get_width() for patch in axes.patches) == total


# ---- with nvcc and nvdisasm ----


@pytest.mark.long
def test_the_record_can_be_made_again():
    """One stage: `make machine-code` makes all."""
    if recorded.load(machine_code.record_file())["provenance"]["toolkit"] != machine_code.toolkit():
        pytest.skip("the record is of another nvcc")
    for d, found in machine_code.measure(stages.get(9).kernel).items():
        (row,) = machine_code.recorded_rows(9, d=d)
        assert (found["loop"].order, found["registers"]) == (row["order"], row["registers"]), f"d = {d}"


@pytest.mark.long
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_make_stage_order_needs_no_gpu(make, arch):
    done = make("stage-09", "order", f"ARGS=--arch {arch} --d 64", FLASHLADDER_DEVICE="sim")
    assert done.returncode == 0, done.stderr
    assert f"bf16, d = 64, {arch}: the loop over K and V has" in done.stdout
    assert "\nmma " in done.stdout and " 128\n" in done.stdout


@pytest.mark.long
def test_order_of_a_stage_without_mma_is_refused():
    with pytest.raises(FlashLadderError, match="02_online_softmax has no loop with an mma; stages 04 and later do"):
        machine_code.show(stages.get(2))


def test_the_record_is_one_line_for_each_kernel():
    file = machine_code.record_file()
    assert recorded.to_text(recorded.load(file)) == file.read_text()
    names = [line for line in file.read_text().splitlines() if line.lstrip().startswith('{"name"')]
    assert len(names) == len(rows())
