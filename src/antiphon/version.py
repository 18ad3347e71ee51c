"""The version of the package."""

from antiphon import __version__

__all__ = ["__version__"]
