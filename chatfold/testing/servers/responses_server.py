"""The OpenAI Responses server: POST /v1/responses.

Owns the endpoint and the memory of what was given out and kept; shape, history and events are in their own modules.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from chatfold.testing.servers import responses_emit, responses_events
from chatfold.testing.servers.fields import checked
from chatfold.testing.servers.matching import Script
from chatfold.testing.servers.openai_common import check_key, error_object, parse
from chatfold.testing.servers.recording import Json, RecordedRequest, Seen
from chatfold.testing.servers.responses_history import (
    IssuedItems,
    check_items,
    check_options,
    resolve_input,
    searched,
)
from chatfold.testing.servers.responses_shape import (
    FunctionCallItem,
    FunctionOutputItem,
    InputText,
    Item,
    MessageItem,
    ReasoningItem,
    ResponsesRequest,
    WebSearchItem,
)
from chatfold.testing.servers.script import Answer, Fail
from chatfold.testing.servers.server import LoopbackServer
from chatfold.testing.servers.wire import Frame, Plan, resolve

__all__ = ["OpenAIResponsesServer"]

_ITEM: TypeAdapter[Item] = TypeAdapter(Item)


class OpenAIResponsesServer(LoopbackServer):
    """Speaks Responses; `base_url` is what `openai.AsyncOpenAI` takes."""

    path = "/v1/responses"
    ping = responses_events.PING
    protocol = "Responses"
    search_tools = "web_search"

    def __init__(self, script: Script, *, repeat_call_ids: bool = False, issued: IssuedItems | None = None) -> None:
        """Make a server that does not listen yet.

        Args:
            script: See `LoopbackServer`.
            repeat_call_ids: See `LoopbackServer`.
            issued: What may come back; pass another server's to accept what that one has given out and kept.

        Raises:
            TypeError: One is none of these.
        """
        super().__init__(script, repeat_call_ids=repeat_call_ids)
        self.issued = IssuedItems() if issued is None else checked(issued, IssuedItems, "issued")
        self._inputs: dict[int, list[Item]] = {}

    @property
    def base_url(self) -> str:
        """The URL up to the version, as the SDK wants it."""
        return f"{self.url}/v1"

    def check_headers(self, request: RecordedRequest) -> None:
        """Check the key."""
        check_key(request)

    def check_body(self, request: RecordedRequest) -> None:
        """Check shape, options and items."""
        body = parse(ResponsesRequest, request.body)
        check_options(body)
        items = resolve_input(body, self.issued)
        check_items(items, self.issued)
        self._inputs[request.index] = items
        users = [item for item in items if isinstance(item, MessageItem) and item.role == "user"]
        request.user_texts = tuple(_text(item.content) for item in users)
        results = [item for item in items if isinstance(item, FunctionOutputItem)]
        request.tool_results = tuple((item.call_id, _text(item.output)) for item in results)
        request.seen = _seen(items, len(self.issued.responses.get(body.previous_response_id or "", ())))

    def given(self, request: RecordedRequest) -> Sequence[Item]:
        """Return the whole conversation of a request that is under way: what it goes on from, and what it brings."""
        return self._inputs[request.index]

    def plan(self, request: RecordedRequest, answer: Answer) -> Plan:
        """Put an answer into the protocol's form, and remember its reasoning."""
        parts = resolve(answer, self.ids, "call_", "gAAA_")
        items = responses_emit.output_items(answer, parts, self.ids, request.body.get("include") or ())
        response_id = answer.id or self.ids.new("resp_")
        self._issue(items)
        body = responses_emit.response_object(request.body, answer, response_id, items, status="completed")
        frames = responses_events.events(request.body, answer, response_id, items) if request.stream else []
        return Plan(frames, body)

    def error_body(self, request: RecordedRequest, fail: Fail) -> Json:
        """The service's error JSON."""
        return {"error": error_object(fail)}

    def failure_frames(self, request: RecordedRequest, fail: Fail, plan: Plan, sent: int) -> list[Frame]:
        """A `response.failed` or an `error` event."""
        return [responses_events.failure(request.body, plan.body["id"], fail, sent)]

    def completed(self, request: RecordedRequest, plan: Plan) -> None:
        """Keep the response and its items, unless the client said not to."""
        items = self._inputs.pop(request.index)
        if request.body.get("store") is False:
            return
        output = [_ITEM.validate_python(item) for item in plan.body["output"]]
        self.issued.items.update({item.id: item for item in output if item.id is not None})
        self.issued.responses[plan.body["id"]] = [*items, *output]

    def _issue(self, items: list[Json]) -> None:
        for index, item in enumerate(items):
            if item["type"] == "web_search_call":
                self.issued.searches[item["id"]] = searched(item["action"])
            if item["type"] != "reasoning":
                continue
            if "encrypted_content" in item:
                self.issued.encrypted[item["encrypted_content"]] = item["id"]
            for follower in items[index + 1 : index + 2]:
                self.issued.reasoning_before[follower["id"]] = item["id"]


def _seen(items: list[Item], chained: int) -> Seen:
    reasoning = [item for item in items if isinstance(item, ReasoningItem)]
    return Seen(
        roles=tuple(item.role if isinstance(item, MessageItem) else item.type or "" for item in items),
        calls=tuple(item.call_id for item in items if isinstance(item, FunctionCallItem)),
        reasoning=tuple(item.encrypted_content or item.id for item in reasoning),
        searches=tuple(item.id for item in items if isinstance(item, WebSearchItem)),
        chained=chained,
    )


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if isinstance(part, InputText))
