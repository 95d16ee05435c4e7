"""What a tool's declaration makes of a function, and what it refuses."""

import enum
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from generation.errors import ToolDeclarationError
from generation.policy import tool_policy
from generation.tools.contract import Tool, ToolContext, client_tool, tool

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


class Unit(enum.Enum):
    CELSIUS = "c"
    KELVIN = "k"


class Place(BaseModel):
    """A place."""

    city: str
    country: str | None = None


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Form(TypedDict):
    city: str


@dataclass
class Point:
    x: int
    y: int = 0


def weather(place: Place, unit: Unit = Unit.CELSIUS, days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
    """Forecast the weather.

    Reads the newest run.

    Args:
        place: Where, in words
            that go on.
        unit: Of the temperature.
        days: How many.

    Returns:
        Text.
    """
    return f"{place.city} {unit.value} {days}"


def test_schema_and_description_come_from_the_function() -> None:
    made = Tool.from_function(weather)
    assert (made.name, made.description) == ("weather", "Forecast the weather.\n\nReads the newest run.")
    assert made.schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "place": {"$ref": "#/$defs/Place", "description": "Where, in words that go on."},
            "unit": {"$ref": "#/$defs/Unit", "default": "c", "description": "Of the temperature."},
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1, "description": "How many."},
        },
        "required": ["place"],
        "$defs": {
            "Place": {
                "type": "object",
                "title": "Place",
                "description": "A place.",
                "properties": {
                    "city": {"type": "string"},
                    "country": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                },
                "required": ["city"],
            },
            "Unit": {"type": "string", "title": "Unit", "enum": ["c", "k"]},
        },
    }


def test_required_is_left_out_when_empty() -> None:
    def ping() -> str:
        return "pong"

    def maybe(a: int = 1) -> int:
        return a

    assert Tool.from_function(ping).schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert "required" not in Tool.from_function(maybe).schema


def test_names_of_model_attributes_are_fine_as_arguments() -> None:
    def odd(json: str, schema: int, copy: bool, model_config: str) -> None: ...

    assert Tool.from_function(odd).schema["required"] == ["json", "schema", "copy", "model_config"]


def test_a_default_without_a_json_form_is_only_left_out() -> None:
    def odd(a: int = object()) -> None: ...  # type: ignore[assignment]  # the default is none of the type's, on purpose

    assert Tool.from_function(odd).schema["properties"] == {"a": {"type": "integer"}}


def test_the_context_is_no_argument() -> None:
    def step(a: int, context: ToolContext) -> str:
        return context.idempotency_key * a

    made = Tool.from_function(step)
    assert made.context == "context"
    assert list(_properties(made)) == ["a"]


def test_methods_partials_and_objects() -> None:
    class Box:
        def put(self, item: str) -> str:
            """Put."""
            return item

        def __call__(self, item: int) -> int:
            """Call it."""
            return item

    method = Tool.from_function(Box().put)
    assert (method.name, method.description, list(_properties(method))) == ("put", "Put.", ["item"])
    made = Tool.from_function(Box(), name="box")
    assert _properties(made) == {"item": {"type": "integer"}}
    part = Tool.from_function(functools.partial(weather, unit=Unit.KELVIN), name="kelvin", description="In kelvin.")
    assert part.description == "In kelvin."
    assert _properties(part)["unit"]["default"] == "k"


def test_decorator_with_and_without_options() -> None:
    @tool
    def plain(a: int) -> int:
        """Plain."""
        return a + 1

    @tool(name="other", crash="rerun", exclusive=True, stop_after=True, needs_approval=True, timeout=1.5)
    async def optioned(a: int) -> int:
        """Optioned."""
        return a

    assert plain(1) == 2
    assert (plain.name, plain.crash, plain.runner) == ("plain", "report", "local")
    assert (optioned.name, optioned.crash, optioned.timeout) == ("other", "rerun", 1.5)
    assert optioned.exclusive
    assert optioned.stop_after
    assert optioned.needs_approval


def test_a_recursive_type() -> None:
    def grow(root: Node) -> int:
        return root.value

    assert "Node" in _dict(Tool.from_function(grow).schema["$defs"])
    client = client_tool("grow", "Grow.", Node)
    assert client.schema["type"] == "object"
    assert "Node" in _dict(client.schema["$defs"])


@pytest.mark.parametrize("form", [Place, Form, Point, {"type": "object", "properties": {"city": {"type": "string"}}}])
def test_client_tools(form: Any) -> None:
    made = client_tool("pick", "Pick a place.", form, stop_after=True)
    assert (made.runner, made.function, made.stop_after) == ("client", None, True)
    assert made.schema["type"] == "object"
    assert made.spec.description == "Pick a place."
    with pytest.raises(TypeError, match="run by the client"):
        made()


def test_client_schema_is_copied_and_normalised() -> None:
    given: dict[str, Any] = {"type": "object", "required": []}
    made = client_tool("pick", "", given)
    given["extra"] = 1
    assert made.schema == {"type": "object", "properties": {}}


def test_digest_follows_what_the_model_sees() -> None:
    first = Tool.from_function(weather)
    assert first.digest == Tool.from_function(weather, crash="rerun").digest
    assert first.digest != Tool.from_function(weather, description="Other.").digest
    assert len({first, Tool.from_function(weather)}) == 1


def _unannotated(a) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 - what is tested


def _star(*args: int) -> None: ...


def _stars(**kwargs: int) -> None: ...


def _by_position(a: int, /) -> None: ...


def _no_schema(a: Callable[[int], int]) -> None: ...


def _unknown_type(a: object, b: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - what is tested


def _generator(a: int) -> Iterator[int]:
    yield a


async def _async_generator(a: int) -> AsyncIterator[int]:
    yield a


def _two_contexts(a: ToolContext, b: ToolContext) -> None: ...


class _Unfit: ...


class _Desk:
    def search(self, what: str) -> None: ...


def _unfit(a: _Unfit) -> None: ...


def _field_default(a: int = Field(1)) -> None: ...


def _described_in_vain(a: int) -> None:
    """Say.

    Args:
        a: There.
        b: Not there.
    """


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_unannotated, "parameter a has no annotation"),
        (
            _Desk.search,
            r"parameter self has no annotation: .* make the tool of an object's, as in tool\(service.search\)",
        ),
        (_star, r"\*args"),
        (_stars, r"\*\*kwargs"),
        (_by_position, "by position only"),
        (_no_schema, "JsonSchema|JSON schema|core_schema"),
        (_unfit, r"schema for <class .*Unfit.>: use JSON types, a pydantic model, a dataclass or a TypedDict$"),
        (_unknown_type, "Missing"),
        (_generator, "generator"),
        (_async_generator, "generator"),
        (_two_contexts, "both take the context"),
        (_field_default, "Annotated"),
        (_described_in_vain, "do not exist: b"),
        (functools.partial(weather), "has no name"),
        (3, "not callable"),
    ],
)
def test_refused_functions(function: Any, why: str) -> None:
    with pytest.raises(ToolDeclarationError, match=why):
        Tool.from_function(function)


@pytest.mark.parametrize("name", ["", "a b", "a" * 65, "ä", "a.b", "a\n"])
def test_refused_names(name: str) -> None:
    with pytest.raises(ToolDeclarationError, match=r"1 to 64|has no name"):
        Tool.from_function(weather, name=name)
    with pytest.raises(ToolDeclarationError, match="1 to 64"):
        client_tool(name, "", {"type": "object"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"crash": "retry"}, "crash"),
    ],
)
def test_refused_options(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolDeclarationError, match=why):
        Tool.from_function(weather, **options)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array"}, "object"),
        ({}, "object"),
        ({"type": "object", "default": float("nan")}, r"schema\.default"),
        ({"type": "object", "x": {1: 2}}, r"schema\.x"),
        (int, "object"),
    ],
)
def test_refused_client_schemas(schema: Any, why: str) -> None:
    with pytest.raises(ToolDeclarationError, match=why):
        client_tool("pick", "", schema)


@pytest.mark.parametrize("runner", ["client", "local", "provider"])
def test_runner_and_function_must_fit(runner: Literal["client", "local"]) -> None:
    function = None if runner == "local" else weather
    with pytest.raises(ToolDeclarationError, match=r"runner|local tool"):
        Tool(name="a", description="", schema={"type": "object"}, runner=runner, function=function)


def _dict(value: Any) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def _properties(made: Tool) -> dict[str, Any]:
    return _dict(made.schema["properties"])


def test_a_tool_of_the_client_has_no_approval() -> None:
    with pytest.raises(ToolDeclarationError, match="needs_approval is for tools that run here"):
        Tool(name="pick", description="", schema=OBJECT, runner="client", needs_approval=True)


def test_what_is_asked_of_the_client_may_have_its_own_deadline() -> None:
    pick = client_tool("pick", "Pick.", OBJECT, action_timeout=60, on_expiry="end_turn")
    assert (pick.action_timeout, pick.on_expiry) == (60, "end_turn")
    assert tool_policy(pick).action_timeout_us == 60_000_000
    assert tool_policy(pick).action_on_expiry == "end_turn"

    @tool(needs_approval=True, action_timeout=1.5, on_expiry="go_on")
    def pay() -> None:
        """Pay."""

    assert (tool_policy(pay).action_timeout_us, tool_policy(pay).action_on_expiry) == (1_500_000, "go_on")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"runner": "client", "timeout": 5}, "its time is the action_timeout"),
        (
            {"runner": "client", "action_timeout": 0},
            "action_timeout must be positive seconds, at most a hundred years, not 0",
        ),
        (
            {"runner": "client", "action_timeout": True},
            "action_timeout must be positive seconds, at most a hundred years, not True",
        ),
        (
            {"runner": "client", "action_timeout": float("inf")},
            "action_timeout must be positive seconds, at most a hundred years, not inf",
        ),
        ({"runner": "client", "on_expiry": "stop"}, "on_expiry is go_on or end_turn, not 'stop'"),
        ({"function": print, "action_timeout": 5}, "nothing is asked of the client"),
        ({"function": print, "on_expiry": "go_on"}, "nothing is asked of the client"),
    ],
    ids=str,
)
def test_a_deadline_that_would_have_no_effect_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ToolDeclarationError, match=says):
        Tool(name="pick", description="", schema=OBJECT, **options)
