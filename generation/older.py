"""Results in chats that an older release may run: what they cannot hold is said in their text. Pure.

Which fields a level has is ``events.levels``'s matter: what it lacks would be left out of the event, and neither the
model nor people would be told.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from chatstate import commands as c
from events.content import Content
from events.levels import NEWEST, readable_at
from events.parts import ToolResultPart
from generation.prompt_parts import result_part
from generation.providers.files import as_text

_NO_ATTACHMENTS: Final = "[Attachments of this result were left out: an older release may run this chat.]"


def result_at(part: ToolResultPart, level: int) -> ToolResultPart:
    """Return a result as a chat of ``level`` can keep it: with arguments, hooks' words and files in its text."""
    if level >= NEWEST or part.output is None or readable_at(part, level) is part:
        return part
    shown = result_part(part, "", "")
    texts = [shown.text, *map(as_text, shown.media), *[_NO_ATTACHMENTS] * bool(part.attachments)]
    return replace(readable_at(part, level), output=Content("\n\n".join(texts)))


def submission_at(command: c.SubmitResults, level: int) -> c.SubmitResults:
    """Return a client's answers as a chat of ``level`` can keep them."""
    return replace(command, results=tuple(_submitted_at(each, level) for each in command.results))


def _submitted_at(given: c.SubmittedResult, level: int) -> c.SubmittedResult:
    part = ToolResultPart(call=given.call, output=given.output, media=given.media, attachments=given.attachments)
    kept = result_at(part, level)
    if kept is part or kept.output is None:
        return given
    return replace(given, output=kept.output, media=kept.media, attachments=kept.attachments)
