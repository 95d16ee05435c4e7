"""Chain mode at a service that keeps its responses: what is sent, when all of it is, and what a lost response costs."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from chatfold.engine import Engine
from chatfold.stream import PartItem
from chatfold.testing import ScriptedProvider
from chatfold.testing.servers import Answer, Fail, Gate, Reasoning, RecordedRequest, Reply, Text, ToolCall
from chatfold.testing.servers.responses_server import OpenAIResponsesServer
from events import vocabulary as v
from events.ids import ChatId
from events.messages import Step
from events.state import ChatState
from generation.agents import Agent, Limits
from generation.models import ModelConfig
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, Place, Scene, stage, texts
from tests.e2e.tools import add


@pytest.fixture
def place(url: str) -> Place:
    """Only this provider keeps responses."""
    return Place(provider="openai", url=url, agent=f"agent-{uuid.uuid4().hex}")


def storing(**more: Any) -> ModelConfig:
    return ModelConfig(provider="openai", name=MODEL, options={"store": True, **more})


def sent(request: RecordedRequest) -> tuple[str | None, list[str]]:
    """What a request goes on from, and the roles or types of the items that it holds itself."""
    body = request.body
    return body.get("previous_response_id"), [item.get("role", item["type"]) for item in body["input"]]


def kept(scene: Scene) -> OpenAIResponsesServer:
    assert isinstance(scene.server, OpenAIResponsesServer)
    return scene.server


def steps(state: ChatState) -> list[Step]:
    return [each.message.step for each in state.messages if each.message.step is not None]


def whole(request: RecordedRequest) -> bool:
    return request.body.get("previous_response_id") is None


async def say(scene: Scene, chat: str, text: str, **options: Any) -> ChatState:
    await scene.engine.send_message(chat, text, **options)
    return await scene.settled(chat)


async def test_the_first_step_of_a_turn_goes_on_from_the_last_answer(place: Place) -> None:
    script: list[Reply] = [
        Answer([Reasoning("Hm."), Text("Hello.")]),
        Answer([Reasoning("A sum."), Text("Adding."), ToolCall("add", {"a": 1, "b": 2})]),
        Answer([Reasoning("Done."), Text("Three.")]),
        Answer("Bye."),
    ]
    async with stage(place, script, model=storing(), tools=[add], system="Be brief.") as scene:
        chat = await scene.start("Hi.")
        await scene.settled(chat)
        await say(scene, chat, "Add one and two.")
        state = await say(scene, chat, "Bye.")
        assert texts(state) == ["Hello.", "Adding.", "Three.", "Bye."]
        first, second, third, fourth = scene.server.requests
        ids = [step.response_id for step in steps(state)]
        assert sent(first) == (None, ["user"])
        assert sent(second) == (ids[0], ["user"])
        # The results of its calls are sent with the whole history.
        assert sent(third)[0] is None
        assert sent(third)[1][-3:] == ["assistant", "function_call", "function_call_output"]
        assert sent(fourth) == (ids[2], ["user"])
        # What the service had before it answered is the whole conversation, every time.
        assert fourth.user_texts == ("Hi.", "Add one and two.", "Bye.")
        assert all(request.body["instructions"] == "Be brief." for request in scene.server.requests)
        assert all(request.body["tools"] for request in scene.server.requests)
        assert [step.continued for step in steps(state)] == [None, ids[0], None, ids[2]]
        assert all(step.kept is not None for step in steps(state))
        await check(scene, chat)


async def test_without_the_option_nothing_is_kept(place: Place) -> None:
    async with stage(place, [Answer("One."), Answer("Two.")]) as scene:
        chat = await scene.start("Hi.")
        await scene.settled(chat)
        state = await say(scene, chat, "And?")
        assert [step.kept for step in steps(state)] == [None, None]
        assert [request.body["store"] for request in scene.server.requests] == [False, False]
        assert all(map(whole, scene.server.requests))
        await check(scene, chat)


async def test_a_response_that_is_gone_has_the_whole_history_sent(place: Place) -> None:
    script = [Answer("One."), Answer("Two."), Answer("Three."), Answer("Four.")]
    async with stage(place, script, model=storing()) as scene:
        chat = await scene.start("First.")
        await scene.settled(chat)
        kept(scene).issued.forget()
        state = await say(scene, chat, "Second.")
        assert texts(state) == ["One.", "Two."]
        gone, again = [request for request in scene.server.requests if "Second." in request.raw.decode()]
        assert not whole(gone)
        assert whole(again)
        assert sent(again)[1] == ["user", "assistant", "user"]
        retries = [each.event for each in await scene.engine.events(chat) if isinstance(each.event, v.RetryScheduled)]
        (retry,) = retries
        lost = steps(state)[0].response_id
        assert (retry.error.chain_broken, state.control.lost_response) == (True, lost)
        assert retry.report is not None
        assert retry.report.step is not None
        assert retry.report.step.continued == lost
        # Both asked the same: the digests are of what the model was to read.
        assert retry.report.request is not None
        committed = [each.event for each in await scene.engine.events(chat) if isinstance(each.event, v.StepCommitted)]
        assert committed[-1].report is not None
        assert committed[-1].report.request == retry.report.request

        # The next turn goes on from the answer to the whole history.
        state = await say(scene, chat, "Third.")
        assert sent(scene.server.requests[-1]) == (steps(state)[1].response_id, ["user"])
        scene.server.refused.clear()
        await check(scene, chat)


@pytest.mark.parametrize(
    ("message", "again"),
    [
        ("No tool output found for function call call_1.", True),
        ("Item 'fc_1' was provided without its required 'reasoning' item: 'rs_1'.", True),
        ("Invalid 'input[2].content': empty.", True),
        ("Unsupported value: 'temperature'.", False),
    ],
)
async def test_a_fault_of_what_the_service_kept_has_the_whole_history_sent_once(
    place: Place, message: str, again: bool
) -> None:
    script: list[Reply] = [Answer("One."), Fail(400, message), Fail(400, message), Answer("Two.")]
    async with stage(place, script, model=storing()) as scene:
        chat = await scene.start("First.")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Second.")
        state = await scene.settled(chat, "error")
        assert state.control.last_error is not None
        assert not state.control.last_error.retryable
        assert [whole(request) for request in scene.server.requests] == [True, False, True][: 2 + again]


async def test_a_lost_response_is_asked_for_once_also_where_the_turn_failed_by_it(place: Place) -> None:
    script = [Answer("One."), Answer("Two."), Answer("Three.")]
    async with stage(place, script, model=storing(), limits=Limits(max_model_attempts=1)) as scene:
        chat = await scene.start("First.")
        await scene.settled(chat)
        kept(scene).issued.forget()
        await scene.engine.send_message(chat, "Second.")
        await scene.settled(chat, "error")
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["One.", "Two."]
        assert [whole(request) for request in scene.server.requests] == [True, False, True]
        scene.server.refused.clear()
        await check(scene, chat)


@pytest.mark.parametrize("what", ["edit", "erase", "clear", "compact", "model", "options"])
async def test_what_changes_what_the_model_reads_has_all_of_it_sent(place: Place, what: str) -> None:
    script = [Answer("One."), Answer("Two."), Answer("Three."), Answer("Four."), Answer("Five.")]
    other = ModelConfig(provider="openai", name="model-two", options={"store": True})
    async with stage(place, script, model=storing(), models=[other]) as scene:
        engine = scene.engine
        chat = await scene.start("First.")
        await scene.settled(chat)
        state = await say(scene, chat, "Second.")
        assert not whole(scene.server.requests[-1])
        message = [each.id for each in state.messages if each.message.role == "user"]
        options: dict[str, Any] = {}
        match what:
            case "edit":
                await engine.edit_message(chat, message[0], "First anew.")
                await scene.settled(chat)
                assert whole(scene.server.requests[-1])
            case "erase":
                await engine.erase(chat, [message[0]])
            case "clear":
                await engine.clear(chat)
            case "compact":
                await engine.compact(chat)
                await scene.settled(chat)
                assert whole(scene.server.requests[-1])
            case "model":
                options = {"model": "openai/model-two"}
            case _:
                options = {"effort": "high"}
        await say(scene, chat, "Last.", **options)
        last = scene.server.requests[-1]
        # Only an edit leaves an answer behind that was given to the history as it is; an effort is no other model.
        assert whole(last) is (what not in {"edit", "options"})
        if what == "erase":
            assert "First." not in last.raw.decode()
        await check(scene, chat)


async def test_a_fork_goes_on_from_no_response_of_its_origin(place: Place) -> None:
    script = [Answer("One."), Answer("Two."), Answer("Three.")]
    async with stage(place, script, model=storing()) as scene:
        chat = await scene.start("First.")
        await scene.settled(chat)
        fork = (await scene.engine.fork(chat)).chat
        await say(scene, fork, "Second.")
        assert whole(scene.server.requests[-1])
        state = await say(scene, fork, "Third.")
        assert sent(scene.server.requests[-1])[0] == steps(state)[1].response_id
        await check(scene, chat, fork)


async def test_an_answer_that_was_cut_is_asked_for_again_in_the_same_way(place: Place) -> None:
    script: list[Reply] = [Answer("One."), Answer([Text("Half of an answer.")], cut_after=1), Answer("Two.")]
    async with stage(place, script, model=storing()) as scene:
        chat = await scene.start("First.")
        await scene.settled(chat)
        state = await say(scene, chat, "Second.")
        assert [sent(request) for request in scene.server.requests[1:]] == [(steps(state)[0].response_id, ["user"])] * 2
        await check(scene, chat)


async def test_an_interrupted_answer_is_no_response_to_go_on_from(place: Place) -> None:
    gate = Gate()
    script: list[Reply] = [Answer("One."), Answer("Half of an answer.", gate=gate, gate_after=1), Answer("Two.")]
    async with stage(place, script, model=storing()) as scene:
        chat = await scene.start("First.")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Second.")
        await gate.reached()
        await scene.watchers[chat].until(lambda items: any(isinstance(item, PartItem) for item in items[-1:]))
        await scene.engine.interrupt(chat)
        await scene.settled(chat)
        gate.release()
        state = await say(scene, chat, "Third.")
        assert whole(scene.server.requests[-1])
        assert steps(state)[1].kept is None
        await check(scene, chat)


async def test_a_process_that_knows_nothing_of_the_chat_goes_on_as_well(place: Place) -> None:
    async with stage(place, [Answer("One."), Answer("Two.")], model=storing()) as scene:
        chat = await scene.start("First.")
        await scene.settled(chat)
        scene.engine.runtime.journal.warm.drop(ChatId(chat))
        state = await say(scene, chat, "Second.")
        assert sent(scene.server.requests[-1]) == (steps(state)[0].response_id, ["user"])
        await check(scene, chat)


async def test_a_provider_that_cannot_go_on_gets_the_whole_history(tmp_path: Path) -> None:
    """An application's own, under the name of one that can: it would lose all that is not sent."""
    model = ScriptedProvider(["One.", "Two."])
    agent = Agent(name="a", model=storing())
    async with Engine(f"sqlite:///{tmp_path}/chats.db", [agent], providers={"openai": model}) as engine:
        chat = (await engine.create_chat("a", "First.")).chat
        await engine.settled(chat)
        await engine.send_message(chat, "Second.")
        await engine.settled(chat)
    assert [len(request.messages) for request in model.requests] == [1, 3]
    assert [request.continues for request in model.requests] == [None, None]
    assert agent.find_model() == storing(), "options are not touched"
