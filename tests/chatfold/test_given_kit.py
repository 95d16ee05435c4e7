"""What the test kit is given: a value that an argument does not take is refused where it was given, with its name."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from chatfold import Agent
from chatfold.testing import (
    ClassifiedError,
    ScriptedProvider,
    Think,
    Turn,
    UseTool,
    VirtualTime,
    Wait,
    given,
    turn,
)
from chatfold.testing.conversations import converse
from chatfold.testing.crash import CrashConfig, InvalidCrashConfig
from chatfold.testing.fixtures import EngineMaker
from chatfold.testing.scenario import Scenario
from chatfold.testing.simulation import Size, simulate
from chatfold.testing.stores import CountingStore, LosingStore
from chatstate.commands import Interrupt
from chatstate.errors import TransitionNotAllowed
from events.errors import InvalidValue
from tests.chatfold.test_scenario import LOG

AGENT: Final = Agent(name="a", model="scripted")
NAN, ENDLESS, HUGE = float("nan"), float("inf"), 10**30


def scenario() -> Scenario:
    return given(LOG)


def entered(value: object) -> object:
    """Make an engine in virtual time with a store."""
    time = VirtualTime()

    async def main() -> None:
        time.engine([AGENT], store=value)  # type: ignore[arg-type]

    return time.run(main)


def stored() -> Any:
    return LosingStore("memory://")


async def nothing() -> None:
    pass


def error(**fields: Any) -> ClassifiedError:
    return ClassifiedError(**{"kind": "auth", "message": "No.", **fields})


def crash(**fields: Any) -> CrashConfig:
    return CrashConfig(**{"db": "sqlite:///a.db", **fields})


Call = Callable[[Any], object]

TAKEN: Final[Sequence[tuple[str, str, Call, Sequence[object]]]] = [
    (
        "when",
        "after",
        lambda value: scenario().when(Interrupt(), after=value),
        (None, "1", -1, NAN, ENDLESS, HUGE, True),
    ),
    ("when", "commands[0]", lambda value: scenario().when(value), (None, 5, "interrupt", Interrupt)),
    ("under", "changes", lambda value: scenario().under(max_steps=value), (None, "3", 1.5, NAN, True, object(), int)),
    ("then", "state", lambda value: scenario().then(state=value), (5, b"W", ["W"])),
    ("then", "events", lambda value: scenario().then(events=value), (5, "released", b"x", True)),
    ("then", "decides", lambda value: scenario().then(decides=value), (5, b"D6", ["D6"])),
    (
        "refused",
        "saying",
        lambda value: scenario().when(Interrupt()).refused(TransitionNotAllowed, value),
        (None, 5, b"x"),
    ),
    ("VirtualTime", "seed", VirtualTime, (None, "1", 1.0, NAN, -1, HUGE, True, object())),
    ("VirtualTime.run", "main", lambda value: VirtualTime().run(value), (None, 5, "x", lambda: 5, dict)),
    ("VirtualTime.engine", "store", entered, (0, 5, object())),
    ("simulate", "seed", simulate, (None, "1", -1, 1.0)),
    ("simulate", "size", lambda value: simulate(1, value), (0, 5, "x")),
    ("converse", "seed", converse, (None, "1", -1, 1.0)),
    ("converse", "size", lambda value: converse(1, value), (0, 5, "x")),
    ("Size", "workers", lambda value: Size(workers=value), (None, "1", 0, 1.5, True)),
    ("Size", "seconds", lambda value: Size(seconds=value), (None, "1", 0, -1, NAN, ENDLESS)),
    ("CountingStore", "inner", CountingStore, (None, 5, object(), CountingStore)),
    ("CountingStore.count", "name", lambda value: CountingStore("memory://").count(value), (None, "apend", ["append"])),
    ("LosingStore", "inner", LosingStore, (None, 5, object(), LosingStore)),
    ("LosingStore.lose", "name", lambda value: stored().lose(value), (None, "apend", ["append"])),
    ("LosingStore.lose", "times", lambda value: stored().lose("append", value), (None, "1", -1, 1.0, True)),
    (
        "EngineMaker",
        "providers",
        lambda value: EngineMaker("memory://")([AGENT], script=[], providers=value),
        (5, "x", [1]),
    ),
    ("ScriptedProvider", "script", ScriptedProvider, (None, 5, "Hi.")),
    ("turn", "finish", lambda value: turn("x", finish=value), (5, "end", ["stop"])),
    ("turn", "usage", lambda value: turn("x", usage=value), (5, {"input": 1})),
    ("Turn", "explanation", lambda value: Turn(steps=(), explanation=value), (5, b"x")),
    ("Think", "metadata", lambda value: Think("x", metadata=value), (5, "x", [1])),
    ("Think", "redacted", lambda value: Think("x", redacted=value), (None, 1, "x")),
    ("Think", "chunk", lambda value: Think("x", chunk=value), (None, 0, 1.5, True)),
    ("UseTool", "id", lambda value: UseTool("x", id=value), (5, b"x")),
    ("Wait", "reached", lambda value: Wait(asyncio.Event(), value), (5, "x", asyncio.Event())),
    ("ClassifiedError", "provider", lambda value: error(provider=value), (5, b"x")),
    ("ClassifiedError", "retryable", lambda value: error(retryable=value), (None, 1, "x")),
    ("ClassifiedError", "status_code", lambda value: error(status_code=value), ("429", 4.5)),
    ("ClassifiedError", "retry_after_us", lambda value: error(retry_after_us=value), ("1", 1.5, NAN)),
]
"""Of what, which argument, how it is given, and what it does not take."""


@pytest.mark.parametrize(
    ("name", "call", "value"),
    [
        pytest.param(name, call, value, id=f"{what} {name} {at}")
        for what, name, call, values in TAKEN
        for at, value in enumerate(values)
    ],
)
def test_a_value_that_is_not_taken_is_refused_with_its_name(name: str, call: Call, value: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        call(value)
    assert refused.value.path.partition("[")[0] == f"$.{name}".partition("[")[0]
    assert refused.value.why


def test_a_coroutine_in_the_place_of_its_function_is_told_of_and_closed() -> None:
    with pytest.raises(
        InvalidValue, match=r"\$.main: must be a coroutine function .*: run\(main\), not run\(main\(\)\)"
    ):
        VirtualTime().run(nothing())  # type: ignore[arg-type]


@pytest.mark.parametrize(("field", "value"), [("db", 5), ("db", None), ("setup", 5), ("failpoints", "no")])
def test_a_crash_test_is_not_asked_for_with_what_is_of_another_type(field: str, value: object) -> None:
    with pytest.raises(InvalidCrashConfig, match=f"{field}: must be "):
        crash(**{field: value})
