"""The context of an agent's workspace: files that stand before the conversation, from a source of the application.

How it is kept up: a source has a name and, if it can say so cheaply, a revision; both are part of the recorded policy,
so that rule D8 can compare them with what history records without collecting anything. Only when they differ is the
context collected, as an effect of its own with an attempt, and recorded. A source whose revision is None is collected
once per chat; one that changes its revision is collected again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from events.content import Content
from events.ids import ChatId
from events.parts import ContextFilePart
from events.values import repair_text
from generation.digest import digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """One file. ``truncated``: ``text`` is not all of it; ``os`` and ``directory`` say where its workspace is."""

    path: str
    text: str
    truncated: bool = False
    os: str | None = None
    directory: str | None = None

    def part(self) -> ContextFilePart:
        """Return the file as messages carry it, with what cannot be stored in its texts replaced."""
        return ContextFilePart(
            path=Content(repair_text(self.path)[0]),
            text=Content(repair_text(self.text)[0]),
            truncated=self.truncated,
            os=self.os,
            directory=None if self.directory is None else Content(repair_text(self.directory)[0]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a source gave. ``revision`` names this state of it; by default it is a digest of the files."""

    files: tuple[ContextFile, ...] = ()
    revision: str = ""

    def __post_init__(self) -> None:
        if not self.revision:
            parts = [(repair_text(f.path)[0], repair_text(f.text)[0], f.truncated) for f in self.files]
            object.__setattr__(self, "revision", digest_of(parts))


class ContextSource(Protocol):
    """Where an agent's context comes from."""

    @property
    def name(self) -> str:
        """The source's name, recorded with what it gave."""
        ...

    @property
    def revision(self) -> str | None:
        """The state of the source, without I/O; None where only collecting tells. A new one has it collected again."""
        ...

    async def collect(self, chat: ChatId) -> Context:
        """Return the context for a chat.

        It may fail, or take longer than the setting ``context_timeout``, and is cancelled then: it is called again,
        with the waits of a failed model call.
        """
        ...


def recorded_revision(source: ContextSource, context: Context, announced: str | None) -> str:
    """Return the revision to record for a context: the announced one where there is one, so that D8 is satisfied by it.

    Args:
        source: Where the context comes from.
        context: What it gave.
        announced: The policy's ``context_revision``, which may be older than the source's own by now.
    """
    if announced is not None:
        return announced
    return source.revision or context.revision


class StaticContext:
    """A source that gives the same files to every chat.

    Args:
        files: The files.
        name: The source's name.
        revision: None for a digest of the files.
    """

    def __init__(self, files: Iterable[ContextFile], *, name: str = "static", revision: str | None = None) -> None:
        self._name = name
        self._context = Context(files=tuple(files), revision=revision or "")

    @property
    def name(self) -> str:
        """The source's name."""
        return self._name

    @property
    def revision(self) -> str:
        """The revision of the files."""
        return self._context.revision

    async def collect(self, chat: ChatId) -> Context:
        """Return the files, whatever the chat."""
        del chat
        return self._context
