"""What must hold after each conversation, whatever happened in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from itertools import takewhile

import msgspec

from chatfold.stream import EventItem, PartItem, PreviewReset, StreamItem
from chatstate.audit import audit
from chatstate.invariants import violations
from events.codec import decode
from events.contentlist import content_blobs
from events.control import encode_control
from events.digest import verify_chain
from events.envelope import Recorded, StoredEvent
from events.ids import ChatId, call_key
from events.logfile import header_of as log_header
from events.logfile import read_log, write_log
from events.messages import Message
from events.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.reducer import fold
from events.replay import replay
from events.state import ChatState
from events.vocabulary import AttemptStarted, InterruptionFinished, StepCommitted
from generation.cursor import Cursor
from generation.parts import EpisodeKey, LivePart, LiveReasoning, LiveText
from store import Store
from store.heading import header_of
from tests.e2e.kit import PATIENCE, KeepingJournal, Scene
from tests.state_bytes import state_bytes


async def check(scene: Scene, *chats: str) -> None:
    """Check chats that have settled: log, header, calls, replay, stream; and that no service refused a request."""
    for server in (scene.server, *scene.others):
        assert [(one.status, one.message) for one in server.refused] == []
    for chat in chats:
        log = await stored_log(scene.store, chat)
        state = await _check_log(scene.store, chat, log)
        check_calls(state)
        await _check_replay(scene, chat, log, state)
        if chat in scene.watchers:
            await _check_stream(scene, chat, log)


async def stored_log(store: Store, chat: str) -> list[StoredEvent]:
    """Return the stored events of a chat."""
    return list(await store.read_events(ChatId(chat)))


async def blobs_of(store: Store, log: list[StoredEvent]) -> Mapping[str, bytes]:
    """Return the blobs that a log refers to."""
    return await store.get_blobs(sorted({digest for event in log for digest in content_blobs(event.content)}))


async def _check_log(store: Store, chat: str, log: list[StoredEvent]) -> ChatState:
    """Digests, audit, invariants, and the header against the fold."""
    blobs = await blobs_of(store, log)
    digest = verify_chain(log, blobs)
    recorded = [decode(event, blobs=blobs) for event in log]
    assert list(audit(recorded)) == []
    state = fold(recorded)
    assert violations(state) == []
    loaded = await store.load_header(ChatId(chat))
    assert loaded is not None
    header = loaded.header
    title = state.need_transcript("check").title
    wanted = header_of(
        state,
        digest,
        chat=ChatId(chat),
        title=title.text if title is not None else None,
        foreign=header.foreign,
        reader_level=header.reader_level,
        listed_at=header.listed_at,
    )
    assert msgspec.json.decode(header.control) == msgspec.json.decode(wanted.control)
    assert msgspec.structs.asdict(header) == msgspec.structs.asdict(wanted)
    return state


def check_calls(state: ChatState) -> None:
    """Every call has exactly one result, and every result its call; what a service ran itself may lack its result."""
    made: list[str] = []
    answered: list[str] = []
    for item in state.need_transcript("check").messages:
        own = {part.call for part in item.message.parts if isinstance(part, ToolResultPart)}
        for place, part in enumerate(item.message.parts):
            key = call_key(item.id, place)
            if isinstance(part, ToolCallPart):
                may_lack = part.runner == "provider" and item.message.boundary is None
                made += [key] if not may_lack or key in own else []
            elif isinstance(part, ToolResultPart):
                answered.append(part.call)
    assert Counter(answered) == Counter(made)


async def _check_replay(scene: Scene, chat: str, log: list[StoredEvent], state: ChatState) -> None:
    """The exported log, read again, gives the very same state: by one fold, and event by event."""
    blobs = await blobs_of(scene.store, log)
    lines = list(write_log(log_header(ChatId(chat), log, release="test", blobs=blobs), log, blobs))
    again = read_log(lines, "export.jsonl")
    recorded = [decode(event, blobs=again.blobs) for event in again.events]
    expected = state_bytes(state)
    assert state_bytes(fold(recorded)) == expected
    *_, last = replay(recorded)
    assert state_bytes(last.after) == expected
    assert state_bytes(await scene.engine.state(chat)) == expected
    # The state that the appends made, event by event, is what the log says.
    journal = scene.engine.runtime.journal
    assert isinstance(journal, KeepingJournal)
    kept = journal.kept.get(ChatId(chat))
    if kept is not None:
        assert state_bytes(kept) == state_bytes(fold(recorded[: kept.control.version]))
    facts = fold(decode(event, content=False) for event in again.events)
    assert encode_control(facts.control) == encode_control(state.control)


async def _check_stream(scene: Scene, chat: str, log: list[StoredEvent]) -> None:
    watcher = scene.watchers[chat]
    await watcher.until_version(len(log))
    items = list(watcher.items)
    events = [item.recorded for item in items if isinstance(item, EventItem)]
    assert [event.version for event in events] == list(range(1, len(log) + 1))
    _check_previews(items)
    await _check_cursors(scene, chat, items)


def _check_previews(items: list[StreamItem]) -> None:
    """Parts shown are the committed text, or are taken back before the event that says otherwise."""
    shown: dict[tuple[type, int], str] = {}
    attempt: tuple[int, str] | None = None
    before: StreamItem | None = None
    for item in items:
        taken_back = isinstance(before, PreviewReset)
        before = item
        match item:
            case PartItem(part=LiveText() | LiveReasoning() as part):
                key = (type(part), part.block)
                shown[key] = shown.get(key, "") + part.text
            case PreviewReset():
                shown.clear()
            case EventItem(recorded=Recorded(event=AttemptStarted() as started)):
                assert not shown, f"parts were left over when attempt {started.attempt} started"
                attempt = (started.attempt, started.kind)
            case EventItem(recorded=Recorded(event=StepCommitted() | InterruptionFinished() as event)):
                kept = any(message.role == "assistant" for message in event.added)
                assert not (taken_back and kept), "parts were taken back, and then committed"
                if shown:
                    assert attempt is not None
                    assert event.attempt == attempt[0]
                    answer = [message for message in event.added if message.role == "assistant"]
                    assert answer, "parts were shown, and nothing of them was committed"
                    assert _joined(shown, LiveText) == _committed(answer[0], TextPart)
                    assert _joined(shown, LiveReasoning) == _committed(answer[0], ReasoningPart)
                shown.clear()
            case EventItem():
                assert not shown or _goes_on(item.recorded), f"parts outlived {item.recorded.event.type}"
            case _:
                continue


def _goes_on(recorded: Recorded) -> bool:
    """Whether an event lets the attempt under way go on."""
    return recorded.envelope.dest == "running" and recorded.event.type != "acquired"


def _joined(shown: Mapping[tuple[type, int], str], kind: type) -> list[str]:
    return [
        text for (of, _), text in sorted(shown.items(), key=lambda entry: entry[0][1]) if of is kind and text.strip()
    ]


def _committed(message: Message, kind: type[TextPart | ReasoningPart]) -> list[str]:
    found = [part.text.text for part in message.parts if isinstance(part, kind)]
    return [text for text in found if text.strip()]


async def _check_cursors(scene: Scene, chat: str, items: list[StreamItem]) -> None:
    """From each cursor that was given, the stream goes on with what followed it; parts while they are kept."""
    last = max(item.recorded.version for item in items if isinstance(item, EventItem))
    for place, given in enumerate(items):
        if place + 1 < len(items) and items[place + 1].cursor == given.cursor:
            continue  # a preview was taken back: the position is the same
        position = Cursor.parse(given.cursor)
        if position.version == last:
            continue
        seen: list[StreamItem] = []
        async with asyncio.timeout(PATIENCE), aclosing(scene.engine.stream(chat, given.cursor)) as stream:
            async for item in stream:
                seen.append(item)
                if isinstance(item, EventItem) and item.recorded.version == last:
                    break
        versions = [item.recorded.version for item in seen if isinstance(item, EventItem)]
        assert versions == list(range(position.version + 1, last + 1))
        if not isinstance(given, PartItem) or _parts_ahead(seen) == _parts_ahead(items[place + 1 :]):
            continue
        # Parts are kept for a while: where the conversation took longer, they are taken back before the attempt ends.
        episode = EpisodeKey(ChatId(chat), position.history_version, position.attempt)
        assert scene.engine.runtime.parts.snapshot(episode) == ()
        assert _parts_ahead(seen) == []
        assert isinstance(next(item for item in seen if _ends(item)), PreviewReset)


def _parts_ahead(items: list[StreamItem]) -> list[LivePart]:
    """Return the parts before the attempt ends; where among its other events they stand is not told again."""
    under_way = takewhile(lambda item: not _ends(item), items)
    return [item.part for item in under_way if isinstance(item, PartItem)]


def _ends(item: StreamItem) -> bool:
    ended = isinstance(item, EventItem) and isinstance(item.recorded.event, StepCommitted | InterruptionFinished)
    return ended or isinstance(item, PreviewReset)
