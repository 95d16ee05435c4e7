"""The friendly model: it echoes, finds tools in what a user says, and tells results."""

from __future__ import annotations

import msgspec
import pytest

from events.content import Json
from generation.prompt_types import ModelRequest, PromptCall, PromptMessage, PromptResult, PromptText, ToolSpec
from generation.providers.friendly import arguments_for, friendly, names
from generation.providers.script import Say, Think, UseTool
from tests.generation.providers.kit import WEATHER, request


def tool(name: str, required: list[str] | None = None, **properties: Json) -> ToolSpec:
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    return ToolSpec(name=name, description="", schema=schema | ({"required": list(required)} if required else {}))


ADD = tool("add_numbers", ["a", "b"], a={"type": "integer"}, b={"type": "number"})


def said(asked: ModelRequest) -> str:
    return "".join(step.text for step in friendly(asked).steps if isinstance(step, Say))


def test_it_echoes() -> None:
    assert said(request("Good morning")).startswith("You said: Good morning")


def test_it_greets_who_says_nothing() -> None:
    assert said(request()) == "Hello!"


def test_it_offers_its_tools() -> None:
    assert "get_weather" in said(request("Good morning", tools=(WEATHER,)))


def test_it_calls_the_tool_that_is_named() -> None:
    steps = friendly(request("What is the weather in Paris?", tools=(WEATHER, ADD))).steps
    assert [step for step in steps if isinstance(step, UseTool)] == [UseTool("get_weather", {"city": "Paris"})]


def test_it_calls_several_tools_at_once() -> None:
    steps = friendly(request("Add the numbers 2 and 3, and the weather in Rome", tools=(WEATHER, ADD))).steps
    assert [step.name for step in steps if isinstance(step, UseTool)] == ["get_weather", "add_numbers"]


def test_it_thinks_where_an_effort_is_asked_for() -> None:
    assert isinstance(friendly(request("hi", effort="low")).steps[0], Think)
    assert isinstance(friendly(request("hi", effort="none")).steps[0], Say)


def test_it_tells_results_instead_of_calling_again() -> None:
    messages = (
        *request("weather in Paris").messages,
        PromptMessage(role="assistant", parts=(PromptCall(id="c", name="get_weather", arguments="{}"),)),
        PromptMessage(
            role="tool",
            parts=(
                PromptResult(id="c", name="get_weather", text="sunny"),
                PromptResult(id="d", name="other", text="no", is_error=True),
            ),
        ),
    )
    asked = msgspec.structs.replace(request(tools=(WEATHER,)), messages=messages)
    assert said(asked) == "get_weather says: sunny\nother did not work: no"


def test_it_summarizes_where_tools_are_off() -> None:
    asked = msgspec.structs.replace(request("weather in Paris", "Summarize.", tools=(WEATHER,)), tool_choice_none=True)
    assert said(asked) == "What the user said so far:\n- weather in Paris"


@pytest.mark.parametrize(
    ("text", "name", "named"),
    [
        ("weather in Paris", "get_weather", True),
        ("Run GET_WEATHER now", "get_weather", True),
        ("whether or not", "get_weather", False),
        ("get out", "get_weather", False),
        ("ask_user please", "ask_user", True),
        ("", "get_weather", False),
    ],
)
def test_naming(text: str, name: str, named: bool) -> None:
    assert names(text, tool(name)) is named


@pytest.mark.parametrize(
    ("made", "text", "arguments"),
    [
        (WEATHER, "weather in Paris", {"city": "Paris"}),
        (WEATHER, "the weather for New York, please?", {"city": "New York"}),
        (WEATHER, 'weather city="San Jose"', {"city": "San Jose"}),
        (WEATHER, 'weather "Rio" please', {"city": "Rio"}),
        (WEATHER, "weather", {"city": "weather"}),
        (ADD, "add 2 and 3.5", {"a": 2, "b": 3.5}),
        (ADD, "add b=7 a=1", {"a": 1, "b": 7.0}),
        (ADD, "add", {"a": 1, "b": 1.0}),
        (tool("t"), "t in Paris", {}),
        (tool("t", x={"type": "string"}, y={"type": "string"}), "t in Paris", {"x": "Paris"}),
        (tool("t", ["on"], on={"type": "boolean"}), "t on: no", {"on": False}),
        (tool("t", ["on"], on={"type": "boolean"}), "t", {"on": True}),
        (tool("t", ["c"], c={"enum": ["red", "blue"]}), "t Blue", {"c": "blue"}),
        (tool("t", ["c"], c={"enum": ["red", "blue"]}), "t", {"c": "red"}),
        (tool("t", ["l"], l={"type": "array"}), "t in Paris", {"l": ["Paris"]}),
        (tool("t", ["o"], o={"type": "object"}), "t in Paris", {"o": {}}),
        (tool("t", ["lost"]), "t in Paris", {}),
        (tool("t", ["lost"], x={"type": "integer"}), "t in Paris", {"lost": "Paris"}),
    ],
)
def test_guesses(made: ToolSpec, text: str, arguments: dict[str, Json]) -> None:
    assert arguments_for(made, text) == arguments


def test_the_newest_words_count() -> None:
    messages = (
        PromptMessage(role="user", parts=(PromptText(text="weather in Paris"),)),
        PromptMessage(role="assistant", parts=(PromptText(text="sunny"),)),
        PromptMessage(role="user", parts=(PromptText(text="thanks"),)),
    )
    asked = msgspec.structs.replace(request(tools=(WEATHER,)), messages=messages)
    assert said(asked).startswith("You said: thanks")
