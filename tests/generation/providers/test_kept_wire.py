"""Wire forms kept up as a chat grows: requests as of a conversion from the start, at the cost of what is new."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatfold.testing.servers import Answer
from events.content import Content, Json
from events.ids import MessageId, call_key
from events.messages import Message
from events.parts import FilePart, Part, ToolCallPart, ToolResultPart
from events.transcript import Messages
from generation.prompt import BuiltPrompt, Prompt
from generation.prompt_kept import LEAST, made_of
from generation.prompt_types import ModelRequest, PromptMessage
from generation.providers import anthropic_wire, openai_wire
from generation.providers.metadata import tag
from tests.generation.kit import STEP, assistant, call, result, system, text, tool, user
from tests.generation.providers.kit import NAMES, collect, serving
from tests.generation.test_prompt_properties import entered, histories

Body = Callable[[ModelRequest], dict[str, Any]]
BODIES: dict[str, Body] = {
    "anthropic": anthropic_wire.body,
    "openai": openai_wire.responses_body,
    "openai-chat": lambda request: openai_wire.chat_body(request, limit_name="max_tokens"),
}
MODELS = ("m", "claude-haiku-4-5")
METADATA: dict[str, Json] = {
    "anthropic": {"type": "server_tool_use", "id": "s"},
    "openai": {"type": "web_search_call", "id": "w"},
}


def asked(prompt: BuiltPrompt, model: str = "m") -> ModelRequest:
    return ModelRequest(model=model, system=prompt.system, messages=prompt.messages, effort="high")


def anew(request: ModelRequest) -> ModelRequest:
    """The same request, of whose messages nothing is known."""
    return msgspec.structs.replace(request, messages=tuple(request.messages))


def bytes_of(body: dict[str, Any]) -> bytes:
    return msgspec.json.encode(body)


@st.composite
def files(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(["text/plain", "image/png", "application/pdf", "x/y"]))
    parts: list[Part] = [FilePart(media_type=kind, data=Content("aGVsbG8gd29ybGQ="))]
    return user(*(draw(st.permutations([text("see"), *parts]))))


@st.composite
def searches(draw: st.DrawFn) -> Message:
    """A call that its provider ran, with what that provider wants back."""
    provider = draw(st.sampled_from(sorted(METADATA)))
    data = Content(tag(provider, draw(st.sampled_from(MODELS)), METADATA[provider]))
    own = ToolCallPart(name="search", arguments=Content("{}"), provider_call_id="s", runner="provider", metadata=data)
    return assistant(text("I look."), own) if draw(st.booleans()) else assistant(own)


@st.composite
def grown(draw: st.DrawFn) -> list[Message]:
    more = draw(st.lists(st.one_of(histories(), files().map(lambda one: [one]), searches().map(lambda one: [one]))))
    return [message for some in more for message in some]


@settings(max_examples=200, deadline=None)
@given(grown(), st.data())
@pytest.mark.parametrize("copied", [4, 1024])
def test_a_request_is_the_one_of_a_conversion_from_the_start(
    copied: int, history: list[Message], data: st.DataObject
) -> None:
    """Whatever was asked for between: another provider, another model, a summary, a history that lost its end."""
    kept, messages = Prompt(), Messages()
    sent: list[tuple[dict[str, Any], bytes]] = []
    with (
        patch.object(anthropic_wire, "LEAST", 0),
        patch.object(openai_wire, "LEAST", 0),
        patch.object(anthropic_wire, "COPIED", copied),
        patch.object(openai_wire, "COPIED", copied),
    ):
        for message in history:
            messages = entered(messages, message)
            if data.draw(st.integers(0, 9), label="edited") == 0:
                messages = entered(messages.before(data.draw(st.integers(0, len(messages) - 1))), user("instead"))
            for _ in range(data.draw(st.integers(0, 2), label="asked for")):
                body = BODIES[data.draw(st.sampled_from(NAMES))]
                instruction = data.draw(st.sampled_from([None, None, "sum up"]))
                request = asked(kept.build(messages, instruction=instruction), data.draw(st.sampled_from(MODELS)))
                made = body(request)
                assert bytes_of(made) == bytes_of(body(anew(request)))
                sent.append((made, bytes_of(made)))
    assert all(bytes_of(made) == before for made, before in sent), "a request that was made is never changed"


def turns(count: int) -> Messages:
    """So many messages of turns with a tool."""
    messages = Messages()
    while len(messages) < count:
        at = len(messages) + 2
        for message in (
            user("q"),
            assistant(text("a"), call(id=f"c{at}")),
            tool(result(f"{at}.0.1")),
            assistant(text("done")),
        ):
            messages = entered(messages, message)
    return messages


CONVERTED = {
    "anthropic": (anthropic_wire, "_blocks"),
    "openai": (openai_wire, "_items"),
    "openai-chat": (openai_wire, "_chat_items"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [LEAST * 2, 5_000])
def test_a_step_converts_what_is_new(name: str, length: int) -> None:
    kept, messages, body = Prompt(), turns(length), BODIES[name]
    counted: list[PromptMessage] = []
    module, function = CONVERTED[name]
    convert = getattr(module, function)

    def counting(message: PromptMessage, model: str) -> Any:
        counted.append(message)
        return convert(message, model)

    with patch.object(module, function, counting):
        made = body(asked(kept.build(messages)))
        for _ in range(3):
            at = len(messages) + 2
            for message in (user("more"), assistant(call(id=f"c{at}")), tool(result(f"{at}.0.0"))):
                messages = entered(messages, message)
            counted.clear()
            made = body(asked(kept.build(messages)))
            # An answer of the model ended the prompt before: what was asked after it was of that request alone.
            assert [message.role for message in counted] == ["user", "assistant", "tool"]
    assert bytes_of(made) == bytes_of(body(anew(asked(kept.build(messages)))))


def test_a_form_of_another_kind_begins_anew_and_takes_the_place_of_the_first() -> None:
    kept, messages = Prompt(), turns(LEAST * 2)
    built = kept.build(messages)
    for body in BODIES.values():
        body(asked(built))
        assert built.messages.window.count == len(built.messages.settled)
    assert built.messages.window.kind == ("openai-chat", "m")


def test_little_is_not_kept() -> None:
    built = Prompt().build(turns(8))
    for body in BODIES.values():
        body(asked(built))
    assert built.messages.window.made is None


def test_texts_are_shared_and_long_copies_are_not_kept() -> None:
    """What is kept of long arguments, files and errors is what surrounds them; all other texts are prompt and form."""
    long = "x" * 10_000
    at = len(turns(LEAST)) + 2
    messages = turns(LEAST)
    for message in (
        user(text(long), FilePart(media_type="image/png", data=Content(long))),
        assistant(text(long), call(arguments=f'{{"a": "{long}"}}', id="long")),
        tool(result(f"{at}.0.1", long)),
        assistant(text(long)),
    ):
        messages = entered(messages, message)
    built = Prompt().build(messages)
    own = {id(part.text) for message in built.messages for part in message.parts if hasattr(part, "text")}
    own |= {id(part.data) for message in built.messages for part in message.parts if hasattr(part, "data")}
    own |= {id(part.arguments) for message in built.messages for part in message.parts if hasattr(part, "arguments")}
    for body in BODIES.values():
        made = body(asked(built))
        assert long in bytes_of(made).decode()
        window = built.messages.window
        texts = [each for each in _texts(vars(window.made)) if len(each) > 1024]
        assert texts
        assert {id(each) for each in texts} <= own


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [each for one in value.values() for each in _texts(one)]
    if isinstance(value, list):
        return [each for one in value for each in _texts(one)]
    return []


def test_what_a_provider_attached_is_never_marked() -> None:
    """A breakpoint that stayed in history's metadata would come back with every later request, and four are allowed."""
    own = Content(tag("anthropic", "m", {"type": "server_tool_use", "id": "s"}))
    answered = Content(tag("anthropic", "m", {"type": "web_search_tool_result", "tool_use_id": "s"}))
    search = ToolCallPart(name="search", arguments=Content("{}"), provider_call_id="s", runner="provider", metadata=own)
    found = ToolResultPart(
        call=call_key(MessageId("1.0"), 0),
        output=Content("x"),
        provider_executed=True,
        metadata=answered,
        is_error=False,
    )
    before = copy.deepcopy((own.value, answered.value))
    messages = entered(Messages(), Message(role="assistant", parts=(search, found), step=STEP))
    made = anthropic_wire.body(asked(Prompt().build(entered(messages, user("and?")))))
    assert made["messages"][1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert (own.value, answered.value) == before


def test_a_message_that_cannot_be_taken_does_not_spoil_what_is_kept() -> None:
    refusal = "refused"

    class Taking:
        def __init__(self) -> None:
            self.taken: list[PromptMessage] = []

        def copy(self) -> Taking:
            other = Taking()
            other.taken = self.taken.copy()
            return other

        def take(self, message: PromptMessage) -> None:
            if refuse and message == built.messages[-1]:
                raise ValueError(refusal)
            self.taken.append(message)

    kept, messages = Prompt(), turns(8)
    built, refuse = kept.build(messages), False
    made_of(built.messages, "t", Taking)
    built, refuse = kept.build(entered(entered(messages, user("a")), user("b"))), True
    with pytest.raises(ValueError, match="refused"):
        made_of(built.messages, "t", Taking)
    refuse = False
    assert tuple(made_of(built.messages, "t", Taking).taken) == tuple(built.messages)


def test_an_older_prompt_is_converted_anew() -> None:
    kept, messages = Prompt(), entered(turns(LEAST * 2), user("a"))
    older = kept.build(messages)
    newer = kept.build(entered(messages, user("b")))
    assert newer.messages.window is older.messages.window
    for body in BODIES.values():
        body(asked(newer))
        assert bytes_of(body(asked(older))) == bytes_of(body(anew(asked(older))))
        assert bytes_of(body(asked(newer))) == bytes_of(body(anew(asked(newer))))


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_the_conversation_is_sent_as_it_was_made(name: str) -> None:
    """Also where it goes past the SDK's own arguments."""
    messages = entered(entered(turns(8), system("be kind")), user("and?"))
    async with serving(name, [Answer("x")]) as (server, provider):
        request = asked(Prompt().build(messages))
        await collect(provider, request)
    assert server.refused == []
    sent = server.requests[0].body
    assert isinstance(sent, dict)
    assert {"stream": True, **BODIES[name](request)} == sent
