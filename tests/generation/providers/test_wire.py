"""What is sent beside the conversation: limits, efforts, tools, options, cache breakpoints."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chatfold.testing.servers import Answer
from generation.prompt_types import ModelRequest, PromptCall, PromptMessage, PromptReasoning, PromptResult, PromptText
from generation.providers.anthropic_wire import DEFAULT_MAX_OUTPUT, body
from generation.providers.metadata import own, own_reasoning, tag
from generation.providers.openai_chat import OpenAIChatProvider
from generation.providers.openai_wire import chat_body, responses_body
from tests.generation.providers.kit import NAMES, WEATHER, collect, request, serving


def with_model(model: str, **more: Any) -> ModelRequest:
    return msgspec.structs.replace(request("hi"), model=model, **more)


class TestAnthropic:
    @pytest.mark.parametrize(
        ("model", "effort", "sent"),
        [
            ("claude-opus-4-8", None, {}),
            ("claude-opus-4-8", "none", {"thinking": {"type": "disabled"}}),
            ("claude-opus-4-8", "minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
            ("claude-sonnet-5", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
            ("claude-sonnet-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            ("claude-opus-4-1-20250805", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            ("claude-sonnet-4-20250514", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            ("claude-3-7-sonnet-latest", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            ("claude-3-5-sonnet-20241022", "high", {}),
            ("claude-haiku-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 16_384}}),
        ],
    )
    def test_effort(self, model: str, effort: str | None, sent: dict[str, Any]) -> None:
        made = body(with_model(model, effort=effort))
        assert {name: made[name] for name in ("thinking", "output_config") if name in made} == sent

    def test_a_budget_leaves_room_for_the_answer(self) -> None:
        assert body(with_model("claude-haiku-4-5", effort="high", max_output=100))["max_tokens"] == 16_384 + 1024
        assert body(with_model("claude-haiku-4-5", effort="low"))["max_tokens"] == DEFAULT_MAX_OUTPUT

    def test_a_budgeted_model_does_not_think_within_a_turn_begun_without(self) -> None:
        turn = (
            *request("hi").messages,
            PromptMessage(role="assistant", parts=(PromptCall(id="c", name="t", arguments="{}"),)),
            PromptMessage(role="tool", parts=(PromptResult(id="c", name="t", text="x"),)),
        )
        assert "thinking" not in body(with_model("claude-haiku-4-5", effort="high", messages=turn))
        assert "thinking" in body(with_model("claude-opus-4-8", effort="high", messages=turn))

    def test_cache_breakpoints(self) -> None:
        said = tuple(
            PromptMessage(role=role, parts=(PromptText(text="a"), PromptText(text="b")))
            for role in ("user", "assistant", "user")
        )
        asked = msgspec.structs.replace(request(), system=("one", "two"), messages=said)
        made = body(asked)
        marked = [["cache_control" in block for block in message["content"]] for message in made["messages"]]
        assert marked == [[False, False], [False, True], [False, True]]
        assert ["cache_control" in block for block in made["system"]] == [False, True]
        assert asked == msgspec.structs.replace(request(), system=("one", "two"), messages=said)

    def test_results_and_words_that_follow_each_other_are_one_message(self) -> None:
        turn = (
            *request("hi").messages,
            PromptMessage(role="assistant", parts=(PromptCall(id="c", name="t", arguments='{"a": 1}'),)),
            PromptMessage(role="tool", parts=(PromptResult(id="c", name="t", text="x", is_error=True),)),
            PromptMessage(role="user", parts=(PromptText(text="more"),)),
        )
        made = body(with_model("m", messages=turn))["messages"]
        assert [message["role"] for message in made] == ["user", "assistant", "user"]
        assert [block["type"] for block in made[2]["content"]] == ["tool_result", "text"]
        assert made[2]["content"][0]["is_error"] is True
        assert made[1]["content"][0]["input"] == {"a": 1}

    def test_a_conversation_that_the_model_began(self) -> None:
        turn = (PromptMessage(role="assistant", parts=(PromptText(text="Hello!"),)), *request("hi").messages)
        assert [message["role"] for message in body(with_model("m", messages=turn))["messages"]] == [
            "user",
            "assistant",
            "user",
        ]


class TestResponses:
    def test_nothing_is_stored_and_reasoning_comes_encrypted(self) -> None:
        made = responses_body(with_model("gpt-5", system=("a", "b"), effort="low", max_output=5))
        assert made["store"] is False
        assert made["include"] == ["reasoning.encrypted_content"]
        assert made["instructions"] == "a\n\nb"
        assert made["reasoning"] == {"effort": "low", "summary": "auto"}
        assert made["max_output_tokens"] == 16

    @pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest", "ft:gpt-4o:me"])
    def test_models_without_reasoning_are_not_asked_for_it(self, model: str) -> None:
        assert "include" not in responses_body(with_model(model))

    def test_a_phase_comes_back_to_its_model_alone(self) -> None:
        for model, sent in (("gpt-5", {"phase": "commentary"}), ("gpt-6", {})):
            part = PromptText(text="I look.", metadata=tag("openai", "gpt-5", {"phase": "commentary"}))
            turn = (*request("hi").messages, PromptMessage(role="assistant", parts=(part,)), *request("so?").messages)
            item = responses_body(with_model(model, messages=turn))["input"][1]
            assert item == {"type": "message", "role": "assistant", "content": "I look.", **sent}


class TestChat:
    def test_names_of_the_limit(self) -> None:
        assert chat_body(with_model("m", max_output=5), limit_name="max_tokens")["max_tokens"] == 5
        assert OpenAIChatProvider(base_url="http://127.0.0.1:1")._limit_name == "max_tokens"
        assert OpenAIChatProvider(base_url="https://notopenai.com/v1")._limit_name == "max_tokens"
        for url in ("https://api.openai.com/v1", "https://eu.api.openai.com/v1"):
            assert OpenAIChatProvider(base_url=url, api_key="k")._limit_name == "max_completion_tokens"
        assert OpenAIChatProvider(api_key="k")._limit_name == "max_completion_tokens"
        assert OpenAIChatProvider(api_key="k", limit_name="n")._limit_name == "n"

    def test_system_texts_and_effort(self) -> None:
        made = chat_body(with_model("m", system=("a", "b"), effort="low"), limit_name="max_tokens")
        assert [message["role"] for message in made["messages"]] == ["system", "system", "user"]
        assert made["reasoning_effort"] == "low"


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_the_services_take_all_of_it(name: str) -> None:
    asked = request("hi", effort="high", tools=(WEATHER,), service_tier="auto")
    whole = msgspec.structs.replace(asked, system=("be kind", "be brief"), max_output=99, tool_choice_none=True)
    async with serving(name, [Answer("x")]) as (server, provider):
        await collect(provider, whole)
    assert server.refused == []
    sent = server.requests[0].body
    assert sent["service_tier"] == "auto"
    assert sent["stream"] is True
    assert sent["tool_choice"] in ("none", {"type": "none"})


def test_metadata_is_its_makers_alone() -> None:
    made = tag("p", "m", {"s": 1})
    assert own(made, "p", "m") == {"s": 1}
    assert own(made, "q", "m") is None
    assert own(made, "p", "n") is None
    assert own({"s": 1}, "p", "m") is None
    assert own(tag("p", "m", "text"), "p", "m") is None
    assert own_reasoning(PromptReasoning(text="", metadata=made, provider="p", model="m"), "p", "m") == {"s": 1}
    assert own_reasoning(PromptReasoning(text="", metadata=made, provider="q", model="m"), "p", "m") is None
