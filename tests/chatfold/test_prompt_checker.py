"""The checker of prompts finds what services refuse, and takes what they take."""

from __future__ import annotations

import pytest

from chatfold.testing import prompts
from chatfold.testing.prompts import neutral_problems, prompt_problems
from chatstate.classify import X
from events.content import Content, Json
from events.messages import Message, Step
from events.parts import ReasoningPart, TextPart
from generation.prompt_types import PromptCall, PromptMessage, PromptPart, PromptResult, PromptText
from tests.chatstate import build as b
from tests.chatstate.chat import Chat
from tests.chatstate.reach import answered, generating, reach

HELLO = PromptMessage(role="user", parts=(PromptText(text="Hello"),))
CALL = PromptCall(id="c1", name="look", arguments="{}")
RESULT = PromptResult(id="c1", name="look", text="seen")


def said(*parts: PromptPart) -> PromptMessage:
    return PromptMessage(role="assistant", parts=parts)


def results(*parts: PromptPart) -> PromptMessage:
    return PromptMessage(role="tool", parts=parts)


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([HELLO], None),
        ([HELLO, said(CALL), results(RESULT)], None),
        ([HELLO, said(PromptText(text="Hi"))], "the last message is an assistant's"),
        ([HELLO, said(CALL)], "calls ['c1'] have no result at the end"),
        ([HELLO, said(CALL), HELLO, results(RESULT)], "calls ['c1'] have no result before message 2"),
        ([HELLO, results(RESULT)], "message 1 has a result of c1, which is not open"),
        ([HELLO, said(CALL), results(RESULT, RESULT)], "message 2 has a result of c1, which is not open"),
        ([HELLO, said(CALL), results(RESULT), said(CALL), results(RESULT)], "message 3 has the id c1 once more"),
        ([HELLO, said(PromptText(text=" ")), HELLO], "message 1 has a blank text"),
        ([HELLO, said(), HELLO], "message 1 is empty"),
    ],
)
def test_what_no_prompt_may_have(messages: list[PromptMessage], problem: str | None) -> None:
    found = list(neutral_problems(messages))
    assert (found[0] if found else None) == problem


def thought(provider: str, data: dict[str, Json]) -> Message:
    """An answer with reasoning, as its provider gave it."""
    reasoning = ReasoningPart(
        text=Content("Hm"),
        metadata=Content({"provider": provider, "model": "m", "data": data}),
    )
    return Message(
        role="assistant", parts=(reasoning, TextPart(text=Content("Yes."))), step=Step(provider=provider, model="m")
    )


def with_answer(message: Message) -> Chat:
    chat = reach(X.R0, work=generating)
    chat.do(b.commit(chat, message))
    chat.do(b.finish(chat))
    chat.do(b.send("And now?"))
    return chat


@pytest.mark.parametrize(
    "message",
    [
        thought("anthropic", {"signature": "s1"}),
        thought("openai", {"type": "reasoning", "id": "rs_1", "encrypted_content": "e1", "summary": []}),
    ],
    ids=["anthropic", "openai"],
)
def test_what_a_service_gave_may_come_back_as_it_came(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = with_answer(message)
    assert prompt_problems(chat.log) == []
    # And it does come back: a checker that never heard of it finds it in the requests.
    monkeypatch.setattr(prompts.PromptChecker, "_issue_thinking", lambda *_: None)
    monkeypatch.setattr(prompts.PromptChecker, "_issue_item", lambda *_: None)
    assert [problem for problem in prompt_problems(chat.log) if "signature" in problem or "encrypted" in problem]


def test_each_prefix_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = reach(X.W, work=answered)
    monkeypatch.setattr(prompts, "neutral_problems", lambda messages: [f"{len(messages)} messages"])
    assert {line.partition(": ")[2] for line in prompt_problems(chat.log)} >= {"1 messages", "3 messages"}
