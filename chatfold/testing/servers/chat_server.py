"""The OpenAI Chat Completions server: POST /v1/chat/completions.

Owns the endpoint; shape, history and chunks are in their own modules. Compatible servers speak this protocol too.
"""

from typing import Any

from chatfold.testing.servers import chat_emit
from chatfold.testing.servers.chat_history import check_history, check_options
from chatfold.testing.servers.chat_shape import AssistantMessage, ChatRequest, TextPart, ToolMessage, UserMessage
from chatfold.testing.servers.openai_common import check_key, error_object, parse
from chatfold.testing.servers.recording import Json, RecordedRequest, Seen
from chatfold.testing.servers.script import Answer, Fail
from chatfold.testing.servers.server import LoopbackServer
from chatfold.testing.servers.wire import Frame, Plan, resolve, sse

__all__ = ["OpenAIChatServer"]


class OpenAIChatServer(LoopbackServer):
    """Speaks Chat Completions; `base_url` is what `openai.AsyncOpenAI` takes."""

    path = "/v1/chat/completions"
    ping = chat_emit.PING
    protocol = "Chat Completions"

    @property
    def base_url(self) -> str:
        """The URL up to the version, as the SDK wants it."""
        return f"{self.url}/v1"

    def check_headers(self, request: RecordedRequest) -> None:
        """Check the key."""
        check_key(request)

    def check_body(self, request: RecordedRequest) -> None:
        """Check shape, history and options."""
        body = parse(ChatRequest, request.body)
        check_history(body.messages)
        check_options(body)
        users = [message for message in body.messages if isinstance(message, UserMessage)]
        request.user_texts = tuple(_text(message.content) for message in users)
        results = [message for message in body.messages if isinstance(message, ToolMessage)]
        request.tool_results = tuple((message.tool_call_id, _text(message.content)) for message in results)
        answers = [message for message in body.messages if isinstance(message, AssistantMessage)]
        request.seen = Seen(
            roles=tuple(message.role for message in body.messages),
            calls=tuple(call.id for message in answers for call in message.tool_calls or []),
            reasoning=tuple(message.reasoning_content for message in answers if message.reasoning_content),
        )

    def plan(self, request: RecordedRequest, answer: Answer) -> Plan:
        """Put an answer into the protocol's form."""
        parts = resolve(answer, self.ids, "call_", "sig_")
        response_id = answer.id or self.ids.new("chatcmpl-")
        model = answer.model or request.model
        if not request.stream:
            return Plan([], chat_emit.completion(answer, parts, response_id, model))
        options = request.body.get("stream_options") or {}
        usage = options.get("include_usage") is True
        return Plan(chat_emit.chunks(answer, parts, response_id, model, include_usage=usage), {})

    def error_body(self, request: RecordedRequest, fail: Fail) -> Json:
        """The service's error JSON."""
        return {"error": error_object(fail)}

    def failure_frames(
        self,
        request: RecordedRequest,
        fail: Fail,
        plan: Plan,
        sent: int,
    ) -> list[Frame]:
        """A chunk that holds the error, then [DONE]."""
        return [sse(self.error_body(request, fail)), chat_emit.DONE]


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if isinstance(part, TextPart))
