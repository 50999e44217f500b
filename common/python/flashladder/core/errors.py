"""The one error that ends a command: what is wrong, and how to get it right."""

from collections.abc import Iterable
from typing import TypeVar

Named = TypeVar("Named")


class FlashLadderError(Exception):
    """Shown to the user as one message, without a traceback; the command exits with status 1."""


def named(known: Iterable[Named], name: str, owner: str, what: str) -> Named:
    """The one whose `name` it is. FlashLadderError says that the owner has no such thing, and lists those it has."""
    every = {one.name: one for one in known}
    if name not in every:
        raise FlashLadderError(f"{owner} has no {what} '{name}'. It has: {', '.join(every) or 'none'}.")
    return every[name]
