"""What a service ran itself, told as text to models that are not its own. Pure.

Calls and results that a service executed come back to it and to the same model alone: others cannot read them, and what
was found would be lost to them. They stand as text in the place of the result, without what is encrypted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from events.content import Json
from events.cutting import truncate
from generation import prompt_texts
from generation.budget import MIN_BUDGET
from generation.prompt_types import PromptCall, PromptMessage, PromptResult, PromptText

Keeps: TypeAlias = Callable[[PromptCall, PromptResult], bool]
"""Whether a call that a service ran itself can be sent with its result as that service gave them."""


def flatten(message: PromptMessage, keeps: Keeps) -> PromptMessage:
    """Return a message with what services ran in it as text, but for what the one that is asked takes back.

    Depends on the message alone, so what is made of it stays valid while messages are appended.

    Args:
        message: A message of a prompt.
        keeps: Says of a call and its result whether they are sent as they are.

    Returns:
        The message itself where nothing in it has to change.
    """
    ran = {part.id: part for part in message.parts if isinstance(part, PromptCall) and part.provider_executed}
    if not ran:
        return message
    refused = {
        part.id: call
        for part in message.parts
        if isinstance(part, PromptResult) and (call := ran.get(part.id)) is not None and not keeps(call, part)
    }
    if not refused:
        return message
    parts = (
        told(call, part) if isinstance(part, PromptResult) and (call := refused.get(part.id)) is not None else part
        for part in message.parts
        if not (isinstance(part, PromptCall) and part.id in refused)
    )
    return replace(message, parts=tuple(parts))


def told(call: PromptCall | None, result: PromptResult) -> PromptText:
    """Return the text that stands for what a service ran.

    Args:
        call: The call; None where it is not known.
        result: What came of it.
    """
    name, arguments = (call.name, call.arguments) if call is not None else (result.name, "{}")
    said = truncate(_readable(result.text), MIN_BUDGET)
    return PromptText(text=prompt_texts.executed(name, arguments, said, failed=result.is_error))


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
