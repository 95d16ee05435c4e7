"""What goes wrong when logs are redacted."""

from __future__ import annotations


class RedactionRulesError(ValueError):
    """Rules for redacting are not what they must be; the text says which, and what may stand there."""


class KeyTooShort(ValueError):
    """The key for redacting is too short to hide anything; the text says how long it must be."""


class RedactionError(Exception):
    """A log cannot be redacted; the text says where and why. Nothing was made of it.

    Attributes:
        version: The event that is in the way; None for the log as a whole.
        why: Why.
    """

    def __init__(self, version: int | None, why: str) -> None:
        # Both, so that it can be handed over from another process.
        super().__init__(version, why)
        self.version = version
        self.why = why

    def __str__(self) -> str:
        """Say both."""
        return self.why if self.version is None else f"version {self.version}: {self.why}"
