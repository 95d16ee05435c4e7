"""Logs wherever they are: a file, stdin, all files of a folder or of a pattern, a chat in a store.

Owns the rule that tells files from chats, and the form that whoever looks at a log gets it in. Files are read without
an event loop, since one opens sockets: only a chat in a store needs it.
"""

from __future__ import annotations

import asyncio
import errno
import glob
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.logcheck import verify_log
from chatstate.errors import ChatNotFound
from events.codec import decode_each
from events.digest import verify_chain
from events.envelope import Recorded, StoredEvent
from events.errors import DigestMismatch
from events.given import checked_items, checked_kind
from events.logfile import LogFile, naming_lines, read_log

STDIN: Final = "-"
SUFFIX: Final = ".jsonl"
"""How the files are named that are looked for in a folder."""

LOG: Final = "a log, as find_log(name).read() gives it"
"""What is asked for where something else than a log is given."""

_GONE: Final = f"there is no file {{}} (a name with a path separator or {SUFFIX} is a file, any other a chat's id)"
_UNFIT: Final[Mapping[int, str]] = MappingProxyType(
    {
        errno.ENOENT: _GONE,
        errno.ENOTDIR: _GONE,
        errno.EISDIR: "{} is a folder; name a log file, as `chatfold export` writes it",
        errno.ELOOP: "{} is no file: it is a symbolic link that leads round in a circle",
        errno.ENAMETOOLONG: "{} is no file: no name may be as long",
        errno.EINVAL: "{} is no file: no name may have a NUL byte",
        errno.EACCES: "{} may not be read by this user: its permissions forbid it",
        errno.EPERM: "{} may not be read by this user: its permissions forbid it",
        errno.ENXIO: "{} is no log file: it is a socket, or a device that is not there",
    }
)
"""Why what was named cannot be opened, where naming something else helps."""

Place: TypeAlias = Literal["file", "stdin", "chat"]


class SourceNotFound(LookupError):
    """What should be a log, or several, is not there or is none; the text says what was named, and why.

    Attributes:
        source: What was named.
    """

    def __init__(self, source: str, why: str) -> None:
        # Both, so that it can be handed over from another process.
        super().__init__(source, why)
        self.source = source
        self.why = why

    def __str__(self) -> str:
        """Say why."""
        return self.why


class Log(Struct, frozen=True, kw_only=True):
    """A log as it was read.

    Attributes:
        name: What to call it: the chat's id, or the file.
        chat: The chat's id.
        events: All events, as they were stored.
        blobs: Large contents by digest (hex); a file holds those that were packed.
        mark: The header's mark of a log whose contents are not what was said (``chatfold record``): as long, and of the
            same form. None: they are.
        is_file: Whether an event that cannot be read is told as a line of a file.
    """

    name: str
    chat: str
    events: tuple[StoredEvent, ...]
    blobs: Mapping[str, bytes]
    mark: str | None = None
    is_file: bool = False

    @property
    def redacted(self) -> bool:
        """Whether its contents are not what was said."""
        return self.mark is not None

    def recorded(self) -> list[Recorded]:
        """Return the decoded events.

        Raises:
            EventsError: One of them cannot be read.
        """
        return list(self._told(decode_each(self.events, blobs=self.blobs)))

    def bare(self) -> Iterator[Recorded]:
        """Yield the decoded events without their contents, which is enough for states and decisions, and quicker.

        Raises:
            EventsError: When an event is asked for that cannot be read.
        """
        return self._told(decode_each(self.events, content=False))

    def _told(self, events: Iterator[Recorded]) -> Iterator[Recorded]:
        return naming_lines(events, self.name) if self.is_file else events

    def fault(self) -> str | None:
        """Return why it is not a whole log as a chat writes it, to stand behind its name; None where it is one.

        It was altered, or what it says could not happen: events of another chat are in it, or some are left out. That
        an event cannot be read is told where it is read.
        """
        return fault_of(self.name, self.events, self.blobs)

    def altered(self) -> DigestMismatch | None:
        """Return where it is not as it was written; None where it is."""
        try:
            verify_chain(self.events, self.blobs)
        except DigestMismatch as error:
            return error
        return None


def fault_of(name: str, events: Sequence[StoredEvent], blobs: Mapping[str, bytes]) -> str | None:
    """Return why these are not a whole log as a chat writes it; see ``Log.fault``."""
    findings = [each for each in verify_log(name, events, blobs).findings if each.check != "form"]
    if not findings:
        return None
    first = next((each for each in findings if each.check == "digest"), findings[0])
    if first.check == "digest":
        return f"was altered, from version {first.version} on: {first.problem}"
    more = f", and {len(findings) - 1} more of the kind" if len(findings) > 1 else ""
    return f"is not whole, from version {first.version} on: {first.problem}{more}"


class LogSource(Struct, frozen=True):
    """Where one log is. It can be handed to another process, which reads it there; but for stdin.

    Attributes:
        place: What kind of place it is.
        where: The file's path, or the chat's id; ``-`` for stdin.
        store: URL of the store that has the chat.
    """

    place: Place
    where: str
    store: str | None = None

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return file_name(self.where) if self.place != "chat" else self.where

    def __repr__(self) -> str:
        """Leave the store's URL out: it may have a password."""
        return f"LogSource({self.place!r}, {self.where!r})"

    def read(self) -> Log:
        """Read it. A chat in a store is read in an event loop of its own, so not within one.

        Raises:
            SourceNotFound: There is no such file, or it cannot be opened.
            OSError: Reading it failed on the way.
            LogFileError: It is no log.
            ChatNotFound: There is no such chat.
            StoreError: The store cannot be opened.
        """
        if self.place == "chat":
            return asyncio.run(self._stored())
        file = read_file(self.where)
        header = file.header
        mark = header.redacted if isinstance(header.redacted, str) else None
        return Log(name=self.name, chat=header.chat, events=file.events, blobs=file.blobs, mark=mark, is_file=True)

    async def _stored(self) -> Log:
        # A store brings its database's driver; who reads files should not wait for it.
        from chatfold.transfer import stored_log
        from store import open_store

        if self.store is None:
            raise SourceNotFound(self.where, f"chat {self.where} is in a store, and none is named")
        async with open_store(self.store) as store:
            loaded = await stored_log(store, self.where, blobs=True)
        return Log(name=self.where, chat=self.where, events=loaded.events, blobs=loaded.blobs)


def problem_of(name: str, error: Exception) -> str:
    """Return what is wrong with a log, to stand behind its name, which some errors say themselves."""
    if isinstance(error, ChatNotFound):
        return f"{error.reason}; `chatfold list` shows which chats there are"
    return str(error).removeprefix(f"{name}, ").removeprefix(f"{name}: ")


def _no_store() -> None:
    """Where there is no store, what names a chat is found and cannot be read."""


def find_log(argument: str, store: Callable[[], str | None] = _no_store) -> LogSource:
    """Return the one log that an argument names.

    Args:
        argument: A file, ``-`` for stdin, or a chat's id.
        store: Gives the URL of the store; asked only where a chat is named.

    Raises:
        InvalidValue: It is no text.
    """
    checked_kind(argument, str, "$.argument", "a text: a file, - or a chat's id")
    if argument == STDIN:
        return LogSource("stdin", argument)
    return LogSource("file", argument) if is_file(argument) else LogSource("chat", argument, store())


def find_logs(arguments: Iterable[str], store: Callable[[], str | None] = _no_store) -> list[LogSource]:
    """Return the logs that arguments name, each once: in the order of the arguments, those of a folder by their names.

    Args:
        arguments: Files, ``-`` for stdin, chats' ids, folders (all ``.jsonl`` files in them and below), and patterns
            (``logs/*.jsonl``, ``**`` for any folders) where no file has that very name.
        store: Gives the URL of the store; asked once, and only where a chat is named.

    Raises:
        SourceNotFound: A folder or a pattern has no log file, or stdin is named beside others: it can be read once.
        InvalidValue: They are not several texts.
    """
    given = list(checked_items(arguments, str, "$.arguments", "a list of texts: files, folders, patterns, chats' ids"))
    if STDIN in given and len(given) > 1:
        raise SourceNotFound(STDIN, "- (stdin) is one log; it cannot be named beside others")
    known: list[str | None] = []

    def once() -> str | None:
        if not known:
            known.append(store())
        return known[0]

    found = (source for argument in given for source in _found(argument, once))
    return list(dict.fromkeys(found))


def _found(argument: str, store: Callable[[], str | None]) -> Iterable[LogSource]:
    if is_file(argument) and _is(Path.is_dir, argument):
        files = sorted(file for file in Path(argument).rglob(f"*{SUFFIX}") if file.is_file())
        if not files:
            raise SourceNotFound(argument, f"there are no log files (*{SUFFIX}) in the folder {argument}")
        return [LogSource("file", str(file)) for file in files]
    if glob.has_magic(argument) and not exists(argument):
        matches = glob.glob(argument, recursive=True)  # noqa: PTH207 -- a pattern may be absolute, those of Path not
        files = sorted(file for each in matches if (file := Path(each)).is_file())
        if files:
            return [LogSource("file", str(file)) for file in files]
        if is_file(argument):
            raise SourceNotFound(argument, f"no file is named like {argument}")
    return [find_log(argument, store)]


def is_file(argument: str) -> bool:
    """Tell whether an argument means a log file: ``-``, a path separator, ``.jsonl``, or a file of that name."""
    return argument == STDIN or "/" in argument or "\\" in argument or argument.endswith(SUFFIX) or exists(argument)


def exists(argument: str) -> bool:
    """Tell whether there is a file, a folder or a link of that name."""
    return _is(Path.exists, argument) or _is(Path.is_symlink, argument)


def _is(what: Callable[[Path], bool], argument: str) -> bool:
    try:
        return what(Path(argument))
    except (OSError, ValueError):  # too long for a name, or a NUL: then it is none
        return False


def file_name(source: str) -> str:
    """Return what to call a file in messages."""
    return "<stdin>" if source == STDIN else source


@contextmanager
def opened_file(source: str) -> Iterator[BinaryIO]:
    """Open a log file, or stdin.

    Raises:
        SourceNotFound: There is no such file, or it cannot be opened: it is a folder, say.
        OSError: Reading it failed on the way.
    """
    if source == STDIN:
        yield sys.stdin.buffer
        return
    with _open(source) as file:
        yield file


def _open(source: str) -> BinaryIO:
    try:
        return Path(source).open("rb")
    except ValueError:
        number = errno.EINVAL
    except OSError as error:
        if error.errno is None or error.errno not in _UNFIT:
            raise
        number = error.errno
    raise SourceNotFound(source, _UNFIT[number].format(source))


def read_file(source: str) -> LogFile:
    """Return the log in a file or on stdin.

    Raises:
        SourceNotFound: There is no such file, or it cannot be opened.
        OSError: Reading it failed on the way.
        LogFileError: It is no log.
    """
    with opened_file(source) as lines:
        return read_log(lines, file_name(source))
