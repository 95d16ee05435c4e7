"""What a compaction asks for and records: the cap of its output, the judged summary, the details for clients."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from events.messages import FinishReason, Message, Step, Usage
from events.parts import Part
from events.records import ModelPolicy, Policy
from events.state import ChatState
from generation.errors import ProviderError
from generation.prompt import build_prompt
from generation.prompt_texts import summarised, summary_instruction
from generation.summary import details_of, output_cap, summary_of, to_summarise
from tests.generation.kit import assistant, call, result, short, state_of, text, thought, tool, user

MODEL = ModelPolicy(provider="anthropic", name="m", context_limit=100_000)
INSTRUCTION = "i" * 300
"""Takes 100 tokens."""


def history(context: int, output: int, *later: Message) -> ChatState:
    step = Step(provider="anthropic", model="m", usage=Usage(input=context, output=output))
    return state_of((user("hi"), assistant("said", call("look"), step=step), *later))


RESULT = tool(result("2.0#1", "r" * 3000))
"""Takes 1,000 tokens."""

CAPS: dict[str, tuple[dict[str, Any], ChatState, int | None]] = {
    "there is room": ({}, history(10_000, 500), None),
    "there is room for what is configured": ({"max_output": 8_000}, history(90_000, 500, RESULT), 8_000),
    "as much as is left": ({"max_output": 8_000}, history(95_000, 500, RESULT), 100_000 - 95_000 - 500 - 100 - 1_000),
    "as much as is left of the usual": ({}, history(95_000, 500, RESULT), 100_000 - 95_000 - 500 - 100 - 1_000),
    "one token is left": ({"max_output": 8_000}, history(98_399, 500, RESULT), 1),
    "none is left: the service shall say so": ({"max_output": 8_000}, history(98_400, 500, RESULT), 8_000),
    "less than none": ({}, history(120_000, 500), None),
    "exactly what is configured": ({"max_output": 3_400}, history(95_000, 500, RESULT), 3_400),
    "the limit is not known": ({"context_limit": None, "max_output": 8_000}, history(99_000, 500), 8_000),
    "the limit is none": ({"context_limit": 0}, history(99_000, 500), None),
}


@pytest.mark.parametrize("name", CAPS)
def test_the_output_is_capped_to_what_the_context_has_left(name: str) -> None:
    changes, state, cap = CAPS[name]
    messages = state.need_transcript("test").messages
    assert output_cap(replace(MODEL, **changes), messages, INSTRUCTION) == cap


JOINED: dict[str, tuple[list[Part], str]] = {
    "one block": ([text("They met.")], "They met."),
    "blocks are trimmed and joined by one space": (
        [text(" They\nmet. \n"), text("\t"), text(" Then left.")],
        "They\nmet. Then left.",
    ),
    "beside reasoning and calls": ([thought("Hm."), text("They met."), call("look")], "They met."),
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_summary_is_the_text_of_its_blocks(name: str, reason: FinishReason) -> None:
    parts, summary = JOINED[name]
    assert summary_of(parts, reason, "anthropic") == summary


EMPTY: list[tuple[list[Part], FinishReason, str, bool]] = [
    ([], "stop", "empty summary", True),
    ([text(" \n")], "stop", "empty summary", True),
    ([call("look")], "tool_calls", "empty summary", True),
    ([], "length", "truncated at the output cap", False),
    ([text("  ")], "length", "truncated at the output cap", False),
    ([thought("Hm.")], "length", "truncated at the output cap", False),
    ([thought("Hm."), text(" ")], "stop", "truncated at the output cap", True),
]


@pytest.mark.parametrize(("parts", "reason", "words", "retryable"), EMPTY)
def test_without_text_there_is_no_summary(parts: list[Part], reason: FinishReason, words: str, retryable: bool) -> None:
    with pytest.raises(ProviderError) as raised:
        summary_of(parts, reason, "anthropic")
    error = raised.value.error
    assert words in error.message
    assert error.message.startswith("Anthropic ")
    assert (error.kind, error.provider, error.retryable) == ("generic", "anthropic", retryable)
    assert error.detail == f"finish reason: {reason}"


def test_what_waits_for_an_answer_is_not_summarised() -> None:
    said = (user("hi"), assistant("hello"))
    waiting = (user("one"), user("two"))
    for messages in ((*said, *waiting), said):
        kept = to_summarise(state_of(messages).need_transcript("test").messages)
        assert [item.message for item in kept] == list(said)


POLICY = Policy(agent="helper", revision="1", model=replace(MODEL, context_limit=1000))


def details(policy: Policy = POLICY, *, tokens: int = 900, phase: Any = "none", fixed: tuple[str, ...] = ()) -> Any:
    state = history(tokens, 5, user("w" * 30))
    state.control.indexes.context_tokens = tokens
    state.control.compaction = phase
    return details_of(state, policy, "They met.", shown="s" * 31, fixed=fixed)


def test_what_clients_are_told() -> None:
    assert details() == {
        "source": "automatic",
        "summary": "They met.",
        "threshold_percent": 70,
        "threshold_tokens": 700,
        "usage_percent": 90.0,
        "context_tokens": 900,
        "context_limit_tokens": 1000,
        "estimated_context_tokens": 21,  # 31 bytes of the summary and 30 of what is said again, by three
    }


STRICT = ModelPolicy(provider="openai", name="s", context_limit=600, compaction_threshold=50)
TOLD: dict[str, tuple[dict[str, Any], dict[str, object]]] = {
    "asked for": ({"phase": "requested"}, {"source": "manual"}),
    "by the stricter model": (
        {"policy": replace(POLICY, compaction_model=STRICT)},
        {"threshold_percent": 50, "threshold_tokens": 300, "usage_percent": 150.0, "context_limit_tokens": 600},
    ),
    "without a limit": (
        {"policy": replace(POLICY, model=replace(MODEL, context_limit=None)), "phase": "requested"},
        {"threshold_percent": 70, "threshold_tokens": None, "usage_percent": None, "context_limit_tokens": None},
    ),
    "never by itself": (
        {"policy": replace(POLICY, model=replace(MODEL, context_limit=1000, compaction_threshold=100))},
        {"threshold_percent": 100, "threshold_tokens": None, "usage_percent": 90.0, "context_limit_tokens": 1000},
    ),
    "nothing measured": ({"tokens": 0, "phase": "requested"}, {"usage_percent": 0.0, "context_tokens": 0}),
    "with what stands in every prompt": ({"fixed": ("f" * 30, "g" * 9)}, {"estimated_context_tokens": 34}),
}


@pytest.mark.parametrize("name", TOLD)
def test_clients_are_told_by_what_it_was_measured(name: str) -> None:
    given, told = TOLD[name]
    assert {key: value for key, value in details(**given).items() if key in told} == told


def test_a_summary_says_in_the_prompt_what_it_is() -> None:
    shown = summarised("They met.")
    assert shown.endswith("\n\nThey met.")
    assert "summarised" in shown
    said = state_of((user(shown, visibility="model", boundary="chat_summarized"), user("And?")))
    assert short(build_prompt(said).messages) == [f"user: {shown}", "user: And?"]


WISHES = (
    "every constraint and preference the user stated, in the user's own words",
    "What the user wants",
    "Decisions taken so far, each with its reason",
    "paths",
    "Errors that occurred, concretely",
    "Do not turn one failure into a",
    "what is done, what is under way, what remains",
    "next action",
    "rather than copying it",
)


@pytest.mark.parametrize("wish", WISHES)
def test_the_instruction_asks_for_what_a_summary_must_keep(wish: str) -> None:
    assert wish in summary_instruction()
    assert wish in summary_instruction("the names")


def test_the_users_hint_is_the_last_word_of_the_instruction() -> None:
    assert summary_instruction("  Keep the names. ") == f"{summary_instruction()}\n\nThe user adds: Keep the names."
    assert summary_instruction(" ") == summary_instruction()
