"""The Anthropic Messages server: POST /v1/messages.

Owns the headers, the error shape and the memory of issued thinking; shape, history and events are in their own modules.
"""

import json
from typing import Any

from chatfold.testing.servers import anthropic_emit
from chatfold.testing.servers.anthropic_history import IssuedThinking, breakpoints, check_history
from chatfold.testing.servers.anthropic_prefix import Prefix
from chatfold.testing.servers.anthropic_search import SearchResults, expand, sealed
from chatfold.testing.servers.anthropic_shape import (
    VERSIONS,
    MessagesRequest,
    MessagesRequest2023,
    ServerToolUse,
    TextBlock,
    ToolResult,
    ToolUse,
    WebSearch,
    parse,
)
from chatfold.testing.servers.checks import RequestRefused
from chatfold.testing.servers.fields import checked
from chatfold.testing.servers.matching import Script, ScriptError
from chatfold.testing.servers.recording import Json, RecordedRequest, Seen
from chatfold.testing.servers.script import Answer, Fail, Reasoning, Refusal, Text, ToolCall
from chatfold.testing.servers.server import LoopbackServer
from chatfold.testing.servers.wire import Frame, Plan, resolve, sse

__all__ = ["AnthropicServer"]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class AnthropicServer(LoopbackServer):
    """Speaks Anthropic Messages; `base_url` is what `anthropic.AsyncAnthropic` takes."""

    path = "/v1/messages"
    ping = anthropic_emit.PING
    protocol = "Messages"
    search_tools = "web_search_"
    pauses = True

    def __init__(
        self,
        script: Script,
        *,
        repeat_call_ids: bool = False,
        allow_prefill: bool = False,
        issued: IssuedThinking | None = None,
        body_limit: int = 32 << 20,
    ) -> None:
        """Make a server that does not listen yet.

        Args:
            script: See `LoopbackServer`.
            repeat_call_ids: See `LoopbackServer`.
            allow_prefill: Whether a conversation may end with an assistant message, as with older models.
            issued: The thinking that may come back; pass another server's to accept what that one has given out.
            Its `covers` says what signatures cover.
            body_limit: The most bytes that a request may have.

        Raises:
            TypeError: One is none of these.
            ValueError: The limit is negative.
        """
        super().__init__(script, repeat_call_ids=repeat_call_ids)
        self.issued = IssuedThinking() if issued is None else checked(issued, IssuedThinking, "issued")
        self._allow_prefill = checked(allow_prefill, bool, "allow_prefill")
        self._body_limit = checked(body_limit, int, "body_limit")
        self._prefixes: dict[int, Prefix] = {}

    def check_headers(self, request: RecordedRequest) -> None:
        """Check size, key and version."""
        headers = request.headers
        if len(request.raw) > self._body_limit:
            message = "Request exceeds the maximum size"
            raise RequestRefused(message, status=413)
        if not headers.get("x-api-key") and not headers.get("authorization", "").startswith("Bearer "):
            message = "x-api-key header is required"
            raise RequestRefused(message, status=401)
        version = headers.get("anthropic-version")
        if version is None:
            message = "anthropic-version: header is required"
            raise RequestRefused(message)
        if version not in VERSIONS:
            message = f"anthropic-version: {json.dumps(version)} is not a valid version"
            raise RequestRefused(message)

    def check_body(self, request: RecordedRequest) -> None:
        """Check shape and history."""
        body = parse(request.body, request.headers["anthropic-version"])
        _check_options(body)
        prefix = Prefix.of(request.body, self.issued.covers, self.issued.broken)
        check_history(body, prefix, self.issued, allow_prefill=self._allow_prefill)
        self._prefixes[request.index] = prefix
        request.seen = _seen(body, prefix)
        users = [message for message in body.messages if message.role == "user"]
        texts = ["".join(b.text for b in message.blocks if isinstance(b, TextBlock)) for message in users]
        request.user_texts = tuple(text for text in texts if text)
        results = [block for message in users for block in message.blocks if isinstance(block, ToolResult)]
        request.tool_results = tuple((result.tool_use_id, _text(result.content)) for result in results)

    def plan(self, request: RecordedRequest, answer: Answer) -> Plan:
        """Put an answer into the protocol's form, and remember its thinking and what its searches found."""
        parts = list(expand(resolve(answer, self.ids, "toolu_", "sig_"), request.body, self.ids))
        response_id = answer.id or self.ids.new("msg_")
        model = answer.model or request.model
        self._issue(answer, parts, self._prefixes.pop(request.index))
        if request.stream:
            return Plan(anthropic_emit.events(answer, parts, response_id, model), {})
        return Plan([], anthropic_emit.message(answer, parts, response_id, model))

    def error_body(self, request: RecordedRequest, fail: Fail) -> Json:
        """The service's error JSON."""
        error = {"type": fail.type or _TYPES.get(fail.status, "api_error"), "message": fail.message}
        return {"type": "error", "error": error, "request_id": f"req_{request.index:024d}"}

    def failure_frames(
        self,
        request: RecordedRequest,
        fail: Fail,
        plan: Plan,
        sent: int,
    ) -> list[Frame]:
        """An `error` event ends the stream."""
        return [sse(self.error_body(request, fail), "error")]

    def response_headers(self, request: RecordedRequest) -> list[tuple[str, str]]:
        """The request's id under the service's name."""
        return [("request-id", f"req_{request.index:024d}")]

    def _issue(self, answer: Answer, parts: list[anthropic_emit.Piece], prefix: Prefix) -> None:
        for part in parts:
            match part:
                case Refusal():
                    continue
                case Reasoning(text, str(signature), redacted):
                    self.issued.prefixes[signature] = prefix.digest
                    if redacted:
                        self.issued.redacted.add(signature)
                    else:
                        self.issued.signatures[signature] = text
                case SearchResults(_, results):
                    self.issued.searches.contents.update(sealed("content", found) for found in results)
                case Text(_, cites):
                    self.issued.searches.indexes.update(sealed("index", found) for found in cites)
                case _:
                    pass
            prefix.add("assistant", self._block(part), self.issued.broken)
        if answer.effective_stop == "pause":
            self.issued.paused.add(prefix.last)

    def _block(self, part: anthropic_emit.Piece) -> Json:
        """The block as it should come back; a call whose arguments are no JSON object cannot."""
        try:
            return anthropic_emit.block(part)
        except ScriptError:
            if not isinstance(part, ToolCall) or part.id is None:
                raise
            self.issued.broken.add(part.id)
            return {"type": "tool_use", "id": part.id, "name": part.name}


def _seen(body: MessagesRequest, prefix: Prefix) -> Seen:
    blocks = [block for message in body.messages for block in message.blocks]
    return Seen(
        roles=tuple(message.role for message in body.messages),
        calls=tuple(block.id for block in blocks if isinstance(block, ToolUse)),
        reasoning=tuple(seal for _, seal, _ in prefix.before),
        searches=tuple(block.id for block in blocks if isinstance(block, ServerToolUse)),
        breakpoints=tuple(place for place, _ in breakpoints(body)),
    )


def _check_options(body: MessagesRequest) -> None:
    """Check the rules between options.

    Raises:
        RequestRefused: Two options contradict each other.
    """
    names = [tool.name for tool in body.tools or []]
    choice, thinking = body.tool_choice, body.thinking
    message = ""
    for index, tool in enumerate(body.tools or []):
        if isinstance(tool, WebSearch):
            if tool.allowed_domains and tool.blocked_domains:
                words = "Only one of `allowed_domains` and `blocked_domains` may be given."
                message = f"tools.{index}.{tool.type}: {words}"
                raise RequestRefused(message)
        elif not {"oneOf", "allOf", "anyOf"}.isdisjoint(tool.input_schema.model_extra or ()):
            words = "input_schema does not support oneOf, allOf, or anyOf at the top level"
            message = f"tools.{index}.custom.input_schema: {words}"
            raise RequestRefused(message)
    if len(names) != len(set(names)):
        message = "tools: Tool names must be unique."
    elif choice is not None and choice.type == "tool" and choice.name not in names:
        message = f"Tool '{choice.name}' not found in provided tools"
    elif choice is not None and choice.type in {"auto", "any"} and not names:
        message = "tool_choice: may only be specified while providing tools."
    elif thinking is not None and thinking.type == "enabled":
        if thinking.budget_tokens is None:
            message = "thinking.enabled.budget_tokens: Field required"
        elif thinking.budget_tokens >= body.max_tokens:
            message = "`max_tokens` must be greater than `thinking.budget_tokens`."
        elif isinstance(body, MessagesRequest2023) and body.temperature not in {None, 1}:
            message = "`temperature` may only be set to 1 when thinking is enabled."
        elif choice is not None and choice.type in {"any", "tool"}:
            message = "Thinking may not be enabled when tool_choice forces tool use."
    if message:
        raise RequestRefused(message)


def _text(content: str | list[Any] | None) -> str:
    if isinstance(content, list):
        return "".join(block.text for block in content if isinstance(block, TextBlock))
    return content or ""
