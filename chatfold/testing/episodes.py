"""Which attempt a model is called for. Providers are not told, and a test kit that plays one must know."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from generation.parts import EpisodeKey, PartBuffer

EPISODE: Final[ContextVar[EpisodeKey | None]] = ContextVar("chatfold_tested_episode", default=None)
"""The attempt within whose effect code runs; None outside of one, and where live parts are not noted."""


class NotedParts(PartBuffer):
    """Live parts that note for what runs within an episode which one it is."""

    def create(self, key: EpisodeKey) -> None:
        """See :meth:`generation.parts.PartBuffer.create`."""
        super().create(key)
        EPISODE.set(key)
