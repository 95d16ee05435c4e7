"""The context of an agent's workspace: files that stand before the conversation, from a source of the application.

How it is kept up: a source has a name and, if it can say so cheaply, a revision; both are part of the recorded policy,
so that rule D8 can compare them with what history records without collecting anything. Only when they differ is the
context collected, as an effect of its own with an attempt, and recorded. A source whose revision is None is collected
once per chat; one that changes its revision is collected again. A source that looks for itself (``WatchedSource``) is
asked now and then whether it has another context by now: then the chat is marked, and its user says when to collect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast, runtime_checkable

from events.content import Content
from events.errors import InvalidValue
from events.ids import ChatId
from events.parts import ContextFault, ContextFilePart, ContextProblemPart, Part, SkillPart
from events.values import repair_text
from generation.digest import digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """One file. ``truncated``: ``text`` is not all of it; ``os`` and ``directory`` say where its workspace is.

    Raises:
        InvalidValue: Something is of another type.
    """

    path: str
    text: str
    truncated: bool = False
    os: str | None = None
    directory: str | None = None

    def __post_init__(self) -> None:
        _check_texts(path=self.path, text=self.text)
        if self.os is not None or self.directory is not None:
            _check_texts(os=self.os or "", directory=self.directory or "")

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
class ContextSkill:
    """A skill: the model reads its name and what it is for, and asks for its text when it needs it.

    ``directory``: where its files are, for people.

    Raises:
        InvalidValue: Something is no text.
    """

    name: str
    description: str
    directory: str

    def __post_init__(self) -> None:
        _check_texts(name=self.name, description=self.description, directory=self.directory)

    def part(self) -> SkillPart:
        """Return the skill as messages carry it."""
        return SkillPart(
            name=_content(self.name), description=_content(self.description), directory=_content(self.directory)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextProblem:
    """Something that a source found and does not give, and why; people see it, models do not."""

    path: str
    fault: ContextFault
    detail: str

    def part(self) -> ContextProblemPart:
        """Return the problem as messages carry it."""
        return ContextProblemPart(path=_content(self.path), fault=self.fault, detail=_content(self.detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a source gave.

    ``revision`` names this state of it; by default it is a digest of what the model reads of files and skills.

    Raises:
        InvalidValue: Something is of another type.
    """

    files: tuple[ContextFile, ...] = ()
    revision: str = ""
    skills: tuple[ContextSkill, ...] = ()
    problems: tuple[ContextProblem, ...] = ()

    def __post_init__(self) -> None:
        _check_texts(revision=self.revision)
        for name, kind in (("files", ContextFile), ("skills", ContextSkill), ("problems", ContextProblem)):
            _check_all(f"$.{name}", getattr(self, name), kind)
        if not self.revision:
            object.__setattr__(self, "revision", self._digest())

    def parts(self) -> tuple[Part, ...]:
        """Return it as a message carries it; of many problems the first, and how many more there are."""
        told, more = self.problems[:_PROBLEMS], self.problems[_PROBLEMS:]
        if more:
            rest = f"and {len(more)} more that are not named here"
            told = (*told, ContextProblem(path=more[0].path, fault=more[0].fault, detail=f"{more[0].detail}; {rest}"))
        return tuple(each.part() for group in (self.files, self.skills, told) for each in group)

    def _digest(self) -> str:
        files = [(repair_text(f.path)[0], repair_text(f.text)[0], f.truncated) for f in self.files]
        skills = [(repair_text(s.name)[0], repair_text(s.description)[0]) for s in self.skills]
        place = next(((f.os, f.directory) for f in self.files if f.os or f.directory), None)
        # A context of files alone keeps the digest that chats have recorded of it.
        return digest_of(files) if not skills and place is None else digest_of([files, skills, place])


_PROBLEMS: Final = 100


def _check_texts(**given: object) -> None:
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidValue(f"$.{name}", f"must be a text, not {type(value).__name__}")


def _check_all(path: str, given: object, kind: type) -> None:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidValue(path, f"must be a tuple of {kind.__name__}, not {type(given).__name__}")
    for place, each in enumerate(given):
        if not isinstance(each, kind):
            raise InvalidValue(f"{path}[{place}]", f"must be a {kind.__name__}, not {type(each).__name__}")


def _content(text: str) -> Content:
    return Content(repair_text(text)[0])


class ContextSource(Protocol):
    """Where an agent's context comes from.

    A source that has an attribute ``tools``, a sequence of tools, gives them to its agent: see ``SkillSource``.
    """

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


@runtime_checkable
class WatchedSource(ContextSource, Protocol):
    """A source whose context may change by itself, so that it is asked now and then."""

    async def revision_for(self, chat: ChatId) -> str:
        """Return the revision that ``collect`` would give for a chat now; it may fail, and is asked again later."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    """A skill's text without its front matter, with where it is and the files beside it (paths relative to it)."""

    name: str
    directory: str
    body: str
    files: tuple[str, ...] = ()


class SkillUnavailable(Exception):
    """A skill or a file of one cannot be read; the text tells the model why."""


class SkillSource(Protocol):
    """Who gives skills their texts: ``generation.tools.skills.skill_tools`` makes its tools."""

    async def read_skill(self, chat: ChatId, name: str) -> SkillText:
        """Return a skill's text as it is now.

        Raises:
            SkillUnavailable: There is no such skill, or it cannot be read.
        """
        ...

    async def read_skill_file(self, chat: ChatId, name: str, path: str) -> str:
        """Return the text of a file of a skill.

        Raises:
            SkillUnavailable: There is no such skill or file, or it is not the model's to read.
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

    Raises:
        InvalidValue: They are no list of files, or name or revision is no text.
    """

    def __init__(self, files: Iterable[ContextFile], *, name: str = "static", revision: str | None = None) -> None:
        _check_texts(name=name)
        if not isinstance(cast("object", files), Iterable):
            raise InvalidValue("$.files", f"must be a list of ContextFile, not {type(files).__name__}")
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
