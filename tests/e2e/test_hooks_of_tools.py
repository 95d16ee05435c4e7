"""Hooks about tools in whole conversations: calls that are denied, approved, changed, and cut off."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from chatfold import ApprovalAnswer, Content
from chatfold.hooks import HookAnswer, HookCall, HookEvent, PythonHook
from chatfold.testing.servers import Answer, ToolCall
from events.parts import CrashPolicy
from events.reasons import Reason
from events.state import ChatState
from events.vocabulary import StepCommitted, TurnFailed
from generation.tools.contract import Tool
from store.loading import read_recorded
from tests.e2e.checks import check
from tests.e2e.hooked import CALL, Recording, careful, said
from tests.e2e.kit import PATIENCE, Place, Scene, event_types, outputs, results, stage, texts
from tests.e2e.tools import add


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(provider="anthropic", url=f"sqlite:///{tmp_path / 'chats.db'}", agent=f"agent-{uuid.uuid4().hex}")


async def test_a_call_is_denied_in_words_for_the_model(here: Place) -> None:
    hook = Recording(HookAnswer(deny="Sums are forbidden."))
    async with stage(here, [CALL, Answer("Sorry.")], tools=[add], hooks=[hook.at("pre_tool_use")]) as scene:
        chat = await scene.start("Add")
        state = await scene.settled(chat)
        (result,) = results(state)
        assert (result.is_error, outputs(state)) == (True, ["Not run: Sums are forbidden."])
        assert result.started_at is None
        await check(scene, chat)
    assert [(call.facts["tool"], call.facts["input"]) for call in hook.calls] == [("add", {"a": 1, "b": 2})]


async def approved(scene: Scene, chat: Any, arguments: str | None = None, *, until: str = "waiting") -> ChatState:
    """Approve the call that the chat asks about; return the chat once it is ``until``."""
    action = (await scene.settled(chat, "requires_action")).control.action
    assert action is not None
    (call,) = action.to_approve
    given = None if arguments is None else Content(arguments)
    answer = ApprovalAnswer(call=call, approved=True, arguments=given)
    await scene.engine.submit_tool_results(chat, action.id, approvals=[answer])
    return await scene.settled(chat, until)


async def test_what_was_approved_does_not_run_with_other_arguments(here: Place) -> None:
    """It is made again with those that the hook wants, and these are approved."""
    hook = Recording(HookAnswer(input={"a": 40, "b": 2}), HookAnswer(input={"a": 40, "b": 2}))
    script = [CALL, Answer([ToolCall("add", {"a": 40, "b": 2})]), Answer("42.")]
    async with stage(here, script, tools=[careful], hooks=[hook.at("pre_tool_use")]) as scene:
        chat = await scene.start("Add")
        await approved(scene, chat, until="requires_action")
        state = await approved(scene, chat)
        refused, ran = results(state)
        assert (refused.is_error, refused.started_at, refused.rewritten) == (True, None, None)
        assert (outputs(state)[1], ran.rewritten) == (42, None)
        assert 'call it again with them: {"a":40,"b":2}' in str(outputs(state)[0])
        await check(scene, chat)
    assert [call.facts["approved"] for call in hook.calls] == [True, True]


async def test_what_was_approved_runs_where_a_hook_wants_the_same(here: Place) -> None:
    hook = Recording(HookAnswer(input={"b": 4, "a": 3}, context="Seen."))
    async with stage(here, [CALL, Answer("7.")], tools=[careful], hooks=[hook.at("pre_tool_use")]) as scene:
        chat = await scene.start("Add")
        state = await approved(scene, chat, '{"a": 3, "b": 4}')
        assert outputs(state) == [7]
        assert [part.rewritten.text for part in results(state) if part.rewritten] == ['{"a": 3, "b": 4}']


async def test_what_is_refused_says_with_which_arguments(here: Place) -> None:
    hook = Recording(HookAnswer(deny="Too much."))
    async with stage(here, [CALL, Answer("Sorry.")], tools=[careful], hooks=[hook.at("pre_tool_use")]) as scene:
        chat = await scene.start("Add")
        state = await approved(scene, chat, '{"a": 3, "b": 4}')
        assert outputs(state) == ["Not run: Too much."]
        assert '[The arguments of this call were changed to: {\\"a\\": 3' in said(scene.server.requests[1])


async def test_arguments_of_a_hook_that_do_not_fit_are_not_said_to_have_run(here: Place) -> None:
    hook = Recording(HookAnswer(input={"a": "many"}))
    async with stage(here, [CALL, Answer("Sorry.")], tools=[add], hooks=[hook.at("pre_tool_use")]) as scene:
        chat = await scene.start("Add")
        state = await scene.settled(chat)
        (result,) = results(state)
        assert result.is_error
        assert result.rewritten is not None
        told = said(scene.server.requests[1])
        assert "The arguments of this call were changed to: " in told
        assert "so the tool was not run" in told
        assert "ran with" not in told


async def test_a_call_runs_with_other_arguments_and_the_model_is_told(here: Place) -> None:
    hook = Recording(HookAnswer(input={"a": 40, "b": 2}, context="Rounded."), HookAnswer(context="Checked."))
    async with stage(
        here, [CALL, Answer("42.")], tools=[add], hooks=[hook.at("pre_tool_use", "post_tool_use")]
    ) as scene:
        chat = await scene.start("Add")
        state = await scene.settled(chat)
        (result,) = results(state)
        assert outputs(state) == [42]
        assert result.rewritten is not None
        assert json.loads(result.rewritten.text) == {"a": 40, "b": 2}
        told = said(scene.server.requests[1])
        assert all(word in told for word in ("were changed", "Rounded.", "Checked."))
        await check(scene, chat)
    assert [call.facts.get("output") for call in hook.calls] == [None, 42]


@pytest.mark.parametrize("event", ["pre_tool_use", "post_tool_use"])
async def test_where_tool_hooks_cannot_be_asked_the_turn_fails_in_the_append_of_the_result(
    here: Place, event: HookEvent
) -> None:
    async with stage(here, [CALL, Answer("3.")], tools=[add], hooks=[Recording(ConnectionError()).at(event)]) as scene:
        chat = await scene.start("Add")
        state = await scene.settled(chat, "error")
        last = state.control.last_error
        assert last is not None
        assert (last.kind, last.retryable) == ("hook_dispatch_failed", False)
        ran = event == "post_tool_use"
        assert outputs(state) == [3 if ran else "Not run: it could not be asked whether it may."]
        log = await read_recorded(scene.store, chat)  # type: ignore[arg-type]
        (step, failed) = log[-2:]
        assert isinstance(step.event, StepCommitted)
        assert isinstance(failed.event, TurnFailed)
        assert step.envelope.command == failed.envelope.command
        await scene.engine.resume(chat)
        assert texts(await scene.settled(chat))[-1] == "3."
        await check(scene, chat)


@pytest.mark.parametrize("crash", ["rerun", "report"])
async def test_a_call_that_is_cut_off_by_the_failure_of_a_hook_about_another_one_is_lost_alone(
    here: Place, crash: CrashPolicy
) -> None:
    """What the others gave is recorded; what became of this one is not known, and its tool says what follows."""
    runs = 0

    async def slow() -> str:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0 if runs > 1 else PATIENCE)
        return "slow"

    async def ask(call: HookCall) -> None:
        if call.facts["output"] == 18 and runs == 1:
            await scene.watchers[call.chat].until(lambda items: "tool_result_recorded" in event_types(items))
            raise ConnectionError("down")

    several = Answer([ToolCall("add", {"a": 1, "b": 2}), ToolCall("slow", {}), ToolCall("add", {"a": 9, "b": 9})])
    tools = [add, Tool.from_function(slow, crash=crash)]
    async with stage(
        here, [several, Answer("Done.")], tools=tools, hooks=[PythonHook(ask, ["post_tool_use"])]
    ) as scene:
        chat = await scene.start("Add")
        state = await scene.settled(chat, "error")
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "hook_dispatch_failed"
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert outputs(state) == [3, "slow" if crash == "rerun" else Reason.WORKER_LOST, 18]
        assert runs == (2 if crash == "rerun" else 1)
        await check(scene, chat)


# The end of a turn, and summaries.
