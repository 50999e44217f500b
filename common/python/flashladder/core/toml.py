"""tomllib, or before Python 3.11 the package of which it is a copy; texts that are read again and again; and what is
wrong with a file that describes something."""

import pickle
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError

try:
    import tomllib
except ImportError:
    import tomli as tomllib


def parsed(text: str) -> dict:
    """What tomllib.loads() returns, or raises. A text is parsed once: each call has a copy of its own, which is made in
    a twentieth of the time."""
    return pickle.loads(_pickled(text))


@lru_cache(maxsize=256)
def _pickled(text: str) -> bytes:
    return pickle.dumps(tomllib.loads(text), pickle.HIGHEST_PROTOCOL)


def read(file: Path, where: str) -> dict:
    """A file's tables; none where it is not there. where: what messages call it."""
    try:
        return parsed(file.read_text()) if file.exists() else {}
    except tomllib.TOMLDecodeError as error:
        raise FlashLadderError(f"{where}: {error}") from error


def check_keys(table: dict, needed: Collection[str], others: Collection[str], where: str, why: str = "") -> None:
    """FlashLadderError where a table lacks a key, or has one that means nothing. why: behind that."""
    missing, unknown = set(needed) - set(table), set(table) - set(needed) - set(others)
    if missing or unknown:
        wrong = f"lacks {min(missing)}" if missing else f"has {min(unknown)}, which means nothing"
        raise FlashLadderError(f"{where} {wrong}{why}.")
