"""Hooks in whole conversations: what they stop, change and add, and that nothing is done where they cannot be asked."""

from __future__ import annotations

import asyncio
import json
import signal
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from chatfold.hooks import Hook, HookAnswer, HookCall, HookDenied, HookEvent, HookFailed, HttpHook, PythonHook
from chatfold.receipts import Receipt
from chatfold.settings import Settings
from chatfold.testing.servers import Answer, Fail, Gate, Reply, ToolCall, Usage
from events.ids import ChatId
from events.vocabulary import TurnFinished
from generation.agents import Limits
from store import open_store
from store.loading import read_recorded
from tests.e2e.checks import check
from tests.e2e.hooked import CALL, Recording, hooked, said, unreachable, versions
from tests.e2e.kit import PATIENCE, Place, outputs, results, stage, texts
from tests.e2e.test_takeover import worker_process
from tests.e2e.tools import add
from tests.generation.hooks.service import hook_service


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(provider="anthropic", url=f"sqlite:///{tmp_path / 'chats.db'}", agent=f"agent-{uuid.uuid4().hex}")


async def test_a_message_goes_with_a_word_for_the_model(here: Place) -> None:
    hook = Recording(HookAnswer(context="It is Tuesday."))
    async with stage(here, [Answer("Hi.")], hooks=[hook.at("user_prompt_submit")]) as scene:
        chat = await scene.start("Hello")
        state = await scene.settled(chat)
        assert hooked(state) == [("user_prompt_submit", "It is Tuesday.")]
        assert texts(state, "user") == ["Hello"]
        assert "It is Tuesday." in said(scene.server.requests[0])
        await check(scene, chat)
    assert [call.facts["text"] for call in hook.calls] == ["Hello"]


async def test_a_message_is_rewritten(here: Place) -> None:
    hook = Recording(HookAnswer(input="Good day"))
    async with stage(here, [Answer("Hi.")], hooks=[hook.at("user_prompt_submit")]) as scene:
        state = await scene.settled(await scene.start("Hello"))
        assert texts(state, "user") == ["Good day"]


async def test_a_denied_or_unasked_command_appends_nothing(here: Place) -> None:
    denies, fails = HookAnswer(deny="Not today."), ConnectionError("down")
    hook = Recording(HookAnswer(), denies, fails, denies, fails, denies, fails)
    async with stage(here, [Answer("Hi.")], hooks=[hook.at("user_prompt_submit")]) as scene:
        chat = await scene.start("Hello")
        state = await scene.settled(chat)
        before, first = await versions(scene, chat), state.need_transcript("test").messages[0].id
        engine = scene.engine
        commands: Sequence[Callable[[], Awaitable[Receipt]]] = (
            lambda: engine.send_message(chat, "More"),
            lambda: engine.edit_message(chat, first, "Else"),
            lambda: engine.create_chat(here.agent, "New", chat_id="new"),
        )
        for command in commands:
            with pytest.raises(HookDenied, match="Not today") as denied:
                await command()
            with pytest.raises(HookFailed, match="down") as failed:
                await command()
            assert (denied.value.kind, failed.value.kind) == ("hook_denied", "hook_dispatch_failed")
        assert await versions(scene, chat) == before
        assert len(await engine.list_chats()) == 1


async def test_a_command_that_is_asked_again_has_the_same_id_and_is_done_once(here: Place) -> None:
    hook = Recording(HookAnswer(context="one"), HookAnswer(context="two"))
    async with stage(here, [Answer("Hi.")], hooks=[hook.at("user_prompt_submit")]) as scene:
        first = await scene.engine.create_chat(here.agent, "Hello", owner="ada", command_id="k")
        again = await scene.engine.create_chat(here.agent, "Hello", owner="ada", command_id="k")
        assert (first.chat, first.version) == (again.chat, again.version)
        assert hooked(await scene.settled(first.chat)) == [("user_prompt_submit", "one")]
    assert len(hook.calls) == 2
    assert len({call.id for call in hook.calls}) == 1


@pytest.mark.parametrize("answer", [HookAnswer(deny="No more."), ConnectionError("down")], ids=["denied", "failed"])
async def test_what_hooks_say_of_a_repeated_command_does_not_undo_it(
    here: Place, answer: HookAnswer | Exception
) -> None:
    """Its caller, whose first reply was lost, asks for a receipt; it must not hear that nothing was done."""
    gate = Gate()
    hook = Recording()
    script: list[Reply] = [Answer("Hi."), Answer("Bye.", gate=gate), Answer("Else.")]
    async with stage(here, script, hooks=[hook.at("session_start", "user_prompt_submit")]) as scene:
        engine = scene.engine
        created = await engine.create_chat(here.agent, "Hello", owner="ada", command_id="create")
        chat = created.chat
        await scene.settled(chat)
        sent = await engine.send_message(chat, "More", command_id="send")
        await gate.reached()
        queued = await engine.send_message(chat, "Later", command_id="queue")
        commands: dict[str, Callable[[], Awaitable[Receipt]]] = {
            "create": lambda: engine.create_chat(here.agent, "Hello", owner="ada", command_id="create"),
            "send": lambda: engine.send_message(chat, "More", command_id="send"),
            "queue": lambda: engine.send_message(chat, "Later", command_id="queue"),
            "rewrite": lambda: engine.edit_queued(chat, queued.queued[0], "Rather", command_id="rewrite"),
            "edit": lambda: engine.edit_message(chat, sent.messages[0], "Else", command_id="edit"),
        }
        first = {"create": created, "send": sent, "queue": queued}
        first |= {name: await commands[name]() for name in ("rewrite", "edit")}
        gate.release()
        await scene.settled(chat)
        before = await versions(scene, chat)
        for name, again in commands.items():
            # Both events of a creation ask, and a message is asked about once.
            hook._answers += [answer if isinstance(answer, Exception) or name != "create" else HookAnswer(), answer]
            told = await again()
            assert (told.version, told.messages, told.queued) == (
                first[name].version,
                first[name].messages,
                first[name].queued,
            )
            hook._answers.clear()
        assert await versions(scene, chat) == before
        hook._answers.append(answer)
        with pytest.raises((HookDenied, HookFailed)):
            await engine.send_message(chat, "New", command_id="new")


async def test_the_start_of_a_chat_has_its_word_in_the_system_text(here: Place) -> None:
    hook = Recording(HookAnswer(context="Speak Latin."))
    async with stage(here, [Answer("Salve."), Answer("Vale.")], hooks=[hook.at("session_start")]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Bye")
        await scene.settled(chat)
        assert all("Speak Latin." in json.dumps(request.body["system"]) for request in scene.server.requests)
    assert [call.id for call in hook.calls] == [f"{chat}:session_start:0"]


async def test_a_chat_whose_start_cannot_be_told_is_not_created(here: Place) -> None:
    async with stage(here, [], hooks=[unreachable().at("session_start")]) as scene:
        with pytest.raises(HookFailed):
            await scene.start("Hello")
        assert list(await scene.engine.list_chats()) == []


# Tools.


async def test_a_finished_turn_goes_on_once_and_may_exceed_its_steps_by_one(here: Place) -> None:
    hook = Recording(*[HookAnswer(context="Run the tests first.")] * 3)
    replies = [Answer("Done."), Answer("Tested."), Answer("Bye.")]
    async with stage(here, replies, hooks=[hook.at("stop")], limits=Limits(max_steps=1)) as scene:
        chat = await scene.start("Work")
        state = await scene.settled(chat)
        assert texts(state) == ["Done.", "Tested."]
        assert texts(state, "user") == ["Work"]
        assert hooked(state) == [("stop", "Run the tests first.")]
        assert "Run the tests first." in said(scene.server.requests[1])
        await check(scene, chat)
    assert [(call.facts["text"], call.facts["nudged"]) for call in hook.calls] == [("Done.", False), ("Tested.", True)]
    assert len({call.id for call in hook.calls}) == 2


async def test_a_resume_of_a_turn_that_went_on_has_no_more_steps_than_others(here: Place) -> None:
    """The one answer more was that turn's; what counts anew is the limit."""
    hook = Recording(HookAnswer(context="Run the tests first."))
    replies: list[Reply] = [Answer("Done."), Fail(400), CALL, CALL, Answer("Never asked for.")]
    async with stage(here, replies, tools=[add], hooks=[hook.at("stop")], limits=Limits(max_steps=2)) as scene:
        chat = await scene.start("Work")
        await scene.settled(chat, "error")
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["Done."]
        assert len(results(state)) == 2
        assert len(scene.server.requests) == 4
        finished = (await read_recorded(scene.store, ChatId(chat)))[-1].event
        assert isinstance(finished, TurnFinished)
        assert (finished.cause, finished.decision.facts) == ("max_steps", {"steps": 2, "max_steps": 2})
        await check(scene, chat)


async def test_each_turn_may_go_on_once(here: Place) -> None:
    hook = Recording(*[HookAnswer(context="More.")] * 9)
    async with stage(here, [Answer(str(at)) for at in range(4)], hooks=[hook.at("stop")]) as scene:
        chat = await scene.start("Work")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Again")
        assert texts(await scene.settled(chat)) == ["0", "1", "2", "3"]


async def test_where_the_stop_hook_cannot_be_asked_the_answer_is_kept_and_the_turn_fails(here: Place) -> None:
    async with stage(here, [Answer("Done.")], hooks=[unreachable().at("stop")]) as scene:
        chat = await scene.start("Work")
        state = await scene.settled(chat, "error")
        assert texts(state) == ["Done."]
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "hook_dispatch_failed"
        (step, failed) = (await read_recorded(scene.store, chat))[-2:]  # type: ignore[arg-type]
        assert step.envelope.command == failed.envelope.command
        await check(scene, chat)


async def test_hooks_add_to_the_instruction_for_a_summary_and_to_the_summary(here: Place) -> None:
    hook = Recording(HookAnswer(context="Keep all names."), HookAnswer(context="See NOTES."))
    replies = [Answer("Hi."), Answer("A summary."), Answer("Bye.")]
    async with stage(here, replies, hooks=[hook.at("pre_compact", "post_compact")]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.compact(chat)
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Go on")
        await scene.settled(chat)
        assert "Keep all names." in said(scene.server.requests[1])
        assert "See NOTES." in said(scene.server.requests[2])
        await check(scene, chat)
    assert [call.event for call in hook.calls] == ["pre_compact", "post_compact"]


@pytest.mark.parametrize(("event", "summaries"), [("pre_compact", 0), ("post_compact", 1)])
async def test_where_compact_hooks_cannot_be_asked_the_turn_fails(
    here: Place, event: HookEvent, summaries: int
) -> None:
    async with stage(here, [Answer("Hi."), Answer("A summary.")], hooks=[unreachable().at(event)]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.compact(chat)
        state = await scene.settled(chat, "error")
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "hook_dispatch_failed"
        assert len(scene.server.requests) == 1 + summaries
        assert (state.control.indexes.boundary is not None) == bool(summaries)


async def test_each_compaction_is_asked_about_under_an_id_of_its_own(here: Place) -> None:
    hook = Recording(HookAnswer(deny="never said here"), HookAnswer(deny="nor here"))
    async with stage(here, [Answer("Hi.")], hooks=[hook.at("pre_compact")]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        for _ in range(2):
            await scene.engine.compact(chat)
            await scene.settled(chat, "error")
    assert len({call.id for call in hook.calls}) == 2


# Costs, and other processes.


@pytest.mark.parametrize("hooks", [False, True])
async def test_hooks_cost_no_append(here: Place, *, hooks: bool) -> None:
    observed = Recording()
    given: Sequence[Hook] = [observed.at("user_prompt_submit", "pre_tool_use", "post_tool_use", "stop")] * hooks
    async with stage(here, [CALL, Answer("3.")], tools=[add], hooks=given) as scene:
        chat = await scene.start("Add")
        await scene.settled(chat)
        log = await read_recorded(scene.store, chat)  # type: ignore[arg-type]
        assert len({recorded.envelope.command for recorded in log}) == 4
    assert len(observed.calls) == 4 * hooks


async def test_a_conversation_over_http(here: Place) -> None:
    answers = {"pre_tool_use": {"input": {"a": 2, "b": 2}}, "stop": {}}
    with hook_service(lambda call: (200, json.dumps(answers[call["event"]]).encode())) as service:
        hook = HttpHook(service.url, ["pre_tool_use", "stop"])
        async with stage(here, [CALL, Answer("4.")], tools=[add], hooks=[hook]) as scene:
            assert outputs(await scene.settled(await scene.start("Add"))) == [4]
    assert [call["event"] for call in service.calls] == ["pre_tool_use", "stop"]


@pytest.mark.parametrize(("when", "event"), [(1, "post_tool_use"), (2, "stop")])
async def test_a_worker_that_dies_between_hook_and_append_leaves_a_second_call_with_the_same_id(
    here: Place, when: int, event: str
) -> None:
    script = [Answer([ToolCall("look")]), Answer("Done."), Answer("Done."), Answer("Done.")]
    answers = {"post_tool_use": {"context": "Noted."}, "stop": {"context": "Go on."}}
    with hook_service(lambda call: (200, json.dumps(answers[call["event"]]).encode())) as service:
        async with (
            stage(here, script, worker=False) as scene,
            worker_process(scene, stop=False, hook=service.url, failpoints=f"hook.answered=kill@{when}") as lost,
        ):
            await lost.until("ready")
            chat = await scene.start("Look")
            async with asyncio.timeout(PATIENCE):
                assert await lost.process.wait() == -signal.SIGKILL
            asked = [call["id"] for call in service.calls]
            assert service.calls[-1]["event"] == event
            async with worker_process(scene, stop=False, hook=service.url):
                state = await scene.settled(chat)
            assert [call["id"] for call in service.calls].count(asked[-1]) == 2
            assert hooked(state) == [("stop", "Go on.")]
            assert [part.context is not None for part in results(state)] == [True]
            await check(scene, chat)


@pytest.mark.parametrize("leave", ["interrupt", "shutdown"])
async def test_a_result_that_a_hook_is_still_asked_about_is_kept_when_the_turn_is_cut(here: Place, leave: str) -> None:
    asked = asyncio.Event()

    async def hang(_: HookCall) -> None:
        asked.set()
        await asyncio.Event().wait()

    hook = PythonHook(hang, ["post_tool_use"], timeout=PATIENCE)
    async with stage(here, [CALL], tools=[add], hooks=[hook], settings=Settings(grace=0.2)) as scene:
        chat = await scene.start("Add")
        await asyncio.wait_for(asked.wait(), PATIENCE)
        if leave == "interrupt":
            await scene.engine.interrupt(chat)
            assert outputs(await scene.settled(chat)) == [3]
    async with open_store(here.url) as store:
        log = await read_recorded(store, ChatId(chat))
    assert [each.event.type for each in log].count("tool_result_recorded") == 1


async def test_what_let_an_earlier_turn_go_on_does_not_count_in_the_next_one(here: Place) -> None:
    """Also where a compaction shows it again: the first turn failed behind it, and nothing answered it."""
    hook = Recording(HookAnswer(context="Test."), HookAnswer(context="Test again."))
    model = here.model(context_limit=1_000, compaction_threshold=50)
    script: list[Reply] = [
        Answer("One.", usage=Usage(input=900)),
        Fail(400),
        Answer("Sum."),
        Answer("Two."),
        Answer("Three."),
    ]
    async with stage(here, script, hooks=[hook.at("stop")], model=model) as scene:
        chat = await scene.start("Work")
        await scene.settled(chat, "error")
        await scene.engine.send_message(chat, "Go on")
        assert texts(await scene.settled(chat))[-1] == "Three."
    assert [call.facts["nudged"] for call in hook.calls] == [False, False, True]
