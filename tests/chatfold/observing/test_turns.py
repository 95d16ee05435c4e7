"""The turns of a process: which event ends one and how, and what is kept of those that end elsewhere."""

from __future__ import annotations

import pytest

from chatfold import Agent, Engine
from chatfold.observing.turns import _ENDS, Turn, Turns, outcome_of
from events.envelope import Envelope, Recorded, SourceStatus, Status
from events.ids import ChatId, CommandId, MessageId
from events.records import Actor, Policy
from events.vocabulary import EVENT_TYPES, TurnInterrupted
from generation.observing import Effect

CHAT = ChatId("chat")
POLICY = Policy(agent="helper", revision="1", model=None)


def recorded(type_: str, source: SourceStatus, dest: Status) -> Recorded:
    envelope = Envelope(
        version=2,
        type=type_,
        schema=1,
        recorded_at=5,
        actor=Actor(kind="user"),
        source=source,
        dest=dest,
        command=CommandId("c"),
        index=0,
    )
    return Recorded(envelope, TurnInterrupted())


def effect(turn: str = "1.0", attempt: int = 1, chat: ChatId = CHAT, began_at: int = 100) -> Effect:
    return Effect(
        chat=chat,
        owner="ann",
        agent="helper",
        turn=MessageId(turn),
        history_version=1,
        attempt=attempt,
        epoch=1,
        kind="generate",
        policy=POLICY,
        began_at=began_at,
    )


def test_the_events_that_end_turns_exist() -> None:
    assert set(_ENDS) <= set(EVENT_TYPES)


@pytest.mark.parametrize(
    ("type_", "source", "dest", "outcome"),
    [
        ("turn_finished", "running", "waiting", "completed"),
        ("turn_finished", "running", "running", "completed"),
        ("turn_failed", "running", "error", "error"),
        ("interruption_finished", "running", "waiting", "interrupted"),
        ("interruption_finished", "running", "running", "interrupted"),
        ("turn_interrupted", "running", "running", None),
        ("turn_interrupted", "running", "waiting", "interrupted"),
        ("turn_interrupted", "requires_action", "waiting", "interrupted"),
        ("turn_interrupted", "pending", "pending", "interrupted"),
        ("message_sent_interrupting", "running", "running", None),
        ("message_sent_interrupting", "requires_action", "pending", "interrupted"),
        ("message_sent_interrupting", "waiting", "pending", None),
        ("queued_message_promoted", "error", "pending", None),
        ("queued_message_promoted", "pending", "pending", "interrupted"),
        ("message_edited", "running", "running", "abandoned"),
        ("message_edited", "waiting", "pending", None),
        ("action_expired_turn_ended", "requires_action", "waiting", "abandoned"),
        ("action_expired", "requires_action", "pending", None),
        ("retry_scheduled", "running", "pending", None),
        ("released", "running", "pending", None),
    ],
)
def test_how_an_event_ends_a_turn(type_: str, source: SourceStatus, dest: Status, outcome: str | None) -> None:
    assert outcome_of(recorded(type_, source, dest)) == outcome


def test_a_turn_has_ended_once_nothing_works_on_it() -> None:
    ended: list[Turn] = []
    turns = Turns(ended.append)
    turns.held(CHAT, 7)
    overtaken = effect()
    turn = turns.join(overtaken)
    assert turn.began_at == 7
    turns.lose(CHAT, 200)
    assert ended == []
    assert turns.join(effect(attempt=2)) is not turn
    turns.leave(overtaken)
    assert [(each is turn, each.outcome, each.ended_at) for each in ended] == [(True, "abandoned", 200)]


def test_a_turn_whose_end_was_written_elsewhere_is_abandoned_by_the_next() -> None:
    ended: list[Turn] = []
    turns = Turns(ended.append)
    first = effect()
    turns.join(first)
    turns.leave(first)
    assert ended == []
    turns.join(effect("9.0", attempt=2, began_at=300))
    assert [(turn.id, turn.outcome, turn.ended_at) for turn in ended] == [("1.0", "abandoned", 300)]


async def test_idle_turns_are_forgotten() -> None:
    ended: list[Turn] = []
    turns = Turns(ended.append, most=2)
    async with Engine("memory://", [Agent(name="helper", model="scripted/any")], worker=False) as engine:
        engine.runtime.journal._told = turns.appended
        for number in range(5):
            await engine.create_chat("helper", owner="ann", message=f"Hello {number}.")
    assert len(turns) == 2
    assert ended == [], "what never began here has no end here"


async def test_a_turn_ended_by_its_user_alone_has_an_end() -> None:
    ended: list[Turn] = []
    turns = Turns(ended.append)
    async with Engine("memory://", [Agent(name="helper", model="scripted/any")], worker=False) as engine:
        engine.runtime.journal._told = turns.appended
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await engine.interrupt(created.chat)
    assert [(turn.outcome, turn.last) for turn in ended] == [("interrupted", None)]
    assert len(turns) == 0
