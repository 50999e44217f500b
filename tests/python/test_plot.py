"""Pictures say what the data say, and the same data give the same file."""

import itertools
import json

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb, to_rgba  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from flashladder import plot  # noqa: E402
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.core.paths import ROOT, simulator_library, stage_library  # noqa: E402
from flashladder.core.problem import Problem  # noqa: E402
from flashladder.ladder import mistakes, stages  # noqa: E402
from flashladder.ladder.run import run_problem  # noqa: E402
from flashladder.measuring import (
    block_order,
    profile,
    recorded,
)
from flashladder.plot import climbing, fragments, masking, softmax, style  # noqa: E402
from flashladder.plot.errors import error_ratio  # noqa: E402
from flashladder.plot.fragments import MOST, budget  # noqa: E402
from flashladder.plot.iteration import STEPS  # noqa: E402
from flashladder.plot.roofline import busy, limits_of  # noqa: E402
from flashladder.plot.style import PALE  # noqa: E402
from flashladder.plot.swizzle import place_of  # noqa: E402
from flashladder.running import timeline  # noqa: E402
from flashladder.running.timeline import Span, Timeline  # noqa: E402
from flashladder.running.verify import reference  # noqa: E402
from flashladder.simulator import accesses  # noqa: E402
from flashladder.simulator.accesses import Access  # noqa: E402
from warpsim import counters  # noqa: E402

# Stages with tiles in shared memory, and those whose loop is drawn.
# Up to 14: behind it wgmma reads the tiles, and no thread does.
TILED = [stage.number for stage in stages.since("online_softmax") if stage not in stages.since("wgmma")]
# Up to 13: behind it no barrier of the block is left in the loop.
DRAWN = [number for number in TILED if 5 <= number <= 13]
built = pytest.mark.usefixtures("built_stages")
SMALL = Problem(B=1, Hq=2, Nq=64, d_head=64, dtype="bf16")


@pytest.fixture(scope="module")
def built_stages():
    for file in (simulator_library(), *map(stage_library, TILED)):
        assert file.exists(), f"{file} is not there, and this test runs kernels: run `make build` first"


def shared(addresses, size=4, **fields):
    """An access to shared memory by 32 lanes."""
    whole = {"file": "kernel.cu", "line": 1, "space": "shared", "kind": "load", "matrices": 0, "cost": 0, "ideal": 0}
    return Access(**(whole | {"bytes": size, "addresses": tuple(addresses), "source": ""} | fields))


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def rectangles(figure):
    return [patch for axes in figure.axes for patch in axes.patches if isinstance(patch, Rectangle)]


def waiting(figure):
    return [patch for patch in rectangles(figure) if patch.get_edgecolor()[:3] == to_rgb(style.RED)]


@built
@pytest.mark.parametrize("number", TILED)
def test_wavefronts_of_the_picture_are_the_simulators(number):
    found = [one for one in accesses.of(number) if one.space == "shared" and one.kind != "atomic"]
    assert found
    for one in found:
        assert sum(one.wavefronts(group) for group in one.groups) == one.cost, one
        assert len(one.groups) == one.ideal, one


@built
def test_conflicts_are_marked_in_stage_04_and_gone_in_05():
    before, after = (accesses.of(number, "ldmatrix_x4(piece")[0] for number in (4, 5))
    assert (before.cost, after.cost) == (32, 4)
    marked = waiting(plot.bank_grid(before))
    assert len(marked) == 28 * 4  # lanes that wait, times the 4 banks of their row
    assert not waiting(plot.bank_grid(after))
    assert texts(plot.bank_grid(before)).count("8 wavefronts") == 4


@built
def test_access_that_does_not_exist_names_the_lines():
    with pytest.raises(FlashLadderError, match="Lines with accesses"):
        accesses.of(4, "no such text")


@pytest.mark.parametrize(
    "addresses, size, wavefronts",
    [
        ([4 * i for i in range(32)], 4, 1),
        ([0] * 32, 4, 1),  # a broadcast
        ([128 * i for i in range(32)], 4, 32),
        ([8 * i for i in range(32)], 4, 2),
        ([2 * i for i in range(32)], 2, 1),  # two lanes in a word
        ([16 * i for i in range(32)], 16, 4),
        ([8 * i for i in range(32)], 8, 2),
        ([None] * 31 + [0], 4, 1),
    ],
)
def test_passes(addresses, size, wavefronts):
    one = shared(addresses, size)
    assert sum(one.wavefronts(group) for group in one.groups) == wavefronts


def test_passes_of_loads_are_those_that_a_gpu_counted():
    """What is no bank conflict is a pass for each group."""
    record = json.loads((ROOT / "tests" / "simulator" / "recorded" / "H200-shared-loads.json").read_text())
    for size, mask, units, wavefronts, conflicts in record["loads"]:
        one = shared([size * unit if mask >> lane & 1 else None for lane, unit in enumerate(units)], size)
        assert sum(one.wavefronts(group) for group in one.groups) == wavefronts
        assert len(one.groups) == wavefronts - conflicts


def test_banks_and_sectors_refuse_each_others_accesses():
    with pytest.raises(FlashLadderError, match="sectors and no banks"):
        plot.bank_grid(shared(range(0, 128, 4), space="global"))
    with pytest.raises(FlashLadderError, match="banks and no sectors"):
        plot.sectors(shared(range(0, 128, 4)))


def test_sectors_have_a_column_each():
    figure = plot.sectors(shared(range(0, 32 * 64, 64), space="global", cost=32, ideal=4))
    assert figure.axes[0].get_xlim()[1] == 32
    assert "12% of their bytes" in figure.axes[0].get_title()


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("on", [True, False])
def test_swizzle_is_a_bijection_and_the_kernels_formula(d, on):
    chunks = d // 8
    for row in range(16):
        places = [place_of(row, chunk, on) for chunk in range(chunks)]
        assert sorted(places) == list(range(chunks))
        assert places == [chunk ^ row % 8 if on else chunk for chunk in range(chunks)]
    marked = waiting(plot.swizzle(d, on))
    assert len({patch.get_x() for patch in marked}) == (8 if on else 1) and len(marked) == 8


def test_swizzle_refuses_a_chunk_that_is_none():
    with pytest.raises(FlashLadderError, match="chunks 0 to 7"):
        plot.swizzle(64, chunk=8)


def test_swizzle_bits():
    for d, name in ((64, "Swizzle<3,3,3>"), (128, "Swizzle<3,3,4>")):
        assert name in plot.swizzle_bits(d).get_supxlabel()


@pytest.mark.parametrize("which", "ABC")
def test_every_element_of_a_fragment_has_one_owner(which):
    lanes, numbers = fragments.owners(which)
    rows, columns, elements, _ = fragments.SHAPES[which]
    assert lanes.shape == (rows, columns) and rows * columns == 32 * elements
    assert sorted(zip(lanes.ravel(), numbers.ravel())) == [(lane, i) for lane in range(32) for i in range(elements)]


def test_C_of_one_product_is_A_of_the_next():
    """Two neighbouring pieces of C hold, lane by lane, what A wants: why P never leaves its lanes."""
    lanes_c, _ = fragments.owners("C")
    lanes_a, _ = fragments.owners("A")
    assert (np.hstack([lanes_c, lanes_c]) == lanes_a).all()


def test_fragments_of_one_lane_are_marked():
    figure = plot.mma_fragments("A", lane=5)
    marked = [patch for patch in rectangles(figure) if patch.get_linewidth() == 3]
    assert {(patch.get_x(), patch.get_y()) for patch in marked} == {
        (column, row) for row, column in (fragments.element("A", 5, i) for i in range(8))
    }
    with pytest.raises(FlashLadderError, match="choose A, B or C"):
        plot.mma_fragments("D")


@pytest.mark.parametrize("tiles", [1, 2, 4, 8])
def test_online_softmax_ends_where_softmax_does(tiles):
    scores = np.random.default_rng(tiles).standard_normal(32) * 10
    last = softmax.steps(scores, tiles)[-1]
    assert last.row_max == scores.max()
    assert last.row_sum == pytest.approx(np.exp(scores - scores.max()).sum(), rel=1e-12)
    plot.online_softmax(scores, tiles)


def test_online_softmax_refuses_uneven_tiles():
    with pytest.raises(FlashLadderError, match="equal length"):
        plot.online_softmax(np.zeros(10), 3)


def planted(element=None):
    inputs = SMALL.random(1)
    from flashladder.core.dtypes import to_bits

    output = to_bits(reference(SMALL, inputs)[0].astype(np.float32), "bf16")
    if element:
        output[element] = to_bits(np.float32([9.0]), "bf16")[0]
    return inputs, output


def test_error_map_finds_the_planted_error():
    inputs, output = planted((0, 1, 40, 7))
    ratio = error_ratio(SMALL, inputs, output, head=1)
    assert np.unravel_index(ratio.argmax(), ratio.shape) == (40, 7) and (ratio > 1).sum() == 1
    assert (
        "1 of 4096 elements are wrong; first at row 40, column 7"
        in plot.error_map(SMALL, inputs, output, of=(0, 1)).axes[0].get_title()
    )
    assert "within its bound" in plot.error_map(SMALL, inputs, output, of=(0, 0)).axes[0].get_title()


def test_error_map_is_of_the_first_head_that_is_wrong():
    inputs, output = planted((0, 1, 40, 7))
    assert "batch 0, head 1" in plot.error_map(SMALL, inputs, output).axes[0].get_title()
    assert "batch 0, head 0" in plot.error_map(SMALL, *planted()).axes[0].get_title()


def test_error_map_hatches_what_was_never_written():
    inputs, output = planted()
    output[0, 0, 3:5] = 0xFFFF
    figure = plot.error_map(SMALL, inputs, output)
    assert "never written" in figure.get_supxlabel() and "128 of 4096" in figure.axes[0].get_title()


def test_timeline_has_a_bar_for_each_span():
    spans = [Span("stream 1", kind, "0", i, i + 1) for i, kind in enumerate(("copy in", "compute", "copy out"))]
    figure = plot.timeline([Timeline("ms", "here", title, spans) for title in ("one", "two")])
    assert len(figure.axes) == 2 and figure.axes[1].get_xlabel() == "time (ms)"
    assert [len(axes.collections) for axes in figure.axes] == [3, 3]
    in_calls = plot.timeline(Timeline("host calls", "simulator", "three", spans))
    assert "no time" in in_calls.axes[0].get_xlabel()


def test_timeline_refuses_nonsense():
    with pytest.raises(FlashLadderError, match="bad span"):
        Timeline("ms", "", "", [Span("host", "host", "", 2, 1)]).check()
    with pytest.raises(FlashLadderError, match="bad span"):
        timeline.from_events(
            {"title": "", "spans": [{"kind": "lunch", "chunk": 0, "stream": 0, "start_ms": 0, "end_ms": 1}]}, ""
        )


def test_recorded_pictures_name_their_source():
    for figure, kind in (
        (plot.climb([(one, False) for one in recorded.shipped()]), ""),
        (plot.roofline(recorded.shipped(kind="roofline")), "roofline"),
        (plot.transfers(recorded.shipped(kind="host-streams")[0]), "host-streams"),
        (plot.decode_roofline(), "decode"),
    ):
        assert recorded.label(recorded.shipped(kind=kind)[0]) in figure.get_supxlabel()
        assert "recorded" in figure.get_supxlabel()


def test_decode_lies_below_the_slope_of_reading():
    """No stage reads faster than the kernel that does nothing else, but for the scatter of two measurements."""
    axes = plot.decode_roofline().axes[0]
    roof, *points = axes.lines
    decode = [line for line in points if line.get_label().startswith("decode")]
    assert decode
    for line in decode:
        below = line.get_ydata() / np.interp(line.get_xdata(), roof.get_xdata(), roof.get_ydata())
        assert len(below) and (below < 1.05).all(), line.get_label()


@pytest.mark.parametrize("blocks, places, share", [(32, 132, 32 / 132), (132, 132, 1.0), (133, 132, 133 / 264)])
def test_a_wave_is_as_long_as_the_others_whatever_is_in_it(blocks, places, share):
    assert busy(blocks, places) == pytest.approx(share)
    figure = plot.waves(rows=blocks, places=places, parts=(1,), most=2)
    machine = figure.axes[0]
    waves = -(-blocks // places)
    coloured = [one for one in machine.patches if one.get_facecolor() != to_rgba(PALE)]
    assert len(machine.patches) == waves * places and len(coloured) == blocks


@pytest.mark.parametrize("branch", ([], ["25_multicast"]), ids=("as recorded", "a branch behind the last stage"))
def test_throughput_gives_shares_of_the_peers(branch):
    one = recorded.shipped()[0]
    last = stages.main_line()[-1].name
    behind = [row | {"name": name} for row in one["measurements"] if row["name"] == last for name in branch]
    one = one | {"measurements": [*(row for row in one["measurements"] if row["name"] not in branch), *behind]}
    rows = {row["name"]: row for row in recorded.pick(one, dtype="bf16", d_head=128, causal=False, Nq=4096)}
    share = 100 * rows[last]["tflops"] / rows["FlashAttention-2"]["tflops"]
    assert f"{last}: {share:.0f}% of FA-2" in plot.throughput([(one, False)]).axes[0].get_title()


def test_throughput_of_gradients_says_so():
    forward, backward = recorded.shipped()[0], recorded.shipped(kind="backward")[0]
    axes = plot.throughput([(forward, False), (backward, False)]).axes
    said = ["gradients" in one.get_title() for one in axes]
    assert said == [False, False, True, True]
    assert "45_no_scratch_pass" in axes[3].get_legend_handles_labels()[1]


def test_the_way_up_has_few_names_and_none_covers_another():
    """The first, the last and the largest steps; the peers count, too."""
    for one in recorded.shipped():
        figure = plot.climb([(one, False)])
        figure.draw_without_rendering()
        names = figure.axes[0].texts
        assert 6 <= len(names) <= climbing.MOST_LABELS
        told = " ".join(text.get_text() for text in names)
        assert all(name in told for name in ("01 naive", "02 online softmax", "05 swizzle", "FA-2", "cuDNN"))
        boxes = [text.get_window_extent().padded(-2) for text in names]
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2)), told


@pytest.mark.parametrize("size", [(8.4, 3.5, 12), (3.8, 3.2, 7)], ids=("wide", "narrow"))
def test_the_front_picture_has_few_names_and_its_source(size):
    one = recorded.of(stages.main_line()[-1].name)
    figure = plot.front_picture(one, *size)
    figure.draw_without_rendering()
    names = [text.get_text() for text in figure.axes[0].texts]
    told = " ".join(names)
    assert stages.main_line()[-1].id in told and "cuDNN" in told
    assert len(names) <= size[2] and not any(climbing.is_branch(name.partition(" ")[0]) for name in names)
    assert recorded.label(recorded.together(one)) in " ".join(figure.get_supxlabel().split())
    boxes = [text.get_window_extent().padded(-2) for text in figure.axes[0].texts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2)), names


def test_a_branch_is_no_step_of_the_way_up():
    (one,) = recorded.shipped()[:1]
    steps = {step.row["name"]: step for step in climbing.steps(climbing.Run(one, length=4096))}
    masking, before = steps["13_masking"], steps["11_lean_addressing"]
    assert steps["12_autotune"].branch and not masking.branch
    assert masking.factor == masking.row["tflops"] / before.row["tflops"]


def test_roofline_without_records_says_how_to_get_one():
    with pytest.raises(FlashLadderError, match="make gpu-report"):
        plot.roofline([])


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_picture_gives_the_same_file(tmp_path, ending):
    files = [plot.save(plot.swizzle(64), tmp_path / f"{name}.{ending}") for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"a.{ending}", f"b.{ending}"]


def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    file = plot.save(plot.swizzle(64), tmp_path / "a.png")
    before = file.read_bytes()
    figure = plot.swizzle(128)
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError):
        plot.save(figure, file)
    assert file.read_bytes() == before


@built
@pytest.mark.long
def test_error_map_of_a_real_mistake():
    mistake = mistakes.get(5, "swizzle_on_write_only")
    verdict = mistakes.run(mistake)
    figure = plot.error_map(verdict.problem, verdict.inputs, verdict.output, Br=128)
    assert "elements are wrong" in figure.axes[0].get_title()


def test_register_budget_is_the_lessons():
    """The table of stage 08's README: 384 registers with whole blocks of fragments, 216 with one step's, of 255."""
    whole, step = budget(128)["S = QKᵀ"], budget(128, step=True)["S = QKᵀ"]
    assert whole == {"O": 128, "S": 64, "Q fragments": 64, "K fragments": 128}
    assert (sum(whole.values()), sum(step.values())) == (384, 216)
    assert sum(budget(64)["S = QKᵀ"].values()) <= MOST
    with pytest.raises(FlashLadderError, match="64 and 128"):
        plot.registers(96)


@built
@pytest.mark.parametrize("number", DRAWN)
def test_iteration_has_the_kernels_barriers(number):
    """As many barriers in a turn as the simulator counts for each warp and K/V tile."""
    stage, counted = stages.get(number), []
    for tiles in (3, 4):
        problem = Problem(B=1, Hq=1, Nq=128, Nkv=64 * tiles, d_head=128)
        report = run_problem(stage, problem, device="sim", configuration=stage.configuration(problem)).report
        counted.append(report["launches"][0]["barriers"])
    warps = 4
    assert sum(kind == "barrier" for _, _, kind in STEPS[number]) == (counted[1] - counted[0]) / warps
    assert plot.iteration(number).axes[0].get_title(loc="left") == stages.get(number).name


def test_iteration_draws_every_stage_from_05_on():
    assert list(STEPS) == DRAWN, f"plot/iteration.py has the stages {list(STEPS)}, the ladder has {DRAWN}"


def test_iteration_knows_its_stages():
    with pytest.raises(FlashLadderError, match="choose among the stages 5, 6"):
        plot.iteration(2)


@pytest.mark.parametrize("causal", (True, False))
@pytest.mark.parametrize("Nq, Nkv", ((640, 640), (300, 640), (640, 300), (1, 1), (129, 65)))
def test_tile_kinds_are_what_the_mask_asks_for(Nq, Nkv, causal):
    """Element by element: a whole tile is seen by all of a warp's rows, a skipped one by none of the block's."""
    rows, columns = np.arange(-(-Nq // 128) * 128)[:, None], np.arange(-(-Nkv // 64) * 64)[None, :]
    seen = (columns < Nkv) & (columns <= rows + (Nkv - Nq if causal else Nkv))
    for (warp, tile), kind in np.ndenumerate(masking.kinds(Nq, Nkv, causal)):
        some = seen[32 * warp : 32 * warp + 32, 64 * tile : 64 * tile + 64]
        block = seen[warp // 4 * 128 : warp // 4 * 128 + 128, 64 * tile : 64 * tile + 64]
        if warp * 32 >= Nq:
            assert kind == "outside"
        elif kind == "skipped":
            assert not block.any(), f"warp {warp} needs tile {tile}"
        else:
            assert (kind == "whole") == some.all(), f"warp {warp}, tile {tile} is drawn as {kind}"
            assert tile == 0 or block.any(), f"no row of the block of warp {warp} sees tile {tile}"


@built
def test_tile_kinds_are_counted_as_the_kernel_masks():
    """How often the mask's line is executed, for problems of whole blocks: as often as tiles are drawn masked."""
    stage, counted = stages.get(13), {}
    source = stage.kernel.read_text().splitlines()
    place = next(number for number, line in enumerate(source, 1) if "const int i = warp_row" in line)
    for Nq, Nkv, causal in ((128, 128, True), (256, 256, True), (128, 330, True), (384, 70, True), (256, 190, False)):
        problem = Problem(Hq=1, Nq=Nq, Nkv=Nkv, d_head=64, causal=causal)
        lines = counters.lines(profile.measure([stage], problem)[stage.name].report)
        executed = sum(line.instructions for line in lines if line.line == place and line.file.endswith("kernel.cu"))
        counted[problem] = executed / int((masking.kinds(Nq, Nkv, causal) == "masked").sum())
    assert len(set(counted.values())) == 1, f"instructions of line {place} for a tile that is drawn masked: {counted}"


def test_every_order_has_every_block():
    for order in block_order.ORDERS:
        assert sorted(block_order.work(order, 1024, 3)) == sorted([2 * t for t in range(1, 9)] * 3), order


def test_schedule_overlaps_nowhere_and_waits_nowhere():
    """Blocks of 4, 2 and 2 in two places are done at 4; begun in another order, at 6."""
    assert block_order.schedule([4, 2, 2], 2) == [(0, 0, 4), (1, 0, 2), (1, 2, 4)]
    assert max(end for _, _, end in block_order.schedule([2, 2, 4], 2)) == 6
    assert block_order.busy("all heads' longest first", 4096, 64) > 0.98
    assert block_order.busy("head by head, longest first", 4096, 64) < 0.9


def test_block_orders_draws_every_block():
    figure = plot.block_orders(512, 3, 4)
    assert len(figure.axes) == len(block_order.ORDERS)
    for axes, order in zip(figure.axes, block_order.ORDERS):
        assert axes.get_title().startswith(f"{order}: busy ") and len(axes.collections) == 12


def test_tile_kinds_says_how_many():
    figure = plot.tile_kinds((640, 640))
    assert "90 whole, 30 masked, 80 skipped" in figure.axes[0].get_title()
    assert "Tiles of S" in style.in_words(figure)


# ---- what a stage's time may be limited by ----


@pytest.mark.parametrize(
    "number, largest", [(1, "instructions"), (2, "instructions"), (3, "instructions"), (4, "shared memory")]
)
def test_the_limits_of_a_stage_are_below_its_time(number, largest):
    measured, found = limits_of(number)
    assert max(found, key=lambda one: one.ms).name == largest
    assert all(0 < one.ms < measured for one in found)


def test_limits_are_what_the_stages_texts_reckon():
    measured, found = limits_of(2)
    by_name = {one.name: one.ms for one in found}
    assert by_name["multiply-adds"] == pytest.approx(4 * 4 * 16 * 4096**2 * 128 / 67e9)
    assert by_name["instructions"] == pytest.approx(3011200 * 8192 / (132 * 4 * 1.98e6), rel=0.01)
    drawn = texts(plot.limits(2))
    assert drawn == [f"{measured:.3g} ms", *(f"{one.ms:.3g} ms" for one in found)]


def test_a_stage_without_a_record_has_no_limits():
    with pytest.raises(FlashLadderError, match="is not in the record"):
        plot.limits(24)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([0.1, 0.9], [0.1, 0.9]),
        ([0.5, 0.5], [0.45, 0.55]),
        ([0.5, 0.51, 0.6, 0.9], [0.4366666, 0.5366666, 0.6366666, 0.9]),
        ([0.2, 0.21, 0.32], [0.1433333, 0.2433333, 0.3433333]),  # the third is near the first two moved apart
    ],
)
def test_names_that_are_close_are_moved_apart_as_little_as_possible(wanted, found):
    assert climbing.moved_apart(wanted, 0.1) == pytest.approx(found, abs=1e-5)
