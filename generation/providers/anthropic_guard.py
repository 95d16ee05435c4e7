"""What may go back to Anthropic of what its service ran itself: checked, and repaired, before each request. Pure.

A message whose blocks break a rule is repaired on read; history stays as it is. What is repaired depends on the message
and on those before it alone, so what is made of it stays valid while messages are appended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, final

from msgspec.structs import replace

from events.content import Json
from generation.prompt_flat import told
from generation.prompt_types import PromptCall, PromptMessage, PromptPart, PromptReasoning, PromptResult
from generation.providers.metadata import own
from generation.providers.native import WEB_SEARCH

Violation: TypeAlias = Literal[
    "outside_assistant",
    "orphan_call",
    "orphan_result",
    "duplicate_id",
    "result_before_call",
    "invalid_call",
    "invalid_result",
]
"""What may be wrong with a call or a result that the service ran."""


class Found(NamedTuple):
    """A violation, and the place of its part in the message."""

    place: int
    violation: Violation


@final
class Guard:
    """Takes the messages of a conversation one after the other, and gives each as it may be sent.

    Args:
        provider: The provider that is asked, by the name that its metadata carries,
        model: and its model.
    """

    __slots__ = ("_model", "_provider", "_seen")

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._seen: set[str] = set()

    def copy(self) -> Guard:
        """Return another one that goes on from here by itself."""
        other = Guard(self._provider, self._model)
        other._seen = self._seen.copy()
        return other

    def take(self, message: PromptMessage) -> PromptMessage:
        """Return the next message as it may be sent: as it is, or without bad calls and with bad results as text.

        That is repeated until nothing is wrong. It comes to an end, and there is none that is not safe then: each time
        there is a call or a result less of those that the service ran, and without any nothing is wrong.
        """
        if not any(map(_executed, message.parts)):
            return message
        made = message
        while found := self.violations(made):
            made = _without(made, {each.place for each in found})
        self._seen |= {identity for part in made.parts if (identity := self._id(part))}
        return made if made is message else without_broken_thinking(message, made)

    def violations(self, message: PromptMessage) -> list[Found]:
        """Return what is wrong with a message where it stands."""
        return list(_violations(message, [self._data(part) for part in message.parts], self._seen))

    def _data(self, part: PromptPart) -> dict[str, Json]:
        return (own(part.metadata, self._provider, self._model) or {}) if _executed(part) else {}  # type: ignore[union-attr]

    def _id(self, part: PromptPart) -> str:
        return str(self._data(part).get("id", "")) if isinstance(part, PromptCall) else ""


def _executed(part: PromptPart) -> bool:
    return isinstance(part, PromptCall | PromptResult) and part.provider_executed


def _violations(message: PromptMessage, data: list[dict[str, Json]], seen: Collection[str]) -> Iterator[Found]:
    """Yield violations in the order of parts; calls without a result come last."""
    calls = {
        data[place].get("id"): place
        for place, part in enumerate(message.parts)
        if isinstance(part, PromptCall) and part.provider_executed
    }
    begun: dict[Any, int] = {}
    ended: set[Any] = set()
    for place, part in enumerate(message.parts):
        if not _executed(part):
            continue
        if message.role != "assistant":
            yield Found(place, "outside_assistant")
        elif isinstance(part, PromptCall):
            identity = data[place].get("id")
            if not _is_call(data[place]):
                yield Found(place, "invalid_call")
            elif identity in begun or identity in seen:
                yield Found(place, "duplicate_id")
            else:
                begun[identity] = place
        elif not _is_result(data[place]):
            yield Found(place, "invalid_result")
        else:
            identity = data[place].get("tool_use_id")
            if identity in ended:
                yield Found(place, "duplicate_id")
            elif identity in begun:
                ended.add(identity)
            else:
                yield Found(place, "result_before_call" if calls.get(identity, -1) > place else "orphan_result")
    for identity, place in begun.items():
        if identity not in ended:
            yield Found(place, "orphan_call")


def _is_call(block: dict[str, Json]) -> bool:
    """Whether a block is a whole call of the one tool whose blocks may come back."""
    return (
        block.get("type") == "server_tool_use"
        and isinstance(block.get("id"), str)
        and bool(block["id"])
        and block.get("name") == WEB_SEARCH
        and isinstance(block.get("input"), dict)
    )


def _is_result(block: dict[str, Json]) -> bool:
    """Whether a block is a whole result of a search: what was found, or why nothing was."""
    if block.get("type") != f"{WEB_SEARCH}_tool_result" or not isinstance(block.get("tool_use_id"), str):
        return False
    content = block.get("content")
    if isinstance(content, dict):
        return isinstance(content.get("error_code"), str)
    return isinstance(content, list) and all(
        isinstance(found, dict) and isinstance(found.get("encrypted_content"), str) for found in content
    )


def _without(message: PromptMessage, bad: Collection[int]) -> PromptMessage:
    """Return a message without bad calls and with bad results as text."""
    parts: list[PromptPart] = []
    calls = {part.id: part for part in message.parts if isinstance(part, PromptCall)}
    for place, part in enumerate(message.parts):
        if place not in bad:
            parts.append(part)
        elif isinstance(part, PromptResult):
            parts.append(told(calls.get(part.id), part))
    return replace(message, parts=tuple(parts))


def without_broken_thinking(message: PromptMessage, made: PromptMessage) -> PromptMessage:
    """Return what was ``made`` of an answer without thinking behind the first part that is not as it was.

    It was signed behind something else.
    """
    pairs = enumerate(zip(message.parts, made.parts, strict=False))
    first = next((place for place, (old, new) in pairs if old is not new), len(made.parts))
    kept = (part for part in made.parts[first:] if not isinstance(part, PromptReasoning))
    return replace(made, parts=(*made.parts[:first], *kept))
