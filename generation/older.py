"""Results in chats that an older release may run: what they cannot hold is said in their text. Pure.

Which fields a level has is ``events.levels``'s matter: what it lacks would be left out of the event, and neither the
model nor people would be told.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from chatstate import commands as c
from events.content import Content
from events.levels import GENERATION
from events.parts import ToolResultPart
from generation.prompt_parts import result_part
from generation.providers.files import as_text

_NO_ATTACHMENTS: Final = "[Attachments of this result were left out: an older release may run this chat.]"


def result_at(part: ToolResultPart, level: int) -> ToolResultPart:
    """Return a result as a chat of ``level`` can keep it: with arguments, hooks' words and files in its text."""
    if level >= GENERATION or part.output is None:
        return part
    if part.rewritten is None and part.context is None and not part.media and not part.attachments:
        return part
    shown = result_part(part, "", "")
    texts = [shown.text, *map(as_text, shown.media), *[_NO_ATTACHMENTS] * bool(part.attachments)]
    output = Content("\n\n".join(texts))
    return replace(part, output=output, rewritten=None, context=None, media=(), attachments=())


def submission_at(command: c.SubmitResults, level: int) -> c.SubmitResults:
    """Return a client's answers as a chat of ``level`` can keep them."""
    if level >= GENERATION or not any(each.media or each.attachments for each in command.results):
        return command
    return replace(command, results=tuple(_submitted_at(each, level) for each in command.results))


def _submitted_at(given: c.SubmittedResult, level: int) -> c.SubmittedResult:
    part = ToolResultPart(call=given.call, output=given.output, media=given.media, attachments=given.attachments)
    output = result_at(part, level).output
    return given if output is None else replace(given, output=output, media=(), attachments=())
