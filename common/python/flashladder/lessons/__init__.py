"""What the cells of a notebook call: `from flashladder.lessons import Lesson, predict`."""

import importlib

__all__ = [
    "BackwardLesson",
    "DecodeLesson",
    "HostLesson",
    "Lesson",
    "Prediction",
    "RingLesson",
    "Trial",
    "predict",
    "scorecard",
    "slider",
]
_MODULES = {"BackwardLesson": "backward", "DecodeLesson": "decode", "RingLesson": "ring"}  # else lesson


def __getattr__(name: str):
    # Loaded when it is asked for: flashladder.lessons.setup runs before it is known that the packages are there.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"flashladder.lessons.{_MODULES.get(name, 'lesson')}"), name)
