"""Signed thinking comes back as it came and behind what it came behind, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from events.content import Content, Json
from events.ids import MessageId
from events.messages import Message, Step
from events.parts import ReasoningPart, TextPart
from events.transcript import TranscriptMessage
from generation.prompt_messages import alone
from generation.prompt_types import ModelRequest, PromptMessage, PromptReasoning, PromptText, ToolSpec
from generation.providers.anthropic_prefix import Prefix, before_messages, signed_behind
from generation.providers.anthropic_wire import body, body_and_prefix
from generation.providers.metadata import tag
from tests.generation.providers.kit import MODEL, WEATHER


def asked(*messages: PromptMessage, system: tuple[str, ...] = (), tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(model=MODEL, system=system, messages=messages, tools=tools)


def user(text: str) -> PromptMessage:
    return PromptMessage(role="user", parts=(PromptText(text=text),))


def answer(prefix: str, signature: str = "s", text: str = "Yes.") -> PromptMessage:
    metadata: Json = signed_behind(tag("anthropic", MODEL, {"signature": signature}), prefix)
    thought = PromptReasoning(text="Hm", metadata=metadata, provider="anthropic", model=MODEL)
    return PromptMessage(role="assistant", parts=(thought, PromptText(text=text)))


def signatures(request: ModelRequest) -> list[str]:
    blocks: list[dict[str, Any]] = [block for message in body(request)["messages"] for block in message["content"]]
    return [block["signature"] for block in blocks if block["type"] == "thinking"]


ASKED = asked(user("Hello"), system=("Be brief.",), tools=(WEATHER,))
PREFIX = body_and_prefix(ASKED)[1]


@pytest.mark.parametrize(
    ("messages", "system", "tools", "kept"),
    [
        pytest.param((user("Hello"), answer(PREFIX)), ("Be brief.",), (WEATHER,), ["s"], id="as it was"),
        pytest.param((user("Erased"), answer(PREFIX)), ("Be brief.",), (WEATHER,), [], id="another text"),
        pytest.param((user("And"), user("Hello"), answer(PREFIX)), ("Be brief.",), (WEATHER,), [], id="more before"),
        pytest.param((answer(PREFIX),), ("Be brief.",), (WEATHER,), [], id="less before"),
        pytest.param((user("Hello"), answer(PREFIX)), ("Be long.",), (WEATHER,), [], id="another system text"),
        pytest.param((user("Hello"), answer(PREFIX)), ("Be brief.",), (), [], id="other tools"),
        pytest.param((user("Hello"), answer("")), ("Be long.",), (), ["s"], id="of a release that kept no digest"),
    ],
)
def test_thinking_behind_something_else_is_left_out_whole(
    messages: tuple[PromptMessage, ...], system: tuple[str, ...], tools: tuple[ToolSpec, ...], kept: list[str]
) -> None:
    request = asked(*messages, user("And now?"), system=system, tools=tools)
    assert signatures(request) == kept
    texts = [part.text for message in messages for part in message.parts if isinstance(part, PromptText)]
    sent = [block.get("text") for message in body(request)["messages"] for block in message["content"]]
    assert [text for text in texts if text not in sent] == []


def test_thinking_that_is_left_out_costs_the_next_answer_nothing() -> None:
    first = (user("Hello"), answer("of another conversation", "first"), user("More?"))
    prefix = body_and_prefix(asked(*first))[1]
    assert prefix == body_and_prefix(asked(first[0], answer("", "first"), first[2]))[1]
    assert signatures(asked(*first, answer(prefix, "second"), user("And now?"))) == ["second"]


def test_a_copy_goes_on_by_itself() -> None:
    prefix = Prefix(before_messages(ASKED))
    prefix.take(user("Hello"))
    other = prefix.copy()
    assert other.digest == prefix.digest == PREFIX
    other.take(user("More?"))
    assert other.digest != prefix.digest == PREFIX


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [((), (), ["Hm", "Ha"]), (("$.text",), (), []), ((), ("$.text",), ["Hm"])],
    ids=["as they came", "the first was repaired", "the second was repaired"],
)
def test_thinking_that_was_repaired_does_not_come_back_nor_what_came_after_it(
    first: tuple[str, ...], second: tuple[str, ...], kept: list[str]
) -> None:
    metadata = Content(tag("anthropic", MODEL, {"signature": "s"}))
    thoughts = [
        ReasoningPart(text=Content(text), metadata=metadata, repaired=repaired)
        for text, repaired in (("Hm", first), ("Ha", second))
    ]
    message = Message(
        role="assistant",
        parts=(*thoughts, TextPart(text=Content("Yes."))),
        step=Step(provider="anthropic", model=MODEL),
    )
    made = alone(TranscriptMessage(MessageId("2.0"), message, 2))
    assert [part.text for part in made.parts if isinstance(part, PromptReasoning)] == kept
