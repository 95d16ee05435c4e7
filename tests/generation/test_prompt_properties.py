"""What holds of the prompt of any history, and while histories grow."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from events.content import Absent, Content
from events.ids import CallKey, MessageId
from events.messages import Message
from events.parts import Part, Runner, ToolCallPart
from events.reasons import Reason
from events.transcript import Messages, TranscriptMessage
from generation.prompt import Prompt, build_prompt
from generation.prompt_types import PromptCall, PromptMessage, PromptResult, PromptText
from tests.generation.kit import assistant, call, file, result, state_of, system, text, thought, tool, user

TEXTS = st.sampled_from(["", " ", "hi", "long\ntext", "😀"])
IDS = st.sampled_from(["a", "b", "", "call_2_0_0", "call_3_0_1", "b.c"])
MEDIA = st.lists(st.sampled_from(["image/png", "application/pdf", "text/plain", "x/y"]).map(file), max_size=2)
ARGUMENTS = st.sampled_from(["{}", '{"a": 1}', "", "[", "null"])


@st.composite
def answers(draw: st.DrawFn, at: int) -> list[Message]:
    """An answer, with results for none, some or all of its calls, in any order and in one or more messages."""
    parts: list[Part] = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["text", "thought", "signed", "call", "own", "erased"]))
        if kind == "text":
            parts.append(text(draw(TEXTS)))
        elif kind == "erased":
            parts.append(type(text(""))(text=Content(Absent.ERASED, 3)))
        elif kind in {"thought", "signed"}:
            parts.append(thought(draw(TEXTS), {"s": 1} if kind == "signed" else None))
        else:
            runner: Runner = "provider" if kind == "own" else draw(st.sampled_from(["local", "client"]))
            parts.append(call(arguments=draw(ARGUMENTS), id=draw(IDS), runner=runner))
            if kind == "own" and draw(st.booleans()):
                parts.append(result(f"{at}.0.{len(parts) - 1}", provider=True))
    keys = [
        CallKey(f"{at}.0.{index}")
        for index, part in enumerate(parts)
        if isinstance(part, ToolCallPart) and part.runner != "provider"
    ]
    answered = draw(st.permutations(keys).map(lambda order: order[: draw(st.integers(0, len(order)))]))
    results = [result(key, reason=draw(st.sampled_from([None, *Reason])), media=draw(MEDIA)) for key in answered]
    whole = [tool(*results)] if draw(st.booleans()) else [tool(one) for one in results]
    return [assistant(*parts, interrupted=draw(st.booleans())), *[message for message in whole if message.parts]]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Histories with boundaries, system messages and hidden ones anywhere between turns."""
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["user", "answer", "answer", "system", "hidden", "boundary"]))
        at = len(messages) + 1
        if kind == "user":
            messages.append(user(draw(TEXTS), visibility=draw(st.sampled_from(["both", "model"]))))
        elif kind == "answer":
            messages.extend(draw(answers(at)))
        elif kind == "system":
            messages.append(system(draw(TEXTS)))
        elif kind == "hidden":
            messages.append(assistant("x", call(), visibility="user"))
        else:
            boundary = draw(st.sampled_from(["chat_summarized", "chat_cleared"]))
            messages += [
                user("summary", visibility="model", boundary=boundary),
                assistant(call(boundary), visibility="user", boundary=boundary),
                tool(result(f"{at + 1}.0.0"), visibility="user", boundary=boundary),
            ]
    return messages


def check(messages: tuple[PromptMessage, ...]) -> None:
    seen: set[str] = set()
    expected: list[str] = []
    for message in messages:
        assert message.parts
        if message.role == "tool":
            assert [part.id for part in message.parts if isinstance(part, PromptResult)] == expected
            assert len(message.parts) == len(expected)
            expected = []
            continue
        assert not expected, "calls are answered in the very next message"
        own: list[str] = []
        for part in message.parts:
            assert not isinstance(part, PromptText) or part.text.strip()
            if isinstance(part, PromptCall):
                assert message.role == "assistant"
                assert part.id not in seen
                seen.add(part.id)
                (own if part.provider_executed else expected).append(part.id)
            if isinstance(part, PromptResult):
                assert part.provider_executed
                own.remove(part.id)
        assert not own, "a provider's call has its result in its message"
    assert not expected
    assert not messages or messages[-1].role != "assistant"


@settings(max_examples=300, deadline=None)
@given(histories())
def test_every_prompt_is_well_formed(history: list[Message]) -> None:
    built = build_prompt(state_of(history))
    system_texts, messages = built.system, tuple(built.messages)
    check(messages)
    assert all(one.strip() for one in system_texts)
    assert [
        message
        for message in messages
        if message.role == "tool"
        for part in message.parts
        if not isinstance(part, PromptResult)
    ] == []


@settings(max_examples=200, deadline=None)
@given(histories(), st.data())
def test_a_prompt_only_grows(history: list[Message], data: st.DataObject) -> None:
    """While messages are appended, and no boundary is, what was converted stays: it is a provider's cached prefix."""
    more = data.draw(answers(len(history) + 2))
    before = converted(history)
    assert converted([*history, user("next"), *more, user("last")])[: len(before)] == before


def converted(messages: list[Message]) -> list[PromptMessage]:
    # A last message of the user: no prompt is lengthened by a request to go on.
    return list(build_prompt(state_of(messages), instruction="end").messages)[:-1]


@settings(max_examples=300, deadline=None)
@given(histories(), st.data())
def test_a_prompt_that_is_kept_up_is_the_one_that_is_built_anew(history: list[Message], data: st.DataObject) -> None:
    """Whatever was asked for between, and also where history loses its end, as by an edit, and goes on otherwise."""
    kept, messages = Prompt(), Messages()
    for message in history:
        messages = entered(messages, message)
        if data.draw(st.booleans(), label="asked for"):
            assert kept.build(messages) == Prompt().build(messages)
        if len(messages) and data.draw(st.integers(0, 7), label="edited") == 0:
            messages = entered(messages.before(data.draw(st.integers(0, len(messages) - 1))), user("instead"))
    assert kept.build(messages) == Prompt().build(messages)
    assert kept.build(messages, instruction="sum up") == Prompt().build(messages, instruction="sum up")


def entered(messages: Messages, message: Message) -> Messages:
    at = len(messages) + 1
    return messages.append(TranscriptMessage(MessageId(f"{at}.0"), message, at))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_ids_of_a_prefix_are_those_of_the_whole(history: list[Message]) -> None:
    def ids(messages: list[Message]) -> list[tuple[str, str]]:
        built = build_prompt(state_of(messages)).messages
        return [(part.id, part.name) for message in built for part in message.parts if isinstance(part, PromptCall)]

    whole = [
        message
        for message in history
        if message.boundary is None
        and not any(isinstance(part, ToolCallPart) and part.runner == "provider" for part in message.parts)
    ]
    for length in range(len(whole)):
        found = ids(whole[:length])
        assert ids(whole)[: len(found)] == found
