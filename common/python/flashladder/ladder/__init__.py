"""The registry of stages: running and verifying them, their sources, planted mistakes, variants, techniques."""
