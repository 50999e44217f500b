"""What a change of query tile takes: marks of kernels turned into clocks; the kernels with marks themselves."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from flashladder.commands import clocks_page
from flashladder.core import device
from flashladder.ladder import kernels
from flashladder.measuring import query_tile_clocks
from flashladder.measuring.query_tile_clocks import FIRST, LAST, MARKS, MOST, PLACES, WARPGROUPS, between, marked


def marks_of(*blocks: dict[int, list[tuple[int, int]]]) -> np.ndarray:
    """marks: for each block the warpgroups that have some, each with (place, clock) in their order."""
    marks = np.zeros((len(blocks), WARPGROUPS, MOST, 2), np.uint32)
    for block, of_block in enumerate(blocks):
        for warpgroup, pairs in of_block.items():
            marks[block, warpgroup, : len(pairs)] = np.array(pairs, np.uint32).reshape(-1, 2)
    return marks


def changes(*lengths: dict[int, int], start: int = 1000) -> list[tuple[int, int]]:
    """(place, clock) of changes of query tile one after the other; each says what its places take."""
    found, clock = [], start
    for places in lengths:
        for place, took in places.items():
            clock += took
            found.append((place, clock % (1 << 32)))
    return found


def words(**clocks: float) -> dict[str, float]:
    """p1=3.0 is place 1's."""
    return {PLACES[int(name[1:])]: took for name, took in clocks.items()}


def test_places_are_numbered_in_their_order():
    assert list(PLACES) == list(range(FIRST, LAST + 1)) and len(set(PLACES.values())) == len(PLACES)


def test_the_first_change_and_the_last_are_left_out():
    """The first has no query tile before it, the last none behind it."""
    some = changes({1: 900, 2: 900, 10: 900}, {1: 7, 2: 1, 10: 2}, {1: 8, 2: 3, 10: 5}, {1: 900, 2: 900, 10: 900})
    (found,) = between(marks_of({0: some}))
    assert found == {"warpgroup": 0, "changes": 2, "clocks": words(p1=7.5, p2=2.0, p10=3.5)}


def test_the_table_has_a_dash_where_a_kernel_has_no_such_place(monkeypatch):
    """P in parts has no marks for K and V; what is recorded of a kernel that has changed has a star."""
    rows = [
        {"name": "28_shapes", "d_head": 64, "causal": False, "Nq": 1024, "warpgroup": 0, "kernel_sha256": "old", **more}
        for more in ({"clocks": words(p1=900.0, p2=1.0, p4=2.0, p10=3.0)}, {"clocks": words(p1=900.0, p2=4.0, p10=5.0)})
    ]
    record = {"rows": rows, "provenance": {"device": "NVIDIA H200", "date": "2026-11-25", "commit": "0123456789ab"}}
    monkeypatch.setattr(clocks_page.recorded, "shipped", lambda kind: [record])
    text = clocks_page.change_of_query_tile("64")
    assert "| clocks | 28, warpgroup 0\\* | 28, warpgroup 0\\* |" in text
    assert f"| {PLACES[4]} | 2 | - |" in text and "| all of the change | 6 | 9 |" in text
    assert PLACES[1] not in text and clocks_page.change_of_query_tile("128") == clocks_page.NOTHING


@pytest.mark.parametrize("ends", (0, 1, 2))
def test_with_no_change_between_the_first_and_the_last_there_is_nothing(ends):
    assert between(marks_of({0: changes(*[{1: 5, 10: 5}] * ends)})) == []


def test_the_clock_begins_anew():
    """Its low half, between two places and from one change to the next."""
    for start in range(2**32 - 50, 2**32 + 5):
        some = changes(*[{1: 4, 5: 11, 10: 6}] * 3, start=start)
        (found,) = between(marks_of({0: some}))
        assert found["clocks"] == words(p1=4.0, p5=11.0, p10=6.0), start


def test_places_may_be_missing():
    """Of a kernel without them, and in some changes: a mean is over those that there are."""
    some = changes({10: 1}, {1: 3, 2: 4, 6: 5, 10: 6}, {1: 5, 6: 7, 10: 8}, {1: 1, 10: 1})
    (found,) = between(marks_of({0: some}))
    assert found["changes"] == 2
    assert found["clocks"] == words(p1=4.0, p2=4.0, p6=6.0, p10=7.0)
    assert list(found["clocks"]) == [PLACES[place] for place in (1, 2, 6, 10)]


def test_marks_behind_the_last_change_count_for_nothing():
    some = changes(*[{1: 2, 10: 3}] * 3, {1: 700, 2: 700})
    (found,) = between(marks_of({0: some}))
    assert found == {"warpgroup": 0, "changes": 1, "clocks": words(p1=2.0, p10=3.0)}


def test_each_warpgroup_for_itself_over_all_blocks():
    first = {0: changes(*[{1: 2, 10: 4}] * 4), 1: changes(*[{1: 10, 10: 20}] * 3, start=77)}
    second = {0: changes(*[{1: 8, 10: 6}] * 4, start=5), 1: changes({1: 1, 10: 1}), 2: [(1, 5), (2, 6)]}
    found = between(marks_of(first, second, {}))
    assert found == [
        {"warpgroup": 0, "changes": 4, "clocks": words(p1=5.0, p10=5.0)},
        {"warpgroup": 1, "changes": 1, "clocks": words(p1=10.0, p10=20.0)},
    ]


def test_a_full_array():
    """As many marks as there is room for: what came behind was not written, and the last change may lack its end."""
    every = {place: place for place in PLACES}
    some = changes(*[every] * (MOST // len(every) + 1))[:MOST]
    (found,) = between(marks_of({3: some}))
    assert found["changes"] == MOST // len(every) - 2
    assert found["clocks"] == {name: float(place) for place, name in PLACES.items()}


def test_the_numbers_are_those_of_the_header():
    assert f"constexpr int warpgroups = {WARPGROUPS}, most = {MOST};" in MARKS.read_text()


def test_some_kernels_have_marks():
    assert [one.stage.number for one in marked()] == [28, 30]


@pytest.mark.parametrize("one", marked(), ids=lambda one: one.id)
def test_its_patch_fits_and_has_every_place_once_or_in_one_of_two_ways(one):
    text = one.text()
    counts = {place: text.count(f"mark({place})") for place in PLACES}
    assert text.count("marks::begin();") == 1
    assert counts == {place: 2 if place == 6 else 1 for place in PLACES}  # S is there: with P whole, and in parts


@pytest.mark.long
@pytest.mark.parametrize("one", marked(), ids=lambda one: one.id)
def test_a_kernel_with_marks_is_right_and_has_no_hazard(one):
    verdict = kernels.judge(one.stage, query_tile_clocks.library(one))
    assert not verdict.caught, f"{one.id}: {verdict.by}: {verdict.message}"


# On the simulator's runtime, in a process that has it: marks of one launch, with P whole and turns.
RUN = """
import json, sys
import numpy as np
from flashladder.core.abi import StageLibrary
from flashladder.core.problem import Problem
from flashladder.measuring.query_tile_clocks import MOST, WARPGROUPS, between
from flashladder.running.cudart import Cudart

cudart, stage = Cudart(sys.argv[1]), StageLibrary(sys.argv[2])
problem = Problem(Hq=6, Nq=512, Nkv=200, d_head=128)
pointers = {name: cudart.malloc(problem.bytes(name)) for name in "QKVO"}
for name, bits in problem.random(1).items():
    cudart.upload(pointers[name], bits)
marks = np.zeros((3, WARPGROUPS, MOST, 2), np.uint32)
workspace = cudart.malloc(marks.nbytes)
cudart.upload(workspace, marks)
stage.forward(problem.params(pointers, workspace, marks.nbytes, sys.argv[3]))
cudart.synchronize()
cudart.download(marks, workspace)
print(json.dumps(between(marks)))
"""


@pytest.mark.long
@pytest.mark.parametrize("one", marked(), ids=lambda one: one.id)
def test_what_a_kernel_marks_is_what_is_read(one, tmp_path):
    """24 query tiles, 8 for each of three blocks: of each 6 changes count. No clocks are compared: they are the
    simulator's."""
    where = device.Device("sim", None)
    configuration = "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+registers_24_240"
    command = [sys.executable, "-c", RUN, device.cudart(where), query_tile_clocks.library(one), configuration]
    env = os.environ | device.environment(where) | one.stage.simulated
    env |= {"WARPSIM_HAZARDS": "warn", "WARPSIM_REPORT": str(tmp_path / "report.json")}
    done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(row["warpgroup"], row["changes"]) for row in found] == [(0, 18), (1, 18)]
    for row in found:
        assert list(row["clocks"]) == list(PLACES.values())
    (launch,) = json.loads((tmp_path / "report.json").read_text())["launches"]
    assert not launch["hazards"], launch["hazards"][0]["message"]
