"""Environments for the programs that are started: what is already set there stays, behind what is put in front."""

import os
from pathlib import Path

from flashladder.core.paths import ROOT

PACKAGE = ROOT / "common/python"  # what PYTHONPATH takes


def prepended(env: dict[str, str] | None = None, /, **places: Path | str) -> dict[str, str]:
    """A copy of env (this process's where it is None) with a place at the head of each variable, which is a path
    such as LD_LIBRARY_PATH=folder."""
    env = dict(os.environ if env is None else env)
    for variable, place in places.items():
        env[variable] = os.pathsep.join([str(place), *filter(None, [env.get(variable)])])
    return env


def for_python(env: dict[str, str] | None = None) -> dict[str, str]:
    """A copy of env (this process's where it is None) in which Python finds this very package first."""
    return prepended(env, PYTHONPATH=PACKAGE)
