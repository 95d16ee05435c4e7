"""A chat in a combination that must not be is refused everything, and led out of it."""

from __future__ import annotations

import pytest

from chatfold import Agent, Engine, Settings, TransitionNotAllowed
from chatstate.errors import InvalidState
from events.encoding import encode
from events.envelope import Envelope, Recorded
from events.ids import ChatId, CommandId
from events.records import Actor
from events.reducer import evolve
from events.vocabulary import TitleChanged
from store.contract import Append, Appended, NewEvent
from store.heading import header_of
from store.loading import load_chat

CHAT = ChatId("broken")


async def break_it(engine: Engine) -> None:
    """Write what no command gives: running, and nobody holds it."""
    loaded = await load_chat(engine.store, CHAT, transcript=True)
    assert loaded is not None
    event = TitleChanged(title=None)
    envelope = Envelope(
        version=2,
        type=event.type,
        schema=event.schema,
        recorded_at=loaded.now,
        actor=Actor(kind="system"),
        source="waiting",
        dest="running",
        command=CommandId("broken by hand"),
        index=0,
    )
    encoded = encode(Recorded(envelope, event), salt=bytes(16), previous_digest=loaded.header.digest)
    state = evolve(loaded.state, Recorded(envelope=encoded.stored.envelope, event=event))
    header = header_of(state, encoded.stored.digest, chat=CHAT, title=None, foreign=False, reader_level=1)
    append = Append(chat=CHAT, expected_version=1, header=header, events=(NewEvent(stored=encoded.stored),))
    assert await engine.store.append(append) == Appended()


async def test_an_invalid_chat_is_led_to_error_and_goes_on_from_there() -> None:
    agent = Agent(name="helper", model="scripted")
    async with Engine("memory://", [agent], worker=False, settings=Settings(poll=0.05)) as engine:
        await engine.create_chat("helper", system="Be brief.", chat_id=CHAT)
        with pytest.raises(TransitionNotAllowed):
            await engine.reconcile(CHAT)
        await break_it(engine)
        with pytest.raises(InvalidState, match="reconcile it first"):
            await engine.send_message(CHAT, "Hello")
        assert (await engine.reconcile(CHAT)).state == "E0"
        assert (await engine.send_message(CHAT, "Hello")).state == "P0"
