"""The commands `warpsim` and `warpsim-inspect`: the simulator's own programs, found where this package has them."""

import os
import sys

from warpsim.running import WarpsimError, launcher


def _become(name: str) -> int:
    try:
        program = launcher(name)
    except WarpsimError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 126
    sys.stdout.flush()
    os.execv(program, [name, *sys.argv[1:]])


def main() -> int:
    return _become("warpsim")


def inspect() -> int:
    return _become("warpsim-inspect")


if __name__ == "__main__":
    sys.exit(main())
