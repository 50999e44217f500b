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
_OF_OTHER_PARTS = ("BackwardLesson", "DecodeLesson", "RingLesson")


def __getattr__(name: str):
    # Loaded when it is asked for: flashladder.lessons.setup runs before it is known that the packages are there.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "other_parts" if name in _OF_OTHER_PARTS else "lesson"
    return getattr(importlib.import_module(f"flashladder.lessons.{module}"), name)
