"""tomllib, or before Python 3.11 the package of which it is a copy."""

try:
    import tomllib
except ImportError:
    import tomli as tomllib

__all__ = ["tomllib"]
