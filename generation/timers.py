"""Retries and deadlines whose time was set by a clock that was put back since: they are not waited for twice.

The store finds what is due by the database's clock. Where that is put back, what was to come in a minute comes an hour
and a minute later. A process whose own clock went on (it counts since the machine started) knows when the minute is
over; then the chat is served as one that is due, and its event is recorded at the time it was due at.

Owns what is known of such chats. A chat tells of itself that the clock was put back while its last event lies ahead;
others are found when a heartbeat shows it. A process that starts later knows of the former alone, and waits for them as
long as was to be waited in the first place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from events.control import decode_control
from events.errors import EventsError
from events.ids import ChatId
from generation.runtime import Runtime
from store.contract import DueChat, Header
from store.errors import MalformedRow, StoreError
from store.loading import LoadedChat
from store.log import get_logger
from store.query import ChatQuery
from store.schema import READER_LEVEL

STEP_US: Final = 1_000_000
"""Microseconds by which clocks may differ without having been put back."""

_WAITING: Final = ("pending", "requires_action")
"""Statuses of chats that may wait for a time."""

_QUERY: Final = ChatQuery(statuses=_WAITING, limit=200)

_PAGES: Final = 5
"""Pages that are looked through where nothing tells that the clock was just put back."""

_log = get_logger(__name__)


class Timer(NamedTuple):
    """A chat whose time comes at ``at`` by the clock of this process; ``due_at`` is what its header says."""

    due_at: int
    at: float
    due: DueChat


class Timers:
    """Knows when chats are due whatever the database's clock says.

    Args:
        runtime: The shared parts; ``put_back`` is kept here.
        wake_in: Has the worker look for due chats after so many seconds.
        beat: Seconds between heartbeats: so long after it was put back the clock may be found to have been.
    """

    def __init__(self, runtime: Runtime, wake_in: Callable[[float], None], beat: float) -> None:
        self._runtime = runtime
        self._wake_in = wake_in
        self._unclear = round(2 * beat * 1e6)
        self._known: dict[ChatId, Timer] = {}
        self._any_ahead = True

    def overdue(self) -> list[DueChat]:
        """Return the chats whose time has come."""
        now = self._runtime.boot()
        ripe = [(chat, timer) for chat, timer in self._known.items() if timer.at <= now]
        self._runtime.put_back.update((chat, timer.due_at) for chat, timer in ripe)
        return [timer.due for _, timer in ripe]

    def note(self, loaded: LoadedChat) -> None:
        """Take note of a chat as it stands now."""
        recorded_at = loaded.state.control.recorded_at
        if recorded_at > self._runtime.now() + STEP_US:
            self._any_ahead = True
            self._take(loaded.header, recorded_at)
        else:
            self._forget_if_moved_on(loaded.header.chat, loaded.header)

    async def look(self, was: int | None) -> None:
        """Find such chats, after a heartbeat, and forget those that moved on.

        Args:
            was: What the database's clock would say now had it not just been put back; None where it was not.

        Raises:
            StoreError: The store is away.
        """
        for chat, timer in list(self._known.items()):
            if timer.at <= self._runtime.boot():
                await self._see(chat, timer)
        if was is None and not self._any_ahead:
            return
        self._any_ahead = False
        try:
            await self._find(was)
        except MalformedRow as error:
            _log.warning("timers_not_found", error=str(error))
        except StoreError:
            self._any_ahead = True  # what was not seen by now is looked for after the next heartbeat
            raise

    async def _see(self, chat: ChatId, timer: Timer) -> None:
        """Look whether a chat whose time has come still waits for it."""
        try:
            loaded = await self._runtime.journal.store.load_header(chat)
        except MalformedRow:
            loaded = None
        if self._known.get(chat) is timer:  # and not another's that was noted meanwhile
            self._forget_if_moved_on(chat, loaded.header if loaded is not None else None)

    def _forget_if_moved_on(self, chat: ChatId, header: Header | None) -> None:
        """Forget a chat once it is another time that is set, or none. Whatever else was done to it, it waits on."""
        timer = self._known.get(chat)
        if timer is None:
            return
        if header is None or header.due_at != timer.due_at or not self._waits_here(header):
            self._forget(chat)

    async def _find(self, was: int | None) -> None:
        """Go through the chats that wait for a time, newest first: all of them where the clock was just put back."""
        now, query, pages = self._runtime.now(), _QUERY, 0
        while (was is not None or pages < _PAGES) and (page := await self._runtime.journal.store.list_chats(query)):
            for header in page:
                if header.due_at is not None and header.due_at > now:
                    self._look_at(header, now, was)
            query, pages = msgspec.structs.replace(query, before=(page[-1].listed_at, page[-1].chat)), pages + 1

    def _look_at(self, header: Header, now: int, was: int | None) -> None:
        try:
            recorded_at = decode_control(header.control).recorded_at
        except EventsError:
            return  # whoever runs the chat says what is wrong with it
        if recorded_at > now + STEP_US:
            self._any_ahead = True
            self._take(header, recorded_at if was is None else max(was, recorded_at))
        elif was is not None and recorded_at < now - self._unclear:
            # What seems to have been written a moment ago was, or was as long ago as the clock was put back.
            self._take(header, was)

    def _take(self, header: Header, since: int) -> None:
        """Note when a chat's time comes, where the clock that it was set by says ``since`` now."""
        chat, due_at = header.chat, header.due_at
        if due_at is None or not self._waits_here(header):
            self._forget(chat)
            return
        known = self._known.get(chat)
        if known is not None and known.due_at == due_at:
            return
        left = max(due_at - since, 0) / 1e6
        kind = DueChat(chat, "pending" if header.status == "pending" else "expired", header.owner)
        self._known[chat] = Timer(due_at, self._runtime.boot() + left, kind)
        self._wake_in(left)

    def _waits_here(self, header: Header) -> bool:
        """Whether a chat waits for a time, and this worker may serve it."""
        ours = not header.foreign and header.agent in self._runtime.agents and header.reader_level <= READER_LEVEL
        return ours and header.status in _WAITING

    def _forget(self, chat: ChatId) -> None:
        self._known.pop(chat, None)
        self._runtime.put_back.pop(chat, None)
