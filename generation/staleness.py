"""Staleness: whether a chat's context source has another context by now than history records, and the mark for it.

Looking is best effort and changes no history; collecting anew is asked for by the chat's user.
"""

from __future__ import annotations

import asyncio
from typing import Final

from chatstate import commands as c
from events.control import Control
from events.ids import ChatId
from events.records import ContextMarking
from generation.context import WatchedSource
from generation.foreign import contained
from generation.plans import may_write_beside
from generation.runtime import Runtime
from store.append import CommandIdentity, PlanRun
from store.log import get_logger

_log = get_logger(__name__)


def watched(runtime: Runtime, control: Control) -> WatchedSource | None:
    """Return whom to ask whether a chat's context is stale; None where it is not here, or history has nothing of it."""
    agent = runtime.agents.get(control.agent)
    source = None if agent is None else agent.context
    if source is None or control.indexes.context_source != source.name:
        return None
    return source if isinstance(source, WatchedSource) else None


def mark_for(control: Control, source: str, revision: str) -> ContextMarking | None:
    """Return how to mark a chat whose source has a revision now; None where nothing new is known."""
    indexes = control.indexes
    if indexes.context_source != source or control.context_refresh_at is not None:
        return None  # another one is recorded, or it is collected anew in any case
    stale = control.context_stale_since is not None
    if indexes.context_revision == revision:
        return "fresh" if stale else None
    return None if stale else "stale"


async def look_whether_stale(runtime: Runtime, chat: ChatId, control: Control, identity: CommandIdentity) -> Control:
    """Ask a chat's source once, mark the chat where that says something new, and return its control.

    Args:
        runtime: The process's parts.
        chat: The chat.
        control: As it is known; history may have moved on.
        identity: Who looks.

    Raises:
        Exception: The source failed.
        TimeoutError: It did not answer within the setting ``context_timeout``.
        StoreError: The mark was not written.
        Refusal: The chat is not one that can be marked.
    """
    source = watched(runtime, control)
    if source is None:
        return control
    async with asyncio.timeout(runtime.settings.context_timeout):
        with contained():
            revision = await source.revision_for(chat)
    if mark_for(control, source.name, revision) is None:
        return control

    def plan(run: PlanRun) -> None:
        mark = mark_for(run.state.control, source.name, revision)
        if mark is not None and may_write_beside(run):
            run.do(c.MarkContext(mark=mark, revision=revision))

    return (await runtime.journal.execute(chat, plan, identity)).chat.state.control


class StalenessWatch:
    """The looks that a worker takes at the chats that it begins to run; each a task beside the chat's own.

    Args:
        runtime: The process's parts.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tasks: Final[dict[ChatId, asyncio.Task[None]]] = {}

    def look(self, chat: ChatId, control: Control) -> None:
        """Begin to look at a chat, unless a look is under way or its agent has no source that is watched."""
        if chat in self._tasks or watched(self._runtime, control) is None:
            return
        task = self._tasks[chat] = asyncio.create_task(self._look(chat, control), name=f"staleness {chat}")
        task.add_done_callback(lambda _: self._tasks.pop(chat, None))

    async def stop(self) -> None:
        """End the looks that are under way."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    async def _look(self, chat: ChatId, control: Control) -> None:
        try:
            await look_whether_stale(self._runtime, chat, control, self._runtime.identity())
        except Exception as error:  # noqa: BLE001 - an application's source may raise anything; the next run looks again
            _log.warning("staleness_not_known", chat=chat, exc_info=error)
