"""FlashLadder from Python: build the stages, run them on NumPy arrays, verify, time, profile and plot."""

__version__ = "0.1.0"
