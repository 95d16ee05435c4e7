"""What may go back to Anthropic of what its service ran itself: checked, and repaired, before each request. Pure.

A message whose blocks break a rule is repaired on read; history stays as it is. What is repaired depends on the message
and on those before it alone, so what is made of it stays valid while messages are appended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, final

from msgspec.structs import replace

from events.content import Json
from generation.error_texts import chain_message
from generation.errors import ClassifiedError, ProviderError
from generation.prompt_flat import flatten, told
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

_UNSAFE: Final = "executed_history_unsafe"


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
        """Return the next message as it may be sent: as it is, repaired, as text, or without what the service ran.

        Raises:
            ProviderError: It is not safe even so.
        """
        if not any(map(_executed, message.parts)):
            return message
        found: list[Found] = []
        for step in STEPS:
            made = step(self, message)
            if not (found := self.violations(made)):
                self._seen |= {identity for part in made.parts if (identity := self._id(part))}
                return made
        code = f"match={_UNSAFE} {' '.join(sorted({each.violation for each in found}))}"
        raise ProviderError(
            ClassifiedError(
                kind="generic", message=chain_message(_UNSAFE, self._provider), provider=self._provider, detail=code
            )
        )

    def violations(self, message: PromptMessage) -> list[Found]:
        """Return what is wrong with a message where it stands."""
        return list(_violations(message, [self._data(part) for part in message.parts], self._seen))

    def repaired(self, message: PromptMessage) -> PromptMessage:
        """Return a message without bad calls, and with bad results as text; repeated until nothing is wrong."""
        while found := self.violations(message):
            message = _without(message, {each.place for each in found})
        return message

    def _data(self, part: PromptPart) -> dict[str, Json]:
        return (own(part.metadata, self._provider, self._model) or {}) if _executed(part) else {}  # type: ignore[union-attr]

    def _id(self, part: PromptPart) -> str:
        return str(self._data(part).get("id", "")) if isinstance(part, PromptCall) else ""


def _executed(part: PromptPart) -> bool:
    return isinstance(part, PromptCall | PromptResult) and part.provider_executed


def _as_it_is(guard: Guard, message: PromptMessage) -> PromptMessage:
    return message


def _all_as_text(guard: Guard, message: PromptMessage) -> PromptMessage:
    return flatten(message, lambda call, result: False)


def _stripped(guard: Guard, message: PromptMessage) -> PromptMessage:
    return replace(message, parts=tuple(part for part in message.parts if not _executed(part)))


STEPS: Sequence[Callable[[Guard, PromptMessage], PromptMessage]] = (_as_it_is, Guard.repaired, _all_as_text, _stripped)
"""What is tried, one after the other, until nothing is wrong."""


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
    """Return a message without bad calls and with bad results as text.

    Thinking behind the first of them goes too: it was signed behind something else.
    """
    parts: list[PromptPart] = []
    calls = {part.id: part for part in message.parts if isinstance(part, PromptCall)}
    for place, part in enumerate(message.parts):
        if place in bad:
            if isinstance(part, PromptResult):
                parts.append(told(calls.get(part.id), part))
        elif not isinstance(part, PromptReasoning) or place < min(bad):
            parts.append(part)
    return replace(message, parts=tuple(parts))
