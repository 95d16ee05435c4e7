"""The release, as events record it."""

from chatfold import __version__ as RELEASE  # noqa: N812 - a constant of this module

__all__ = ["RELEASE"]
