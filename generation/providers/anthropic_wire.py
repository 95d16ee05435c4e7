"""A neutral request as a request of Anthropic Messages. Pure.

Owns the wire form of what is sent; the stream that comes back is read in ``anthropic``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

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
from generation.providers.files import IMAGES, PDF, as_text
from generation.providers.metadata import own, own_reasoning

NAME: Final = "anthropic"
DEFAULT_MAX_OUTPUT: Final = 16_384
"""Output tokens where a request does not say; the service wants a number."""

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_EPHEMERAL: Final = {"type": "ephemeral"}
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
_BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
_BUDGETED: Final = re.compile(r"claude-(?:3|(?:opus|sonnet)-4(?:-[015])?(?:-\d{8}|-latest)?$|haiku-4)")
"""Models whose thinking is bounded by a budget of tokens and that know no effort."""

_UNTHINKING: Final = re.compile(r"claude-(?:instant|2|3-(?!7))")

Block = dict[str, Any]


def body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of the request; options of the request replace what stands here under the same name."""
    messages = wire_messages(request)
    _mark_cached(messages)
    max_tokens = request.max_output or DEFAULT_MAX_OUTPUT
    result: dict[str, Any] = {"model": request.model, "messages": messages, **_thinking(request, messages, max_tokens)}
    result.setdefault("max_tokens", max_tokens)
    if request.system:
        system: list[Block] = [{"type": "text", "text": text} for text in request.system]
        system[-1]["cache_control"] = _EPHEMERAL
        result["system"] = system
    if request.tools:
        result["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
        ]
        if request.tool_choice_none:
            result["tool_choice"] = {"type": "none"}
    return result | request.options


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
    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    last: list[Block] = answers[-1] if answers else []
    calls = any(block["type"] == "tool_use" for block in last)
    return calls and last[0]["type"] not in _THINKING


def wire_messages(request: ModelRequest) -> list[Block]:
    """Return the messages: results and user messages that follow each other are one user message, results first."""
    messages: list[Block] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, request.model)
        if not blocks:
            continue
        if messages and role == "user" and messages[-1]["role"] == "user":
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": "(The conversation starts here.)"}]})
    return messages


def _blocks(message: PromptMessage, model: str) -> list[Block]:
    blocks = [block for part in message.parts if (block := _block(part, model)) is not None]
    while message.role == "assistant" and blocks and blocks[-1]["type"] in _THINKING:
        blocks.pop()  # an answer that was cut while thinking; no message may end so
    return blocks


def _block(part: PromptPart, model: str) -> Block | None:
    match part:
        case PromptText():
            return {"type": "text", "text": part.text}
        case PromptReasoning():
            return _reasoning(part, model)
        case PromptCall() if part.provider_executed:
            return own(part.metadata, NAME, model)
        case PromptCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": json.loads(part.arguments)}
        case PromptResult() if part.provider_executed:
            return own(part.metadata, NAME, model)
        case PromptResult():
            block = {"type": "tool_result", "tool_use_id": part.id, "content": part.text}
            return {**block, "is_error": True} if part.is_error else block
        case PromptFile():
            return _file(part)


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


def _mark_cached(messages: Sequence[Block]) -> None:
    """Put a cache breakpoint on the last block that can carry one in each of the final two messages."""
    for message in messages[-2:]:
        block = next((block for block in reversed(message["content"]) if block["type"] not in _THINKING), None)
        if block is not None:
            block["cache_control"] = _EPHEMERAL
