"""A transcript's parts as fold expectations have them: as what an event changed of them. Pure.

A content stands there by its size and a digest: the log beside it has what it says. Messages are listed from the first
place on where they are others; queued messages, results, arguments and policies by their keys, each policy by a digest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any, Final, TypeAlias

from chatfold.corpus.structs import digest_of_facts, facts_of
from events.transcript import Messages, Transcript

Parts: TypeAlias = dict[str, Any]
"""The parts of a transcript as JSON data, or what an event changed of them; a part that is gone is None there."""

NAMES: Final = Transcript.__struct_fields__
"""The parts."""

_MESSAGES: Final = "messages"
_FROM, _ARE = "from", "are"


class TranscriptFacts:
    """The transcript of one chat as it grows: what costs little is what was not changed.

    Args:
        names: The parts to look at; others are left alone.

    Attributes:
        parts: The parts as they are known.
    """

    def __init__(self, names: Collection[str] = NAMES) -> None:
        self.parts: Parts = {}
        self._names: Final = tuple(name for name in NAMES if name in names)
        self._seen: dict[str, object] = {}

    def changed(self, transcript: Transcript) -> Parts:
        """Return what is another in a later transcript of the chat; what is known stays as it is."""
        patch: Parts = {}
        for name in self._names:
            part = getattr(transcript, name)
            if part is not self._seen.get(name) and (change := self._change(name, part)) != {}:
                patch[name] = change
        return patch

    def take(self, transcript: Transcript, patch: Parts) -> None:
        """Know the later transcript, whose changes ``changed`` gave."""
        self.parts = merged(self.parts, patch)
        self._seen = {name: getattr(transcript, name) for name in self._names}

    def _change(self, name: str, part: object) -> Any:
        if isinstance(part, Messages):
            return self._messages_changed(part)
        if isinstance(part, Mapping):
            before = self.parts.get(name, {})
            after = {str(key): _of_entry(name, each) for key, each in part.items()}
            gone = {key: None for key in before if key not in after}
            return gone | {key: said for key, said in after.items() if before.get(key) != said}
        said = None if part is None else facts_of(part)
        return {} if said == self.parts.get(name) else said

    def _messages_changed(self, messages: Messages) -> Any:
        before: Sequence[Any] = self.parts.get(_MESSAGES, ())
        seen = self._seen.get(_MESSAGES)
        if isinstance(seen, Messages) and messages.continues(seen):
            start, after = len(before), facts_of(messages.since(len(before)))
        else:
            listed = facts_of(messages)
            start = next((at for at, (one, other) in enumerate(zip(before, listed, strict=False)) if one != other), -1)
            start = min(len(before), len(listed)) if start < 0 else start
            after = listed[start:]
        return {_FROM: start, _ARE: after} if after or start < len(before) else {}


def merged(parts: Parts, patch: Parts) -> Parts:
    """Return a transcript's parts after a change."""
    after = copy(parts)
    for name, change in patch.items():
        if change is None:
            after.pop(name, None)
        elif name == _MESSAGES:
            after[name] = [*parts.get(name, ())[: change[_FROM]], *change[_ARE]]
        elif isinstance(change, dict):
            entries = parts.get(name, {}) | change
            after[name] = {key: said for key, said in entries.items() if said is not None}
        else:
            after[name] = change
    return after


def _of_entry(name: str, value: object) -> Any:
    # What a policy says is in the log; here it matters which there are.
    return digest_of_facts(value) if name == "policies" else facts_of(value)
