"""What hooks are asked, and which answers they may give. Pure.

Owns the table of events and answers, and the check of answers against it. Asking is ``generation.hooks.dispatch``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from events.content import Json, size_of
from events.errors import InvalidValue
from events.values import check_value
from generation.errors import HookFailed

HookEvent: TypeAlias = Literal[
    "session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "pre_compact", "post_compact", "stop"
]
"""What hooks are asked at."""

HOOK_EVENTS: Final[tuple[HookEvent, ...]] = get_args(HookEvent)

_ADDS: Final = frozenset({"context"})
_GUARDS: Final = frozenset({"context", "deny", "input"})

MAY: Final[Mapping[HookEvent, frozenset[str]]] = MappingProxyType(
    {
        "session_start": _ADDS,
        "user_prompt_submit": _GUARDS,
        "pre_tool_use": _GUARDS,
        "post_tool_use": _ADDS,
        "pre_compact": _ADDS,
        "post_compact": _ADDS,
        "stop": _ADDS,
    }
)
"""What an answer may say at each event; one that says nothing, and only observes, may come at all of them."""

MOST: Final = 1 << 20
"""Bytes that an answer may have, and the contexts of all hooks at one event: they must fit into what records them."""

ADMISSION: Final[frozenset[HookEvent]] = frozenset({"session_start", "user_prompt_submit"})
"""The events that let new work in: they may take only a part of the slots."""


class HookCall(Struct, frozen=True, kw_only=True):
    """What a hook is told.

    Attributes:
        id: The same whenever the same thing is asked again, after a crash for example: by it duplicates are known.
        event: What it is about.
        chat: The chat's id.
        facts: What the event has: ``tool``, ``call``, ``input``, ``output``, ``is_error``, ``text``, ``summary``, ...
    """

    id: str
    event: HookEvent
    chat: str
    facts: Mapping[str, Json]


class HookAnswer(Struct, frozen=True, kw_only=True):
    """What a hook answers. Nothing in it: it has only observed.

    Attributes:
        context: A text that the model is shown.
        deny: Why it must not happen.
        input: What takes the place of the input: a text for a user's message, an object for a call of a tool.
    """

    context: str | None = None
    deny: str | None = None
    input: Json = None


OBSERVED: Final = HookAnswer()


def hook_id(chat: str, event: HookEvent, place: str) -> str:
    """Return the stable id of a call; ``place`` says which one of the chat's events it is."""
    return f"{chat}:{event}:{place}"


def check_answer(hook: str, event: HookEvent, answer: object) -> HookAnswer:
    """Return an answer that is allowed at an event.

    Args:
        hook: The hook's name, for the error.
        event: What was asked.
        answer: What a function returned: a ``HookAnswer``, or None where it only observes.

    Raises:
        HookFailed: It is no answer, says what may not be said at this event, or contradicts itself.
    """
    if answer is None:
        return OBSERVED
    if not isinstance(answer, HookAnswer):
        raise HookFailed(hook, event, f"its answer is a {type(answer).__name__}, and no HookAnswer")
    said = [name for name in HookAnswer.__struct_fields__ if getattr(answer, name) is not None]
    for name in said:
        if name not in MAY[event]:
            raise HookFailed(hook, event, f"an answer at {event} may not say {name}")
        _check(hook, event, name, getattr(answer, name))
    if "deny" in said and len(said) > 1:
        raise HookFailed(hook, event, "an answer that denies may say nothing else")
    return answer


def _check(hook: str, event: HookEvent, name: str, value: object) -> None:
    kind: type = dict if name == "input" and event == "pre_tool_use" else str
    if not isinstance(value, kind):
        raise HookFailed(hook, event, f"{name} must be {kind.__name__}, not {type(value).__name__}")
    if isinstance(value, str) and not value.strip():
        raise HookFailed(hook, event, f"{name} is blank")
    try:
        check_value(value, f"$.{name}")
    except InvalidValue as error:
        raise HookFailed(hook, event, f"it cannot be stored: {error}") from None
    if size_of(value) > MOST:  # type: ignore[arg-type]  # checked there
        raise HookFailed(hook, event, f"{name} has more than {MOST} bytes")


def read_answer(hook: str, event: HookEvent, value: Json) -> HookAnswer:
    """Return an answer that came as JSON: an object of ``context``, ``deny`` and ``input``, all of them optional.

    Raises:
        HookFailed: As ``check_answer``; or it is no object, or has other fields.
    """
    if not isinstance(value, dict):
        raise HookFailed(hook, event, f"its answer is a {type(value).__name__}, and no object")
    if stray := sorted(set(value) - set(HookAnswer.__struct_fields__)):
        raise HookFailed(hook, event, f"its answer has fields that are not known: {', '.join(stray)}")
    for name in value:
        if value[name] is None:
            raise HookFailed(hook, event, f"{name} is null; leave it out")
    return check_answer(hook, event, HookAnswer(**value))  # type: ignore[arg-type]  # checked there
