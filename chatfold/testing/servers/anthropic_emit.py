"""How an answer looks in Anthropic Messages: the message, and the events of its stream.

Owns the field names of responses; what may be asked is checked elsewhere.
"""

import json
from collections.abc import Iterator, Sequence

from chatfold.testing.servers.anthropic_search import SearchCall, SearchResults, citation
from chatfold.testing.servers.matching import ScriptError
from chatfold.testing.servers.recording import Json
from chatfold.testing.servers.script import Answer, Part, Reasoning, Refusal, Text, ToolCall, Usage
from chatfold.testing.servers.wire import Frame, cut, sse

__all__ = ["PING", "Piece", "block", "events", "message"]

Piece = Part | SearchCall | SearchResults
"""A part of an answer, a search taken apart into its two blocks."""

PING = sse({"type": "ping"}, "ping")
_DIRECT: Json = {"type": "direct"}
_STOPS = {
    "end": "end_turn",
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "content_filter": "refusal",
    "pause": "pause_turn",
}


def message(answer: Answer, parts: Sequence[Piece], response_id: str, model: str) -> Json:
    """The whole message, as a request without `stream` gets it.

    Raises:
        ScriptError: Arguments that are no JSON object cannot be sent in one piece.
    """
    return {
        "id": response_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block(part) for part in parts if not isinstance(part, Refusal)],
        **_stop(answer, parts),
        "usage": _usage(answer.usage or Usage(0, 0)),
    }


def events(answer: Answer, parts: Sequence[Piece], response_id: str, model: str) -> list[Frame]:
    """The events of the stream."""
    usage = answer.usage or Usage(0, 0)
    start: Json = {
        "id": response_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**_usage(usage), "output_tokens": min(1, usage.output), "output_tokens_details": None},
    }
    frames = [_event("message_start", message=start)]
    for index, part in enumerate(part for part in parts if not isinstance(part, Refusal)):
        frames += _block_events(answer, part, index)
    frames.append(_event("message_delta", delta=_stop(answer, parts), usage=_usage(usage, delta=True)))
    frames.append(_event("message_stop"))
    # The service pings once as soon as the first block is open.
    frames.insert(min(2, len(frames) - 2), PING)
    return frames


def _block_events(answer: Answer, part: Piece, index: int) -> Iterator[Frame]:
    yield _event("content_block_start", index=index, content_block=block(part, empty=True))
    for delta, counts in _deltas(answer, part):
        yield _event("content_block_delta", counts=counts, index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _deltas(answer: Answer, part: Piece) -> Iterator[tuple[Json, bool]]:
    match part:
        case Text(text, cites):
            for piece in cut(text, answer):
                yield {"type": "text_delta", "text": piece}, True
            for found in cites:
                yield {"type": "citations_delta", "citation": citation(found)}, False
        case SearchCall(_, query):
            yield {"type": "input_json_delta", "partial_json": ""}, False
            yield {"type": "input_json_delta", "partial_json": json.dumps({"query": query})}, False
        case Reasoning(text, signature, redacted=False):
            for piece in cut(text, answer):
                yield {"type": "thinking_delta", "thinking": piece}, True
            yield {"type": "signature_delta", "signature": signature}, False
        case ToolCall():
            yield {"type": "input_json_delta", "partial_json": ""}, False
            for piece in cut(part.arguments_text, answer):
                yield {"type": "input_json_delta", "partial_json": piece}, True
        case _:
            return


def block(part: Piece, *, empty: bool = False) -> Json:
    """One content block; `empty`: as it is opened, before its deltas.

    Raises:
        ScriptError: It is no block, or its arguments cannot be sent in one piece.
    """
    match part:
        case Text(text, cites):
            cited = [citation(found) for found in cites if not empty]
            return {"type": "text", "text": "" if empty else text, "citations": cited if cites else None}
        case SearchCall(search, query):
            given = {} if empty else {"query": query}
            return {"type": "server_tool_use", "id": search, "name": "web_search", "input": given, "caller": _DIRECT}
        case SearchResults(search):
            return {"type": "web_search_tool_result", "tool_use_id": search, "content": part.content, "caller": _DIRECT}
        case Reasoning(_, signature, redacted=True):
            return {"type": "redacted_thinking", "data": signature}
        case Reasoning(text, signature):
            return {"type": "thinking", "thinking": "" if empty else text, "signature": "" if empty else signature}
        case ToolCall():
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": {} if empty else _input(part),
                "caller": _DIRECT,
            }
        case _:
            problem = f"{part!r} is no content block"
            raise ScriptError(problem)


def _input(call: ToolCall) -> Json:
    try:
        value = json.loads(call.arguments_text)
    except ValueError as error:
        problem = f"broken arguments of {call.name} can only be streamed"
        raise ScriptError(problem) from error
    if not isinstance(value, dict):
        problem = f"arguments of {call.name} must be a JSON object unless they are streamed"
        raise ScriptError(problem)
    return value


def _stop(answer: Answer, parts: Sequence[Piece]) -> Json:
    reason = answer.wire_stop or _STOPS[answer.effective_stop]
    details = None
    if reason == "refusal":
        words = [part.text for part in parts if isinstance(part, Refusal)]
        details = {"type": "refusal", "category": None, "explanation": words[0] if words else None}
    return {"stop_reason": reason, "stop_sequence": None, "stop_details": details}


def _usage(usage: Usage, *, delta: bool = False) -> Json:
    counts: Json = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }
    if delta:
        return counts
    created = {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0}
    return {**counts, "cache_creation": created, "service_tier": "standard"}


def _event(kind: str, *, counts: bool = False, **fields: object) -> Frame:
    return sse({"type": kind, **fields}, kind, delta=counts)
