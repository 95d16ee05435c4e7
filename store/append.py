"""Plans: load, decide, append, and again from the start on a conflict.

A plan is a function from a chat's state to commands, not a list of events: when another event came first, the new
events are folded and the whole plan runs again, fences included. So a decision is never taken on facts that another
event has changed, and it names the version just before its own event. What a plan does besides issuing commands must
be harmless to repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from chatstate.classify import X, classify
from chatstate.commands import Acquire, Adopt, AnyCommand, Erase
from chatstate.decide import decide
from chatstate.errors import (
    ChatForeign,
    ContentTooLarge,
    IdempotencyConflict,
    MessageNotFound,
    Refusal,
    TransitionNotAllowed,
)
from events.codec import decode_each
from events.contentlist import content_blobs, erase_items
from events.control import Control, decode_control, encode_control
from events.digest import GENESIS
from events.encoding import encode_each
from events.envelope import Envelope, Recorded
from events.erasure import content_of_messages, has_message
from events.errors import TooLarge
from events.ids import ChatId, CommandId
from events.levels import NEWEST, level_of_all, readable_at
from events.records import Actor
from events.reducer import evolve, fold
from events.state import ChatState, initial_state
from events.values import DEFAULT_LIMITS, Limits
from events.vocabulary import ContentErased, Event
from store.contract import (
    Append,
    Appended,
    AppendResult,
    CommandRecord,
    Conflict,
    DuplicateCommand,
    Header,
    LoadedHeader,
    NewEvent,
    Store,
)
from store.errors import ChatExists, OutcomeUnknown
from store.failpoints import reach
from store.heading import header_of, listed_at, title_of
from store.loading import LoadedChat, load_state, must_be_there, read_blobs, read_recorded, read_stored
from store.schema import READER_LEVEL, level_of_new_chat
from store.turns import Turn, Turns
from store.warm import WarmChats


class PlanRun:
    """What a plan sees and issues: the state so far, and ``do``.

    Attributes:
        state: The state after the commands so far.
        now: Database time in microseconds UTC.
        lease_dead: Whether the holder that the plan met has a dead lease.
        recorded: Events so far (their envelopes carry version, time and statuses).
        level: The release level of the chat: nothing is written to it that one of that level cannot read.
        newer: Whether the chat asks for a newer release to run it. Commands that this one can fold are taken all the
            same.
        kinds: The types of these events.
        met: The execution states that their commands met.
        unflushed: Set by a plan that ends the attempt which it met under way: no piece of its answer was handed to the
            store, so there is none to drop.
    """

    def __init__(
        self, loaded: LoadedChat | None, now: int, identity: CommandIdentity, write_level: int = READER_LEVEL
    ) -> None:
        self.state: ChatState = loaded.state if loaded is not None else initial_state()
        self.now = now
        self.lease_dead = loaded is not None and loaded.lease_dead
        self.foreign = loaded is not None and loaded.header.foreign
        self.level = loaded.header.reader_level if loaded is not None else level_of_new_chat(write_level)
        self.newer = loaded is not None and self.level > READER_LEVEL
        self._older = loaded is not None and self.level < NEWEST
        self._unreadable = self.newer and loaded is not None and not _reads_whole(loaded.header.control)
        self.recorded: list[Recorded] = []
        self.kinds: set[type[Event]] = set()
        self.met: list[X] = []
        self.unflushed = False
        self._identity = identity

    def do(self, command: AnyCommand, actor: Actor | None = None) -> Recorded:
        """Decide ``command`` on the state so far and fold its event.

        Args:
            command: What to do.
            actor: Who does it, where that is not the append's own actor.

        Raises:
            Refusal: It is not allowed; nothing of the plan will be written unless the plan goes on without it.
        """
        if self.foreign or self.newer:
            self._check(command)
        state, identity = self.state, self._identity
        decided = decide(state, command, self.now)
        if type(command) is Adopt and not self.foreign:
            # Behind the machine's refusals: a chat that does not exist is nobody's.
            raise TransitionNotAllowed(command.trigger, classify(state.control), "the chat is this store's already")
        event = self._readable(command, decided.event) if self._older else decided.event
        envelope = Envelope(
            version=state.control.version + 1,
            type=event.type,
            schema=event.schema,
            recorded_at=decided.recorded_at,
            actor=actor or identity.actor,
            source=decided.source,
            dest=decided.dest,
            command=identity.command,
            index=len(self.recorded),
        )
        recorded = Recorded(envelope, event)
        self.met.append(decided.met)
        self.state = evolve(state, recorded)
        self.recorded.append(recorded)
        self.kinds.add(type(event))
        self.foreign = False
        return recorded

    def _readable(self, command: AnyCommand, event: Event) -> Event:
        """Return an event without what releases of the chat's level cannot read: they may run it still.

        A chat that begins gets the level that its first events need.
        """
        try:
            return readable_at(event, self.level)
        except ValueError:
            reason = "older releases may run this chat, and do not know what this does"
            raise TransitionNotAllowed(command.trigger, classify(self.state.control), reason) from None

    def _check(self, command: AnyCommand) -> None:
        """Refuse what a chat that is foreign, or that a newer release wrote, does not take."""
        if self.foreign and type(command) is not Adopt:
            raise ChatForeign(command.trigger, classify(self.state.control), "it was imported; fork or adopt it first")
        if self._unreadable or (self.newer and type(command) is Acquire):
            reason = "a newer release wrote this chat: upgrade this process"
            raise TransitionNotAllowed(command.trigger, classify(self.state.control), reason)


Plan: TypeAlias = Callable[[PlanRun], None]
"""Issues commands by ``run.do``; runs again from the start on a conflict."""


class CommandIdentity(Struct, frozen=True, kw_only=True, gc=False):
    """Who asks for an append, and under which id.

    ``fingerprint`` identifies the content of a command whose id the caller chose: the same id with another fingerprint
    is refused.
    """

    command: CommandId
    actor: Actor
    fingerprint: bytes | None = None


class _Asked(Struct, frozen=True):
    """What ``Journal.execute`` was asked for; see there."""

    chat: ChatId
    plan: Plan
    identity: CommandIdentity
    transcript: bool
    now: Callable[[], int] | None
    estimate: Callable[[], int] | None


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """What an append did.

    Attributes:
        chat: The chat after it, with what was known before kept up: no second read.
        recorded: The events of the command.
        repeated: The command was in the log already; nothing was written.
    """

    chat: LoadedChat
    recorded: tuple[Recorded, ...]
    repeated: bool = False


class Journal:
    """Runs plans against a store.

    Args:
        store: Where chats are kept.
        salt: Gives random bytes, the salt of one event's content.
        limits: Sizes allowed.
        turns: Whose turn it is where plans of this process meet; None for lines of its own.
        warm: Chats that this process knows; None for a cache of its own.
        told: Called with what each append did that wrote something; it must not raise.
    """

    def __init__(
        self,
        store: Store,
        salt: Callable[[], bytes],
        limits: Limits = DEFAULT_LIMITS,
        turns: Turns | None = None,
        warm: WarmChats | None = None,
        told: Callable[[Outcome], None] | None = None,
    ) -> None:
        self.store = store
        self.warm = warm if warm is not None else WarmChats()
        self._turns = turns or Turns()
        self._salt = salt
        self._limits = limits
        self._told = told

    async def execute(
        self,
        chat: ChatId,
        plan: Plan,
        identity: CommandIdentity,
        *,
        transcript: bool = False,
        base: LoadedChat | None = None,
        now: Callable[[], int] | None = None,
        estimate: Callable[[], int] | None = None,
    ) -> Outcome:
        """Run ``plan`` until it is written, refused, or found to have been written before.

        Args:
            chat: Which chat.
            plan: What to do; one that issues no command writes nothing.
            identity: Actor and command id.
            transcript: Whether the plan needs the transcript.
            base: The chat as the caller holds it, to spare the first read; it may be stale.
            now: Database time as the process estimates it; without it the clock of the read is used.
            estimate: The same for a chat that is warm, that nobody holds and that no time is running out for: given
                it, such a chat is not read first. What comes of it is believed only where it is written; a refusal is
                told of what was read.

        Raises:
            Refusal: The machine, a fence or a limit refused; nothing was written.
            ChatExists: The plan creates a chat whose id a deleted chat had: ids are never used again.
            OutcomeUnknown: The store could not be asked whether the append took effect.
            StoreUnavailable: Nothing was written.
        """
        asked = _Asked(chat, plan, identity, transcript, now, estimate)
        with self._turns.of(chat, patient=identity.actor.kind != "worker") as turn:
            queued = await turn.begin()
            if base is None and not queued and estimate is not None:
                warm = self.warm.get(chat)
                if warm is not None and warm.header.holder is None and warm.header.due_at is None:
                    return await self._execute(asked, warm, turn, unread=True)
            loaded = base
            if queued or base is None:
                loaded = await self._current(chat, base, transcript=transcript)
            return await self._execute(asked, loaded, turn)

    async def _execute(self, asked: _Asked, loaded: LoadedChat | None, turn: Turn, *, unread: bool = False) -> Outcome:
        chat, identity, transcript = asked.chat, asked.identity, asked.transcript
        while True:
            clock = asked.estimate if unread else asked.now
            now = clock() if clock is not None else await self._now(loaded)
            run = PlanRun(loaded, now, identity, self.store.write_level)
            prepared = None
            try:
                asked.plan(run)
                if run.recorded:
                    prepared = self._prepare(chat, loaded, run, identity.fingerprint)
            except Refusal:
                if unread:
                    loaded, unread = await self._current(chat, loaded, transcript=transcript), False
                    continue
                repeated = await self._repeated(chat, identity, transcript=transcript)
                if repeated is not None:
                    return repeated
                raise
            if prepared is None:
                if not unread:
                    return Outcome(chat=must_be_there(loaded, "load", chat), recorded=())
                loaded, unread = await self._current(chat, loaded, transcript=transcript), False
                continue
            append, after = prepared
            if ContentErased in run.kinds:
                append = await self._erasing(append, run)
            result = await self._append(append, identity)
            if isinstance(result, Appended):
                self.warm.put(after)
                done = Outcome(chat=after, recorded=tuple(run.recorded))
                if self._told is not None:
                    self._told(done)
                return done
            if isinstance(result, DuplicateCommand):
                repeated = await self._repeated(chat, identity, transcript=transcript)
                if repeated is not None:
                    return repeated
            await turn.lost()
            before, loaded = loaded, await self._current(chat, loaded, transcript=transcript)
            unread = False
            if before is None and loaded is None and await self.store.tombstone(chat) is not None:
                raise ChatExists(chat)

    async def _now(self, loaded: LoadedChat | None) -> int:
        return loaded.now if loaded is not None else await self.store.now()

    async def _append(self, append: Append, identity: CommandIdentity) -> AppendResult:
        reach("append.handed")
        try:
            result = await self.store.append(append)
        except OutcomeUnknown:
            # The reply was lost: the log knows. Not there means that the write did not happen, or loses against our
            # next try.
            found = await self.store.find_command(append.chat, identity.command)
            if found is None:
                return Conflict(append.expected_version)
            ours = await self._is_ours(found, append)
            result = Appended() if ours else DuplicateCommand(found.first, found.fingerprint)
        reach("append.answered")
        return result

    async def _is_ours(self, found: CommandRecord, append: Append) -> bool:
        """Whether what the log has of a command are these very events.

        An earlier try of the same command, whose reply was lost before it arrived, is not: its events stand at the same
        versions with other salts, maybe other times and contents, and all that follows chains from their digests.
        """
        if found.first != append.expected_version + 1:
            return False
        kept = await self.store.read_events(append.chat, after=found.first - 1, upto=found.first, content=False)
        return [event.digest for event in kept] == [append.events[0].stored.digest]

    async def _repeated(self, chat: ChatId, identity: CommandIdentity, *, transcript: bool) -> Outcome | None:
        found = await self.store.find_command(chat, identity.command)
        if found is None:
            return None
        loaded = must_be_there(await self.load(chat, transcript=transcript), "load", chat)
        if found.fingerprint != identity.fingerprint:
            state = classify(loaded.state.control)
            reason = f"command id {identity.command!r} was used at version {found.first} with other content"
            raise IdempotencyConflict("append", state, reason)
        recorded = await read_recorded(self.store, chat, after=found.first - 1, upto=found.last)
        return Outcome(chat=loaded, recorded=tuple(recorded), repeated=True)

    async def load(self, chat: ChatId, *, transcript: bool) -> LoadedChat | None:
        """Return the chat as it stands, or None if there is none. Of a warm chat only what came since is read."""
        return await self._current(chat, None, transcript=transcript)

    async def _current(self, chat: ChatId, known: LoadedChat | None, *, transcript: bool) -> LoadedChat | None:
        """Return the chat as it stands, going on from what is ``known`` or warm where its log does."""
        header = await self.store.load_header(chat)
        if header is None:
            self.warm.drop(chat)
            return None
        warm = self.warm.get(chat)
        if known is None or known.state.transcript is None or (warm and warm.header.version > known.header.version):
            known = warm or known
        if known is not None and known.state.transcript is not None and known.header.digest == header.header.digest:
            return _refreshed(header, known.state)
        if not transcript:
            return _refreshed(header, ChatState(control=decode_control(header.header.control), transcript=None))
        state = await self._continued(known, header.header) or await load_state(self.store, header.header)
        loaded = _refreshed(header, state)
        self.warm.put(loaded)
        return loaded

    async def _continued(self, known: LoadedChat | None, header: Header) -> ChatState | None:
        """Fold what came since ``known``; None where there is nothing to go on from."""
        if known is None or known.state.transcript is None or known.header.version >= header.version:
            return None
        # The event at the known version comes along for its digest: it tells whether this is the same log.
        kept = await read_stored(self.store, header.chat, after=known.header.version - 1, upto=header.version)
        if not kept:
            return None  # it was deleted since its header was read
        first, *news = kept
        if first.digest != known.header.digest:
            return None
        blobs = await read_blobs(self.store, news)
        return fold(decode_each(news, blobs=blobs), known.state)

    def _prepare(
        self, chat: ChatId, loaded: LoadedChat | None, run: PlanRun, fingerprint: bytes | None
    ) -> tuple[Append, LoadedChat]:
        """Return what is to be written of a run that did something, and the chat after it."""
        before = loaded.header if loaded is not None else None
        events, blobs = self._encode(run, GENESIS if before is None else before.digest, fingerprint)
        state = run.state
        level = run.level
        if before is None:
            level = level_of_new_chat(self.store.write_level, level_of_all(run.recorded))
        header = header_of(
            state,
            events[-1].stored.digest,
            chat=chat,
            title=title_of(before, run.recorded, run.kinds),
            foreign=run.foreign,
            reader_level=level,
            listed_at=listed_at(before, state.control),
        )
        append = Append(
            chat=chat,
            expected_version=before.version if before is not None else 0,
            header=header,
            events=events,
            blobs=blobs,
            drop_partials=not run.unflushed
            and loaded is not None
            and _ends_answer(loaded.state.control, state.control, erases=ContentErased in run.kinds),
        )
        # A new holder is the writer itself, and alive; of the one that was there before nothing new is known.
        same = before is not None and before.holder == header.holder
        alive = header.holder is not None and (loaded is None or not same or loaded.holder_alive)
        # Where the whole state is kept in memory it has the control: not a second time as bytes.
        kept = header if state.transcript is None else replace(header, control=b"")
        return append, LoadedChat(state=state, header=kept, now=run.now, holder_alive=alive)

    def _encode(
        self, run: PlanRun, digest: bytes, fingerprint: bytes | None
    ) -> tuple[tuple[NewEvent, ...], Mapping[str, bytes]]:
        """Return the events of a run as they are stored after the one with ``digest``, and their blobs."""
        events: list[NewEvent] = []
        blobs = _NO_BLOBS
        try:
            for encoded in encode_each(run.recorded, self._salt, digest, self._limits):
                # The command's id and content stand with its first event.
                events.append(NewEvent(stored=encoded.stored, fingerprint=None if events else fingerprint))
                if encoded.blobs:
                    blobs = {**blobs, **encoded.blobs}
        except TooLarge as error:
            failed = len(events)
            raise ContentTooLarge(run.recorded[failed].event.trigger, run.met[failed], str(error)) from error
        return tuple(events), blobs

    async def _erasing(self, append: Append, run: PlanRun) -> Append:
        """Return an append with what an erasure leaves of contents, and with the blobs that the chat needs no more.

        Raises:
            MessageNotFound: A message is named that never was in this chat.
        """
        targets = {
            t for recorded in run.recorded if isinstance(recorded.event, ContentErased) for t in recorded.event.messages
        }
        log = await self.store.read_events(append.chat)
        if missing := sorted(target for target in targets if not has_message(log, target)):
            reason = f"no message {', '.join(map(repr, missing))} is or was in this chat"
            raise MessageNotFound(Erase.trigger, run.met[0], reason)
        places = content_of_messages(log, targets)
        before = {stored.envelope.version: stored.content for stored in log}
        erased = {version: erase_items(before[version], which) for version, which in places.items()}
        needed = _referred(before | erased).union(append.blobs)
        return replace(append, erased=erased, unused_blobs=_referred(before) - needed)


_NO_BLOBS: Final[Mapping[str, bytes]] = MappingProxyType({})


def _referred(contents: Mapping[int, bytes]) -> frozenset[str]:
    return frozenset(digest for content in contents.values() if content for digest in content_blobs(content))


def _ends_answer(before: Control, after: Control, *, erases: bool) -> bool:
    """Whether an answer of which the store may hold pieces is under way no more, or its chat's content is erased."""
    if erases:
        return after.running is None or after.running.kind != "generate"
    if before.running is None or before.running.kind != "generate":
        return False
    now = after.running
    was = before.history_version, before.running.attempt
    return now is None or (after.history_version, now.attempt) != was


def _reads_whole(control: bytes) -> bool:
    """Whether nothing of a stored control is unknown here, and so would be lost when it is written back.

    A control that is not at hand was written here: nothing of it is unknown.
    """
    return not control or encode_control(decode_control(control)) == control


def _refreshed(header: LoadedHeader, state: ChatState) -> LoadedChat:
    return LoadedChat(state=state, header=header.header, now=header.now, holder_alive=header.holder_alive)
