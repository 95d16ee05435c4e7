"""Logs as the debugger holds them: opened at once however long they are, and an event parsed when it is looked at.

A hundred thousand events as objects take half a gigabyte and seconds to make. A file is kept as its bytes, with the
place of each line; the whole of it is checked later, beside the work of the one who looks.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Mapping, Sequence
from typing import Final, overload

import msgspec
from msgspec import Struct

from chatfold.replaying.logs import LogSource, fault_of, opened_file
from events.envelope import StoredEvent
from events.errors import EventsError, LogFileError
from events.logfile import check_keys, parse_event_line, read_header, read_log

_BLOB: Final = b'{"blob":'


class NotReadYet(EventsError):
    """An event of a chat in a store was looked at before it was read.

    Attributes:
        version: Its version.
    """

    def __init__(self, version: int) -> None:
        super().__init__(f"version {version} is not read yet; wait a moment")
        self.version = version


class LongEvents(Sequence[StoredEvent]):
    """The events of a log, of which each is made or looked up when it is asked for."""

    @property
    def read_to(self) -> int:
        """The last version up to which all are at hand."""
        return len(self)

    @overload
    def __getitem__(self, at: int) -> StoredEvent: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[StoredEvent]: ...

    def __getitem__(self, at: int | slice) -> StoredEvent | Sequence[StoredEvent]:
        """Return an event, or several.

        Raises:
            LogFileError: The line of one is not an event.
            NotReadYet: One is not read yet.
        """
        if isinstance(at, slice):
            return [self._event(each) for each in range(*at.indices(len(self)))]
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(at)
        return self._event(place)

    @abstractmethod
    def _event(self, place: int) -> StoredEvent:
        """Return the event at a place, from 0."""

    def check(self) -> None:
        """Look at what the chain of digests does not cover.

        Raises:
            LogFileError: It is not as it should be.
        """


class EventLines(LongEvents):
    """The events of a log file, each parsed when it is asked for.

    Args:
        data: The bytes of the file.
        name: Its name, for errors.

    Raises:
        LogFileError: It has no header, or another number of events than the header says.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self._data: Final = data
        self._name: Final = name
        places = _line_starts(data)
        if len(places) < 2:
            raise LogFileError(name, 1, "the file is empty")
        header = read_header(self._line(places, 0), name)
        lines = len(places) - 1
        events = next((at for at in range(lines - 1, 0, -1) if not self._line(places, at).startswith(_BLOB)), 0)
        if events != header.events:
            why = f"{events} events, the header says {header.events}: lines are missing or added"
            raise LogFileError(name, lines, why)
        self.header: Final = header
        self.blob_lines: Final = lines - 1 - events
        self._places: Final = places
        if events:
            self[-1]  # the line that a writer who died has cut off is not found out later

    def __len__(self) -> int:
        """Return the number of events."""
        return self.header.events

    def _event(self, place: int) -> StoredEvent:
        try:
            return parse_event_line(self._line(self._places, place + 1))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise LogFileError(self._name, place + 2, f"not a line of a log: {error}") from None

    def _line(self, places: array[int], at: int) -> bytes:
        return self._data[places[at] : places[at + 1]].rstrip(b"\r\n")

    def check(self) -> None:
        """Look at every line for a key that stands twice.

        Raises:
            LogFileError: One does, or cannot be read.
        """
        for at in range(len(self)):
            try:
                check_keys(self._line(self._places, at + 1))
            except (ValueError, RecursionError) as error:
                raise LogFileError(self._name, at + 2, str(error)) from None


def _line_starts(data: bytes) -> array[int]:
    """Return where each line begins, and at last where the file ends."""
    places = array("q", [0])
    at = data.find(b"\n")
    while at >= 0:
        places.append(at + 1)
        at = data.find(b"\n", at + 1)
    if places[-1] != len(data):
        places.append(len(data))
    return places


class StoredEvents(LongEvents):
    """The events of a chat, with places for those that are not read yet; it grows at its end.

    Args:
        count: How many events the chat has.
    """

    def __init__(self, count: int) -> None:
        self._events: Final[list[StoredEvent | None]] = [None] * count
        self._read_to = 0

    @property
    def read_to(self) -> int:
        """The last version up to which all are read."""
        return self._read_to

    def __len__(self) -> int:
        """Return the number of events, read or not."""
        return len(self._events)

    def _event(self, place: int) -> StoredEvent:
        found = self._events[place]
        if found is None:
            raise NotReadYet(place + 1)
        return found

    def put(self, after: int, page: Sequence[StoredEvent]) -> None:
        """Put events that were read into their places, behind version ``after``; those there are the same."""
        self._events[after : after + len(page)] = page
        while self._read_to < len(self._events) and self._events[self._read_to] is not None:
            self._read_to += 1


class LongLog(Struct, frozen=True, kw_only=True):
    """A log to step through.

    Attributes:
        name: What to call it.
        chat: The chat's id.
        events: Its events from version 1 on; of a chat in a store they are read meanwhile, and may become more.
        blobs: Large contents by digest (hex).
    """

    name: str
    chat: str
    events: LongEvents
    blobs: Mapping[str, bytes]

    @property
    def read_to(self) -> int:
        """The last version up to which it is read."""
        return self.events.read_to

    def fault(self) -> str | None:
        """Return what is wrong with it as a whole; None where it is a log as a chat writes it."""
        try:
            self.events.check()
            fault = fault_of(self.name, self.events, self.blobs)
        except (EventsError, ValueError) as error:
            return str(error)
        return None if fault is None else f"it {fault}"


def open_long(source: LogSource) -> LongLog:
    """Open a log file: only the header and the places of the lines are read. For a chat, see ``StoredChat``.

    Raises:
        SourceNotFound: There is no such file, or it cannot be opened.
        OSError: Reading it failed on the way.
        LogFileError: It is no log.
    """
    with opened_file(source.where) as file:
        data = file.read()
    lines = EventLines(data, source.name)
    blobs: Mapping[str, bytes] = {}
    if lines.blob_lines:
        # What is large stands at the end of the file; few logs have it, and all of it is needed to read any event.
        blobs = read_log(data.split(b"\n")[: -1 if data.endswith(b"\n") else None], source.name).blobs
    return LongLog(name=source.name, chat=lines.header.chat, events=lines, blobs=blobs)
