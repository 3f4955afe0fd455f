"""The version of this package; the same as in pyproject.toml (checked by a test)."""

__version__ = "0.1.0"
