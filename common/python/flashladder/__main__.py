"""python -m flashladder, and the command `flashladder` that pip installs.

An installed package has the commands and no stages. It finds the project's folder and goes on with the package there,
so that commands and stages are always of the same version.
"""

import os
import sys


def main() -> int:
    from flashladder.core.errors import FlashLadderError

    try:
        from flashladder.core import paths

        own = paths.ROOT / "common/python"
        if paths.PACKAGE != own / "flashladder":
            path = os.pathsep.join([str(own), *filter(None, [os.environ.get("PYTHONPATH")])])
            command = [sys.executable, "-m", "flashladder", *sys.argv[1:]]
            os.execve(sys.executable, command, os.environ | {"PYTHONPATH": path})
        from flashladder.commands import cli
    except FlashLadderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as missing:
        print(
            f"error: {sys.executable} has no {missing.name}. `make` without PYTHON= installs all into .venv; for "
            f"this interpreter: {sys.executable} -m pip install {missing.name}",
            file=sys.stderr,
        )
        return 1
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
