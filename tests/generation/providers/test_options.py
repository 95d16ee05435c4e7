"""Options of models: which transport takes which, what values, and where they stand in a request."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import msgspec
import pytest
from anthropic.resources.messages import AsyncMessages
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.responses import AsyncResponses

from chatfold.testing.servers import Answer
from events.content import Json
from generation.errors import AgentDeclarationError, OptionRefused, ProviderError
from generation.models import ModelConfig
from generation.providers.anthropic_wire import body as anthropic_body
from generation.providers.openai_wire import chat_body, responses_body
from generation.providers.options import OPTIONS, RESERVED, Transport, with_options
from tests.generation.providers.kit import NAMES, WEATHER, collect, request, serving

VALUES: dict[str, Json] = {
    "include": ["file_search_call.results"],
    "instructions": "Be quick.",
    "max_tool_calls": 3,
    "reasoning_summary": "concise",
    "strict_json_schema": True,
    "truncation": "auto",
    "logit_bias": {"50256": -100},
    "max_completion_tokens": 77,
    "prediction": {"type": "content", "content": "x"},
    "structured_outputs": True,
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
    "seed": 7,
    "log_probs": True,
    "top_log_probs": 4,
    "text_verbosity": "low",
    "store": True,
    "metadata": {"team": "a"},
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "safety_identifier": "s",
    "speed": "standard",
    "inference_geo": "us",
    "temperature": 0.5,
    "top_p": 0.5,
    "stop_sequences": ["END"],
    "service_tier": "auto",
    "user": "u1",
    "parallel_tool_calls": False,
}
"""A good value of each option."""

A, R, C = NAMES
TAKEN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("include", "instructions", "max_tool_calls", "reasoning_summary", "strict_json_schema"), (R,)),
    **dict.fromkeys(("logit_bias", "max_completion_tokens", "prediction", "structured_outputs"), (C,)),
    **dict.fromkeys(("log_probs", "top_log_probs", "text_verbosity", "store", "metadata"), (R, C)),
    **dict.fromkeys(
        ("prompt_cache_key", "safety_identifier", "prompt_cache_retention", "temperature", "top_p"), (R, C)
    ),
    **dict.fromkeys(("parallel_tool_calls", "user", "service_tier"), (A, R, C)),
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "seed"), (C,)),
    **dict.fromkeys(("speed", "inference_geo"), (A,)),
    "truncation": (R,),
    "stop_sequences": (A, C),
}
"""Which transport takes what."""

WRITTEN: dict[str, dict[str, dict[str, Json]]] = {
    A: {
        "user": {"metadata": {"user_id": "u1"}},
        "parallel_tool_calls": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    },
    R: {
        "include": {"include": ["reasoning.encrypted_content", "file_search_call.results"]},
        "instructions": {"instructions": "Be kind.\n\nBe quick."},
        "reasoning_summary": {"reasoning": {"effort": "low", "summary": "concise"}},
        "log_probs": {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]},
        "top_log_probs": {
            "top_logprobs": 4,
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        },
        "text_verbosity": {"text": {"verbosity": "low"}},
    },
    C: {
        "log_probs": {"logprobs": True},
        "top_log_probs": {"logprobs": True, "top_logprobs": 4},
        "text_verbosity": {"verbosity": "low"},
        "stop_sequences": {"stop": ["END"]},
    },
}
"""What an option writes where that is not its own name and value."""


def made(transport: str, options: dict[str, Json], **extra: Json) -> dict[str, Any]:
    asked = msgspec.structs.replace(
        request("hi", effort="low", tools=(WEATHER,)), system=("Be kind.",), options=options, extra=extra
    )
    if transport == A:
        return anthropic_body(asked)
    return responses_body(asked) if transport == R else chat_body(asked, limit_name="max_tokens")


def test_the_tables_name_every_option() -> None:
    assert set(VALUES) == set(TAKEN) == set(OPTIONS)
    assert set(RESERVED) == set(NAMES)


@pytest.mark.parametrize("transport", NAMES)
@pytest.mark.parametrize("name", TAKEN)
def test_an_option_is_written_where_it_is_taken_and_refused_elsewhere(name: str, transport: str) -> None:
    options = {name: VALUES[name]}
    if transport not in TAKEN[name]:
        with pytest.raises(AgentDeclarationError, match=rf"options\.{name}: {transport} takes no such option"):
            ModelConfig(provider=transport, name="m", options=options)
        with pytest.raises(OptionRefused, match=name):
            made(transport, options)
        return
    ModelConfig(provider=transport, name="m", options=options)
    plain, whole = made(transport, {}), made(transport, options)
    if name in {"strict_json_schema", "structured_outputs"}:
        tool = whole["tools"][0]
        function = tool if transport == R else tool["function"]
        assert function.pop("strict") is True
        assert function["parameters"].pop("additionalProperties") is False
        plain["tools"][0].pop("strict", None)
        assert whole == plain
        assert "additionalProperties" not in WEATHER.schema
    else:
        assert whole == {**plain, **WRITTEN[transport].get(name, options)}


@pytest.mark.anyio
@pytest.mark.parametrize("transport", NAMES)
async def test_the_services_take_what_is_written(transport: str) -> None:
    options = {name: VALUES[name] for name, by in TAKEN.items() if transport in by}
    asked = msgspec.structs.replace(request("hi", tools=(WEATHER,)), options=options)
    async with serving(transport, [Answer("x")]) as (server, provider):
        await collect(provider, asked)
    assert server.refused == []
    sent = server.requests[0].body
    assert all(name in sent for name in ("metadata", "service_tier"))


@pytest.mark.parametrize(
    ("transport", "name", "value", "why"),
    [
        (R, "parallel_tool_calls", "yes", "must be True or False, not 'yes'"),
        (R, "parallel_tool_calls", 1, "must be True or False"),
        (R, "store", None, "must be True or False"),
        (C, "seed", True, "whole number"),
        (C, "seed", 1.5, "whole number"),
        (R, "max_tool_calls", 0, "at least 1"),
        (C, "top_log_probs", 21, "from 0 to 20"),
        (R, "temperature", 3, "a number from 0 to 2"),
        (C, "temperature", True, "a number from 0 to 2"),
        (R, "reasoning_summary", "long", "one of none, auto, concise, detailed"),
        (R, "include", "file_search_call.results", "a list of texts"),
        (R, "include", [], "a list of texts"),
        (R, "instructions", " ", "not blank"),
        (C, "logit_bias", {"1": 101}, "-100 to 100"),
        (C, "logit_bias", [1], "-100 to 100"),
        (R, "metadata", {"a": 1}, "mapping of texts"),
        (C, "prediction", "x", "a mapping"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(transport: str, name: str, value: Json, why: str) -> None:
    with pytest.raises(AgentDeclarationError, match=rf"model {transport}/m: options\.{name}: .*{why}"):
        ModelConfig(provider=transport, name="m", options={name: value})


def test_refusals_say_what_to_do() -> None:
    for options, extra, said in (
        ({"logit_bias": {}}, {}, "openai takes no such option; openai-chat does"),
        ({"speed": "fast"}, {}, "openai takes no such option; anthropic does"),
        ({"top_logprobs": 1}, {}, "there is no such option; did you mean 'top_log_probs'?"),
        ({"zzz": 1}, {}, "there is no such option; what has no option can be sent as extra"),
        ({}, {"input": []}, "is not for extra: the conversation is the chat's own"),
        ({}, {"store": True}, "is an option: write options={'store': ...}"),
    ):
        with pytest.raises(AgentDeclarationError) as refused:
            ModelConfig(provider=R, name="m", options=options, extra=extra)
        assert said in str(refused.value)
    with pytest.raises(AgentDeclarationError, match="one limit"):
        ModelConfig(provider=C, name="m", max_output=5, options={"max_completion_tokens": 5})


@pytest.mark.parametrize(
    ("transport", "name"), [(transport, name) for transport, names in RESERVED.items() for name in names]
)
def test_nothing_replaces_what_the_engine_says(transport: str, name: str) -> None:
    for given in ({"options": {name: 1}}, {"extra": {name: 1}}):
        with pytest.raises(AgentDeclarationError, match=name):
            ModelConfig(provider=transport, name="m", **given)  # type: ignore[arg-type]  # both are mappings
    with pytest.raises(OptionRefused, match=name):
        made(transport, {}, **{name: 1})


@pytest.mark.parametrize("transport", NAMES)
def test_the_engine_says_nothing_that_is_not_reserved_or_an_option(transport: str) -> None:
    asked = made(transport, {}) | made(transport, {})
    known = {*RESERVED[transport], *OPTIONS, "thinking", "output_config", "reasoning", "reasoning_effort"}
    assert set(asked) <= known


CREATE: dict[str, Any] = {A: AsyncMessages.create, R: AsyncResponses.create, C: AsyncCompletions.create}


@pytest.mark.parametrize("transport", NAMES)
def test_what_is_written_is_what_the_sdk_knows(transport: str) -> None:
    known = set(inspect.signature(CREATE[transport]).parameters)
    for name, by in TAKEN.items():
        if transport in by:
            assert set(made(transport, {name: VALUES[name]})) <= known


def test_what_is_extra_joins_what_stands_there() -> None:
    held: dict[str, Json] = {"context": "all_turns", "summary": "detailed"}
    body = made(R, {"text_verbosity": "low"}, reasoning=held, text={"format": {"type": "text"}}, novelty=[1])
    assert body["reasoning"] == {"effort": "low", "summary": "detailed", "context": "all_turns"}
    assert body["text"] == {"verbosity": "low", "format": {"type": "text"}}
    assert body["novelty"] == [1]
    assert held == {"context": "all_turns", "summary": "detailed"}


@pytest.mark.parametrize("top_first", [False, True])
def test_the_number_of_log_probabilities_wins_over_the_flag(top_first: bool) -> None:
    pair: list[tuple[str, Json]] = [("log_probs", False), ("top_log_probs", 3)]
    options = dict(reversed(pair) if top_first else pair)
    assert {name: made(C, options)[name] for name in ("logprobs", "top_logprobs")} == {
        "logprobs": True,
        "top_logprobs": 3,
    }
    body = made(R, options)
    assert body["top_logprobs"] == 3
    assert body["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert "include" not in with_options("openai", {}, {"log_probs": False}, {})


def test_what_needs_tools_is_left_out_without_any() -> None:
    every: tuple[Transport, ...] = get_args(Transport)
    assert every == NAMES
    for transport in every:
        assert with_options(transport, {"model": "m"}, {"parallel_tool_calls": False}, {}) == {"model": "m"}
    assert made(A, {"parallel_tool_calls": True}) == made(A, {})
    asked = msgspec.structs.replace(request("hi", tools=(WEATHER,), parallel_tool_calls=False), tool_choice_none=True)
    assert anthropic_body(asked)["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("summary", "effort", "reasoning"),
    [("none", "low", {"effort": "low"}), ("none", None, None), ("detailed", None, {"summary": "detailed"})],
)
def test_a_summary_of_reasoning_may_be_turned_off(summary: str, effort: str | None, reasoning: Json) -> None:
    asked = msgspec.structs.replace(request("hi", reasoning_summary=summary), effort=effort)
    assert responses_body(asked).get("reasoning") == reasoning


def test_one_limit_goes_out_under_one_name() -> None:
    asked = msgspec.structs.replace(request("hi", max_completion_tokens=50), max_output=20)
    for limit_name in ("max_tokens", "max_completion_tokens"):
        body = chat_body(asked, limit_name=limit_name)
        assert "max_tokens" not in body
        assert body["max_completion_tokens"] == 20


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_an_option_that_nobody_could_check_before_fails_the_call_before_it_is_sent(name: str) -> None:
    async with serving(name, [Answer("x")]) as (server, provider):
        with pytest.raises(ProviderError) as failed:
            await collect(provider, request("hi", messages=[]))
    assert (failed.value.error.kind, failed.value.error.retryable) == ("config", False)
    assert "options.messages" in (failed.value.error.detail or "")
    assert server.requests == []


def test_options_of_an_application_s_own_provider_are_its_own() -> None:
    config = ModelConfig(provider="mine", name="m", options={"messages": 1}, extra={"model": 2})
    assert (config.options, config.extra) == ({"messages": 1}, {"model": 2})


@pytest.mark.parametrize("given", [{"options": [1]}, {"options": {"a": float("nan")}}, {"extra": {"a": b"x"}}])
def test_options_are_mappings_of_what_json_holds(given: dict[str, Any]) -> None:
    with pytest.raises(AgentDeclarationError, match=r"model x/y: (options|extra)"):
        ModelConfig(provider="x", name="y", **given)
