"""The messages of a prompt, and what is made of those that stay: kept for the requests that go on from there. Pure.

A prompt's settled messages never change while its window lasts (``generation.prompt``), so what a provider makes of
them, such as their wire form, is made once. What is made lives as long as the window, which a change of history, a
boundary and the end of a warm chat end; so nothing is kept of chats that nobody has in hand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar, final, overload

from events.shared import SharedSequence
from events.transcript import Messages
from generation.prompt_messages import alone
from generation.prompt_types import PromptMessage

LEAST: Final = 64
"""Settled messages below which a wire form is made anew, so that the many short chats hold their texts alone."""

COPIED: Final = 1024
"""Characters of one part or message that a kept form may hold a copy of: about the size of what surrounds them."""

Settled: TypeAlias = PromptMessage | int
"""A settled message: its neutral form, or the place in history of one that stands alone.

The form of such a one, as most are, is made anew whenever it is read, which is seldom: of a long chat the wire form is
kept. So a prompt takes little memory beside its history.
"""


class Made(Protocol):
    """Something made of messages, one after the other."""

    def take(self, message: PromptMessage) -> None:
        """Go on with the next message."""
        ...

    def copy(self) -> Self:
        """Return another one that goes on from here by itself."""
        ...


M = TypeVar("M", bound=Made)


@final
class Window:
    """What was made last of the settled messages of one prompt: of which kind, of how many of them, and the thing."""

    __slots__ = ("count", "kind", "made")

    def __init__(self) -> None:
        self.kind: Hashable = None
        self.count = 0
        self.made: Any = None


@final
class PromptMessages(Sequence[PromptMessage]):
    """The messages of one prompt. Equal to another one, or a tuple, of equal messages.

    Args:
        history: The chat's messages.
        settled: Those of the prompt that stay while the window lasts.
        more: Those after them, of this prompt alone.
        window: Where the chat's prompts keep what is made of the settled ones.
    """

    __slots__ = ("history", "more", "settled", "window")

    def __init__(
        self, history: Messages, settled: SharedSequence[Settled], more: tuple[PromptMessage, ...], window: Window
    ) -> None:
        self.history = history
        self.settled = settled
        self.more = more
        self.window = window

    def __len__(self) -> int:
        return len(self.settled) + len(self.more)

    @overload
    def __getitem__(self, index: int) -> PromptMessage: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PromptMessage]: ...

    def __getitem__(self, index: int | slice) -> PromptMessage | Sequence[PromptMessage]:
        """Return the message at a place, or a tuple of those in a slice."""
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self))))
        place, settled = range(len(self))[index], len(self.settled)
        return self._neutral(self.settled[place]) if place < settled else self.more[place - settled]

    def __iter__(self) -> Iterator[PromptMessage]:
        return chain(self.settled_from(0), self.more)

    def settled_from(self, count: int) -> Iterator[PromptMessage]:
        """Return the settled messages after the first ``count``."""
        return map(self._neutral, self.settled.since(count))

    def _neutral(self, settled: Settled) -> PromptMessage:
        return settled if isinstance(settled, PromptMessage) else alone(self.history[settled])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PromptMessages | tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PromptMessages({list(self)!r})"


def made_of(messages: Sequence[PromptMessage], kind: Hashable, empty: Callable[[], M], *, least: int = 0) -> M:
    """Return what is made of ``messages``, which the caller does not change: it goes on from here with the next prompt.

    Args:
        messages: The messages of a prompt, or any others, of which nothing is kept.
        kind: What is made. A window keeps one kind; of another one it begins anew.
        empty: Makes the thing of no message.
        least: Settled messages below which nothing is kept.
    """
    if not isinstance(messages, PromptMessages) or len(messages.settled) < least:
        return _going_on(empty(), messages)
    settled, window = messages.settled, messages.window
    if window.kind != kind or window.count > len(settled):
        window.kind, window.count, window.made = kind, 0, empty()
    made: M = window.made
    fresh = messages.settled_from(window.count)
    # Nothing is kept where a message cannot be taken: what was made by then would be taken twice by the next prompt.
    window.kind = None
    _going_on(made, fresh)
    window.kind, window.count = kind, len(settled)
    return _going_on(made.copy(), messages.more) if messages.more else made


def _going_on(made: M, messages: Iterable[PromptMessage]) -> M:
    for message in messages:
        made.take(message)
    return made
