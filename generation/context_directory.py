"""A context source over directories: instruction files and skills, read in threads and bounded."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

from events.ids import ChatId
from generation.context import Context, ContextFile, ContextProblem, ContextSkill, SkillText, SkillUnavailable
from generation.context_skills import SkillFile, SkillInvalid, parse_skill
from generation.errors import AgentDeclarationError
from generation.inside import Inside, NotRead
from generation.tools.contract import Tool
from generation.tools.skills import skill_tools
from store.log import get_logger

_log = get_logger(__name__)

INSTRUCTIONS: Final = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
"""Names of the files at the top of a root that are taken whole; their case matters."""

SKILL_FOLDERS: Final = (("skills",), (".agents", "skills"), (".claude", "skills"), (".codex", "skills"))
"""Where skills are, each in a folder of its own; of two with one name the one that comes first is taken."""

RESOURCE_BYTES: Final = 64 << 10
TOTAL_BYTES: Final = 2 << 20
RESOURCES: Final = 500
SKILL_FILE_BYTES: Final = 512 << 10
_SKILL: Final = "SKILL.md"
_LISTED, _DEPTH = 500, 8
"""Files that a skill is said to have, and how deep in it they may be."""

Place: TypeAlias = str | os.PathLike[str]
Roots: TypeAlias = Place | Sequence[Place]
RootsOf: TypeAlias = Callable[[str], Roots | Awaitable[Roots]]


class DirectoryContext:
    """A source over directories of this machine: ``AGENTS.md`` and its kin, and skills.

    At the top of each root it takes ``AGENTS.md``, ``CLAUDE.md`` and ``.cursorrules``, and the skills that have a
    ``SKILL.md`` in a folder of ``skills``, ``.agents/skills``, ``.claude/skills`` or ``.codex/skills``. Its agent gets
    the tools ``read_skill`` and ``read_skill_file``.

    Args:
        roots: A directory, several, or a function (sync or async) from a chat's id to one or several. Directories that
            are named here must be there now. Those that a function names may come later, and a process that declares
            the agent without running its chats need not see them: one that cannot be read is logged and recorded as a
            resource of the chat's context.
        name: The source's name.

    Raises:
        AgentDeclarationError: ``roots`` is none of these, or a directory is not there or cannot be read.
    """

    def __init__(self, roots: Roots | RootsOf, *, name: str = "directory") -> None:
        if not isinstance(cast("object", name), str):
            raise AgentDeclarationError("context", f"name must be a text, not {type(name).__name__}")
        self._name = name
        self._roots = roots if callable(roots) else _readable(_places(roots))
        self.tools: Sequence[Tool] = skill_tools(self)

    @property
    def name(self) -> str:
        """The source's name."""
        return self._name

    @property
    def revision(self) -> None:
        """None: only reading the files tells."""

    async def collect(self, chat: ChatId) -> Context:
        """Read the files and skills of a chat's roots."""
        roots = await self._roots_of(chat)
        context = await asyncio.to_thread(_collected, roots)
        for problem in context.problems:
            if problem.path in roots:
                _log.warning("context_root_unreadable", chat=chat, root=problem.path, error=problem.detail)
        return context

    async def revision_for(self, chat: ChatId) -> str:
        """Return the revision of what ``collect`` would give now."""
        return (await asyncio.to_thread(_collected, await self._roots_of(chat))).revision

    async def read_skill(self, chat: ChatId, name: str) -> SkillText:
        """Return a skill's text and the files beside it.

        Raises:
            SkillUnavailable: There is no such skill, or it cannot be read.
        """
        return await asyncio.to_thread(_skill_text, await self._roots_of(chat), name)

    async def read_skill_file(self, chat: ChatId, name: str, path: str) -> str:
        """Return the text of a file of a skill, at most 512 KiB.

        Raises:
            SkillUnavailable: There is none, it is hidden, outside of the skill, too large or no text.
        """
        return await asyncio.to_thread(_skill_file, await self._roots_of(chat), name, path)

    async def _roots_of(self, chat: ChatId) -> tuple[str, ...]:
        if not callable(self._roots):
            return self._roots
        given = self._roots(chat)
        return _places(await given if inspect.isawaitable(given) else given)


def _places(roots: object) -> tuple[str, ...]:
    given = [roots] if isinstance(roots, str | os.PathLike) else roots
    if not isinstance(given, Sequence) or not all(isinstance(each, str | os.PathLike) for each in given):
        raise AgentDeclarationError("context", f"roots are paths of directories, not {roots!r:.80}")
    return tuple(dict.fromkeys(str(Path(each).absolute()) for each in given))


def _readable(roots: tuple[str, ...]) -> tuple[str, ...]:
    for root in roots:
        try:
            Inside(root)
        except NotRead as error:
            raise AgentDeclarationError("context", f"the directory {root!r} cannot be read: {error}") from None
    return roots


class _Resource(NamedTuple):
    """Something that may be of the context. ``skill``: the folder whose ``SKILL.md`` it is."""

    inside: Inside
    parts: tuple[str, ...]
    shown: str
    skill: str | None = None


_Found: TypeAlias = _Resource | ContextProblem


def _collected(roots: Sequence[str]) -> Context:
    """Read the context of some roots: what is over a bound is a problem, in the order in which things are looked for.

    Instruction files come before skills, so that skills cannot crowd them out.
    """
    files: list[ContextFile] = []
    skills: dict[str, ContextSkill] = {}
    problems: list[ContextProblem] = []
    total = 0
    directory = roots[0] if len(roots) == 1 else None
    for number, found in enumerate(_all(roots)):
        if number >= RESOURCES:
            path = found.path if isinstance(found, ContextProblem) else found.shown
            problems.append(ContextProblem(path=path, fault="excluded", detail=f"comes after {RESOURCES} others"))
        elif isinstance(found, ContextProblem):
            problems.append(found)
        else:
            try:
                text = found.inside.read(found.parts, RESOURCE_BYTES)
                size = len(text.encode())
                if total + size > TOTAL_BYTES:
                    raise NotRead("excluded", f"would make the context larger than {TOTAL_BYTES} bytes")
                if found.skill is None:
                    files.append(ContextFile(path=found.shown, text=text, directory=directory))
                else:
                    _take_skill(skills, found, _parsed(text, found.skill))
                total += size
            except NotRead as error:
                problems.append(ContextProblem(path=found.shown, fault=error.fault, detail=str(error)))
    return Context(
        files=tuple(sorted(files, key=lambda file: file.path)),
        skills=tuple(sorted(skills.values(), key=lambda skill: skill.name)),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
    )


def _take_skill(skills: dict[str, ContextSkill], found: _Resource, parsed: SkillFile) -> None:
    directory = found.shown.removesuffix(f"/{_SKILL}")
    if parsed.name in skills:
        raise NotRead("excluded", f"a skill of this name is in {skills[parsed.name].directory}")
    skills[parsed.name] = ContextSkill(name=parsed.name, description=parsed.description, directory=directory)


def _parsed(text: str, folder: str) -> SkillFile:
    try:
        parsed = parse_skill(text)
    except SkillInvalid as error:
        raise NotRead("invalid", str(error)) from None
    if parsed.name != folder:
        raise NotRead("invalid", f"its front matter says {parsed.name!r:.100}, its folder {folder!r:.100}")
    return parsed


def _all(roots: Sequence[str]) -> Iterator[_Found]:
    """Yield all that is looked for in some roots: the files of all of them first."""
    opened: list[tuple[str, Inside]] = []
    for root in roots:
        try:
            opened.append((root if len(roots) > 1 else "", Inside(root)))
        except NotRead as error:
            yield ContextProblem(path=root, fault=error.fault, detail=str(error))
    for prefix, inside in opened:
        names = inside.names()
        for name in INSTRUCTIONS:
            if name in names:
                yield _Resource(inside, (name,), _joined(prefix, name))
    for prefix, inside in opened:
        for folder in SKILL_FOLDERS:
            yield from _skills(prefix, inside, folder)


def _skills(prefix: str, inside: Inside, folder: tuple[str, ...], only: str | None = None) -> Iterator[_Found]:
    """Yield the skills of one folder, or the one whose own folder is ``only``."""
    shown = _joined(prefix, *folder)
    try:
        if not _is_there(inside, folder) or not inside.is_directory(folder):
            return
        names = inside.names(folder)
    except NotRead as error:
        yield ContextProblem(path=shown, fault=error.fault, detail=str(error))
        return
    for name in names if only is None else [only] if only in names else []:
        parts = (*folder, name)
        if name.startswith("."):
            continue
        try:
            if inside.is_directory(parts) and _SKILL in inside.names(parts):
                yield _Resource(inside, (*parts, _SKILL), _joined(shown, name, _SKILL), skill=name)
        except NotRead as error:
            yield ContextProblem(path=_joined(shown, name), fault=error.fault, detail=str(error))


def _joined(*names: str) -> str:
    return "/".join(name for name in names if name)


def _is_there(inside: Inside, folder: tuple[str, ...]) -> bool:
    """Whether a folder is there, each of its names spelled as it must be."""
    return all(
        inside.is_directory(folder[:depth]) and name in inside.names(folder[:depth])
        for depth, name in enumerate(folder)
    )


def _find_skill(roots: Sequence[str], name: str) -> tuple[_Resource, SkillFile]:
    """Return the first sound skill of a name.

    Raises:
        SkillUnavailable: There is none; says what is wrong with the first that is not sound.
    """
    wrong: str | None = None
    for root in roots:
        try:
            inside = Inside(root)
        except NotRead:
            continue
        for folder in SKILL_FOLDERS:
            for found in _skills(root if len(roots) > 1 else "", inside, folder, only=name):
                if isinstance(found, ContextProblem):
                    wrong = wrong or f"{found.path} {found.detail}"
                    continue
                try:
                    return found, _parsed(found.inside.read(found.parts, RESOURCE_BYTES), name)
                except NotRead as error:
                    wrong = wrong or f"{found.shown} {error}"
    said = f": {wrong}" if wrong else "."
    raise SkillUnavailable(f"Skill not available: {name!r:.100}{said}")


def _skill_text(roots: Sequence[str], name: str) -> SkillText:
    found, parsed = _find_skill(roots, name)
    try:
        files = tuple(path for path in _own(found).files(_LISTED, _DEPTH) if path != _SKILL)
    except NotRead as error:
        raise SkillUnavailable(f"Skill not available: {name!r:.100}: its folder {error}") from None
    return SkillText(name=name, directory=found.shown.removesuffix(f"/{_SKILL}"), body=parsed.body, files=files)


def _skill_file(roots: Sequence[str], name: str, path: str) -> str:
    parts = path.split("/")
    if path.startswith("/"):
        raise SkillUnavailable(f"The path must be relative to the skill's folder: {path!r:.200}")
    if ".." in parts:
        raise SkillUnavailable(f"The path must not go up: {path!r:.200}")
    if any(not part or part.startswith(".") for part in parts):
        raise SkillUnavailable(f"The path names something hidden, or nothing: {path!r:.200}")
    found, _ = _find_skill(roots, name)
    try:
        return _own(found).read(parts, SKILL_FILE_BYTES)
    except NotRead as error:
        raise SkillUnavailable(f"File not available: {path!r:.200} {error}") from None


def _own(found: _Resource) -> Inside:
    """Return a skill's folder as a directory that links must not leave."""
    return found.inside.within(found.parts[:-1])
