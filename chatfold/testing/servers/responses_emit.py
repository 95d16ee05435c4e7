"""How an answer looks in Responses: the response object and its output items.

Owns the field names of the objects; the events that build them up in a stream are `responses_events`'s.
"""

from collections.abc import Sequence
from typing import assert_never

from chatfold.testing.servers.recording import Json
from chatfold.testing.servers.script import Answer, Found, Part, Reasoning, Refusal, Search, Text, ToolCall, Usage
from chatfold.testing.servers.wire import Ids

__all__ = ["CREATED", "output_items", "response_object", "usage_object"]

CREATED = 1_700_000_000
"""The time in all answers; a real clock would make two runs differ."""
_INCOMPLETE = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}


def output_items(answer: Answer, parts: Sequence[Part], ids: Ids, include: Sequence[str]) -> list[Json]:
    """The finished output items, one for each part.

    Args:
        answer: The answer; one that is incomplete has an incomplete last item.
        parts: Its parts with their call ids and signatures.
        ids: Where the items' ids come from.
        include: What the client asked for beside what it always gets.
    """
    items = [_item(part, ids, include) for part in parts]
    if items and incomplete_reason(answer) is not None and "status" in items[-1]:
        items[-1]["status"] = "incomplete"
    return items


def _item(part: Part, ids: Ids, include: Sequence[str]) -> Json:
    match part:
        case Reasoning(text, signature, redacted):
            summary = [] if redacted or not text else [{"type": "summary_text", "text": text}]
            item: Json = {"id": ids.new("rs_"), "type": "reasoning", "summary": summary}
            return {**item, "encrypted_content": signature} if "reasoning.encrypted_content" in include else item
        case ToolCall():
            return {
                "id": ids.new("fc_"),
                "type": "function_call",
                "status": "completed",
                "call_id": part.id,
                "name": part.name,
                "arguments": part.arguments_text,
            }
        case Search():
            return _search(part, ids, sources="web_search_call.action.sources" in include)
        case Text(text, cites):
            cited = [_citation(found, text) for found in cites]
            content: Json = {"type": "output_text", "text": text, "annotations": cited, "logprobs": []}
        case Refusal(text):
            content = {"type": "refusal", "refusal": text}
        case _:
            assert_never(part)
    return {
        "id": ids.new("msg_"),
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [content],
    }


def _search(search: Search, ids: Ids, *, sources: bool) -> Json:
    action: Json = {"type": "search", "query": search.query, "queries": [search.query]}
    if sources:
        action["sources"] = [{"type": "url", "url": found.url} for found in search.results or ()]
    status = "completed" if search.error is None else "failed"
    return {"id": search.id or ids.new("ws_"), "type": "web_search_call", "status": status, "action": action}


def _citation(found: Found, text: str) -> Json:
    place = {"start_index": 0, "end_index": len(text)}
    return {"type": "url_citation", "url": found.url, "title": found.title, **place}


def incomplete_reason(answer: Answer) -> str | None:
    """Why the response is incomplete; None if it is complete."""
    return answer.wire_stop or _INCOMPLETE.get(answer.effective_stop)


def response_object(request: Json, answer: Answer, response_id: str, output: list[Json], *, status: str) -> Json:
    """The response.

    Args:
        request: The request's body, whose options the response repeats.
        answer: The answer.
        response_id: The response's id.
        output: The output items so far.
        status: "in_progress", or "completed", which becomes "incomplete" if the answer says so.
    """
    reason = incomplete_reason(answer) if status == "completed" else None
    finished = status == "completed"
    reasoning = request.get("reasoning") or {}
    return {
        "id": response_id,
        "object": "response",
        "created_at": CREATED,
        "completed_at": CREATED if finished and reason is None else None,
        "status": "incomplete" if reason else status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "max_tool_calls": request.get("max_tool_calls"),
        "model": answer.model or request["model"],
        "output": output,
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "previous_response_id": request.get("previous_response_id"),
        "prompt_cache_key": request.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "safety_identifier": request.get("safety_identifier"),
        "service_tier": "default" if finished else request.get("service_tier", "auto"),
        "store": request.get("store") is not False,
        "temperature": request.get("temperature", 1.0),
        "text": request.get("text") or {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": request.get("tool_choice") or "auto",
        "tools": request.get("tools") or [],
        "top_logprobs": 0,
        "top_p": request.get("top_p", 1.0),
        "truncation": request.get("truncation") or "disabled",
        "usage": usage_object(answer.usage) if finished and answer.usage is not None else None,
        "user": request.get("user"),
        "metadata": request.get("metadata") or {},
    }


def usage_object(usage: Usage) -> Json:
    """The usage with its details."""
    return {
        "input_tokens": usage.input_total,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input_total + usage.output,
    }
