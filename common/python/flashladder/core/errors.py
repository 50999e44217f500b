"""The one error that ends a command: what is wrong, and how to get it right."""


class FlashLadderError(Exception):
    """Shown to the user as one message, without a traceback; the command exits with status 1."""
