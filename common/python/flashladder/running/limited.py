"""A command that gets only so many seconds."""

import subprocess
import tempfile

from flashladder.core.paths import ROOT
from flashladder.core.signals import kill_group


def run_for(command: list[str], seconds: float, env: dict | None = None) -> tuple[int, str]:
    """(status, output) of a command; after `seconds` it and what it started are ended, with status 124."""
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            status = running.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = 124
        finally:  # also where this command is interrupted
            if running.poll() is None:
                kill_group(running)
                running.wait()
        output.seek(0)
        return status, output.read()
