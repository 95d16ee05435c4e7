"""A declaration (agent, tool, limits, engine) that is none says what it should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import pytest

from chatfold import (
    Agent,
    ChatQuery,
    ClassifiedError,
    Context,
    ContextFile,
    ContextSkill,
    DirectoryContext,
    Engine,
    GenerationError,
    InvalidStoreUrl,
    InvalidValue,
    Limits,
    ModelConfig,
    Prices,
    ProviderError,
    StaticContext,
    Tool,
    WebSearch,
    client_tool,
    decode_log,
    load_log,
    open_store,
    result,
    tool,
)
from chatfold.hooks import HookCall, Hooks, HttpHook, PythonHook
from chatfold.testing import ScriptedProvider
from generation.observing import Observer
from store.memory import MemoryStore


def plain(a: int) -> int:
    return a


@tool
def one() -> str:
    """Say one."""
    return "one"


OBJECT: Final = {"type": "object"}
HOOK: Final = PythonHook(lambda _: None, ["stop"])
AGENT: Final = Agent(name="a", model="scripted")
CLIENT: Final[dict[str, Any]] = {"name": "t", "description": "d", "schema": OBJECT, "runner": "client"}


class Named:
    """A hook of an application's own."""

    def __init__(self, name: Any, *, events: Sequence[str] = ("stop",), timeout: float = 1.0) -> None:
        self.name = name
        self.events = events
        self.timeout = timeout

    async def ask(self, call: HookCall) -> None:
        """Observe."""


MISTAKES: Final[list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any], str]]] = [
    (Agent, (), {"name": "a", "tools": one}, "tools must be a list of tools, not Tool: write"),
    (Agent, (), {"name": "a", "tools": 5}, "tools must be a list of tools, not int"),
    (Agent, (), {"name": "a", "tools": [plain]}, "tool 'plain': is no Tool: decorate it with @tool"),
    (Agent, (), {"name": 5}, "a name is 1 to 100 letters"),
    (Agent, (), {"name": "a", "model": 5}, "a model is a text provider/name or a ModelConfig, not int"),
    (Agent, (), {"name": "a", "system": 5}, "system is a text or a list of texts"),
    (Agent, (), {"name": "a", "system": [5]}, "system is a text or a list of texts"),
    (Agent, (), {"name": "a", "models": "scripted"}, "models must be a list, not str"),
    (Agent, (), {"name": "a", "limits": 5}, "limits must be Limits"),
    (Engine, ("memory://", AGENT), {}, "must be a list of Agent, not Agent: write"),
    (Engine, ("memory://", ["a"]), {}, "'a' is no Agent"),
    (Engine, ("memory://", 5), {}, "must be a list of Agent, not int"),
    (Limits, (), {"max_steps": "x"}, "max_steps must be a whole number, not str"),
    (Limits, (), {"max_model_attempts": 1.5}, "max_model_attempts must be a whole number, not float"),
    (Limits, (), {"max_steps": True}, "max_steps must be a whole number, not bool"),
    (Limits, (), {"max_steps": 0}, "max_steps must be at least 1, not 0"),
    (
        Limits,
        (),
        {"action_timeout": 1e17},
        "action_timeout must be positive seconds, at most a hundred years, not 1e\\+17",
    ),
    (Limits, (), {"action_timeout": 2**70}, "action_timeout must be positive seconds"),
    (tool(timeout=1e300), (plain,), {}, "timeout must be positive seconds, at most a hundred years, not 1e\\+300"),
    (Limits, (), {"action_timeout": "5"}, "action_timeout must be positive seconds, at most a hundred years, not '5'"),
    (Limits, (), {"budget": 5}, "budget must be a Budget or None, not int"),
    (ModelConfig, (), {"provider": 5, "name": "x"}, "5 is no name of a provider"),
    (ModelConfig, (), {"provider": "p", "name": 5}, "5 is no name of a model"),
    (ModelConfig, (), {"provider": "p", "name": "a\udcff"}, r"'a\\udcff' is no name of a model: .*lone surrogate"),
    (ModelConfig, (), {"provider": "p", "name": "x" * 2_000_000}, "a text of 2000000 characters is no name of a model"),
    (ModelConfig, (), {"provider": "p", "name": "x", "context_limit": 2**70}, "context_limit must be less than 2..63"),
    (ModelConfig, (), {"provider": "p", "name": "x", "max_output": 2**63}, "max_output must be less than 2..63"),
    (Prices, (), {"input": Decimal("1E+999999")}, "price of input: 1E.999999 is out of range"),
    (ModelConfig, (), {"provider": "p", "name": "x", "context_limit": "5"}, "context_limit must be a whole number"),
    (tool(timeout="5"), (plain,), {}, "timeout must be positive seconds, at most a hundred years, not '5'"),  # type: ignore[call-overload]
    (tool(timeout=-1), (plain,), {}, "tool 'plain': timeout must be positive seconds, at most a hundred years, not -1"),
    (
        tool(needs_approval=True, action_timeout=-1),
        (plain,),
        {},
        "tool 'plain': action_timeout must be positive seconds, at most a hundred years, not -1",
    ),
    (
        client_tool,
        ("t", "d", OBJECT),
        {"action_timeout": -5},
        "tool 't': action_timeout must be positive seconds, at most a hundred years, not -5",
    ),
    (Engine, ("memory://",), {"hooks": HOOK}, "hooks: must be a list of hooks, not PythonHook: write hooks=.hook."),
    (Engine, ("memory://",), {"hooks": 5}, "hooks: must be a list of hooks, not int"),
    (Engine, ("memory://",), {"hooks": "stop"}, "hooks: must be a list of hooks, not str"),
    (Engine, ("memory://",), {"hooks": [plain]}, "hooks: <function plain .* is no hook"),
    (Engine, ("memory://",), {"observers": 5}, "observers: must be a list of observers, not int: write observers="),
    (Engine, ("memory://",), {"observers": [5]}, "observers: 5 is no Observer: derive from it"),
    (Engine, ("memory://",), {"observers": Observer()}, "must be a list of observers, not Observer: write observers="),
    (Engine, ("memory://",), {"observers": [Observer]}, "observers: <class .*> is no Observer"),
    (Hooks, ([Named(5)],), {}, "hooks: the name of .* must be a text, not int"),
    (
        Hooks,
        ([Named("n", timeout=0)],),
        {},
        "hook 'n': timeout must be positive seconds, at most a hundred years, not 0",
    ),
    (Hooks, ([Named("n", events=["start"])],), {}, "hook 'n': there is no event 'start'"),
    (Hooks, ([PythonHook],), {}, "hooks: <class .* is no hook"),
    (Limits, (), {"on_expiry": [5]}, "limits: on_expiry is go_on or end_turn, not .5."),
    (Tool, (), {**CLIENT, "runner": [5]}, "tool 't': runner is local or client, not .5."),
    (Tool, (), {**CLIENT, "crash": {}}, "tool 't': crash is rerun or report, not {}"),
    (tool(exclusive=1), (plain,), {}, "tool 'plain': exclusive must be True or False, not int"),  # type: ignore[call-overload]
    (tool(stop_after="no"), (plain,), {}, "tool 'plain': stop_after must be True or False, not str"),  # type: ignore[call-overload]
    (tool(needs_approval=[]), (plain,), {}, "tool 'plain': needs_approval must be True or False"),  # type: ignore[call-overload]
    (DirectoryContext, ("/tmp",), {"name": 5}, "context: name must be a text, not int"),
    (Hooks, (), {"slots": "many"}, "hooks: slots must be a whole number, not str"),
    (Hooks, (), {"admission": 0}, "hooks: admission must be at least 1, not 0"),
    (Hooks, (), {"slots": 4, "admission": 4}, "hooks: admission must be 1 to 3, not 4"),
    (
        HttpHook,
        ("http://x/", ["stop"]),
        {"headers": 5},
        "hook 'x': headers must be a mapping of texts, not int",
    ),
    (
        ModelConfig,
        (),
        {"provider": "p", "name": "x", "prices": {"input": "3"}},
        "prices must be Prices.* or None, not dict",
    ),
    (PythonHook, ("stop", ["stop"]), {}, "hook 'str': it is no function: write PythonHook"),
    (PythonHook, (plain, None), {}, "hook 'plain': events must be a list of events, not NoneType"),
    (PythonHook, (plain, ["start"]), {}, "there is no event 'start'; there are: session_start, user_prompt_submit"),
    (
        ModelConfig,
        (),
        {"provider": "anthropic", "name": "x", "options": {"max_tokens": 9}},
        "options.max_tokens: is not for options: use max_output",
    ),
    (
        ModelConfig,
        (),
        {"provider": "anthropic", "name": "x", "options": {"max_output_tokens": 9}},
        "options.max_output_tokens: is not for options: use max_output",
    ),
    (
        Agent,
        (),
        {"name": "a", "model": "scripted", "provider_tools": [WebSearch()]},
        "web_search: scripted has no search of its own; anthropic and openai have",
    ),
    (tool(name=5), (plain,), {}, "a name is 1 to 64 letters"),  # type: ignore[call-overload]
    (client_tool, (5, "d", OBJECT), {}, "a name is 1 to 64 letters"),
    (client_tool, ("t", 5, OBJECT), {}, "the description is a text, not int"),
    (client_tool, ("t", "d", 5), {}, "a schema is a mapping or a type that has one, not int"),
]


@pytest.mark.parametrize(("make", "given", "options", "said"), MISTAKES, ids=[f"{i}" for i, _ in enumerate(MISTAKES)])
def test_a_mistake_says_what_it_should_be(
    make: Callable[..., object], given: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(GenerationError, match=said):
        make(*given, **options)


VALUES: Final[list[tuple[Callable[..., object], dict[str, Any], str]]] = [
    (Engine, {"store": 5}, "$.store: must be a store or its URL, not int"),
    (Engine, {"store": MemoryStore}, "$.store: must be a store or its URL, not the class MemoryStore"),
    (Engine, {"store": "memory://", "worker": "no"}, "$.worker: must be True or False, not str"),
    (Engine, {"store": "memory://", "providers": {"p": 5}}, "$.providers['p']: must be a provider, not int"),
    (Engine, {"store": "memory://", "providers": {5: 5}}, "$.providers: must be a mapping from names, texts, to"),
    (result, {"call": "c", "output": "x", "media": 5}, "$.media: must be a list of ToolFile, not int"),
    (result, {"call": "c", "output": "x", "attachments": "f"}, "$.attachments: must be a list of ToolFile, not str"),
    (result, {"call": "c", "output": "x", "media": [5]}, "$.media: a file is left out: it is a int, not a ToolFile"),
    (ChatQuery, {"statuses": 5}, "$.statuses: must be a tuple of some of pending, running,"),
    (ChatQuery, {"statuses": "error"}, "$.statuses: must be a tuple of some of pending, running,"),
    (ChatQuery, {"before": 5}, "$.before: must be (listed_at, chat) of the last row seen"),
    (StaticContext, {"files": 5}, "$.files: must be a list of ContextFile, not int"),
    (StaticContext, {"files": [5]}, "$.files[0]: must be a ContextFile, not int"),
    (StaticContext, {"files": [], "name": 5}, "$.name: must be a text, not int"),
    (Context, {"skills": 5}, "$.skills: must be a tuple of ContextSkill, not int"),
    (Context, {"problems": [5]}, "$.problems[0]: must be a ContextProblem, not int"),
    (ContextFile, {"path": "a", "text": b"b"}, "$.text: must be a text, not bytes"),
    (ContextFile, {"path": "a", "text": "b", "os": 5}, "$.os: must be a text, not int"),
    (ContextSkill, {"name": "a", "description": None, "directory": ""}, "$.description: must be a text, not NoneType"),
    (ClassifiedError, {"kind": "auth", "message": 5}, "$.message: must be a text, not int"),
    (ClassifiedError, {"kind": "auth", "message": "m", "detail": 5}, "$.detail: must be a text or None, not int"),
    (ProviderError, {"error": "down"}, "$.error: must be a ClassifiedError, not str"),
    (ScriptedProvider, {"script": "hi"}, "$.script: must be a list of turns, or a function, not str"),
    (ScriptedProvider, {"script": [5]}, "$.script[0]: must be a turn or a text, not int"),
    (ScriptedProvider, {"script": [], "delay": "5"}, "$.delay: must be seconds, not '5'"),
    (load_log, {"source": 5}, "$.source: must be a log file's path, bytes or lines, not int"),
    (decode_log, {"log": b""}, "$.log: must be what load_log(path) gives, not bytes"),
]


@pytest.mark.parametrize(("make", "given", "said"), VALUES, ids=[f"{i}" for i, _ in enumerate(VALUES)])
def test_a_wrong_value_is_named_with_what_was_expected(
    make: Callable[..., object], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        make(**given)
    assert str(refused.value).startswith(said)


def test_settings_and_results_are_what_they_are() -> None:
    with pytest.raises(InvalidStoreUrl, match="a store's URL is a text, not int"):
        open_store(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"\$\.settings: must be a Settings, not dict"):
        Engine("memory://", settings={"poll": 1})  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"\$\.providers: must be a mapping from names to providers, not list"):
        Engine("memory://", providers=["scripted"])  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"\$\.call: must be a call's id, not NoneType"):
        result(None, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            {"properties": {"x": {"type": "strnig"}}},
            r"schema\.properties\.x\.type: there is no type 'strnig'; the types are",
        ),
        ({"properties": {"x": {"type": ["string", "nil"]}}}, r"properties\.x\.type: there is no type 'nil'"),
        ({"properties": {"x": {"type": []}}}, r"properties\.x\.type: there is no type"),
        ({"properties": {"x": {"type": None}}}, r"properties\.x\.type: there is no type None"),
        ({"properties": {"x": "string"}}, r"properties\.x: a schema is an object, not str"),
        ({"properties": ["x"]}, r"schema\.properties: must be an object of schemas"),
        ({"properties": {"x": {"type": "array", "items": {"type": "int"}}}}, r"properties\.x\.items\.type: .*'int'"),
        ({"properties": {"x": {"items": [{"type": "int"}]}}}, r"properties\.x\.items\[0\]\.type: .*'int'"),
        ({"properties": {"x": {"anyOf": {"type": "string"}}}}, r"x\.anyOf: must be a list of schemas"),
        ({"properties": {"x": {"oneOf": [{"type": "text"}]}}}, r"x\.oneOf\[0\]\.type: .*'text'"),
        ({"$defs": {"d": {"type": "float"}}}, r"\$defs.*d\.type: .*'float'"),
        ({"additionalProperties": {"type": "any"}}, r"additionalProperties\.type: .*'any'"),
        ({"required": "x"}, r"schema\.required: must be a list of names"),
        ({"properties": {"x": {"enum": "a"}}}, r"x\.enum: must be a list"),
        ({"properties": {"x": {"minLength": -1}}}, r"x\.minLength: must be a whole number from 0 on"),
        ({"properties": {"x": {"maximum": "9"}}}, r"x\.maximum: must be a number"),
        ({"properties": {"x": {"description": 5}}}, r"x\.description: must be a text"),
    ],
)
def test_a_slip_in_a_schema_is_found_when_the_tool_is_declared(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(GenerationError, match=said):
        client_tool("t", "Do it.", {"type": "object", **schema})


def test_a_schema_may_hold_all_that_schemas_hold() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["a"], "minLength": 1, "format": "date"},
            "x": {"anyOf": [{"type": "null"}, {"type": ["integer", "number"], "minimum": 0.5}], "x-own": 5},
            "any": True,
            "of": {"$ref": "#/$defs/d"},
        },
        "$defs": {"d": {"type": "array", "items": {"type": "boolean"}, "minItems": 1}},
        "required": ["x"],
        "additionalProperties": False,
    }
    assert client_tool("t", "", schema).schema == schema
