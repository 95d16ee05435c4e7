"""What hooks are told of a call's arguments, and what it then runs with."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chatfold import Agent, ApprovalAnswer, Content, Engine
from chatfold.testing import ScriptedProvider, UseTool, turn
from events.content import Json
from events.ids import ChatId
from generation.hooks.contract import HookAnswer, HookCall
from generation.hooks.dispatch import Hooks, PythonHook
from generation.tools.contract import Tool
from generation.tools.execute import run_call
from generation.tools.hooked import CallHooks
from generation.tools.output import CallResult
from tests.e2e.kit import results
from tests.generation.tools.support import call, env


class Probe:
    """A tool that keeps what it was run with, and a hook that keeps what it was told and gives one answer."""

    def __init__(self, answer: HookAnswer | None = None) -> None:
        self.answer = answer
        self.told: list[Json] = []
        self.ran: list[object] = []

    def tool(self, *, needs_approval: bool = False) -> Tool:
        def put(x: Any = "default") -> str:
            self.ran.append(x)
            return "done"

        return Tool.from_function(put, needs_approval=needs_approval)

    def ask(self, asked: HookCall) -> HookAnswer | None:
        self.told.append(asked.facts["input"])
        return self.answer

    async def run(self, arguments: str | None, *, approved: bool = False) -> CallResult:
        hooks = CallHooks(Hooks([PythonHook(self.ask, ["pre_tool_use"])]), ChatId("chat"))
        asked = replace(call("put", arguments), approved=approved)
        result = await run_call(asked, replace(env(self.tool()), hooks=hooks))
        assert result is not None
        return result


@pytest.mark.parametrize(
    ("arguments", "told", "ran"),
    [
        ('{"x": 1}', [{"x": 1}], [1]),
        ("{}", [{}], ["default"]),
        ("", [{}], ["default"]),
        (" \n\u00a0", [{}], ["default"]),
        ('{"x": 1, "x": 2}', [None], []),
        ("[1]", [None], []),
        ('{"x": 1', [None], []),
        (None, [], []),
    ],
)
async def test_a_hook_is_told_the_arguments_as_they_would_run(
    arguments: str | None, told: list[Json], ran: list[object]
) -> None:
    probe = Probe()
    result = await probe.run(arguments)
    assert (probe.told, probe.ran, result.answer.is_error) == (told, ran, not ran)


SAME_FOR_PYTHON: list[tuple[str, str]] = [
    ("1", "true"),
    ("false", "0"),
    ("1", "1.0"),
    ("[1, 0]", "[true, false]"),
    ('[1, {"a": true}]', '[true, {"a": 1}]'),
]


@pytest.mark.parametrize(("given", "wanted"), SAME_FOR_PYTHON)
async def test_arguments_of_a_hook_that_python_holds_equal_are_others(given: str, wanted: str) -> None:
    given, wanted = f'{{"x":{given}}}', f'{{"x":{wanted}}}'
    answer = HookAnswer(input=await _read(wanted))
    result = await (probe := Probe(answer)).run(given)
    assert repr(probe.ran) == repr([(await _read(wanted))["x"]])
    assert result.rewritten == wanted.replace(" ", "")
    result = await (probe := Probe(answer)).run(given, approved=True)
    assert (probe.ran, result.answer.is_error) == ([], True), "it runs as it was approved, or not at all"


@pytest.mark.parametrize(("given", "wanted"), SAME_FOR_PYTHON)
async def test_arguments_of_an_approval_that_python_holds_equal_are_others(given: str, wanted: str) -> None:
    given, wanted = f'{{"x":{given}}}', f'{{"x":{wanted}}}'
    probe, model = Probe(), ScriptedProvider([turn(UseTool("put", given)), "Done."])
    agent = Agent(name="helper", model="scripted", tools=[probe.tool(needs_approval=True)])
    async with Engine("memory://", [agent], providers={"scripted": model}) as engine:
        chat = (await engine.create_chat("helper", "Put")).chat
        action = (await engine.settled(chat)).control.action
        assert action is not None
        answer = ApprovalAnswer(call=action.to_approve[0], approved=True, arguments=Content(wanted))
        await engine.submit_tool_results(chat, action.id, approvals=[answer])
        (result,) = results(await engine.settled(chat))
    assert repr(probe.ran) == repr([(await _read(wanted))["x"]])
    assert result.rewritten == Content(wanted)


async def _read(text: str) -> dict[str, Json]:
    """What a tool is given by a text."""
    probe = Probe()
    await probe.run(text)
    (told,) = probe.told
    assert isinstance(told, dict)
    return told
