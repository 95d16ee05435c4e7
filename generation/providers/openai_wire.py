"""A neutral request as a request of OpenAI: Responses and Chat Completions. Pure.

Owns the wire forms of what is sent; the streams that come back are read in ``openai_responses`` and ``openai_chat``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from events.content import Json
from generation.prompt_flat import flatten
from generation.prompt_kept import COPIED, LEAST, made_of
from generation.prompt_texts import result_files
from generation.prompt_types import (
    ModelRequest,
    PromptCall,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptResult,
    PromptText,
)
from generation.providers.files import IMAGES, PDF, as_text, data_url
from generation.providers.metadata import own, own_reasoning
from generation.providers.native import SOURCES, native_tools
from generation.providers.openai_efforts import effort_of
from generation.providers.options import with_options

RESPONSES: Final = "openai"
CHAT: Final = "openai-chat"

ENCRYPTED: Final = "reasoning.encrypted_content"
_UNREASONING: Final = re.compile(r"(?:ft:)?(?:gpt-3|gpt-4|chatgpt-4)")
"""Models that refuse to be asked for encrypted reasoning, as they have none."""

Item = dict[str, Any]


def error_text(part: PromptResult) -> str:
    """Return the text of a result. The wire has no mark for errors, so an error says in its text that it is one."""
    return json.dumps({"error": part.text}, ensure_ascii=False) if part.is_error else part.text


Convert: TypeAlias = Callable[[PromptMessage, str], list[Item]]
"""Makes the items of a message for a model."""


def _wire(request: ModelRequest, form: str, convert: Convert) -> list[Item]:
    model = request.model
    return made_of(request.messages, (form, model), lambda: _Wire(model, convert), least=LEAST).whole()


class _Wire:
    """The items of the messages so far. What is in the list stays as it is: earlier requests have it too."""

    def __init__(self, model: str, convert: Convert) -> None:
        self._model = model
        self._convert = convert
        self._items: list[Item] = []
        self._heavy: list[tuple[int, PromptMessage]] = []
        """Where the items of messages begin that are made anew for each request."""

    def copy(self) -> _Wire:
        other = _Wire(self._model, self._convert)
        other._items, other._heavy = self._items.copy(), self._heavy.copy()
        return other

    def take(self, message: PromptMessage) -> None:
        made = self._convert(message, self._model)
        if made and _copied(message) > COPIED:
            self._heavy.append((len(self._items), message))
            made = [{}] * len(made)
        self._items += made

    def whole(self) -> list[Item]:
        """Return the items in a list of their own."""
        items = self._items.copy()
        for place, message in self._heavy:
            made = self._convert(message, self._model)
            items[place : place + len(made)] = made
        return items


def _copied(message: PromptMessage) -> int:
    """Return about how many characters the form of a message copies.

    That is: of files, of errors, of what a service ran, and of texts that are put together.
    """
    texts = [len(part.text) for part in message.parts if isinstance(part, PromptText)]
    files = [len(part.data) for part in message.parts if isinstance(part, PromptFile)]
    results = [part for part in message.parts if isinstance(part, PromptResult)]
    errors = [len(part.text) for part in results if part.is_error or part.provider_executed]
    media = [len(file.data) for part in results for file in part.media]
    return sum(texts if len(texts) > 1 else []) + sum(files) + sum(errors) + sum(media)


# Responses


def responses_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a Responses request, which leaves nothing with the service unless an option says so.

    Raises:
        OptionRefused: An option of the request is none of this transport's.
    """
    result: dict[str, Any] = {"model": request.model, "input": responses_input(request), "store": False}
    if request.continues is not None:
        result["previous_response_id"] = request.continues
    include = [] if _UNREASONING.match(request.model) else [ENCRYPTED]
    include += [SOURCES] if request.native else []
    if include:
        result["include"] = include
    if request.system:
        result["instructions"] = "\n\n".join(request.system)
    tools: list[Item] = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": False,
        }
        for tool in request.tools
    ]
    tools += native_tools(RESPONSES, request.native, unused=request.tool_choice_none)
    if tools:
        result["tools"] = tools
        if request.tool_choice_none:
            result["tool_choice"] = "none"
    if request.max_output is not None:
        result["max_output_tokens"] = max(16, request.max_output)  # the least that the service takes
    if request.effort is not None:
        effort = effort_of(request.model, request.effort)
        result["reasoning"] = {"effort": effort} | ({"summary": "auto"} if effort != "none" else {})
    return with_options(RESPONSES, result, request.options, request.extra)


def responses_input(request: ModelRequest) -> list[Item]:
    """Return the items of the conversation. The list is the caller's, what is in it is kept for requests to come."""
    return _wire(request, RESPONSES, _items)


def _items(message: PromptMessage, model: str) -> list[Item]:
    if message.role == "user":
        return [{"type": "message", "role": "user", "content": [_input(part) for part in message.parts]}]
    if message.role == "assistant":
        flat = flatten(message, lambda call, _: own(call.metadata, RESPONSES, model) is not None)
        return _answer_items(flat, model)
    return [
        {"type": "function_call_output", "call_id": part.id, "output": _output(part)}
        for part in message.parts
        if isinstance(part, PromptResult)
    ]


def _output(part: PromptResult) -> str | list[Item]:
    text = error_text(part)
    return [{"type": "input_text", "text": text}, *map(_input, part.media)] if part.media else text


def _answer_items(message: PromptMessage, model: str) -> list[Item]:
    items: list[Item] = []
    lost = False  # whether reasoning that cannot come back stands right before
    for part in message.parts:
        alone, lost = lost, False
        match part:
            case PromptText():
                item: Item = {"type": "message", "role": "assistant", "content": part.text}
                phase = (own(part.metadata, RESPONSES, model) or {}).get("phase")
                items.append(item | ({"phase": phase} if phase is not None else {}))
            case PromptReasoning():
                data = own_reasoning(part, RESPONSES, model) or {}
                whole = data.get("id") and data.get("encrypted_content")
                lost = not (whole and _follow(items, data, part.metadata))
            case PromptCall() if not part.provider_executed:
                items.append(
                    {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
                )
            case PromptCall():
                searched = own(part.metadata, RESPONSES, model)
                if searched is None or alone or not _follow(items, searched, part.metadata):
                    _drop_reasoning(items)
            case _:
                continue
    _drop_reasoning(items)  # of an answer that was cut while thinking: it must be followed by what it led to
    return items


def _drop_reasoning(items: list[Item]) -> None:
    while items and items[-1]["type"] == "reasoning":
        items.pop()


def _follow(items: list[Item], item: Item, metadata: Json) -> bool:
    """Add an item that the service gave; returns whether it could be added.

    It takes back an item with the reasoning that led to it, and reasoning with the item that it led to, or neither.
    What stood between may have been left out: a blank text, or reasoning that cannot come back.
    """
    before = items[-1]["id"] if items and items[-1]["type"] == "reasoning" else None
    # Of what an earlier release kept it is not known what it came after.
    after = metadata.get("after", before) if isinstance(metadata, dict) else before
    if after != before:
        _drop_reasoning(items)
        if after is not None:
            return False
    items.append(item)
    return True


def _input(part: object) -> Item:
    if isinstance(part, PromptText):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, PromptFile) and part.media_type in IMAGES:
        return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
    if isinstance(part, PromptFile) and part.media_type == PDF:
        return {"type": "input_file", "filename": part.name or "file.pdf", "file_data": data_url(part)}
    if isinstance(part, PromptFile):
        return {"type": "input_text", "text": as_text(part)}
    msg = f"a user message holds a part of type {type(part).__name__}"
    raise TypeError(msg)


# Chat Completions


def chat_body(request: ModelRequest, *, limit_name: str) -> dict[str, Any]:
    """Return the body of a Chat Completions request.

    Args:
        request: The request.
        limit_name: What the server calls the limit of output tokens.

    Raises:
        OptionRefused: An option of the request is none of this transport's.
    """
    result: dict[str, Any] = {
        "model": request.model,
        "messages": chat_messages(request),
        "stream_options": {"include_usage": True},
    }
    native_tools(CHAT, request.native, unused=request.tool_choice_none)  # it has none, and says so
    if request.tools:
        result["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in request.tools
        ]
        if request.tool_choice_none:
            result["tool_choice"] = "none"
    if request.max_output is not None:
        result[limit_name] = request.max_output
    if request.effort is not None:
        result["reasoning_effort"] = effort_of(request.model, request.effort)
    return with_options(CHAT, result, request.options, request.extra)


def chat_messages(request: ModelRequest) -> list[Item]:
    """Return the messages, system texts first. Reasoning is not part of the protocol and stays here.

    The list is the caller's, what is in it is kept for requests to come.
    """
    system: list[Item] = [{"role": "system", "content": text} for text in request.system]
    return system + _wire(request, CHAT, _chat_items)


def _chat_items(message: PromptMessage, model: str) -> list[Item]:
    del model
    if message.role == "user":
        return [{"role": "user", "content": _chat_content(message)}]
    if message.role == "assistant":
        return _chat_answer(flatten(message, lambda _call, _result: False))
    results = [part for part in message.parts if isinstance(part, PromptResult)]
    items: list[Item] = [{"role": "tool", "tool_call_id": part.id, "content": _chat_result(part)} for part in results]
    shown = [(part, files) for part in results if (files := [file for file in part.media if _shown(file)])]
    if shown:
        # A tool's message holds text alone: what is to be seen follows in a message of the user.
        parts: list[PromptPart] = []
        for part, files in shown:
            parts += [PromptText(text=result_files(part.id)), *files]
        items.append({"role": "user", "content": _chat_content(PromptMessage(role="user", parts=tuple(parts)))})
    return items


def _shown(file: PromptFile) -> bool:
    return file.media_type in IMAGES or file.media_type == PDF


def _chat_result(part: PromptResult) -> str:
    return "\n\n".join([error_text(part), *(as_text(file) for file in part.media if not _shown(file))])


def _chat_answer(message: PromptMessage) -> list[Item]:
    texts = [part.text for part in message.parts if isinstance(part, PromptText)]
    calls = [
        {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
        for part in message.parts
        if isinstance(part, PromptCall) and not part.provider_executed
    ]
    if not texts and not calls:
        return []
    answer: Item = {"role": "assistant", "content": "\n\n".join(texts) or None}
    return [answer | ({"tool_calls": calls} if calls else {})]


def _chat_content(message: PromptMessage) -> str | list[Item]:
    """Return a user message's content: a plain text where it can be one, which every compatible server takes."""
    parts: list[Item] = []
    for part in message.parts:
        if isinstance(part, PromptText):
            parts.append({"type": "text", "text": part.text})
        elif isinstance(part, PromptFile) and part.media_type in IMAGES:
            parts.append({"type": "image_url", "image_url": {"url": data_url(part)}})
        elif isinstance(part, PromptFile) and part.media_type == PDF:
            file = {"filename": part.name or "file.pdf", "file_data": data_url(part)}
            parts.append({"type": "file", "file": file})
        elif isinstance(part, PromptFile):
            parts.append({"type": "text", "text": as_text(part)})
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts
