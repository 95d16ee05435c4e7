"""Prompt assembly: a transcript in, system texts and neutral messages out. Pure.

A prompt is: the system messages of all history, the summary of the newest boundary, what follows it. Of a cleared
boundary nothing is shown: the conversation starts anew. Only what models may read enters.

What holds of every prompt: each call has exactly one result, in the tool message right after the message with the
call; ids of calls are unique; no text is blank; no message is empty; the last message is not an assistant's. How a
message is converted depends on it and on what stands before it alone, and on the results of its own calls, so a
converted prefix stays valid while messages are appended.

Parts are converted by ``generation.prompt_parts``. What a provider cannot take (foreign reasoning, unknown file
types) it leaves out itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from events.ids import CallKey, call_key
from events.messages import Message
from events.parts import ContextFilePart, TextPart, ToolCallPart, ToolResultPart
from events.state import ChatState
from events.transcript import Transcript, TranscriptMessage
from generation.prompt_ids import CallIds
from generation.prompt_parts import assistant_part, call_part, context_text, result_part, text_of, user_part
from generation.prompt_texts import GO_ON
from generation.prompt_types import PromptMessage, PromptPart, PromptText


def build_prompt(
    state: ChatState, *, instruction: str | None = None
) -> tuple[tuple[str, ...], tuple[PromptMessage, ...]]:
    """Build the prompt of a chat as it stands.

    Args:
        state: The chat, with its transcript.
        instruction: Text of a last user message that history does not hold, such as the request for a summary.

    Returns:
        The system texts of the chat's messages (an agent's own system text is not in history and goes before them),
        and the messages.

    Raises:
        events.errors.TranscriptMissing: The state was loaded without its transcript.
    """
    transcript = state.need_transcript("build a prompt")
    readable = [item for item in transcript.messages if item.message.visibility != "user"]
    messages = convert(window(transcript))
    if instruction is not None:
        messages.append(_user(instruction))
    elif messages and messages[-1].role == "assistant":
        messages.append(_user(GO_ON))
    return system_texts(item.message for item in readable), tuple(messages)


def _user(text: str) -> PromptMessage:
    return PromptMessage(role="user", parts=(PromptText(text=text),))


def window(transcript: Transcript) -> list[TranscriptMessage]:
    """Return the messages that a prompt shows: the newest boundary's summary, and what models may read after it."""
    items = list(transcript.messages)
    end = next((index for index in range(len(items) - 1, -1, -1) if items[index].message.boundary is not None), None)
    after = items if end is None else items[end + 1 :]
    shown = [item for item in after if item.message.visibility != "user" and item.message.role != "system"]
    if end is None or items[end].message.boundary == "chat_cleared":
        return shown
    # The summary is the user message of the boundary's three messages; two boundaries may stand side by side.
    for index in range(end, -1, -1):
        if items[index].message.boundary is None:
            break
        if items[index].message.role == "user":
            return [items[index], *shown]
    return shown


def system_texts(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the texts of system messages in history order, then the newest workspace context.

    A message with context files replaces the one before it as a whole. It goes last, so that a refreshed context
    leaves the texts before it, and with them a provider's cached prefix, as they were.
    """
    texts: list[str] = []
    context: Message | None = None
    for message in messages:
        if message.role != "system":
            continue
        if any(isinstance(part, ContextFilePart) for part in message.parts):
            context = message
        else:
            texts.extend(_system_parts(message))
    if context is not None:
        texts.extend(_system_parts(context))
        texts.append(context_text([part for part in context.parts if isinstance(part, ContextFilePart)]))
    return tuple(texts)


def _system_parts(message: Message) -> list[str]:
    texts = [text_of(part.text) for part in message.parts if isinstance(part, TextPart)]
    return [text for text in texts if text.strip()]


def convert(items: Iterable[TranscriptMessage]) -> list[PromptMessage]:
    """Convert messages in order; results go where their calls are, and those without a call are left out."""
    items = list(items)
    results = _results(items)
    ids = CallIds()
    messages: list[PromptMessage] = []
    for item in items:
        role = item.message.role
        if role == "user":
            parts = [part for one in item.message.parts if (part := user_part(one)) is not None]
            if parts:
                messages.append(PromptMessage(role="user", parts=tuple(parts)))
        elif role == "assistant":
            messages.extend(_assistant(item, results, ids))
    return messages


def _results(items: Iterable[TranscriptMessage]) -> dict[CallKey, ToolResultPart]:
    """Return the first result of each call, wherever it stands."""
    found: dict[CallKey, ToolResultPart] = {}
    for item in items:
        for part in item.message.parts:
            if isinstance(part, ToolResultPart):
                found.setdefault(part.call, part)
    return found


def _assistant(item: TranscriptMessage, results: dict[CallKey, ToolResultPart], ids: CallIds) -> list[PromptMessage]:
    """Convert an assistant message, and answer its calls in one tool message after it, in call order.

    Calls and results of the provider itself stay within the message, and only in pairs: an interrupted one without
    its result is left out.
    """
    message = item.message
    own: list[PromptPart] = []
    answers: list[PromptPart] = []
    pending: dict[CallKey, tuple[str, str]] = {}
    given: dict[CallKey, int] = {}
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
                    continue  # it does not stand after the call in this message, where the provider put it
                pending[key] = (ids.assign(key, part.provider_call_id), part.name)
                own.append(call_part(part, pending[key][0]))
            else:
                assigned = ids.assign(key, part.provider_call_id)
                own.append(call_part(part, assigned))
                answers.append(result_part(result, assigned, part.name))
        elif isinstance(part, ToolResultPart):
            if part.call in pending:
                own.append(result_part(part, *pending.pop(part.call)))
        elif (converted := assistant_part(part, message.step)) is not None:
            own.append(converted)
    made = [PromptMessage(role="assistant", parts=tuple(own))] if own else []
    return [*made, PromptMessage(role="tool", parts=tuple(answers))] if answers else made
