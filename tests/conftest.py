"""For all tests, and read before any of them, or NumPy, is."""

import collections
import gc
import os

import pytest

# References are small matrix products, in as many processes as the machine has cores. OpenBLAS's threads would wait for
# each other and for a core by spinning: in a profile of test_masking that was most of the time. Processes that tests
# start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# Files whose tests take minutes, or whose fixtures do. They come first: begun last, one of them would keep one core
# busy while the others wait for it.
LONGEST = (
    "test_marches", "test_sanitizers", "test_browser_page", "test_site", "test_other_machines", "test_notebooks_run",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Puts the files of LONGEST first, in that order.

    FLASHLADDER_DEALT="1/3 test_a test_b 0/7 test_c": of the tests test_a and test_b, functions or whole files, every
    third case alone, from the second on, and of test_c every seventh, from the first on. For tests that run others
    again, where what differs between these cases is not what the second run is for.

    And leaves out the simulator's long tests where it is as it was when they passed (commands/testing.py).
    """
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))
    deals, seen = {}, collections.Counter()
    for word in os.environ.get("FLASHLADDER_DEALT", "").split():
        if "/" in word:
            hand, hands = map(int, word.split("/"))
        else:
            deals[word] = hand, hands
    kept, left_out = [], []
    for item in items:
        family = next((name for name in (getattr(item, "originalname", ""), item.path.stem) if name in deals), None)
        hand, hands = deals.get(family, (0, 1))
        (kept if seen[family] % hands == hand else left_out).append(item)
        seen[family] += 1
    if unknown := deals.keys() - seen:
        raise pytest.UsageError(f"FLASHLADDER_DEALT: no such test: {', '.join(sorted(unknown))}")
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    from flashladder.commands import testing
    from flashladder.core.paths import ROOT

    if reason := testing.why_left_out():
        folders = [ROOT / name for name in testing.OF_THE_SIMULATOR]
        for item in items:
            if item.get_closest_marker("long") and any(item.path.is_relative_to(folder) for folder in folders):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish(session):
    """Thousands of tests are here to stay: without this, whenever Python looks for garbage it looks at all of them."""
    gc.collect()
    gc.freeze()
