"""Finds compilers and tools, sets up .venv, calls CMake."""
