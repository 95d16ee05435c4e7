"""Debug records of model calls: who wants them, what is caught for them, and the thread that hands them to their sink.

Nothing here can fail or hold up a chat: what is caught is handed over in passing, redacted and written by a thread, and
dropped where the sink fails or cannot keep up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Full, Queue
from typing import Final

import msgspec
from msgspec.structs import replace

from chatfold.observing.contents import output_messages
from chatfold.observing.following import SWEEP, Following, forgettable
from chatfold.observing.records import DebugExchange, DebugRecord, DebugSink, DebugState
from events.content import Json
from events.ids import ChatId
from events.parts import Part
from generation.foreign import contained, words_of
from generation.observing import CallBegun, CallEnded, Observer
from generation.prompt_types import ModelRequest
from generation.providers.exchanges import MOST_BYTES, Exchange, catching
from generation.redaction import redact_address, redact_body, redact_headers, redact_json
from store.append import Outcome
from store.contract import Store
from store.log import get_logger

_log = get_logger(__name__)

MOST_WAITING: Final = 256
"""Jobs that wait for the sink at most; what comes when it is that far behind is dropped."""

ENDING: Final = 5.0
"""Seconds that the last records get to be written when the engine closes."""


class DebugSwitch:
    """Who wants debug records: what a chat says counts first, then what its owner says, then the deployment's word.

    Args:
        default: The deployment's word; None is no.
    """

    def __init__(self, *, default: bool | None = None) -> None:
        self.default = default
        self.chats: dict[str, bool] = {}
        """What is said for chats, by their ids."""
        self.owners: dict[str, bool] = {}
        """What is said for owners."""

    def wanted(self, chat: str, owner: str) -> bool:
        """Whether a chat's calls are recorded."""
        said = (self.chats.get(chat), self.owners.get(owner), self.default)
        return next((word for word in said if word is not None), False)


@dataclass(slots=True, eq=False)
class _Recording:
    """A call that is recorded; what the sink's thread alone touches is ``name``."""

    record: DebugRecord
    request: ModelRequest
    exchanges: list[Exchange] = field(default_factory=list)
    name: str | None = None


class DebugRecords(Observer):
    """Records each call of a model for those who want it.

    Args:
        sink: Keeps them.
        enabled: The deployment's word for chats that neither say themselves nor whose owners say.
        sweep: Seconds after which it looks again at all chats of which there are records: whether another process
            edited, erased or deleted, without the word of it having come here.

    Attributes:
        switch: Who wants them; may be changed at any time.
    """

    def __init__(self, sink: DebugSink, *, enabled: bool | None = True, sweep: float = SWEEP) -> None:
        self.switch = DebugSwitch(default=enabled)
        self._sink = sink
        self._recordings: dict[CallBegun, _Recording] = {}
        self._jobs: Queue[Callable[[], None] | None] = Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._told: set[str] = set()
        self._following = Following(self._forget, sweep=sweep)

    def call_begun(self, call: CallBegun) -> None:
        """See :class:`Observer`."""
        effect = call.effect
        if not self.switch.wanted(effect.chat, effect.owner):
            return
        record = DebugRecord(
            chat=effect.chat,
            owner=effect.owner,
            agent=effect.agent,
            turn=effect.turn or "",
            history_version=effect.history_version,
            attempt=effect.attempt,
            kind=effect.kind,
            provider=call.model.provider,
            model=call.model.name,
            began_at=call.at,
            version=effect.version,
        )
        self._following.note(effect.chat, effect.version)
        recording = self._recordings[call] = _Recording(record, call.request)
        catching.set(recording.exchanges)

        def begin() -> None:
            recording.name = self._sink.begin(record)

        self._hand_over(begin)

    def call_ended(self, call: CallBegun, ended: CallEnded) -> None:
        """See :class:`Observer`."""
        recording = self._recordings.pop(call, None)
        if recording is None:
            return
        catching.set(None)
        parts = ended.parts()

        def end() -> None:
            if recording.name is not None:
                self._sink.end(recording.name, _record_of(recording, ended, parts))

        self._hand_over(end)

    def appended(self, outcome: Outcome) -> None:
        """See :class:`Observer`."""
        for since, before in forgettable(outcome.recorded):
            self._forget(outcome.chat.header.chat, since, before)

    def deleted(self, chat: ChatId) -> None:
        """See :class:`Observer`."""
        if self._forget(chat, None, None):
            self._following.drop(chat)

    async def attend(self, store: Store) -> None:
        """See :class:`Observer`. Here: learn what others do to the chats of which there are records."""
        await self._following.run(store, self._kept)

    def _forget(self, chat: str, since: int | None, before: int | None) -> bool:
        return self._hand_over(lambda: self._sink.forget(chat, since, before))

    async def _kept(self) -> Mapping[str, int]:
        """Return the chats that the sink has records of, asked in its thread; none where it fails."""
        kept: Future[Mapping[str, int]] = Future()

        def look() -> None:
            if not kept.set_running_or_notify_cancel():
                return
            try:
                with contained():
                    kept.set_result(self._sink.chats())
            except Exception:
                kept.set_result({})
                raise

        return await asyncio.wrap_future(kept) if self._hand_over(look) else {}

    async def close(self) -> None:
        """Wait until what was recorded is written, a few seconds at most."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            self._jobs.put_nowait(None)
        except Full:
            self._tell("debug_records_left", waiting=self._jobs.qsize())
            return
        await asyncio.to_thread(thread.join, ENDING)
        if thread.is_alive():
            self._tell("debug_records_left", waiting=self._jobs.qsize())

    def _hand_over(self, job: Callable[[], None]) -> bool:
        """Have the thread do something; False where it is too far behind, and it is dropped."""
        if self._thread is None:
            # A daemon: a sink that hangs must not keep the process from ending.
            self._thread = threading.Thread(target=self._work, name="chatfold-debug-records", daemon=True)
            self._thread.start()
        try:
            self._jobs.put_nowait(job)
        except Full:
            self._tell("debug_record_dropped", waiting=MOST_WAITING)
            return False
        return True

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                with contained():
                    job()
            except Exception as error:  # noqa: BLE001 - whatever the sink raises is no matter of the chat's
                self._tell("debug_record_failed", sink=type(self._sink).__name__, error=words_of(error))

    def _tell(self, what: str, **facts: object) -> None:
        """Log once what went wrong: a sink that fails does so for each record."""
        if what not in self._told:
            self._told.add(what)
            _log.warning(what, **facts)


def _record_of(recording: _Recording, ended: CallEnded, parts: tuple[Part, ...]) -> DebugRecord:
    step, usage, error = ended.step, ended.step.usage, ended.error
    wire = [_shown(exchange) for exchange in recording.exchanges]
    return replace(
        recording.record,
        state=_state_of(ended),
        first_part_at=step.first_part_at,
        ended_at=step.ended_at,
        finish_reason=step.finish_reason,
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        output_tokens=usage.output,
        error=error.kind if error is not None else None,
        error_message=error.message if error is not None else None,
        status_code=error.status_code if error is not None else None,
        exchanges=wire,
        request=None if wire else redact_json(_plain(recording.request)),
        answer=None if wire else redact_json(msgspec.json.decode(output_messages(parts, step.finish_reason))),
    )


def _state_of(ended: CallEnded) -> DebugState:
    if ended.error is not None:
        return "error"
    if ended.cause is None:
        return "completed"
    return "interrupted" if ended.cause == "user_interrupt" else "abandoned"


def _shown(exchange: Exchange) -> DebugExchange:
    from generation.providers.capture import unpacked  # what was caught came through it: the transport is loaded

    given = {name.lower(): value for name, value in exchange.headers}
    taken = {name.lower(): value for name, value in exchange.response_headers}
    failure = exchange.status is not None and exchange.status >= 400
    return DebugExchange(
        method=exchange.method,
        url=redact_address(exchange.url),
        headers=redact_headers(exchange.headers),
        body=redact_body(exchange.body, given.get("content-type", "")),
        status=exchange.status,
        response_headers=redact_headers(exchange.response_headers),
        response_body=redact_body(unpacked(exchange), taken.get("content-type", ""), failure=failure),
        cut=exchange.received > MOST_BYTES,
    )


def _plain(request: ModelRequest) -> Json:
    given = {name: getattr(request, name) for name in ModelRequest.__struct_fields__}
    value: Json = msgspec.json.decode(msgspec.json.encode({**given, "messages": list(request.messages)}))
    return value
