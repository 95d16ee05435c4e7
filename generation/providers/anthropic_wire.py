"""A neutral request as a request of Anthropic Messages. Pure.

Owns the wire form of what is sent; the stream that comes back is read in ``anthropic``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from generation.prompt_flat import flatten
from generation.prompt_kept import COPIED, LEAST, made_of
from generation.prompt_limits import ANTHROPIC_BYTES, PromptSize, check_limits
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
from generation.providers.anthropic_guard import Guard, without_broken_thinking
from generation.providers.anthropic_prefix import Prefix, before_messages
from generation.providers.files import IMAGES, PDF, as_text
from generation.providers.metadata import own, own_reasoning
from generation.providers.native import native_tools
from generation.providers.options import with_options

NAME: Final = "anthropic"
DEFAULT_MAX_OUTPUT: Final = 16_384
"""Output tokens where a request does not say; the service wants a number."""

THINKING: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks of thinking, with which no message may end."""

_EPHEMERAL: Final = {"type": "ephemeral"}
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
_BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
_BUDGETED: Final = re.compile(r"claude-(?:3|(?:opus|sonnet)-4(?:-[015])?(?:-\d{8}|-latest)?$|haiku-4)")
"""Models whose thinking is bounded by a budget of tokens and that know no effort."""

_UNTHINKING: Final = re.compile(r"claude-(?:instant|2|3-(?!7))")

Block = dict[str, Any]


def body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of the request.

    Raises:
        OptionRefused: An option of the request is none of this transport's.
    """
    return _body(request, wire_messages(request))


def body_and_prefix(request: ModelRequest) -> tuple[dict[str, Any], str]:
    """Return the body of the request, and the digest of the conversation that an answer's thinking is signed behind.

    Raises:
        OptionRefused: An option of the request is none of this transport's.
        ProviderError: The request is over a limit of the service.
    """
    made = _made(request)
    check_limits(request, made.size, NAME, ANTHROPIC_BYTES)
    return _body(request, made.whole()), made.prefix.digest


def _body(request: ModelRequest, messages: list[Block]) -> dict[str, Any]:
    _mark_cached(messages)
    max_tokens = request.max_output or DEFAULT_MAX_OUTPUT
    result: dict[str, Any] = {"model": request.model, "messages": messages, **_thinking(request, messages, max_tokens)}
    result.setdefault("max_tokens", max_tokens)
    if request.system:
        system: list[Block] = [{"type": "text", "text": text} for text in request.system]
        system[-1]["cache_control"] = _EPHEMERAL
        result["system"] = system
    tools: list[Block] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
    ]
    tools += native_tools(NAME, request.native, unused=request.tool_choice_none)
    if tools:
        result["tools"] = tools
        if request.tool_choice_none:
            result["tool_choice"] = {"type": "none"}
    return with_options(NAME, result, request.options, request.extra)


def _thinking(request: ModelRequest, messages: Sequence[Block], max_tokens: int) -> dict[str, Any]:
    """Return the parameters that a reasoning effort means to the model."""
    effort = request.effort
    if effort is None or _UNTHINKING.match(request.model):
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    if not _BUDGETED.match(request.model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORTS.get(effort, "high")}}
    if _goes_on_without_thinking(messages):
        return {}  # such a model refuses to think in the middle of a turn that it did not begin with thinking
    budget = _BUDGETS.get(effort, _BUDGETS["high"])
    return {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": max(max_tokens, budget + 1024)}


def _goes_on_without_thinking(messages: Sequence[Block]) -> bool:
    last: list[Block] = []  # the newest answer, which the service puts together of messages that follow each other
    for message in reversed(messages):
        if message["role"] == "assistant":
            last = [*message["content"], *last]
        elif last:
            break
    calls = any(block["type"] == "tool_use" for block in last)
    return calls and last[0]["type"] not in THINKING


def wire_messages(request: ModelRequest) -> list[Block]:
    """Return the messages: results and user messages that follow each other are one user message, results first.

    The list is the caller's, what is in it is not: it is kept for the requests to come.
    """
    return _made(request).whole()


def _made(request: ModelRequest) -> _Wire:
    model, before = request.model, before_messages(request)
    return made_of(request.messages, (NAME, model, before), lambda: _Wire(model, Prefix(before)), least=LEAST)


class _Wire:
    """The messages so far. What is in the list stays as it is: earlier requests have it too."""

    def __init__(self, model: str, prefix: Prefix) -> None:
        self._model = model
        self.prefix = prefix
        self.size = PromptSize()
        self._guard = Guard(NAME, model)
        self._messages: list[Block] = []
        self._heavy: list[tuple[int, int, PromptPart]] = []
        """Message, block and part of what is made anew for each request."""

    def copy(self) -> _Wire:
        other = _Wire(self._model, self.prefix.copy())
        other.size, other._guard = self.size.copy(), self._guard.copy()
        other._messages, other._heavy = self._messages.copy(), self._heavy.copy()
        return other

    def take(self, message: PromptMessage) -> None:
        flat = flatten(message, self._takes_back)
        if flat is not message:
            flat = without_broken_thinking(message, flat)
        message = self.prefix.take(self._guard.take(flat))
        self.size.take(message)
        made = _blocks(message, self._model)
        if not made:
            return
        messages, role = self._messages, "assistant" if message.role == "assistant" else "user"
        if not messages and role == "assistant":
            messages.append({"role": "user", "content": [{"type": "text", "text": "(The conversation starts here.)"}]})
        before: list[Block] = []
        if messages and role == "user" and messages[-1]["role"] == "user":
            before = messages.pop()["content"]
        for index, (part, _) in enumerate(made, len(before)):
            if _heavy(part):
                self._heavy.append((len(messages), index, part))
        messages.append({"role": role, "content": [*before, *(block for _, block in made)]})

    def _takes_back(self, call: PromptCall, result: PromptResult) -> bool:
        return all(own(part.metadata, NAME, self._model) is not None for part in (call, result))

    def whole(self) -> list[Block]:
        """Return the messages in a list of their own."""
        messages = self._messages.copy()
        for place, index, part in self._heavy:
            _replace(messages, place, index, _block(part, self._model) or {})
        return messages


def _replace(messages: list[Block], place: int, index: int, block: Block) -> None:
    """Put a block into a message, which stays as it is: another one takes its place."""
    content = messages[place]["content"].copy()
    content[index] = block
    messages[place] = {**messages[place], "content": content}


def _heavy(part: PromptPart) -> bool:
    """Whether the form of a part holds a long copy of its text."""
    match part:
        case PromptCall():
            return not part.provider_executed and len(part.arguments) > COPIED
        case PromptResult():
            return any(_heavy(file) for file in part.media)
        case PromptFile():
            return len(part.data) > COPIED and part.media_type not in IMAGES and part.media_type != PDF
        case _:
            return False


def _blocks(message: PromptMessage, model: str) -> list[tuple[PromptPart, Block]]:
    """Return the parts that are sent with their blocks; a heavy one's block is a stand-in that tells its type alone."""
    made = [
        (part, block)
        for part in message.parts
        if (block := {"type": _type(part)} if _heavy(part) else _block(part, model)) is not None
    ]
    while message.role == "assistant" and made and made[-1][1]["type"] in THINKING:
        made.pop()  # an answer that was cut while thinking; no message may end so
    return made


def _type(part: PromptPart) -> str:
    if isinstance(part, PromptResult):
        return "tool_result"
    return "tool_use" if isinstance(part, PromptCall) else "text"


def _block(part: PromptPart, model: str) -> Block | None:
    match part:
        case PromptText():
            cited = (own(part.metadata, NAME, model) or {}).get("citations")
            return {"type": "text", "text": part.text, **({"citations": cited} if cited else {})}
        case PromptReasoning():
            return _reasoning(part, model)
        case PromptCall() if part.provider_executed:
            return own(part.metadata, NAME, model)
        case PromptCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": json.loads(part.arguments)}
        case PromptResult() if part.provider_executed:
            return own(part.metadata, NAME, model)
        case PromptResult():
            return _result(part)
        case PromptFile():
            return _file(part)


def _result(part: PromptResult) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": part.id, "content": part.text}
    if not part.media:
        return {**block, "is_error": True} if part.is_error else block
    # A result that is marked as an error may hold text alone: with files its text says that it is one.
    text = json.dumps({"error": part.text}, ensure_ascii=False) if part.is_error else part.text
    return {**block, "content": [{"type": "text", "text": text}, *(_file(file) for file in part.media)]}


def _reasoning(part: PromptReasoning, model: str) -> Block | None:
    data = own_reasoning(part, NAME, model)
    if data is None:
        return None
    if part.redacted:
        return {"type": "redacted_thinking", "data": data["data"]} if "data" in data else None
    return {"type": "thinking", "thinking": part.text, "signature": data["signature"]} if "signature" in data else None


def _file(part: PromptFile) -> Block:
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.media_type in IMAGES:
        return {"type": "image", "source": source}
    if part.media_type == PDF:
        return {"type": "document", "source": source, **({"title": part.name} if part.name else {})}
    return {"type": "text", "text": as_text(part)}


def _mark_cached(messages: list[Block]) -> None:
    """Put a cache breakpoint on the last block that can carry one in each of the final two messages.

    The block is marked in a copy: it may be kept, and another request breaks elsewhere.
    """
    for place in range(max(0, len(messages) - 2), len(messages)):
        content = messages[place]["content"]
        index = next((i for i in reversed(range(len(content))) if content[i]["type"] not in THINKING), None)
        if index is not None:
            _replace(messages, place, index, {**content[index], "cache_control": _EPHEMERAL})
