"""Estimates of what a conversation takes: bytes by three, files at a flat rate, measured answers before all."""

from __future__ import annotations

import pytest

from events.content import Absent, Content
from events.ids import CallKey, MessageId
from events.messages import Message, Step, Usage
from events.parts import FilePart, FileReferencePart, Part, TextPart, ToolResultPart
from generation.budget import MIN_BUDGET
from generation.estimate import FILE_BYTES, since_answer, size_of, tokens_of, uncompacted_tokens
from tests.generation.kit import assistant, call, result, state_of, text, thought, tool, user

IMAGE = FilePart(media_type="image/png", data=Content("A" * 4000))
QUOTE = FileReferencePart(name=Content("a.py"), start_line=1, end_line=2, text=Content("x" * 10))


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 2), (3000, 1000)])
def test_three_bytes_are_a_token_and_the_rest_is_one_more(size: int, tokens: int) -> None:
    assert tokens_of(size) == tokens


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (text("año"), 4),
        (text(""), 0),
        (thought("a long thought"), 0),
        (call("look", '{"a":1}'), 4 + 7),
        (result("1.0#0", "done"), 4),
        (result("1.0#0", {"a": 1}), 7),
        (ToolResultPart(call=CallKey("1.0#0"), is_error=True), 0),
        (ToolResultPart(call=CallKey("1.0#0"), output=Content("seen"), media=(IMAGE,)), 4 + FILE_BYTES),
        (ToolResultPart(call=CallKey("1.0#0"), output=Content("seen"), context=Content("a hint")), 4 + 6),
        (ToolResultPart(call=CallKey("1.0#0"), output=Content("seen"), rewritten=Content('{"a":1}')), 4 + 7),
        (ToolResultPart(call=CallKey("1.0#0"), rewritten=Content("x" * (1 << 20))), MIN_BUDGET),
        (IMAGE, FILE_BYTES),
        (FilePart(media_type="text/plain", data=Content("QUJD" * 100)), 300),
        (FilePart(media_type="application/json", data=Content("QUJD" * 100)), 300),
        (QUOTE, 14),
        (TextPart(text=Content(Absent.ERASED, 90)), 90),
    ],
)
def test_what_a_part_takes(part: Part, size: int) -> None:
    assert size_of([user(part)]) == size


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(input=1, output=20, cache_read=300, cache_write=4000), 4301),
        (Usage(cache_read=300, output=20), 300),
        (Usage(input=5), 5),
        (Usage(output=20), 20),
        (Usage(), 0),
    ],
)
def test_the_tokens_of_a_context_are_those_of_the_prompt_or_all_there_are(usage: Usage, tokens: int) -> None:
    assert usage.context == tokens


USAGE = Usage(input=1, output=20, cache_read=300, cache_write=4000, reasoning=7)


@pytest.mark.parametrize(("newest", "tokens"), [(None, 4321), (50, 70)])
def test_of_an_answer_of_several_requests_the_newest_prompt_counts(newest: int | None, tokens: int) -> None:
    step = Step(provider="anthropic", model="m", usage=USAGE, context_tokens=newest)
    messages = state_of((user("hi"), assistant("said", step=step))).need_transcript("test").messages
    assert since_answer(messages) == (tokens, [])


def measured(context: int, output: int, *parts: str) -> Message:
    step = Step(provider="anthropic", model="m", usage=Usage(input=context, output=output))
    return assistant(*(parts or ("said",)), step=step)


def summary(words: str) -> tuple[Message, ...]:
    mark = call("chat_summarized", runner="provider")
    return (
        user(words, visibility="model", boundary="chat_summarized"),
        assistant(mark, visibility="user", boundary="chat_summarized", step=None),
        tool(result("9.0#0"), visibility="user", boundary="chat_summarized"),
    )


CASES: dict[str, tuple[tuple[Message, ...], int]] = {
    "nothing": ((), 0),
    "nothing measured": ((user("x" * 30), assistant("y" * 30)), 20),
    "measured": ((user("x" * 3000), measured(1000, 50)), 1050),
    "what came after it": ((user("hi"), measured(1000, 50), tool(result("2.0#0", "r" * 31))), 1061),
    "what models do not read does not count": ((measured(9, 1), user("x" * 300, visibility="user")), 10),
    "the newest counts": ((measured(9, 1), user("x"), measured(70, 7)), 77),
    "an answer without usage is not measured": ((measured(9, 1), user("x" * 3), measured(0, 0, "y" * 6)), 13),
    "from an older boundary on": ((measured(900, 1), *summary("s" * 9), user("x" * 3)), 4),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_next_prompt_takes(name: str) -> None:
    messages, tokens = CASES[name]
    taken, later = since_answer(state_of(messages).need_transcript("test").messages)
    assert taken + tokens_of(size_of(later)) == tokens


UNDONE: dict[str, tuple[tuple[Message, ...], tuple[Message, ...], int]] = {
    "as it was measured": ((user("x" * 900), measured(500, 20)), (), 520),
    "what waited for an answer was not measured": ((measured(500, 20), user("x" * 300)), (), 620),
    "what was inserted again does not count twice": (
        (measured(500, 20), user("x" * 300)),
        (user("x" * 300, visibility="model", origin=MessageId("2.0")),),
        620,
    ),
    "what came since counts by its bytes, whatever was measured then": (
        (measured(500, 20),),
        (user("y" * 30), measured(7, 3, "z" * 60), tool(result("9.9#0", "r" * 9))),
        520 + 33,
    ),
}


@pytest.mark.parametrize("name", UNDONE)
def test_what_a_boundary_that_is_taken_back_brings_back(name: str) -> None:
    before, after, tokens = UNDONE[name]
    messages = state_of((*before, *summary("A summary."), *after)).need_transcript("test").messages
    assert uncompacted_tokens(messages, MessageId(f"{len(before) + 1}.0")) == tokens


def test_of_a_boundary_that_is_not_there_nothing_comes_back() -> None:
    assert uncompacted_tokens(state_of((user("x"),)).need_transcript("test").messages, MessageId("7.0")) == 0
