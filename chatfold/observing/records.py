"""What a debug record is, and what keeps them: a protocol, and a folder on this machine.

Records stand outside of the log: they may be lost, and they may be deleted. What they hold is redacted before it comes
here (``generation.redaction``); they hold content all the same. Bodies are JSON values.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

DebugState: TypeAlias = Literal["running", "completed", "error", "interrupted", "abandoned"]
"""How a model call stands: it goes on, gave an answer, failed, was ended by its user, or nobody waited for its end."""

RunKind: TypeAlias = Literal["turn", "compaction", "title", "label"]
"""What the calls of a run were for: a turn with its compactions, a compaction that was asked for, a name of the chat,
or a word on a turn.
"""

STALE_US: Final = 300_000_000
"""Microseconds after which a call that has no end is told as abandoned: its process is gone, or its record was lost."""

MOST_RUNS: Final = 100
"""Runs that are listed at most."""


class DebugExchange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request over HTTP and its response, redacted. ``cut``: more was received of the response than is kept."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: Any = None
    status: int | None = None
    response_headers: list[tuple[str, str]] = []
    response_body: Any = None
    cut: bool = False


class DebugRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a model. Times are microseconds UTC.

    Attributes:
        chat, owner, agent: Whose it is.
        turn: The message that opened its turn; empty where there is none (a compaction that was asked for).
        history_version, attempt: The attempt; its number is 0 beside the turns.
        kind: What it is for: ``generate``, ``compact``, ``title`` or ``label``.
        provider, model: What was asked.
        state: How it stands.
        began_at, first_part_at, ended_at: When.
        finish_reason, input_tokens, output_tokens: What the service said; input counts what came from its cache.
        error, error_message, status_code: Why it failed.
        exchanges: What went over the wire.
        request, answer: The request and the answer as the engine has them, where nothing went over a wire.
        version: The chat's version of which the call was made; 0 where it is not known.
    """

    chat: str
    owner: str
    agent: str
    turn: str
    history_version: int
    attempt: int
    kind: str
    provider: str
    model: str
    began_at: int
    state: DebugState = "running"
    first_part_at: int | None = None
    ended_at: int | None = None
    finish_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    error: str | None = None
    error_message: str | None = None
    status_code: int | None = None
    exchanges: list[DebugExchange] = []
    request: Any = None
    answer: Any = None
    version: int = 0

    @property
    def label(self) -> str:
        """Which model was called: provider and name."""
        return f"{self.provider}/{self.model}"

    @property
    def endpoint(self) -> str:
        """Where it was called: method and path; empty where nothing went over the wire."""
        if not self.exchanges:
            return ""
        path = self.exchanges[0].url.partition("://")[2].partition("?")[0].partition("/")[2]
        return f"{self.exchanges[0].method} /{path}"

    @property
    def run(self) -> RunKind:
        """Of which kind of run it is a step."""
        match self.kind:
            case "title" | "label" as aside:
                return aside
            case "compact" if not self.turn:
                return "compaction"
            case _:
                return "turn"


class DebugRun(Struct, frozen=True, kw_only=True):
    """Records of one turn and kind, summed up; of a compaction that was asked for, those of one history.

    Attributes:
        turn: The message that opened the turn; empty of a compaction.
        kind: What the calls were for.
        label, endpoint, state: Those of the last call: model, method and path, how it stands.
        steps: How many calls there were, failed ones too.
        input_tokens, output_tokens: Of all calls.
        began_at, ended_at: Of the first and the last call, microseconds UTC.
    """

    turn: str
    kind: RunKind
    label: str
    endpoint: str
    state: DebugState
    steps: int
    input_tokens: int
    output_tokens: int
    began_at: int
    ended_at: int | None


class DebugRecordNotFound(LookupError):
    """There is no debug record of this chat and name, or none any more."""


class DebugSink(Protocol):
    """Keeps debug records. It is called in a thread of its own, one call after the other, and may wait and raise."""

    def begin(self, record: DebugRecord) -> str:
        """Keep the record of a call that begins; returns a name for it that no other of its chat has."""
        ...

    def end(self, name: str, record: DebugRecord) -> None:
        """Replace the record of a name, unless it was forgotten meanwhile."""
        ...

    def forget(self, chat: str, since: int | None, before: int | None) -> None:
        """Drop a chat's records whose history version is at least ``since``, and whose version is below ``before``.

        None: of whatever history, or of whatever version.
        """
        ...

    def chats(self) -> Mapping[str, int]:
        """Return the chats of which there are records, each with the lowest version among these."""
        ...


class FolderSink:
    """Keeps records as JSON files, a folder for each chat, readable by this user alone.

    Args:
        folder: Made when the first record is kept.
        clock: The time in microseconds UTC, to tell which calls have no end.
    """

    def __init__(self, folder: str | Path, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._folder = Path(folder)
        self._clock = clock

    def _of(self, chat: str) -> Path:
        return self._folder / f"chat-{quote(chat, safe='')}"  # no id is a path: neither `..` nor one with a slash

    def begin(self, record: DebugRecord) -> str:
        """See :class:`DebugSink`."""
        folder = self._of(record.chat)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in count(1):
            name = f"{record.history_version:012d}-{record.attempt:06d}-{record.version:012d}-{number}"
            with suppress(FileExistsError):
                descriptor = os.open(folder / f"{name}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(msgspec.json.encode(record))
                return name
        raise AssertionError  # pragma: no cover - there is always a next number

    def end(self, name: str, record: DebugRecord) -> None:
        """See :class:`DebugSink`."""
        file = self._of(record.chat) / f"{name}.json"
        if not file.exists():
            return
        beside = file.with_suffix(".new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as new:
            new.write(msgspec.json.encode(record))
        beside.replace(file)

    def forget(self, chat: str, since: int | None, before: int | None) -> None:
        """See :class:`DebugSink`."""
        folder = self._of(chat)
        for file in folder.glob("*-*-*"):
            history = int(file.name.partition("-")[0])
            if (since is None or history >= since) and (before is None or _version_of(file) < before):
                file.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # where nothing is left

    def chats(self) -> Mapping[str, int]:
        """See :class:`DebugSink`."""
        found = {}
        for folder in self._folder.glob("chat-*"):
            files = [_version_of(file) for file in folder.glob("*-*-*")]
            if files:
                found[unquote(folder.name.removeprefix("chat-"))] = min(files)
        return found

    def names(self, chat: str) -> tuple[str, ...]:
        """Return the names of a chat's records, in the order of their attempts."""
        return tuple(sorted(file.stem for file in self._of(chat).glob("*.json")))

    def record(self, chat: str, name: str) -> DebugRecord:
        """Return a record.

        Raises:
            DebugRecordNotFound: There is none of this name.
        """
        if name not in self.names(chat):
            raise DebugRecordNotFound(f"chat {chat} has no debug record {name!r}")
        try:
            record = msgspec.json.decode((self._of(chat) / f"{name}.json").read_bytes(), type=DebugRecord)
        except FileNotFoundError:
            raise DebugRecordNotFound(f"the debug record {name!r} of chat {chat} was forgotten meanwhile") from None
        stale = record.state == "running" and self._clock() - record.began_at > STALE_US
        return msgspec.structs.replace(record, state="abandoned") if stale else record

    def runs(self, chat: str) -> list[DebugRun]:
        """Return the runs of a chat, at most ``MOST_RUNS``, the newest first; none of a chat without records.

        Whether there is such a chat, the store knows, not who keeps records.
        """
        return list(_runs(self._records(chat)))[::-1][:MOST_RUNS]

    def _records(self, chat: str) -> Iterator[DebugRecord]:
        for name in self.names(chat):
            with suppress(DebugRecordNotFound):  # forgotten meanwhile
                yield self.record(chat, name)


def _version_of(file: Path) -> int:
    """Return the version that a record's name tells; 0 of one that was written before names told it."""
    parts = file.name.partition(".")[0].split("-")
    return int(parts[2]) if len(parts) == 4 else 0


def _runs(records: Iterable[DebugRecord]) -> Iterator[DebugRun]:
    found: dict[tuple[RunKind, str, int], list[DebugRecord]] = {}
    for record in sorted(records, key=lambda each: each.began_at):
        # By key, not by neighbourhood: a chat is named while its next turn runs.
        history = 0 if record.turn else record.history_version
        found.setdefault((record.run, record.turn, history), []).append(record)
    for (kind, turn, _), steps in found.items():
        yield DebugRun(
            turn=turn,
            kind=kind,
            label=steps[-1].label,
            endpoint=steps[-1].endpoint,
            state=steps[-1].state,
            steps=len(steps),
            input_tokens=sum(step.input_tokens for step in steps),
            output_tokens=sum(step.output_tokens for step in steps),
            began_at=steps[0].began_at,
            ended_at=steps[-1].ended_at,
        )
