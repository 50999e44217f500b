"""What the cells of a notebook call: `from flashladder.lessons import Lesson, predict`."""

import importlib

__all__ = [
    "BackwardLesson",
    "HostLesson",
    "Lesson",
    "Prediction",
    "RingLesson",
    "Trial",
    "predict",
    "scorecard",
    "slider",
]


def __getattr__(name: str):
    # Loaded when it is asked for: flashladder.lessons.setup runs before it is known that the packages are there.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = {"BackwardLesson": "backward", "RingLesson": "ring"}.get(name, "lesson")
    return getattr(importlib.import_module(f"flashladder.lessons.{module}"), name)
