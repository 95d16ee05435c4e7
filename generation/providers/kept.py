"""What a provider makes of the beginning of a conversation, kept for the requests that go on from there. Pure.

Requests of one chat share the messages of their common beginning, the very same objects (``generation.prompt``), so the
last message that was seen tells which beginning it was. Bounded by a number of conversations, each of which holds one
message and what was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar, final

from generation.prompt_types import PromptMessage

S = TypeVar("S")

_CONVERSATIONS: Final = 1024
_BACK: Final = 16
"""Messages back from the end in which the one is looked for that was the last before."""


@final
class KeptBeginnings(Generic[S]):
    """Things made of beginnings of conversations.

    Args:
        empty: Makes the thing of no message.
        take: Changes it for the next message.
    """

    def __init__(self, empty: Callable[[], S], take: Callable[[S, PromptMessage], None]) -> None:
        self._empty = empty
        self._take = take
        self._kept: dict[int, tuple[PromptMessage, int, S]] = {}

    def of(self, messages: Sequence[PromptMessage]) -> S:
        """Return the thing made of ``messages``; it is changed when a request goes on from them."""
        total = len(messages)
        seen, made = 0, None
        for end in range(total, max(total - _BACK, 0), -1):
            found = self._kept.get(id(messages[end - 1]))
            if found is not None and found[0] is messages[end - 1] and found[1] == end:
                seen, made = end, found[2]
                del self._kept[id(messages[end - 1])]
                break
        if made is None:
            made = self._empty()
        for place in range(seen, total):
            self._take(made, messages[place])
        if total:
            last = messages[total - 1]
            self._kept[id(last)] = (last, total, made)
            if len(self._kept) > _CONVERSATIONS:
                del self._kept[next(iter(self._kept))]
        return made
