"""What a service ran itself is told as text to models that are not its own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from events.content import Json
from generation.budget import MIN_BUDGET
from generation.prompt_flat import Keeps, flatten
from generation.prompt_texts import executed
from generation.prompt_types import PromptCall, PromptMessage, PromptPart, PromptReasoning, PromptResult, PromptText
from generation.providers.metadata import own, tag

OURS: Json = tag("anthropic", "m", {"type": "server_tool_use", "id": "s"})
CALL = PromptCall(id="s", name="web_search", arguments='{"query":"x"}', metadata=OURS, provider_executed=True)
FOUND = '[{"url":"https://a.example","title":"A","encrypted_content":"e"}]'
RESULT = PromptResult(id="s", name="web_search", text=FOUND, metadata=OURS, provider_executed=True)
LOCAL = PromptCall(id="c", name="look", arguments="{}")
SAID = PromptText(text="Found.")
THOUGHT = PromptReasoning(text="Hm.", provider="anthropic", model="m")
QUESTION = PromptMessage(role="user", parts=(PromptText(text="What?"),))
ANSWER = PromptMessage(role="tool", parts=(PromptResult(id="c", name="look", text="seen"),))


def answer(*parts: PromptPart) -> PromptMessage:
    return PromptMessage(role="assistant", parts=parts)


def told(said: str, *, failed: bool = False) -> PromptText:
    return PromptText(text=executed("web_search", '{"query":"x"}', said, failed=failed))


READABLE = told('[{"url":"https://a.example","title":"A"}]')
ROWS: dict[str, tuple[PromptMessage, PromptMessage]] = {
    "a search": (answer(CALL, RESULT, SAID), answer(READABLE, SAID)),
    "what stands around it stays": (answer(THOUGHT, CALL, SAID, RESULT, LOCAL), answer(THOUGHT, SAID, READABLE, LOCAL)),
    "two of them": (
        answer(CALL, replace(CALL, id="t"), replace(RESULT, id="t", text="none"), RESULT),
        answer(told("none"), READABLE),
    ),
    "one that failed": (
        answer(CALL, replace(RESULT, text='{"error_code":"unavailable"}', is_error=True)),
        answer(told('{"error_code":"unavailable"}', failed=True)),
    ),
    "what is no object or list stays": (answer(CALL, replace(RESULT, text="12")), answer(told("12"))),
    "what is encrypted goes wherever it stands": (
        answer(CALL, replace(RESULT, text='{"pages":[{"encrypted_index":"i","text":"t"}]}')),
        answer(told('{"pages":[{"text":"t"}]}')),
    ),
    "without metadata it is nobody's": (
        answer(replace(CALL, metadata=None), replace(RESULT, metadata=None)),
        answer(READABLE),
    ),
    "nothing of it": (answer(THOUGHT, SAID, LOCAL), answer(THOUGHT, SAID, LOCAL)),
}


@pytest.mark.parametrize(("failed", "words"), [(False, "Its result"), (True, "It failed")])
def test_the_text_says_what_was_run_and_what_came_of_it(failed: bool, words: str) -> None:
    assert told("none", failed=failed).text == f'[web_search was run with {{"query":"x"}}. {words}:]\nnone'


def asked(provider: str, model: str) -> Keeps:
    return lambda call, result: all(own(part.metadata, provider, model) is not None for part in (call, result))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("provider", "model"), [("anthropic", "another"), ("openai", "m"), ("openai-chat", "x")])
def test_other_models_read_it_as_text(name: str, provider: str, model: str) -> None:
    before, after = ROWS[name]
    assert flatten(before, asked(provider, model)) == after
    assert flatten(after, asked(provider, model)) is after, "once is enough"


@pytest.mark.parametrize("name", [name for name in ROWS if "metadata" not in name])
def test_its_own_model_gets_it_as_it_gave_it(name: str) -> None:
    before, _ = ROWS[name]
    assert flatten(before, asked("anthropic", "m")) is before


def test_each_pair_is_judged_by_itself() -> None:
    second, found = replace(CALL, id="t", metadata=None), replace(RESULT, id="t", text="none")
    mixed = answer(CALL, RESULT, second, found)
    assert flatten(mixed, asked("anthropic", "m")) == answer(CALL, RESULT, told("none"))


@pytest.mark.parametrize("role", ["user", "tool"])
def test_messages_that_hold_nothing_of_it_stay(role: str) -> None:
    message = QUESTION if role == "user" else ANSWER
    assert flatten(message, lambda _call, _result: False) is message


def test_a_long_result_is_cut() -> None:
    long = answer(CALL, replace(RESULT, text="x" * 10 * MIN_BUDGET))
    (part,) = flatten(long, asked("openai", "m")).parts
    assert isinstance(part, PromptText)
    assert MIN_BUDGET // 2 < len(part.text.encode()) < MIN_BUDGET + 200
