"""The events of a Responses stream, made from the finished items.

Owns the order of the events and their sequence numbers.
"""

from collections.abc import Iterator

from chatfold.testing.servers.recording import Json
from chatfold.testing.servers.responses_emit import incomplete_reason, response_object
from chatfold.testing.servers.script import Answer, Fail
from chatfold.testing.servers.wire import Frame, cut, sse

__all__ = ["PING", "events", "failure"]

PING = Frame(b": keep-alive\n\n")
_EMPTY: Json = {
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "message": {"content": []},
    "web_search_call": {},
}
Event = tuple[str, Json, bool]


def events(request: Json, answer: Answer, response_id: str, items: list[Json]) -> list[Frame]:
    """The events of the stream."""
    started = response_object(request, answer, response_id, [], status="in_progress")
    stream: list[Event] = [
        ("response.created", {"response": started}, False),
        ("response.in_progress", {"response": started}, False),
    ]
    for index, item in enumerate(items):
        stream += _item_events(answer, item, index)
    finished = response_object(request, answer, response_id, items, status="completed")
    last = "response.completed" if incomplete_reason(answer) is None else "response.incomplete"
    stream.append((last, {"response": finished}, False))
    return [
        sse({"type": kind, "sequence_number": number, **fields}, kind, delta=counts)
        for number, (kind, fields, counts) in enumerate(stream)
    ]


def failure(request: Json, answer_id: str, fail: Fail, number: int) -> Frame:
    """The event that reports an error in the middle of the stream.

    Args:
        request: The request's body.
        answer_id: The id of the response that fails.
        fail: The error, and whether it is a `response.failed` or an `error` event.
        number: The sequence number.
    """
    code = fail.code or ("rate_limit_exceeded" if fail.status == 429 else "server_error")
    if fail.form == "error":
        error = {"type": "error", "sequence_number": number, "code": code, "message": fail.message, "param": fail.param}
        return sse(error, "error")
    response = response_object(request, Answer(usage=None), answer_id, [], status="failed")
    response["error"] = {"code": code, "message": fail.message}
    return sse({"type": "response.failed", "sequence_number": number, "response": response}, "response.failed")


def _item_events(answer: Answer, item: Json, index: int) -> Iterator[Event]:
    at = {"output_index": index}
    yield "response.output_item.added", {**at, "item": _opening(item)}, False
    inner = {**at, "item_id": item["id"]}
    match item["type"]:
        case "reasoning":
            for nth, part in enumerate(item["summary"]):
                yield from _summary_events(answer, part["text"], {**inner, "summary_index": nth})
        case "function_call":
            for piece in cut(item["arguments"], answer):
                yield "response.function_call_arguments.delta", {**inner, "delta": piece}, True
            done = {**inner, "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", done, False
        case "web_search_call":
            for stage in ("in_progress", "searching", "completed"):
                yield f"response.web_search_call.{stage}", inner, False
        case _:
            for nth, part in enumerate(item["content"]):
                yield from _content_events(answer, part, {**inner, "content_index": nth})
    yield "response.output_item.done", {**at, "item": item}, False


def _opening(item: Json) -> Json:
    """The item before anything is in it."""
    opening = {**item, **_EMPTY[item["type"]]}
    if "status" in item:
        opening["status"] = "in_progress"
    return opening


def _summary_events(answer: Answer, text: str, place: Json) -> Iterator[Event]:
    yield "response.reasoning_summary_part.added", {**place, "part": {"type": "summary_text", "text": ""}}, False
    for piece in cut(text, answer):
        yield "response.reasoning_summary_text.delta", {**place, "delta": piece}, True
    yield "response.reasoning_summary_text.done", {**place, "text": text}, False
    yield "response.reasoning_summary_part.done", {**place, "part": {"type": "summary_text", "text": text}}, False


def _content_events(answer: Answer, part: Json, place: Json) -> Iterator[Event]:
    kind = part["type"]
    name = "text" if kind == "output_text" else "refusal"
    more: Json = {"logprobs": []} if kind == "output_text" else {}
    opening = {**part, name: "", **({"annotations": []} if kind == "output_text" else {})}
    yield "response.content_part.added", {**place, "part": opening}, False
    for piece in cut(part[name], answer):
        yield f"response.{kind}.delta", {**place, "delta": piece, **more}, True
    for nth, cited in enumerate(part.get("annotations", ())):
        yield "response.output_text.annotation.added", {**place, "annotation_index": nth, "annotation": cited}, False
    yield f"response.{kind}.done", {**place, name: part[name], **more}, False
    yield "response.content_part.done", {**place, "part": part}, False
