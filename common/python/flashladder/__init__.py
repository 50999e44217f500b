"""FlashLadder from Python: build the stages, run them on NumPy arrays, verify, time, profile and plot.

from flashladder import run
result = run(5, Q, K, V)
"""


def __getattr__(name: str):
    # Loaded when it is asked for: the set-up imports this package before anything is installed.
    if name == "run":
        from flashladder.ladder.run import run

        return run
    if name == "configuration":
        from flashladder.tuning import configuration

        return configuration
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
