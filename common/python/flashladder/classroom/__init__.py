"""Puzzles, exercises and whole kernels, how they are judged; assignments, and the grading of a class."""
