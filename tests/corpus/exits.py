"""Scenarios of exits: each way that users have out of a state, one after the other in the same chat."""

from __future__ import annotations

from typing import Final

from chatfold import Engine
from chatfold.testing import Fail, UseTool, turn
from tests.corpus.kit import DENIED, Scenario, Scene, assistant, talk

_SIGN: Final = turn(UseTool("sign", {}))
_FAILS: Final = turn(Fail(DENIED))


async def _newest(engine: Engine, chat: str) -> str:
    """Return the id of the user's newest message."""
    messages = (await engine.state(chat)).messages
    return next(item.id for item in reversed(messages) if item.message.opens_turn)


async def out_of_pending(scene: Scene) -> str:
    """Nobody takes the chat, and its user changes everything about it."""
    engine = await scene.engine([], worker=False)
    chat = (await engine.create_chat("assistant", "Hello.")).chat
    await engine.edit_message(chat, "1.0", "Hello!")
    await engine.send_message(chat, "Now!", busy="interrupt")
    for _ in range(3):
        await engine.send_message(chat, "Later.")
    await engine.interrupt(chat)
    await engine.promote_queued(chat, (await engine.queue(chat))[-1].id)
    await engine.promote_queued(chat, (await engine.queue(chat))[-1].id)
    await engine.send_message(chat, "Later.")
    await engine.interrupt(chat)
    await engine.send_message(chat, "Later.")
    await engine.edit_message(chat, await _newest(engine, chat), "At once.")
    await engine.interrupt(chat)
    return chat


async def out_of_asking(scene: Scene) -> str:
    """The chat asks its client again and again, and gets everything but an answer."""
    engine = await scene.engine([_SIGN] * 20)
    chat = await talk(engine, "Sign.")
    await engine.send_message(chat, "Now!", busy="interrupt")
    await engine.settled(chat)
    await engine.edit_message(chat, await _newest(engine, chat), "Sign, please.")
    await engine.settled(chat)
    for count in (1, 1, 2, 2):
        for _ in range(count):
            await engine.send_message(chat, "Later.")
        if count == 1:
            await engine.promote_queued(chat, (await engine.queue(chat))[0].id)
        else:
            await engine.interrupt(chat)
        await engine.settled(chat)
    await engine.send_message(chat, "Now!", busy="interrupt")
    await engine.settled(chat)
    for entry in await engine.queue(chat):
        await engine.delete_queued(chat, entry.id)
    await engine.send_message(chat, "Later.")
    await engine.interrupt(chat)
    await engine.settled(chat)
    await engine.send_message(chat, "Later.")
    await engine.edit_message(chat, await _newest(engine, chat), "Sign.")
    await engine.settled(chat)
    await engine.interrupt(chat)
    return chat


async def out_of_error(scene: Scene) -> str:
    """Each turn fails, and its user goes on in another way."""
    engine = await scene.engine([_FAILS] * 9, agents=[assistant()])
    chat = await talk(engine, "Hello.")
    await engine.send_message(chat, "Now!", busy="interrupt")
    await engine.settled(chat)
    await engine.clear(chat)
    await talk(engine, "Hello?", chat=chat)
    await engine.edit_message(chat, await _newest(engine, chat), "Hello!")
    await engine.settled(chat)
    return chat


EXITS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario for scenario in (out_of_pending, out_of_asking, out_of_error)
}
"""All of them by name."""
