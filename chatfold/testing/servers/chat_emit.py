"""How an answer looks in Chat Completions: the completion, and the chunks of its stream.

Owns the field names of responses; what may be asked is checked elsewhere.
"""

from collections.abc import Iterator

from chatfold.testing.servers.recording import Json
from chatfold.testing.servers.script import Answer, Part, Reasoning, Refusal, Search, Text, ToolCall, Usage
from chatfold.testing.servers.wire import Frame, cut, sse

__all__ = ["CREATED", "DONE", "PING", "chunks", "completion", "usage_object"]

CREATED = 1_700_000_000
"""The time in all answers; a real clock would make two runs differ."""
DONE = Frame(b"data: [DONE]\n\n")
PING = Frame(b": keep-alive\n\n")
_STOPS = {
    "end": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "refusal": "stop",
    "content_filter": "content_filter",
}


def completion(answer: Answer, parts: list[Part], response_id: str, model: str) -> Json:
    """The whole completion, as a request without `stream` gets it."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    refusals = [part.text for part in parts if isinstance(part, Refusal)]
    thoughts = [part.text for part in parts if isinstance(part, Reasoning) and part.text]
    message: Json = {
        "role": "assistant",
        "content": "".join(texts) if texts else None,
        "refusal": "".join(refusals) if refusals else None,
        "annotations": [],
    }
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls := [part for part in parts if isinstance(part, ToolCall)]:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}
            for call in calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
    usage = {} if answer.usage is None else {"usage": usage_object(answer.usage)}
    return {**_envelope("chat.completion", response_id, model), "choices": [choice], **usage}


def chunks(answer: Answer, parts: list[Part], response_id: str, model: str, *, include_usage: bool) -> list[Frame]:
    """The chunks of the stream, the final [DONE] included.

    Args:
        answer: The answer.
        parts: Its parts with their ids.
        response_id: The id in each chunk.
        model: The model in each chunk.
        include_usage: Whether the client asked for the usage chunk.
    """
    shared = _envelope("chat.completion.chunk", response_id, model)
    if include_usage:
        shared["usage"] = None

    def chunk(delta: Json, *, finish: str | None = None, counts: bool = False) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**shared, "choices": [choice]}, delta=counts)

    frames = [chunk({"role": "assistant", "content": "", "refusal": None})]
    frames += [chunk(delta, counts=counts) for delta, counts in _deltas(answer, parts)]
    frames.append(chunk({}, finish=_finish(answer)))
    if include_usage and answer.usage is not None:
        frames.append(sse({**shared, "choices": [], "usage": usage_object(answer.usage)}))
    return [*frames, DONE]


def _deltas(answer: Answer, parts: list[Part]) -> Iterator[tuple[Json, bool]]:
    calls = 0
    for part in parts:
        match part:
            case Text(text):
                yield from (({"content": piece}, True) for piece in cut(text, answer))
            case Refusal(text):
                yield from (({"refusal": piece}, True) for piece in cut(text, answer))
            case Reasoning(text):
                yield from (({"reasoning_content": piece}, True) for piece in cut(text, answer))
            case ToolCall():
                function = {"name": part.name, "arguments": ""}
                opening = {"index": calls, "id": part.id, "type": "function", "function": function}
                yield {"tool_calls": [opening]}, False
                for piece in cut(part.arguments_text, answer):
                    yield {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}, True
                calls += 1
            case Search():
                continue  # no answer with one comes here: the service has none


def _finish(answer: Answer) -> str:
    return answer.wire_stop or _STOPS[answer.effective_stop]


def _envelope(kind: str, response_id: str, model: str) -> Json:
    return {
        "id": response_id,
        "object": kind,
        "created": CREATED,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": "fp_loopback",
    }


def usage_object(usage: Usage) -> Json:
    """The usage with its details."""
    return {
        "prompt_tokens": usage.input_total,
        "completion_tokens": usage.output,
        "total_tokens": usage.input_total + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
