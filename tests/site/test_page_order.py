"""The page's steps of warps (docs/site/run/order.js): an order that the trace allows, and all of it."""

import json
import shutil
from collections import defaultdict

import page_runs
import pytest

from flashladder.building import build
from flashladder.commands import browser
from flashladder.site import page_kernels, run_page

ARRIVALS = ("arrive", "sync", "arrive_phase", "arrive_copies", "copy")


def steps_of(trace: dict, folder) -> list:
    file = folder / "trace.json"
    file.write_text(json.dumps(trace))
    return json.loads(page_runs.node(page_runs.HERE / "order_in_node.mjs", file))


def stops(event: list) -> bool:
    return event[0] == "sync" or event[0] == "wait" and event[3] >= 0


def key(event: list) -> tuple:
    return ("barrier" if event[0] in ("arrive", "sync") else "mbarrier", event[2], event[3])


def check(launch: dict, steps: list) -> None:
    """Every event is in one step, in its warp's order; nobody goes on too early, or later than need be."""
    block = launch["traced"][0]
    arrived, waited = defaultdict(int), []
    for warp, events in enumerate(block["warps"]):
        left, stop, since = list(events), None, -1
        for number, step in enumerate(steps):
            if step[warp]["ran"] is None:
                assert step[warp]["stop"] == stop, "who waits stays where it is"
                continue
            assert left or stop, "nothing is left to do"
            if stop:
                waited.append((key(stop), since, number))
                stop = None
            while left and not stop:
                event = left.pop(0)
                if event[0] in ARRIVALS:
                    arrived[key(event)] = max(arrived[key(event)], number)
                if stops(event):
                    stop, since = event, number
            assert step[warp]["stop"] == stop
        assert not left, f"warp {warp} has not come to its end"
    for what, since, until in waited:
        assert until == 1 + max(since, arrived[what]), f"{what} was waited for from step {since} to {until}"


def instructions(launch: dict) -> int:
    """What the warps of the block executed, from the trace itself."""
    block, named = launch["traced"][0], {op[0] for op in launch["ops"]}
    sizes = [sum(op in named for op in range(first, last + 1)) for first, last, _ in block["pieces"]]
    apart = ("arrive", "sync", "wait", "warpgroup")
    return sum(sizes[e[1]] if e[0] == "run" else e[0] in apart for events in block["warps"] for e in events)


@pytest.mark.parametrize("which", ["online_softmax", "warp_specialization", "ping_pong"])
def test_a_stage_goes_from_wait_to_wait(which, tmp_path):
    build.build(["browser_run", *browser.targets()])
    one = next(one for one in page_kernels.offered() if one.kind == "stage" and one.stage.slug == which)
    file = browser.kernel_file(one, one.problems()[:1])
    trace = page_runs.native(file["ptx"], page_runs.with_settings(file["requests"][0]), tmp_path)["trace"]
    for launch, steps in zip(trace["launches"], steps_of(trace, tmp_path), strict=True):
        check(launch, steps)
        ran = [one["ran"] for step in steps for one in step if one["ran"]]
        assert sum(sum(classes.values()) for classes in ran) == instructions(launch)
        waits = any(one["ran"] is None and one["stop"] for step in steps for one in step)
        assert waits or which != "ping_pong", "there two warpgroups take turns"


def test_where_there_are_no_steps_the_page_says_why(tmp_path):
    one = next(one for one in page_kernels.offered() if one.kind == "stage" and one.stage.slug == "multicast")
    build.build(["browser_run", "stage_" + one.id, "warpsim_cudart", "warpsim-inspect"])
    file = browser.kernel_file(one, one.problems()[:1])
    of_clusters = page_runs.native(file["ptx"], page_runs.with_settings(file["requests"][0]), tmp_path)["trace"]
    too_much = {"launches": [{"traced": [{"cut": True}]}]}
    shutil.copytree(run_page.FILES, tmp_path / "scripts")
    (tmp_path / "scripts/package.json").write_text('{"type": "module"}')
    calls = json.dumps([["order.js", "untraced", trace] for trace in (of_clusters, too_much, None)])
    words = json.loads(page_runs.node(page_runs.HERE / "pages_in_node.mjs", tmp_path / "scripts", given=calls))
    assert "form clusters" in words[0] and "more than a picture" in words[1] and "no trace" in words[2]


def launch_of(warps: list, error: str = "") -> dict:
    """Of a trace with one block: op 0 is a barrier, op 1 a wait, piece 0 an addition."""
    ops = [(0, "barrier", "bar.sync"), (1, "mbarrier", "mbarrier.try_wait"), (2, "fp32", "add")]
    ops = [[number, cls, text, 0, 7 + number, 0] for number, cls, text in ops]
    block = {"block": [0, 0, 0], "cut": False, "pieces": [[2, 2, []]], "mbarriers": [], "warps": warps}
    return {"kernel": "k", "ops": ops, "files": ["kernel.cu"], "error": error, "traced": [block]}


def test_who_stood_at_a_barrier_when_the_run_failed_stays_there(tmp_path):
    warps = [[["run", 0], ["sync", 0, 1, 0]], [["sync", 0, 1, 0], ["run", 0]]]
    (steps,) = steps_of({"version": 1, "launches": [launch_of(warps, "it failed")]}, tmp_path)
    assert [[one["stop"] and one["stop"][0] for one in step] for step in steps] == [["sync", "sync"], ["sync", None]]
    assert steps[-1][0]["ran"] is None


def test_who_waits_goes_on_when_the_last_has_come(tmp_path):
    barrier, phase = [0, 1, 0], [1, 0, 0]  # op, number, use or phase
    warps = [
        [["run", 0], ["arrive", *barrier], ["wait", *phase], ["run", 0]],
        [["wait", 1, 0, -1], ["sync", *barrier], ["arrive_phase", *phase, 1, 0]],
    ]
    launch = launch_of(warps)
    (steps,) = steps_of({"version": 1, "launches": [launch]}, tmp_path)
    check(launch, steps)
    ran = [["waits" if one["ran"] is None else sum(one["ran"].values()) for one in step] for step in steps]
    assert ran == [[3, 2], ["waits", 0], [1, "waits"]]
    come = [[(one["come"], one["needed"]) if one["stop"] else None for one in step] for step in steps]
    assert come[0] == [(0, 1), (2, 2)] and come[1] == [(1, 1), None]
