"""Whether what a log would have models asked is what their services take: after each of its events, for each service.

A prompt is built from the state after an event, made a request of each service's form, and put before the checks of the
loopback server that speaks it, which are those of the service. What a service has given out (signed thinking, encrypted
reasoning, results of searches) is read from the log itself: it may come back as it came, or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from chatfold.testing.servers.anthropic_history import IssuedThinking
from chatfold.testing.servers.anthropic_server import AnthropicServer
from chatfold.testing.servers.chat_server import OpenAIChatServer
from chatfold.testing.servers.checks import RequestRefused
from chatfold.testing.servers.recording import RecordedRequest
from chatfold.testing.servers.responses_history import IssuedItems, searched
from chatfold.testing.servers.responses_server import OpenAIResponsesServer
from chatfold.testing.servers.server import LoopbackServer
from events.content import Content, Json
from events.envelope import Recorded
from events.errors import ContentUnavailable
from events.parts import ReasoningPart
from events.replay import replay
from events.state import ChatState
from events.transcript import Messages
from generation.prompt import BuiltPrompt, Prompt
from generation.prompt_types import ModelRequest, PromptCall, PromptMessage, PromptResult, PromptText
from generation.providers import anthropic_wire, openai_wire
from generation.providers.metadata import own

__all__ = ["PromptChecker", "prompt_problems"]

OTHER: Final = "a-model-of-another-kind"
"""The model that is asked of a service which answered nothing in the chat."""

WHOLE: Final = 200
"""Messages of a prompt up to which it is checked after each event; a longer one when it has doubled, and at the end."""

_Body: TypeAlias = Callable[[ModelRequest], dict[str, Any]]

_BODIES: Final[Mapping[str, _Body]] = {
    anthropic_wire.NAME: anthropic_wire.body,
    openai_wire.RESPONSES: openai_wire.responses_body,
    openai_wire.CHAT: lambda request: openai_wire.chat_body(request, limit_name="max_completion_tokens"),
}
_HEADERS: Final = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}


class PromptChecker:
    """Checks the prompts of one chat as it grows, event by event."""

    def __init__(self) -> None:
        self._prompt: Final = Prompt()
        self._thinking: Final = IssuedThinking()
        self._items: Final = IssuedItems()
        self._servers: Final[dict[str, LoopbackServer]] = {
            anthropic_wire.NAME: AnthropicServer([], issued=self._thinking),
            openai_wire.RESPONSES: OpenAIResponsesServer([], issued=self._items),
            openai_wire.CHAT: OpenAIChatServer([]),
        }
        self._models: Final = dict.fromkeys(_BODIES, OTHER)
        self._seen = Messages()
        self._checked = ""
        self._longest = 0

    def problems(self, state: ChatState, *, last: bool = False) -> Iterator[str]:
        """Yield what is wrong with the prompt of a chat as it stands.

        Args:
            state: The chat, with its transcript; each time of a later version of the same chat.
            last: Whether no later one comes, so that a long prompt is checked too.
        """
        messages = state.need_transcript("check its prompt").messages
        self._issue(messages)
        prompt = self._prompt.build(messages)
        if prompt.digest == self._checked or not prompt.messages:
            return  # a chat without a message, or one that was cleared, asks nothing before a message comes
        size = len(prompt.messages)
        if size > max(WHOLE, 2 * self._longest) or size <= WHOLE or last:
            self._checked, self._longest = prompt.digest, size
            yield from self._wrong_with(prompt)

    def _wrong_with(self, prompt: BuiltPrompt) -> Iterator[str]:
        yield from neutral_problems(prompt.messages)
        for name, body in _BODIES.items():
            request = ModelRequest(model=self._models[name], system=prompt.system, messages=prompt.messages)
            sent = json.loads(json.dumps({**body(request), "stream": True}))
            try:
                self._servers[name].check_body(
                    RecordedRequest(index=0, method="POST", path="", headers=_HEADERS, raw=b"", body=sent)
                )
            except RequestRefused as refused:
                yield f"{name}: {refused}"

    def _issue(self, messages: Messages) -> None:
        """Note what services have given out in messages that were not seen yet."""
        new = messages.since(len(self._seen)) if messages.continues(self._seen) else messages
        self._seen = messages
        for message in (item.message for item in new):
            step = message.step
            if step is None or step.provider not in self._models:
                continue
            self._models[step.provider] = step.model
            before: str | None = None
            for part in message.parts:
                data = _data(part, step.provider, step.model)
                if step.provider == anthropic_wire.NAME:
                    self._issue_thinking(part, data)
                elif step.provider == openai_wire.RESPONSES:
                    before = self._issue_item(part, data, _after(part, before))

    def _issue_thinking(self, part: object, data: Mapping[str, Any]) -> None:
        if isinstance(part, ReasoningPart) and not part.repaired:
            if part.redacted and "data" in data:
                self._thinking.redacted.add(data["data"])
            elif "signature" in data:
                self._thinking.signatures[data["signature"]] = _text(part.text)
        for name, found in _fields(data):
            if name == "encrypted_content":
                self._thinking.searches.contents.add(found)
            elif name == "encrypted_index":
                self._thinking.searches.indexes.add(found)

    def _issue_item(self, part: object, data: Mapping[str, Any], before: str | None) -> str | None:
        """Note an item; return the id of reasoning that the next item needs before it."""
        identity = data.get("id")
        if before is not None and isinstance(identity, str):
            self._items.reasoning_before[identity] = before
        if isinstance(part, ReasoningPart):
            if isinstance(identity, str) and "encrypted_content" in data:
                self._items.encrypted[data["encrypted_content"]] = identity
                return identity
        elif isinstance(identity, str) and "action" in data:
            self._items.searches[identity] = searched(data["action"])
        return None


def neutral_problems(messages: Iterable[PromptMessage]) -> Iterator[str]:
    """Yield what is wrong with a prompt before it has the form of a service.

    Each call has one result, in the tool messages right after it; ids of calls are unique; no text is blank, no message
    empty; the last one is no assistant's.
    """
    ids: set[str] = set()
    waiting: list[str] = []
    role = ""
    for place, message in enumerate(messages):
        role = message.role
        if not message.parts:
            yield f"message {place} is empty"
        if role != "tool" and waiting:
            yield f"calls {waiting} have no result before message {place}"
            waiting = []
        for part in message.parts:
            match part:
                case PromptText() if not part.text.strip():
                    yield f"message {place} has a blank text"
                case PromptCall() if not part.provider_executed:
                    if part.id in ids:
                        yield f"message {place} has the id {part.id} once more"
                    ids.add(part.id)
                    waiting.append(part.id)
                case PromptResult() if not part.provider_executed:
                    if part.id not in waiting:
                        yield f"message {place} has a result of {part.id}, which is not open"
                    else:
                        waiting.remove(part.id)
                case _:
                    pass
    if waiting:
        yield f"calls {waiting} have no result at the end"
    if role == "assistant":
        yield "the last message is an assistant's"


def prompt_problems(log: Iterable[Recorded]) -> list[str]:
    """Return what is wrong with the prompts of a log: of each of its prefixes, for each service.

    Args:
        log: The events of one chat from the first on, with their content.

    Returns:
        One line for each problem, which begins with the version after which it stands.
    """
    checker, found, state = PromptChecker(), [], None
    for step in replay(log):
        state = step.after
        found += [f"version {step.recorded.version}: {problem}" for problem in checker.problems(state)]
    if state is not None:
        found += [f"version {state.control.version}: {problem}" for problem in checker.problems(state, last=True)]
    return found


def _metadata(part: object) -> Json:
    metadata = getattr(part, "metadata", None)
    try:
        return metadata.value if isinstance(metadata, Content) else None
    except ContentUnavailable:
        return None


def _data(part: object, provider: str, model: str) -> Mapping[str, Any]:
    """Return what a provider attached to a part; nothing where it is not there, or not any more."""
    return own(_metadata(part), provider, model) or {}


def _after(part: object, before: str | None) -> str | None:
    """Return the id of the reasoning that a part came after: what stood between may have been left out of the log."""
    metadata = _metadata(part)
    after = metadata.get("after", before) if isinstance(metadata, Mapping) else before
    return after if isinstance(after, str) else None


def _text(content: Content) -> str:
    try:
        return content.text
    except ContentUnavailable:
        return ""


def _fields(value: object) -> Iterator[tuple[str, Any]]:
    """Yield all named fields of a JSON value, however deep."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield name, each
            yield from _fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from _fields(each)
