"""Erased content changes nothing of what is decided, folded or audited."""

from __future__ import annotations

from collections.abc import Sequence

from chatfold.testing.servers import Answer, Fail, Reasoning, Reply, Text, ToolCall, Usage
from chatstate import commands as c
from chatstate.audit import audit
from chatstate.decide import decide
from chatstate.errors import Refusal
from events.codec import decode
from events.content import Content
from events.control import encode_control
from events.envelope import Recorded
from events.messages import Message, QueuedMessage
from events.parts import TextPart
from events.replay import replay
from events.state import ChatState
from generation.decide import decide_generation_action
from store import Store
from tests.e2e.checks import blobs_of, check, stored_log
from tests.e2e.kit import Place, Scene, stage
from tests.e2e.tools import ASK, add

SCRIPT: list[Reply] = [
    Answer(
        [Reasoning("Hm."), Text("Wait."), ToolCall("add", {"a": 1, "b": 2}), ToolCall("ask_client", {"question": "?"})]
    ),
    Fail(500),
    Answer("Three, says the client. " * 3000, usage=Usage(input=900), chunk_size=1000),
    Answer("They counted."),
    Answer("Four."),
]


async def test_erased_log_gives_the_same_results(place: Place) -> None:
    model = place.model(context_limit=1000, compaction_threshold=50)
    async with stage(place, SCRIPT, tools=[add, ASK], model=model) as scene:
        chat = await _converse(scene)
        with_content = await _recorded(scene.store, chat)
        whole = await scene.engine.state(chat)
        targets = {item.id for item in whole.need_transcript("test").messages}
        await scene.engine.erase(chat, sorted(targets))
        erased = await _recorded(scene.store, chat)
        assert erased[-1].event.type == "content_erased"
        without = await _recorded(scene.store, chat, content=False)
        for log in (erased[:-1], without[:-1]):
            assert [each.envelope for each in log] == [each.envelope for each in with_content]
            assert _fold(log) == _fold(with_content)
            assert _decisions(log) == _decisions(with_content)
            assert _commands(log) == _commands(with_content)
        for log in (with_content, erased, without):
            assert list(audit(log)) == []
        assert _texts(erased) == 0 < _texts(with_content)
        await check(scene, chat)


async def _converse(scene: Scene) -> str:
    chat = await scene.start("Count", title="Counting")
    state = await scene.settled(chat, "requires_action")
    action = state.control.action
    assert action is not None
    await scene.engine.submit_tool_results(
        chat, action.id, {item.call: {"n": 3} for item in action.items if item.call is not None}
    )
    await scene.settled(chat)
    await scene.engine.send_message(chat, "And one?")
    await scene.settled(chat)
    return chat


async def _recorded(store: Store, chat: str, *, content: bool = True) -> list[Recorded]:
    log = await stored_log(store, chat)
    blobs = await blobs_of(store, log) if content else {}
    return [decode(event, blobs=blobs, content=content) for event in log]


def _fold(log: Sequence[Recorded]) -> list[bytes]:
    return [encode_control(step.after.control) for step in replay(log)]


def _decisions(log: Sequence[Recorded]) -> list[object]:
    """What would be done next, at each version at which a worker has the chat."""
    found: list[object] = []
    for step in replay(log):
        control = step.after.control
        policy = step.after.need_transcript("test").policies.get(control.policy)
        if policy is not None:
            found.append(decide_generation_action(step.after, policy))
    assert len(found) > 10
    return found


def _commands(log: Sequence[Recorded]) -> list[list[str]]:
    """What each command would come to, at each version."""
    return [[_outcome(step.after, command) for command in _tried()] for step in replay(log)]


def _tried() -> list[c.AnyCommand]:
    said = QueuedMessage(message=Message(role="user", parts=(TextPart(text=Content("more")),)))
    return [
        c.SendMessage(message=said, queue_limit=2),
        c.SendInterrupting(message=said, queue_limit=2, lease_dead=False),
        c.SendInterrupting(message=said, queue_limit=2, lease_dead=True),
        c.Interrupt(lease_dead=False),
        c.Interrupt(lease_dead=True),
        c.Resume(),
        c.Compact(),
        c.Clear(),
        c.Archive(),
        c.Unarchive(),
    ]


def _outcome(state: ChatState, command: c.AnyCommand) -> str:
    try:
        decided = decide(state, command, state.control.recorded_at + 1)
    except Refusal as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return f"{decided.source} -> {decided.dest}: {decided.event!r}"


def _texts(log: Sequence[Recorded]) -> int:
    """How many texts of messages can still be read."""
    *_, last = replay(log)
    messages = last.after.need_transcript("test").messages
    parts = [part for item in messages for part in item.message.parts if isinstance(part, TextPart)]
    return sum(part.text.available for part in parts)
