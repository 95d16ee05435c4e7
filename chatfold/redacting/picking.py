"""Which logs are worth keeping: those in which a turn failed, a decision drifted, a transition happened, or new ones.

Pure: it looks at the events of one log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from chatfold.testing.decisions import decision_problems
from events.envelope import Recorded
from events.vocabulary import EVENT_TYPES, Reconciled, TurnFailed

TRIGGERS: Final[tuple[str, ...]] = tuple(cls.trigger for cls in EVENT_TYPES.values())
"""The transitions that a log can be picked by."""

_FAILURES: Final = (TurnFailed, Reconciled)


class Picking(Struct, frozen=True, kw_only=True):
    """What a log must be to be picked: all of what is asked for here.

    Attributes:
        errors: A turn failed in it, or it had to be repaired.
        drift: Today's rules decide something else than it records.
        covers: One of these transitions happened in it (``TRIGGERS``); none for any log.
        since: Its last event is not older than this time (microseconds UTC).
    """

    errors: bool = False
    drift: bool = False
    covers: tuple[str, ...] = ()
    since: int | None = None

    @property
    def asks(self) -> bool:
        """Whether anything is asked for at all."""
        return self != Picking()

    def takes(self, log: Sequence[Recorded]) -> bool:
        """Whether a log is picked.

        Args:
            log: All its events; without contents is enough.
        """
        if self.since is not None and (not log or log[-1].envelope.recorded_at < self.since):
            return False
        if self.errors and not any(isinstance(each.event, _FAILURES) for each in log):
            return False
        if self.covers and not any(each.event.trigger in self.covers for each in log):
            return False
        return not self.drift or next(decision_problems(log), None) is not None
