"""Clocks and power: readings of a GPU's clocks, launches without a gap, and what is told of the record."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from flashladder import plot
from flashladder.commands import figures, power_page
from flashladder.core import device
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import bench, nvml, power, recorded, sm_clocks, step_clocks


def readings(*multiprocessors: tuple[tuple[int, int], tuple[int, int]]) -> np.ndarray:
    """For each multiprocessor (clocks, nanoseconds) before and after."""
    found = np.zeros((2, sm_clocks.MOST, 2), np.uint64)
    for number, (before, after) in enumerate(multiprocessors):
        found[:, number] = before, after
    return found


def test_a_clock_is_that_of_the_median_multiprocessor():
    some = readings(((5, 100), (1505, 1100)), ((7, 90), (1707, 1090)), ((2**40, 95), (2**40 + 100, 1095)))
    assert sm_clocks.mhz(some) == pytest.approx(1500)


def test_a_multiprocessor_that_was_read_once_says_nothing():
    """Whose numbers there are not, or of which another block has been read before the kernel alone."""
    some = readings(((5, 100), (1505, 1100)), ((0, 0), (10**12, 1100)), ((7, 90), (7, 90)))
    assert sm_clocks.mhz(some) == pytest.approx(1500)
    with pytest.raises(FlashLadderError, match="No multiprocessor's clock was read twice"):
        sm_clocks.mhz(readings(((0, 0), (10**12, 1100))))


READ = """
import json, sys
from flashladder.measuring.sm_clocks import SmClocks
from flashladder.running.cudart import MULTIPROCESSORS, Cudart

cudart = Cudart(sys.argv[1])
clocks = SmClocks(cudart, 90)
clocks.before(), clocks.after()
found = clocks.readings()
print(json.dumps([cudart.attribute(MULTIPROCESSORS), (found[..., 1] > 0).sum(axis=1).tolist()]))
"""


def test_the_kernel_reads_every_multiprocessor():
    where = device.Device("sim", None)
    env = os.environ | device.environment(where)
    command = [sys.executable, "-c", READ, str(device.cudart(where))]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, read = json.loads(done.stdout)
    assert read == [count, count]


def test_without_a_driver_there_is_no_energy(monkeypatch):
    monkeypatch.setattr(nvml, "LIBRARY", "libnone.so.1")
    with pytest.raises(FlashLadderError, match="libnone.so.1, a part of the driver, is not there"):
        nvml.Nvml()


def test_a_simulator_has_no_power():
    with pytest.raises(FlashLadderError, match="compute capability 9.0; this is"):
        power.measure(device.Device("sim", None))


# ---- launches without a gap ----


class Stream:
    """A GPU that takes 2 ms for each launch, an Nvml that counts 500 W in steps of 50 ms, and the time."""

    def __init__(self):
        self.queued = self.done = 0.0  # ms of work; the host waits and does nothing else
        self.longest = 0.0  # queue

    def launch(self):
        self.queued += 2
        self.longest = max(self.longest, self.queued - self.done)

    def event(self):
        return [0.0]

    def record(self, event):
        event[0] = self.queued

    def wait(self, event):
        assert self.queued > event[0], "nothing is queued behind what is waited for"
        self.done = max(self.done, event[0])

    def elapsed_ms(self, start, stop):
        assert stop[0] <= self.done
        return stop[0] - start[0]

    def monotonic(self):
        return self.done / 1e3

    def joules(self):
        return int(self.done / 50) * 50 * 0.5

    def before(self):
        self.began = self.queued

    def after(self):
        self.ended = self.queued

    def mhz(self):
        return 1500.4


def test_alone_a_kernel_is_launched_without_a_gap(monkeypatch):
    gpu = Stream()
    timing = object.__new__(power.Clocked)
    timing.cudart = timing.clocks = gpu
    timing.joules = gpu.joules
    monkeypatch.setattr(power.time, "monotonic", gpu.monotonic)
    candidate = bench.Candidate("30", "stage", gpu.launch, times_ms=[2.0, 2.5, 2.0])
    found = timing._alone(candidate)
    assert found.pop("watts") == pytest.approx(500, rel=0.03)  # a tick is seen when a chunk is over
    assert found == {"ms": 2.0, "mhz": 1500}
    assert gpu.longest <= 3.01 * power.CHUNK_SECONDS * 1e3
    timing.joules = float
    assert timing._alone(candidate) == {"ms": 2.0, "mhz": 1500}, "a counter that stands still says no watts"
    assert gpu.began >= power.WARM_SECONDS * 1e3 and gpu.ended - gpu.began >= power.ALONE_SECONDS * 1e3


# ---- the record ----

PROBLEM = {"B": 2, "Hq": 3, "Nq": 1024, "Nkv": 1024, "d_head": 128, "dtype": "bf16", "causal": False}
ROW = PROBLEM | {
    "name": "30_tma_store", "kind": "stage", "kernel_sha256": "old", "inputs": "normal", "tflops": 600.0,
    "ms": {"median": 0.4}, "mhz": {"median": 1500}, "alone": {"ms": 0.5, "mhz": 1200, "watts": 480},
}  # fmt: skip
PEER = ROW | {"name": "cuDNN attention", "kind": "peer", "Nq": 2048, "Nkv": 2048, "tflops": 300.0}
PEER.pop("alone")
RECORD = {
    "provenance": {"device": "NVIDIA H200", "date": "2026-11-25", "commit": "0123456789ab"},
    "multiprocessors": 10,
    "measurements": [ROW, PEER],
}


def test_a_step_has_its_share_of_all_clocks():
    """0.4 ms at 1500 MHz are 600,000 clocks of each of 10 multiprocessors, for 6 times 8 x 8 steps."""
    assert power.clocks_a_step(ROW, 10) == pytest.approx(6e6 / 384)
    assert power.clocks_a_step(ROW | {"causal": True}, 10) == pytest.approx(6e6 / 192)
    assert (power.floor(128), power.floor(64)) == (2048, 1024)


def test_the_tables(monkeypatch):
    monkeypatch.setattr(recorded, "shipped", lambda kind: [RECORD] if kind == "power" else [])
    text = power_page.steps("128")
    assert "|  | N = 1024 | N = 2048 |" in text and "| 30_tma_store\\* | 15,625 at 1,500 | - |" in text
    assert "| cuDNN attention | - | 3,906 at 1,500 |" in text and power_page.STALE_NOTE in text
    assert "| 30_tma_store\\* | 480 at 1,200, 480 W |" in power_page.alone("128")
    assert "cuDNN" not in power_page.alone("128"), "it was not timed alone"
    assert power_page.alone("64") == power_page.alone("128", "ones") == power_page.NOTHING
    for wrong in (lambda: power_page.steps("128", "full"), lambda: power_page.alone("128", "zeros")):
        with pytest.raises(FlashLadderError, match="a marker's"):
            wrong()


def test_figures_in_sentences(monkeypatch):
    monkeypatch.setattr(recorded, "first", lambda kind="", gpu="": RECORD if kind == "power" else None)
    assert figures.text_of('ran("cuDNN attention", "clocks", N=2048) : ,.0f') == "3,906"
    assert figures.text_of('ran(30, "joules", N=1024, alone=True) : .2f') == "1.00 (stale)"
    assert figures.text_of('ran(30, "tflops", N=1024, alone=True) : .0f') == "480 (stale)"
    with pytest.raises(FlashLadderError, match='no "watts" of 30_tma_store there. There are: tflops, mhz, clocks'):
        figures.text_of('ran(30, "watts", N=1024) : .0f')
    with pytest.raises(FlashLadderError, match="There are: none"):
        figures.text_of('ran("cuDNN attention", "mhz", N=2048, alone=True) : .0f')


def test_the_picture_has_a_bar_for_each_kernel(monkeypatch):
    rows = [ROW, ROW | {"causal": True}, PEER | {"Nq": 1024, "Nkv": 1024}]
    figure = plot.step_clocks(RECORD | {"measurements": rows}, N=1024)
    left, right = figure.axes
    assert [bar.get_width() for bar in left.patches] == pytest.approx([15625, 15625]) and len(right.patches) == 1
    assert "15,625   13%, 1,500 MHz (stale)" in [text.get_text() for text in left.texts]
    with pytest.raises(FlashLadderError, match="PARTS=power make gpu-report"):
        plot.step_clocks(None)


def test_a_turn_is_measured_with_the_clock_of_each_run():
    """One query tile for each of 132 multiprocessors; 96 turns of 128 keys more."""
    row = {"B": 1, "Hq": 132, "Nq": 128, "Nkv": 4096, "Br": 128, "Bc": 128, "resident_blocks": 1}
    short = row | {"ms": {"median": 0.1}, "mhz": {"median": 1600}}
    long = row | {"Nkv": 16384, "ms": {"median": 0.4}, "mhz": {"median": 1000}}
    assert step_clocks.measured({4096: short, 16384: long}) == pytest.approx((400_000 - 160_000) / 96)
    for one in (short, long):
        del one["mhz"]
    assert step_clocks.measured({4096: short, 16384: long}, khz=1e6) == pytest.approx(300_000 / 96)


def test_recorded_clocks_alone_are_those_in_turn():
    """A kernel needs as many clocks alone as in turn, but for what it waits for memory, which has a clock of its own:
    a gap between launches would show as clocks for nothing."""
    made = recorded.first("power")
    rows = [row for row in recorded.pick(made, d_head=128) if "alone" in row and row["Nq"] == 16384]
    assert len(rows) >= 8
    for row in rows:
        alone = row["alone"]["ms"] * row["alone"]["mhz"]
        assert alone == pytest.approx(row["ms"]["median"] * row["mhz"]["median"], rel=0.03), (
            row["name"],
            row["causal"],
        )
