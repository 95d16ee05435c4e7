"""``Engine``: the composition root that applications embed.

Opens the store, makes the shared parts, runs a worker or not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Final, Self

from msgspec import structs

from chatfold.checks import checked_chat, checked_flag, checked_providers, checked_store
from chatfold.clock import DatabaseClock
from chatfold.commands import ChatCommands
from chatfold.diagnosis import Diagnosis, diagnose
from chatfold.feed import FeedItem, feed_position, follow_feed
from chatfold.observing.setting import recording
from chatfold.providers import ProviderPool
from chatfold.randomness import new_id, salt
from chatfold.receipts import QueueEntry, queue_entries
from chatfold.refusals import Refusals
from chatfold.retention import expired
from chatfold.settings import Settings, stray_variables
from chatfold.stream import ChatStream, StreamItem
from chatfold.transfer import ImportedChat, import_file, stored_log
from chatfold.version import RELEASE
from chatstate.errors import ChatNotFound
from events.control import decode_control
from events.envelope import Recorded
from events.given import checked_kind
from events.ids import WorkerId
from events.logfile import LogFile, read_log
from events.replay import state_at
from events.state import ChatState
from events.values import checked_whole
from generation.agents import Agent
from generation.cursor import Cursor
from generation.errors import AgentDeclarationError
from generation.hooks.dispatch import Hook, Hooks
from generation.observing import CLOSING, NOBODY, Observer, checked_observers, observer_of
from generation.parts import PartBuffer
from generation.providers.contract import Provider
from generation.runtime import Runtime, boot_clock
from generation.worker import Worker
from store import Store
from store.append import Journal
from store.contract import Header, Hint
from store.loading import read_recorded
from store.log import get_logger
from store.query import ChatQuery
from store.rules import is_settled
from store.warm import WarmChats

_log: Final = get_logger(__name__)


class Engine(ChatCommands):
    """A chat engine over a store. Use it as an async context manager.

    Args:
        store: A store URL (``sqlite:///chats.db``, ``postgresql://...``, ``memory://``) or a store.
        agents: Agents that chats may name.
        worker: Whether this process runs chats; without it it only takes commands and reads.
        providers: Providers by name, in place of or beside the built-in ones.
        settings: Times and limits; None reads ``CHATFOLD_*`` and the TOML file.
        observers: Metrics, traces and the like; what they raise is logged, and fails nothing.
        hooks: Are asked before and after what happens, in order, and may stop it: see ``chatfold.hooks``.

    Raises:
        AgentDeclarationError: Two agents have one name, or something is no agent, no hook, no observer, or no list.
        InvalidStoreUrl: The URL has none of the known forms.
        InvalidValue: The store, the settings or a provider is none, the providers are no mapping, or ``worker`` is
            neither True nor False.
    """

    def __init__(
        self,
        store: Store | str,
        agents: Iterable[Agent] = (),
        *,
        worker: bool = True,
        providers: Mapping[str, Provider] | None = None,
        settings: Settings | None = None,
        observers: Iterable[Observer] = (),
        hooks: Hooks | Iterable[Hook] = (),
    ) -> None:
        if settings is not None:
            checked_kind(settings, Settings, "$.settings", "a Settings")
        self.settings = settings or Settings()
        for variable, nearest in stray_variables():
            _log.warning("setting_unknown", variable=variable, nearest=nearest)
        self.queue_limit = self.settings.queue_limit
        self._store = checked_store(store)
        self._clock = DatabaseClock(boot_clock)
        self.providers = ProviderPool(checked_providers(providers), base_url=self.settings.base_url)
        self.refusals = Refusals(self._store)
        self._runs = checked_flag(worker, "$.worker")
        self.observer = observer_of((*checked_observers(observers), *recording(self.settings.debug_folder)))
        self._entered = False
        self._closing = asyncio.Lock()
        self.worker = None
        self._attending: asyncio.Task[None] | None = None
        self.runtime = Runtime(
            journal=Journal(
                self._store,
                salt,
                warm=WarmChats(self.settings.warm_mb << 20),
                told=self.observer.appended if self.observer is not NOBODY else None,
            ),
            agents=_by_name(agents),
            provider=self.providers.get,
            parts=PartBuffer(time.monotonic, dropped=self.observer.preview_dropped),
            now=self._clock.now,
            new_id=new_id,
            release=RELEASE,
            settings=self.settings.worker_settings(),
            worker=WorkerId(""),
            observer=self.observer,
            hooks=hooks if isinstance(hooks, Hooks) else Hooks(hooks),
        )

    @property
    def store(self) -> Store:
        """The store."""
        return self._store

    async def __aenter__(self) -> Self:
        """Open the store and start the worker.

        Raises:
            StoreUnavailable: The database cannot be reached.
            SchemaOutdated: The database must be migrated first.
        """
        await self._store.__aenter__()
        try:
            if self._runs:
                self.providers.load(self.runtime.agents.values())
                worker = Worker(self.runtime, self._clock.set)
                await worker.start()
                self.worker = worker
        except BaseException:
            await self._store.__aexit__(None, None, None)
            raise
        if self.observer is not NOBODY:
            self._attending = asyncio.create_task(self.observer.attend(self._store), name="observers")
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of all chats (running tools get their grace), then close providers and store.

        A second call waits for the first. A call that is cancelled closes at once; others take its chats over.
        """
        async with self._closing:
            if not self._entered:
                return
            self._entered = False
            try:
                if self.worker is not None:
                    await self.worker.stop()
            finally:
                self.worker = None
                try:
                    await self._unattend()
                    await self.refusals.close()
                    await self.providers.close()
                    await self.observer.close()
                finally:
                    await self._store.__aexit__(kind, error, trace)

    async def _unattend(self) -> None:
        task, self._attending = self._attending, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSING)

    async def state(self, chat: str, at: int | None = None) -> ChatState:
        """Return the chat's state, with its transcript, at a version (None: now; 0: before it began).

        Raises:
            ChatNotFound: There is no such chat, or it has no such version.
            InvalidValue: The version is negative or no number.
        """
        if at is None:
            return (await self._load("state", checked_chat(chat))).state
        log = await self.events(chat, upto=checked_whole(at, "$.at"))
        if len(log) < at:
            raise ChatNotFound("state", "N", f"chat {chat} has no version {at}")
        return state_at(log, at)

    async def queue(self, chat: str) -> Sequence[QueueEntry]:
        """Return the messages that wait in the chat's queue, in the order in which they will be taken up.

        Raises:
            ChatNotFound: There is no such chat.
        """
        return queue_entries(await self.state(chat))

    async def events(self, chat: str, *, after: int = 0, upto: int | None = None) -> Sequence[Recorded]:
        """Return committed events with ``after`` < version <= ``upto``.

        Raises:
            ChatNotFound: There is no such chat.
        """
        source, first = checked_chat(chat), checked_whole(after, "$.after")
        last = None if upto is None else checked_whole(upto, "$.upto")
        log = await read_recorded(self._store, source, after=first, upto=last)
        if not log:
            await self._header_of("events", source)
        return log

    async def stream(self, chat: str, cursor: str | None = None) -> AsyncGenerator[StreamItem, None]:
        """Yield committed events after ``cursor`` and then all that happens, with live parts; it never ends by itself.

        Live parts are a preview, best effort, of chats that run in this process; committed events are the truth, each
        told once and in order. Close the iterator (``contextlib.aclosing``) when you stop before the end.

        Args:
            chat: The chat.
            cursor: A receipt's or a stream item's; None: from the chat's first event.

        Raises:
            ChatNotFound: There is no such chat.
            CursorInvalid: The cursor is not one that this release wrote, or it is ahead of the chat.
        """
        position = (
            Cursor.parse(checked_kind(cursor, str, "$.cursor", "a cursor's text")) if cursor is not None else Cursor()
        )
        follower = ChatStream(self._store, self.runtime.parts, checked_chat(chat), position, self.settings.poll)
        async with aclosing(follower.items()) as items:
            async for item in items:
                yield item

    async def feed(self, after: str | None = None) -> AsyncGenerator[FeedItem, None]:
        """Yield the events of all chats behind ``after``, and then all that are committed; it never ends by itself.

        One order for all, in which each chat's events come by version, and nothing appears before a place that was
        passed, however many processes write. Keep the cursor of the last item together with what you made of it, and
        begin there again: each event is then seen exactly once. Close the iterator when you stop.

        Args:
            after: The cursor of the last item taken; None: from the first event that the store has.

        Raises:
            InvalidValue: It is no such cursor.
            FeedEventUnreadable: An event cannot be read; a feed after the error's ``cursor`` goes on behind it.
            StoreUnavailable: The store cannot be read.
        """
        async with aclosing(follow_feed(self._store, feed_position(after))) as items:
            async for item in items:
                yield item

    async def feed_end(self) -> str:
        """Return the cursor behind all events that are committed now: for a consumer that wants only what comes."""
        return (await self._store.feed_end()).cursor

    async def diagnose(self, chat: str) -> Diagnosis:
        """Say why the chat stands where it stands, what happens next, and when.

        Raises:
            ChatNotFound: There is no such chat.
        """
        known = checked_chat(chat)
        loaded = await self._header_of("diagnose", known)
        workers, refusal = await self._store.list_workers(), await self._store.last_refusal(known)
        return diagnose(loaded, decode_control(loaded.header.control), workers, refusal)

    async def settled(self, chat: str) -> ChatState:
        """Wait until no worker owes the chat anything, and return its state: it waits, failed, or asks its client.

        A chat that was imported and not adopted is returned as it is. There is no time limit: where no process has the
        chat's agent, only ``asyncio.timeout`` ends the waiting.

        Raises:
            ChatNotFound: There is no such chat.
        """
        known = checked_chat(chat)
        # Of a chat that this process runs it hears by its own appends: nothing is read, nobody is woken in between.
        while (warm := self.runtime.journal.warm.get(known)) is not None and self._runs_here(warm.header):
            done = await self.runtime.journal.warm.settled(known, self.settings.poll)
            if done is not None:
                return done.state
            await self.runtime.journal.load(known, transcript=True)
        async with self._store.hints(known) as hints:
            while True:
                loaded = await self._header_of("settled", known)
                if is_settled(loaded.header):
                    return await self.state(chat)
                await _next_hint(hints, loaded.header.version, self.settings.poll)

    def _runs_here(self, header: Header) -> bool:
        return header.status == "running" and header.holder == self.runtime.worker and not header.foreign

    async def export_log(self, chat: str, *, blobs: bool = True) -> bytes:
        """Return the chat's log as a log file: one JSON object a line, the stored bytes as they are.

        Args:
            chat: The chat.
            blobs: Whether its large contents go with it.

        Raises:
            ChatNotFound: There is no such chat.
        """
        return b"".join((await stored_log(self._store, checked_chat(chat), blobs=blobs)).lines())

    async def import_log(
        self, log: LogFile | bytes, *, name: str = "log", as_id: str | None = None, adopt: bool = False
    ) -> ImportedChat:
        """Write a log as a new chat, which is *foreign*: it is read, replayed and forked, and runs only once adopted.

        Args:
            log: What ``export_log`` or ``load_log`` gave.
            name: The file's name, for errors.
            as_id: The id it shall have here; None for its own.
            adopt: Whether to take it over at once, so that it runs here.

        Raises:
            ChatExists: The id is, or was, in use.
            LogFileError: It is not a log file.
            DigestMismatch: It is not as it was written.
            EventsError: It cannot be read.
            InvalidValue: It is neither bytes nor a log, or its id cannot be a chat's here: give another one.
        """
        wanted = "the bytes of a log file, or what load_log(path) gives"
        file = (
            read_log(log.splitlines(), name) if isinstance(log, bytes) else checked_kind(log, LogFile, "$.log", wanted)
        )
        imported = await import_file(self._store, file, name=name, as_id=as_id)
        if not adopt:
            return imported
        receipt = await self.adopt(imported.chat)
        return structs.replace(imported, version=receipt.version)

    async def list_chats(self, query: ChatQuery | None = None) -> Sequence[Header]:
        """Return headers of chats, newest change first.

        Raises:
            InvalidValue: The query is none.
        """
        if query is not None:
            checked_kind(query, ChatQuery, "$.query", "a ChatQuery")
        return await self._store.list_chats(query or ChatQuery())

    async def expired_chats(self, query: ChatQuery | None = None) -> AsyncGenerator[Header, None]:
        """Yield the headers of chats whose retention has run out and that can be deleted, each as it is at that moment.

        Their time counts from their last change (``Header.updated_at``, ``Header.expires_at``). Those in which a turn
        is under way are passed by. All headers that match are read, a page at a time: it is made for a job that runs
        now and then. Deleting what it yields is what it is for; close the iterator when you stop before the end.

        Args:
            query: Among which chats to look; of ``limit`` and ``before`` it takes no notice. None: among all.

        Raises:
            InvalidValue: The query is none.
            StoreUnavailable: The store cannot be read.
        """
        if query is not None:
            checked_kind(query, ChatQuery, "$.query", "a ChatQuery")
        async with aclosing(expired(self._store, query or ChatQuery())) as headers:
            async for header in headers:
                yield header


async def _next_hint(hints: AsyncIterator[Hint], version: int, poll: float) -> None:
    """Wait for a hint that the chat is newer than ``version``, at most ``poll`` seconds."""
    try:
        async with asyncio.timeout(poll):
            async for hint in hints:
                if hint.version > version:
                    return
    except TimeoutError:
        return


def _by_name(agents: Iterable[Agent]) -> dict[str, Agent]:
    named: dict[str, Agent] = {}
    if isinstance(agents, Agent | str) or not isinstance(agents, Iterable):
        raise AgentDeclarationError("agents", f"must be a list of Agent, not {type(agents).__name__}: write [agent]")
    for agent in agents:
        if not isinstance(agent, Agent):
            raise AgentDeclarationError("agents", f"{agent!r:.80} is no Agent")
        if agent.name in named:
            raise AgentDeclarationError(f"agent {agent.name!r}", "two agents have this name")
        named[agent.name] = agent
    return named
