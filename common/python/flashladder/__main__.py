import sys

try:
    from flashladder.commands.cli import main
except ModuleNotFoundError as missing:
    print(
        f"error: {sys.executable} has no {missing.name}. `make` without PYTHON= installs all into .venv; for "
        f"this interpreter: {sys.executable} -m pip install {missing.name}",
        file=sys.stderr,
    )
    sys.exit(1)

if __name__ == "__main__":
    sys.exit(main())
