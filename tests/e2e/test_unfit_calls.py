"""Calls with arguments that their tool does not take: neither a client nor a person is asked about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from chatfold.hooks import HookAnswer
from chatfold.testing.servers import Answer, ToolCall
from events.records import ApprovalAnswer
from generation.tools.contract import Tool, client_tool
from tests.e2e.checks import check
from tests.e2e.hooked import Recording
from tests.e2e.kit import SERVERS, Place, calls, results, stage, texts


class Pick(BaseModel):
    """What the client is asked for."""

    n: int


RAN: Final[list[int]] = []


def remove(n: int) -> str:
    """Remove something."""
    RAN.append(n)
    return f"removed {n}"


TOOLS: Final[dict[str, Tool]] = {
    "client": client_tool("pick", "Pick one.", Pick),
    "approval": Tool.from_function(remove, name="remove", needs_approval=True),
    "exclusive approval": Tool.from_function(remove, name="remove", needs_approval=True, exclusive=True),
    "stop-after client": client_tool(
        "pick", "Pick one.", Pick, stop_after=True, on_expiry="end_turn", action_timeout=9
    ),
    "client by a schema": client_tool("pick", "Pick one.", {"type": "object", "properties": {}}),
}
UNFIT: Final[dict[str, dict[str, Any] | str]] = {
    "another type": {"n": "x"},
    "a name too many": {"n": 1, "other": 2},
    "a name too few": {},
    "broken": '{"n": ',
    "no object": "[1]",
    "blank": "",
}
TAKEN_BY_ANY_SCHEMA: Final = ("another type", "a name too many", "a name too few", "blank")


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


ASKED: Final = [
    *[("anthropic", kind) for kind in TOOLS],
    *[(provider, "client") for provider in SERVERS if provider != "anthropic"],  # shows each wire form
]


@pytest.mark.parametrize("sort", UNFIT)
@pytest.mark.parametrize(("provider", "kind"), ASKED)
async def test_nobody_is_asked_about_arguments_that_are_not_taken(
    tmp_path: Path, provider: str, kind: str, sort: str
) -> None:
    place = Place(provider=provider, url=f"sqlite:///{tmp_path / 'chats.db'}", agent="asking")
    tool = TOOLS[kind]
    script = [Answer([ToolCall(tool.name, UNFIT[sort])]), Answer("I see.")]
    async with stage(place, script, tools=[tool]) as scene:
        chat = await scene.start("Go")
        if kind == "client by a schema" and sort in TAKEN_BY_ANY_SCHEMA:
            await scene.settled(chat, "requires_action")
            return
        state = await scene.settled(chat, "waiting")
        (call,), (answered,) = calls(state), results(state)
        assert (call.runner, call.needs_approval, call.stop_after) == ("local", False, False)
        assert answered.is_error
        assert answered.output is not None
        assert "The arguments are not valid, so the tool was not run: $" in answered.output.text
        assert texts(state, "assistant")[-1] == "I see."
        assert RAN == []
        await check(scene, chat)


async def test_a_fit_call_beside_it_is_asked_about(place: Place) -> None:
    script = [
        Answer([ToolCall("remove", {"n": "x"}), ToolCall("remove", {"n": 1}), ToolCall("pick", {})]),
        Answer("Done."),
    ]
    async with stage(place, script, tools=[TOOLS["approval"], TOOLS["client"]]) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat, "requires_action")
        assert state.control.action is not None
        (asked,) = state.control.action.items
        assert asked.call is not None
        assert (asked.kind, asked.call.rpartition(".")[2]) == ("approval", "1")
        approval = ApprovalAnswer(call=asked.call, approved=True)
        await scene.engine.submit_tool_results(chat, state.control.action.id, approvals=[approval])
        state = await scene.settled(chat, "waiting")
        assert [part.is_error for part in results(state)] == [True, True, False]
        assert RAN == [1]
        await check(scene, chat)


@pytest.mark.parametrize(("kind", "why"), [("approval", "needs approval"), ("client", "is run by the client")])
async def test_other_arguments_by_a_hook_do_not_make_it_run(url: str, kind: str, why: str) -> None:
    tool, hook = TOOLS[kind], Recording(HookAnswer(input={"n": 7}))
    script = [Answer([ToolCall(tool.name, {"n": "x"})]), Answer("I see.")]
    place = Place(provider="anthropic", url=url, agent=f"mended-{kind}")
    async with stage(place, script, tools=[tool], hooks=[hook.at("pre_tool_use")]) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat, "waiting")
        (answered,) = results(state)
        assert answered.output is not None
        assert f"{why}, and nobody was asked. Nothing was run. Call it again." in answered.output.text
        assert answered.is_error
        assert RAN == []
