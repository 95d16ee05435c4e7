"""Conversion of single messages to their neutral form, and the system texts of a chat. Pure.

In which order, and which messages a prompt shows, is ``generation.prompt``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from events.ids import CallKey, call_key
from events.messages import Message
from events.parts import ContextFilePart, ReasoningPart, SkillPart, TextPart, ToolCallPart, ToolResultPart
from events.transcript import TranscriptMessage
from generation.prompt_ids import CallIds
from generation.prompt_parts import (
    assistant_part,
    call_part,
    context_text,
    result_part,
    skills_text,
    text_of,
    user_part,
)
from generation.prompt_types import PromptMessage, PromptPart

_NO_RESULTS: Final[Mapping[CallKey, ToolResultPart]] = {}
_NO_IDS: Final = CallIds()


@final
class SystemTexts:
    """The texts of system messages in history order, then the newest workspace context.

    A message that holds a context, be it an empty one, replaces the one before it as a whole. It goes last, so that a
    refreshed context leaves the texts before it, and with them a provider's cached prefix, as they were.
    """

    __slots__ = ("_context", "_own", "texts")

    def __init__(self) -> None:
        self._own: tuple[str, ...] = ()
        self._context: tuple[str, ...] = ()
        self.texts: tuple[str, ...] = ()
        """The texts so far: the very same tuple until a message is added."""

    def add(self, message: Message) -> None:
        """Take the next system message."""
        texts = [text_of(part.text) for part in message.parts if isinstance(part, TextPart)]
        given = tuple(text for text in texts if text.strip())
        files = [part for part in message.parts if isinstance(part, ContextFilePart)]
        skills = [part for part in message.parts if isinstance(part, SkillPart)]
        if files or skills or message.context is not None:
            blocks = [context_text(files)] if files else []
            self._context = (*given, *blocks, *([skills_text(skills)] if skills else []))
        else:
            self._own += given
        self.texts = self._own + self._context


def answered(item: TranscriptMessage, results: Mapping[CallKey, ToolResultPart]) -> bool:
    """Whether each call of a message that its provider did not run itself has its result."""
    if item.message.role != "assistant":
        return True
    return all(
        call_key(item.id, index) in results
        for index, part in enumerate(item.message.parts)
        if isinstance(part, ToolCallPart) and part.runner != "provider"
    )


def stands_alone(item: TranscriptMessage) -> bool:
    """Whether the form of a message follows from it alone: it has no calls and no results."""
    return not any(isinstance(part, ToolCallPart | ToolResultPart) for part in item.message.parts)


def alone(item: TranscriptMessage) -> PromptMessage:
    """Convert a message that stands alone and is shown."""
    (made,) = convert(item, _NO_RESULTS, _NO_IDS)
    return made


def convert(item: TranscriptMessage, results: Mapping[CallKey, ToolResultPart], ids: CallIds) -> list[PromptMessage]:
    """Convert the next message of a conversation; results go where their calls are.

    Args:
        item: The message.
        results: The first result of each call, wherever it stands; those without a call are left out.
        ids: Gives the ids of calls, in the order of the prompt.
    """
    role = item.message.role
    if role == "user":
        parts = [part for one in item.message.parts if (part := user_part(one)) is not None]
        return [PromptMessage(role="user", parts=tuple(parts))] if parts else []
    return _assistant(item, results, ids) if role == "assistant" else []


def _assistant(item: TranscriptMessage, results: Mapping[CallKey, ToolResultPart], ids: CallIds) -> list[PromptMessage]:
    """Convert an assistant message, and answer its calls in one tool message after it, in call order.

    Calls and results of the provider itself stay within the message, and only in pairs: an interrupted one without
    its result is left out, and reasoning behind it too.
    """
    message = item.message
    own: list[PromptPart] = []
    answers: list[PromptPart] = []
    pending: dict[CallKey, tuple[str, str]] = {}
    given: dict[CallKey, int] = {}
    spoiled = False  # whether a part is not as the model said it: what it signed after that holds no more
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolResultPart):
            given.setdefault(part.call, index)
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolCallPart):
            key = call_key(item.id, index)
            result = results.get(key)
            if part.runner == "provider":
                place = given.get(key, -1)
                if place < index or message.parts[place] is not result:
                    # It does not stand after the call in this message, where the provider put it.
                    spoiled = True
                    continue
                pending[key] = (ids.assign(key, part.provider_call_id), part.name)
                own.append(call_part(part, pending[key][0]))
            else:
                assigned = ids.assign(key, part.provider_call_id)
                own.append(call_part(part, assigned))
                answers.append(result_part(result, assigned, part.name))
        elif isinstance(part, ToolResultPart):
            if part.call in pending:
                own.append(result_part(part, *pending.pop(part.call)))
            else:
                spoiled = True
        elif not (spoiled and isinstance(part, ReasoningPart)):
            converted = assistant_part(part, message.step)
            own += [converted] if converted is not None else []
        spoiled = spoiled or bool(getattr(part, "repaired", ()))
    made = [PromptMessage(role="assistant", parts=tuple(own))] if own else []
    return [*made, PromptMessage(role="tool", parts=tuple(answers))] if answers else made
