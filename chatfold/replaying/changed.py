"""What differs between two states of a chat: its control, then its transcript. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from events.diff import Change, changes
from events.state import ChatState


def state_changes(before: ChatState, after: ChatState, *, ignore: Collection[str] = ()) -> Iterator[Change]:
    """Yield what differs between two states, contents by their size alone.

    Args:
        before: The first one.
        after: The second one.
        ignore: Paths that are not looked at, as of ``events.diff.changes``.

    Raises:
        InvalidValue: A state has no transcript.
    """
    yield from changes(before.control, after.control, ignore=ignore)
    what = "compare two states"
    yield from changes(before.need_transcript(what), after.need_transcript(what), ignore=ignore)
