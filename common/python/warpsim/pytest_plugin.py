"""For pytest: the fixture warpsim_run runs a CUDA program on the CPU and fails the test where something is wrong.

def test_saxpy(warpsim_run):
    report = warpsim_run(["./saxpy", "1000"])
    assert report.counters["saxpy(int, float, float*)"]["shared load excess"] == 0
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from warpsim.report import Report, assert_clean
from warpsim.running import run

_REPORTS = pytest.StashKey[list[Report]]()
_LAUNCHES = "warpsim_launches"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("warpsim", "CUDA programs on the CPU")
    group.addoption("--warpsim-device", metavar="NAME", help="the simulated GPU, e.g. sm_80, h100")
    group.addoption(
        "--warpsim-schedules", metavar="SEEDS", default="0", help="run each program in these orders, e.g. 0,1,2"
    )
    group.addoption("--warpsim-sarif", metavar="FILE", type=Path, help="write the hazards of all runs as SARIF")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REPORTS] = []


@pytest.fixture
def warpsim_run(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Takes what warpsim.run() takes; clean=False: hazards are no failure. Returns the report of the first order."""
    config = request.config
    seeds = config.getoption("warpsim_schedules").split(",")

    def run_in_all_orders(command, *, clean: bool = True, **options) -> Report:
        __tracebackhide__ = True  # what a test shows of a failure is its own line and what was found
        chosen = {"device": config.getoption("warpsim_device"), **options}
        orders = [chosen["schedule"]] if "schedule" in chosen else seeds
        reports = []
        for order in orders:
            reports.append(run(command, **chosen | {"schedule": order}))
            config.stash[_REPORTS].append(reports[-1])
            if clean:
                assert_clean(reports[-1])
        return reports[0]

    return run_in_all_orders


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    file = config.getoption("warpsim_sarif")
    if not file:
        return
    launches = [launch for report in config.stash[_REPORTS] for launch in report.launches]
    if hasattr(config, "workeroutput"):  # a worker of pytest-xdist: the process that started it writes the file
        config.workeroutput[_LAUNCHES] = json.dumps(launches)
    else:
        file.write_text(json.dumps(Report(launches).to_sarif(config.rootpath), indent=1) + "\n", encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Of pytest-xdist: a worker is done, and handed over what its runs reported."""
    launches = json.loads(getattr(node, "workeroutput", {}).get(_LAUNCHES, "[]"))
    node.config.stash[_REPORTS].append(Report(launches))
