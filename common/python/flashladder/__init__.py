"""FlashLadder from Python: build the stages, run them on NumPy arrays, verify, time, profile and plot.

from flashladder import run
result = run(5, Q, K, V)

from flashladder import run_ring  # one sequence over several GPUs
result = run_ring("zigzag", Q, K, V, ranks=4, causal=True)

from flashladder import configuration  # of stage 12's kernel
configuration.parse("(BF16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles").cpp()
"""


def __getattr__(name: str):
    # Loaded when it is asked for: the set-up imports this package before anything is installed.
    if name == "run":
        from flashladder.ladder.run import run

        return run
    if name == "run_ring":
        from flashladder.ladder.run import run_ring

        return run_ring
    if name == "configuration":
        from flashladder.tuning import configuration

        return configuration
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
