"""Scenarios of states: a chat is led to each execution state, and all is done there that leaves the state as it is.

Then it is moved to another store, which is the one thing more that may happen to a chat in any state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from chatfold import Engine
from chatfold.testing import Fail, Turn, UseTool, turn
from chatstate.classify import ARCHIVED, X, classify
from store.memory import MemoryStore
from tests.corpus.features import held
from tests.corpus.kit import CONTEXT, DENIED, Scenario, Scene, assistant

_AGENTS: Final = [assistant(context=CONTEXT), assistant("other", context=CONTEXT)]
_STUBBORN: Final = turn(UseTool("stubborn", {"seconds": 1000}))


async def _new(scene: Scene, script: Sequence[str | Turn], *, worker: bool = True) -> tuple[Engine, str]:
    engine = await scene.engine(script, agents=_AGENTS, worker=worker)
    chat = (await engine.create_chat("assistant", "Hello.", owner="ann")).chat
    return engine, chat


async def _queued(engine: Engine, chat: str, count: int = 3) -> None:
    for number in range(count):
        await engine.send_message(chat, f"And {number}?")


async def _pending(scene: Scene, *, queued: bool) -> tuple[Engine, str]:
    engine, chat = await _new(scene, [], worker=False)
    if queued:
        await _queued(engine, chat)
    return engine, chat


async def _running(scene: Scene, *, queued: bool) -> tuple[Engine, str]:
    engine, chat = await _new(scene, [held(scene, "Half "), *["More."] * 9])
    await scene.holds()
    if queued:
        await _queued(engine, chat)
    return engine, chat


async def _interrupting(scene: Scene, *, queued: bool) -> tuple[Engine, str]:
    engine, chat = await _new(scene, [_STUBBORN, *["More."] * 9])
    await asyncio.sleep(3)
    await engine.interrupt(chat)
    if queued:
        await _queued(engine, chat)
    return engine, chat


async def _asking(scene: Scene, *, queued: bool) -> tuple[Engine, str]:
    engine, chat = await _new(scene, [turn(UseTool("sign", {})), *["More."] * 9])
    await engine.settled(chat)
    if queued:
        await _queued(engine, chat)
    return engine, chat


async def _waiting(scene: Scene) -> tuple[Engine, str]:
    engine, chat = await _new(scene, ["Hello."])
    await engine.settled(chat)
    return engine, chat


async def _failed(scene: Scene, *, queued: bool) -> tuple[Engine, str]:
    engine, chat = await _new(scene, [held(scene), turn(Fail(DENIED)), *["More."] * 9])
    await scene.holds()
    await engine.edit_message(chat, "1.0", "Hello again.")  # the second turn fails, with what was queued meanwhile
    if queued:
        await _queued(engine, chat)
    await engine.settled(chat)
    return engine, chat


async def _archived(scene: Scene, reach: Callable[[Scene], Awaitable[tuple[Engine, str]]]) -> tuple[Engine, str]:
    engine, chat = await reach(scene)
    await engine.archive(chat)
    return engine, chat


_REACH: Final[dict[X, Callable[[Scene], Awaitable[tuple[Engine, str]]]]] = {
    X.P0: partial(_pending, queued=False),
    X.P1: partial(_pending, queued=True),
    X.R0: partial(_running, queued=False),
    X.R1: partial(_running, queued=True),
    X.I0: partial(_interrupting, queued=False),
    X.I1: partial(_interrupting, queued=True),
    X.A0: partial(_asking, queued=False),
    X.A1: partial(_asking, queued=True),
    X.W: _waiting,
    X.E0: partial(_failed, queued=False),
    X.E1: partial(_failed, queued=True),
    X.XW: partial(_archived, reach=_waiting),
    X.XE0: partial(_archived, reach=partial(_failed, queued=False)),
    X.XE1: partial(_archived, reach=partial(_failed, queued=True)),
}


async def walk(engine: Engine, chat: str, state: X) -> None:
    """Do all that leaves a chat in its state."""
    await engine.set_title(chat, "A title")
    await engine.set_labels(chat, {"kind": "sample"})
    await engine.erase(chat, ["1.0"])
    if state in ARCHIVED:
        return
    await engine.set_model(chat, "scripted/other")
    await engine.set_active_tools(chat, ["add", "sign", "stubborn"])
    await engine.set_agent(chat, "other")
    await engine.set_pinned(chat, pinned=True)
    await engine.set_retention(chat, 86_400.0)
    await engine.refresh_context(chat)
    if state.value.endswith("1"):
        ids = [entry.id for entry in await engine.queue(chat)]
        await engine.edit_queued(chat, ids[0], "Something else.")
        await engine.reorder_queue(chat, [*ids[1:], ids[0]])
        await engine.delete_queued(chat, ids[1])


async def _in_state(scene: Scene, state: X) -> str:
    engine, chat = await _REACH[state](scene)
    await walk(engine, chat, state)
    found = classify((await engine.state(chat)).control)
    assert found is state, f"{found} instead of {state}"
    moved = await scene.engine(agents=_AGENTS, worker=False, store=MemoryStore())
    await moved.import_log(await engine.export_log(chat), adopt=True)
    scene.store = moved.store  # type: ignore[assignment]  # it is one of memory
    if state in ARCHIVED:
        await moved.unarchive(chat)
    elif state.value.endswith("1"):
        ids = [entry.id for entry in await moved.queue(chat)]
        await moved.promote_queued(chat, ids[-1])
        await _emptied(moved, chat)
    return chat


async def _emptied(engine: Engine, chat: str) -> None:
    """Take what waits out of the queue, one after the other."""
    for entry in await engine.queue(chat):
        await engine.delete_queued(chat, entry.id)


STATES: Final[dict[str, Scenario]] = {f"in_{state.value}": partial(_in_state, state=state) for state in _REACH}
"""Scenarios by name, one for each state."""
