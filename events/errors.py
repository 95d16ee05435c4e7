"""Errors of the ``events`` layer, under one base. The docstring says when one is raised."""


class EventsError(Exception):
    """Base of all errors of this layer."""


class ContentUnavailable(EventsError):
    """A content value was read that was not loaded or was erased."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this content was {why}")
        self.why = why


class UnknownEventType(EventsError):
    """A stored event has a type that this release does not know."""

    def __init__(self, type_: str, version: int | None = None) -> None:
        super().__init__(
            f"unknown event type {type_!r}{_at(version)}: the log was written by a newer release, or it is damaged"
        )
        self.type = type_
        self.version = version


class NewerSchema(EventsError):
    """A stored event has a schema number above the newest that this release reads."""

    def __init__(self, type_: str, schema: int, known: int, version: int | None = None) -> None:
        super().__init__(
            f"event {type_!r}{_at(version)} has schema {schema}, this release reads up to {known}: use a newer release"
        )
        self.type = type_
        self.schema = schema
        self.known = known
        self.version = version


class MalformedEvent(EventsError):
    """Stored bytes do not decode to the event that they claim to be."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"malformed event at {where}: {why}")
        self.where = where
        self.why = why


class InvalidValue(EventsError):
    """A given value is not what is asked for, or cannot be stored exactly (lone surrogate, NaN, too deep, too large).

    Attributes:
        path: JSON path of the value, from the argument's name on.
        why: What is wrong with it.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class TooLarge(EventsError):
    """An event or a message is over its size limit."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} takes {size} bytes, the limit is {limit}")
        self.what = what
        self.size = size
        self.limit = limit


class LogFileError(EventsError):
    """A log file is not readable as one; says the line."""

    def __init__(self, name: str, line: int, why: str) -> None:
        super().__init__(f"{name}, line {line}: {why}")
        self.name = name
        self.line = line
        self.why = why


class DigestMismatch(EventsError):
    """A log is not as it was written; ``version`` is the first event that is wrong, ``why`` says what about it."""

    def __init__(self, version: int, why: str) -> None:
        super().__init__(f"version {version}: {why}")
        self.version = version
        self.why = why


class TranscriptMissing(EventsError):
    """An event that needs the transcript (edit, uncompact) was folded onto a state of control alone."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs the transcript; load the whole chat")
        self.what = what


def _at(version: int | None) -> str:
    return "" if version is None else f" at version {version}"
