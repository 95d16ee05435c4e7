"""What a service ran itself, told as text to models that are not its own. Pure.

Calls and results that a service executed come back to it and to the same model alone: others cannot read them, and what
was found would be lost to them. They stand as text in the place of the result, without what is encrypted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from events.content import Json
from generation import prompt_texts
from generation.budget import MIN_BUDGET, truncate
from generation.prompt_types import PromptCall, PromptMessage, PromptPart, PromptResult, PromptText
from generation.providers.metadata import own


def flatten(messages: Iterable[PromptMessage], provider: str, model: str) -> tuple[PromptMessage, ...]:
    """Return messages as a model can read them that is not the one that gave all of them.

    Args:
        messages: The messages of a prompt.
        provider: Name of the provider that is asked,
        model: and of its model: what these two ran themselves stays as it is.
    """
    return tuple(flat_message(message, provider, model) for message in messages)


def flat_message(message: PromptMessage, provider: str, model: str) -> PromptMessage:
    """Return a message with what another service ran in it as text; the message itself where there is nothing of that.

    See :func:`flatten`.
    """
    calls = {
        part.id: part
        for part in message.parts
        if isinstance(part, PromptCall) and part.provider_executed and own(part.metadata, provider, model) is None
    }
    if not calls:
        return message
    parts = (_flat(part, calls) for part in message.parts if not (isinstance(part, PromptCall) and part.id in calls))
    return replace(message, parts=tuple(parts))


def _flat(part: PromptPart, calls: dict[str, PromptCall]) -> PromptPart:
    if not isinstance(part, PromptResult) or (call := calls.get(part.id)) is None:
        return part
    said = truncate(_readable(part.text), MIN_BUDGET)
    return PromptText(text=prompt_texts.executed(call.name, call.arguments, said, failed=part.is_error))


def _readable(text: str) -> str:
    """Return a result without what only its service can read."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return msgspec.json.encode(_plain(value)).decode() if isinstance(value, dict | list) else text


def _plain(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _plain(held) for name, held in value.items() if not name.startswith("encrypted_")}
    return [_plain(held) for held in value] if isinstance(value, list) else value
