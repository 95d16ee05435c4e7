"""What a worker keeps of policies has an end, and what a runtime is given counts: policies, calls, leftovers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chatfold import Agent, Engine, Tool
from events.control import Control
from events.ids import ChatId
from events.levels import NEWEST
from events.vocabulary import ToolResultRecorded
from generation import runtime as module
from generation.flushing import Leftovers
from generation.providers.script import UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.execute import CallEnvironment, StartedCall, start_call
from generation.tools.policy import ToolCall
from generation.tools.registry import ToolSet


def test_policies_are_kept_up_to_a_number_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    runtime = Engine("memory://", [Agent(name="helper", model="scripted/m")], worker=False).runtime
    controls = [Control(agent="helper", model=f"scripted/{number}") for number in range(5)]
    first = [runtime.policy_for(control, NEWEST) for control in controls]
    assert runtime.policy_for(controls[-1], NEWEST) is first[-1]
    assert len(runtime._policies) == 3
    again = runtime.policy_for(controls[0], NEWEST)
    assert again is not first[0]
    assert again == first[0]
    assert len(runtime._policies) == 3


def test_policies_that_are_given_count_instead_of_what_agents_declare() -> None:
    engine = Engine("memory://", [Agent(name="helper", model="scripted/m")], worker=False)
    control = Control(agent="helper")
    declared = engine.runtime.policy_for(control, NEWEST)
    assert declared is not None
    assert declared.policy.retry_unit_us == 1_000_000
    older = engine.runtime.policy_for(control, NEWEST - 1)
    assert older is not None
    assert older.policy.retry_unit_us is None
    engine.runtime.policies = lambda control, _: declared if control.agent == "gone" else None
    assert engine.runtime.policy_for(Control(agent="gone"), NEWEST) is declared
    assert engine.runtime.policy_for(control, NEWEST) is None


async def test_calls_and_what_was_left_may_come_from_elsewhere() -> None:
    """A call is started by whom the runtime says, and not by its tool; leftovers are asked for by chat."""
    entered: list[str] = []
    started: list[str] = []
    asked: list[str] = []

    def look() -> str:
        """Look."""
        entered.append("look")
        return "here"

    def instead(call: ToolCall, env: CallEnvironment) -> StartedCall:
        started.append(call.name)
        other = Tool.from_function(lambda: "there", name=call.name)
        return start_call(call, replace(env, tools=ToolSet((other,), ("look",))))

    def leftovers(chat: ChatId) -> Leftovers:
        asked.append(chat)
        return Leftovers()

    script = ScriptedProvider([turn(UseTool("look", {})), "Done."])
    agent = Agent(name="helper", model="scripted", tools=[Tool.from_function(look)])
    async with Engine("memory://", [agent], providers={"scripted": script}) as engine:
        engine.runtime.call_starter = instead
        engine.runtime.leftovers = leftovers
        await engine.create_chat("helper", "Look!", chat_id="chat")
        await engine.settled("chat")
        log = await engine.events("chat")
    results = [each.event.result for each in log if isinstance(each.event, ToolResultRecorded)]
    assert [result.output.value for result in results if result.output is not None] == ["there"]
    assert (entered, started, set(asked)) == ([], ["look"], {"chat"})
