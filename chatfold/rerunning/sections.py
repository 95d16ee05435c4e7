"""What requests say, section by section: what changed since a log was written, and what it said then where it is kept.

A log has digests of its requests alone. The texts of then stand in a file beside it, by their digests: what today's
agents would send is kept there once (``Sections.take``), and later runs are compared with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from chatfold.rerunning.declared_tool import DeclaredTool
from chatfold.rerunning.kept import FORM, pretty, read_kept, write_kept
from events.diff import MISSING, Change, changes
from events.envelope import Recorded
from events.errors import InvalidValue
from events.given import checked_kind
from events.records import Policy, RequestDigests
from events.vocabulary import PolicyRecorded
from generation.digest import digest_of, is_digest
from generation.digests import digest_request, options_of
from generation.prompt_types import ModelRequest

Section: TypeAlias = Literal["system", "tools", "messages", "instruction", "options", "policy", "calls"]
"""What is compared of requests. ``instruction`` is ``messages`` of a request for a summary: what a hook at pre_compact
added to it no log has. ``policy`` is what agents declare; ``calls`` what the model called then,
and whether today's tools take it."""

SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
DECLARED: Final[tuple[Literal["system", "tools", "options"], ...]] = ("system", "tools", "options")
"""Sections of requests that come from what agents declare."""
FILE: Final = ".sections.json"
"""What the name of a file of sections ends with, beside a log of that name."""

_SAID_BY_SECTIONS: Final = ("$.revision", "$.system")
"""Digests in a policy of what the sections say."""


class SectionChange(Struct, frozen=True, kw_only=True):
    """A section of a request, or of a policy, that is another one today.

    Attributes:
        version: The event that tells of the request, or records the policy, or starts the call.
        section: Which.
        then: The digest that was recorded; of ``calls`` the tool's name.
        now: Today's; of ``calls`` what becomes of such a call today.
        changes: What changed in a policy, field by field.
    """

    version: int
    section: Section
    then: str
    now: str
    changes: tuple[Change, ...] = ()


class Sections(Struct, kw_only=True):
    """Texts of sections by their digests, and of messages the digest of each.

    Attributes:
        texts: Texts by digest.
        messages: By the digest of all messages of a request, the digest of each of them.
    """

    chatfold_sections: int = FORM
    texts: dict[str, str] = field(default_factory=dict)
    messages: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, request: ModelRequest) -> None:
        """Keep what a request says."""
        digests = digest_request(request)
        self.texts.setdefault(digests.system, "\n\n".join(request.system))
        self.texts.setdefault(digests.tools, pretty([*request.tools, *request.native]))
        self.texts.setdefault(digests.options, pretty(options_of(request)))
        for tool in request.tools:
            self.texts.setdefault(digest_of(tool), pretty(tool))
        if request.continues is None:  # else it has but a part of them
            self.messages.setdefault(digests.messages, tuple(map(digest_of, request.messages)))

    def update(self, other: Sections) -> None:
        """Keep what others have too."""
        self.texts |= other.texts
        self.messages |= other.messages

    def tool(self, digest: str) -> DeclaredTool | None:
        """Return the tool whose declaration has a digest; None where its text is not at hand."""
        try:
            return msgspec.json.decode(self.texts.get(digest, ""), type=DeclaredTool)
        except msgspec.MsgspecError:
            return None

    def first_other(self, change: SectionChange, today: Sections) -> int | None:
        """Return the place of the first message that is another one, from 0; None where that cannot be told."""
        then, now = self.messages.get(change.then), today.messages.get(change.now)
        if then is None or now is None:
            return None
        common = next((place for place, (one, other) in enumerate(zip(then, now, strict=False)) if one != other), None)
        return min(len(then), len(now)) if common is None else common


def read_sections(path: Path) -> Sections:
    """Return what a file of sections holds.

    Raises:
        KeptFileError: It is none, or cannot be read.
        InvalidValue: It is no path.
    """
    return read_kept(path, "sections", Sections)


def sections_beside(log: str | Path) -> Sections:
    """Return the sections in ``NAME.sections.json`` beside the log file ``NAME.jsonl``; none where there is no file.

    Raises:
        KeptFileError: What is there is no file of sections, or cannot be read.
    """
    beside = Path(log).with_suffix(FILE)
    return read_sections(beside) if beside.exists() else Sections()


def checked_sections(names: Collection[str], path: str) -> frozenset[Section]:
    """Return the names of sections.

    Args:
        names: Them.
        path: The argument's name, for errors.

    Raises:
        InvalidValue: They are no names in a collection, or there is no section of one; the text has those that are.
    """
    given: object = names
    known = ", ".join(SECTIONS)
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise InvalidValue(path, f"must be a list of names of sections ({known}), not {type(given).__name__}")
    for name in names:
        if name not in SECTIONS:
            raise InvalidValue(path, f"there is no section {name!r}; there are: {known}")
    return frozenset(cast("Collection[Section]", names))


def write_sections(path: Path, sections: Sections) -> None:
    """Write a file of sections, the same bytes for the same sections.

    Raises:
        InvalidValue: It is no path, or these are no sections.
        OSError: It cannot be written.
    """
    checked_kind(sections, Sections, "$.sections", "sections, as a report of a rerun has them")
    write_kept(path, sections)


def requests_of(recorded: Recorded) -> RequestDigests | None:
    """Return the digests of the request that an event tells of; None where it tells of none."""
    report = getattr(recorded.event, "report", None) or getattr(recorded.event, "cut", None)
    return None if report is None else report.request


def sections_at(recorded: Recorded, *, summary: bool) -> frozenset[Section]:
    """Return the sections that an event tells of; ``summary``: its request was one for a summary."""
    told: set[Section] = {"policy"} if isinstance(recorded.event, PolicyRecorded) else set()
    if requests_of(recorded) is not None:
        told |= {*DECLARED, "instruction" if summary else "messages"}
    return frozenset(told)


def section_changes(
    want: Recorded, got: Recorded, compared: frozenset[Section], *, summary: bool = False
) -> Iterator[SectionChange]:
    """Yield the sections that are others in an event that came out again.

    Args:
        want: The log's event.
        got: The one that came.
        compared: Sections to compare.
        summary: Whether its request was one for a summary.
    """
    then, now = requests_of(want), requests_of(got)
    if then is not None and now is not None:
        names: tuple[Literal["system", "tools", "options", "messages"], ...] = (*DECLARED, "messages")
        if summary and then.messages != now.messages:
            # How many tokens a summary may have depends on how long the instruction is.
            names = ("system", "tools", "messages")
        for name in names:
            section: Section = "instruction" if summary and name == "messages" else name
            one, other = getattr(then, name), getattr(now, name)
            if section in compared and one != other:
                yield SectionChange(version=want.version, section=section, then=one, now=other)
    before, after = want.event, got.event
    if "policy" in compared and isinstance(before, PolicyRecorded) and isinstance(after, PolicyRecorded):
        named = tuple(policy_changes(before.policy, after.policy))
        if named:
            digest = digest_of(after.policy)
            yield SectionChange(version=want.version, section="policy", then=before.digest, now=digest, changes=named)


def policy_changes(then: Policy, now: Policy) -> Iterator[Change]:
    """Yield what differs between two policies but for what sections say; of tools by their names, whatever their order.

    A change of a tool says which: ``$.tools[look_up].schema``.
    """
    yield from changes(replace(then, tools=()), replace(now, tools=()), ignore=_SAID_BY_SECTIONS)
    before, after = ({tool.name: tool for tool in policy.tools} for policy in (then, now))
    for name in sorted(before.keys() | after.keys()):
        for change in changes(before.get(name, MISSING), after.get(name, MISSING)):
            if change.path == "$.schema" and change.before and not is_digest(str(change.before)):
                continue  # a name stands there, in a redacted log: of what, nobody can tell
            yield Change(f"$.tools[{name}]{change.path.removeprefix('$')}", change.before, change.after)
