"""What a rerun found, in words: for tests and the command line, without any content of the chat.

Texts of system prompts and declarations of tools are no content, and are shown where they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import unified_diff
from functools import partial
from itertools import islice
from typing import Final

from chatfold.rerunning.comparison import Difference, DifferenceKind
from chatfold.rerunning.declared_tool import declaration_changes
from chatfold.rerunning.run import RerunReport
from chatfold.rerunning.sections import DECLARED, Section, SectionChange, Sections
from events.counting import counted
from events.diff import MISSING, Change
from events.envelope import Recorded
from events.vocabulary import decision_of

_DECLARED: Final = frozenset({*DECLARED, "policy"})
"""Sections that come from what agents declare."""
SHOWN: Final = 8
"""Changes of one event that are said; how many more there are is said too."""

_KINDS: Final[dict[DifferenceKind, str]] = {
    "event": "another event came",
    "extra": "an event came beyond the log's end",
    "missing": "nothing came",
    "refused": "what was done then is refused now",
    "fault": "the engine failed",
    "stuck": "the engine did not come to rest",
}


def verdict_of(report: RerunReport) -> str:
    """Return what became of a rerun, in a line."""
    if report.unsupported is not None:
        return f"it cannot be run again: {report.unsupported}"
    if report.difference is None:
        every = "the one event" if report.events == 1 else f"all {report.events} events"
        return f"{every} came out again{_differ(report.sections)}"
    events = counted(report.events, "event")
    return f"{report.again} of {events} came out again; it parts at version {report.difference.version}"


_NOT_OF_REQUESTS: Final[dict[Section, str]] = {"policy": "declarations", "calls": "calls"}
"""Sections that are none of requests, and what they are of."""


def _differ(sections: Sequence[SectionChange]) -> str:
    """Return what differs although all events came out again; an empty text where nothing does."""
    of = sorted({_NOT_OF_REQUESTS.get(change.section, "requests") for change in sections}, reverse=True)
    return f"; {' and '.join(filter(None, (', '.join(of[:-1]), of[-1])))} differ" if of else ""


def strangers_said(report: RerunReport, ignored: AbstractSet[str]) -> str | None:
    """Return what is to be said where agents are given and the log's own is not among them; None where that is well.

    Args:
        report: What became of a rerun with agents.
        ignored: Sections that may be others; where all are that agents declare, nothing is left to compare.
    """
    if not report.strangers or ignored >= _DECLARED:
        return None
    names, one = ", ".join(report.strangers), len(report.strangers) == 1
    said = f"{names} {'is' if one else 'are'} not among the agents given"
    return f"{said}, so nothing that {'it declares' if one else 'they declare'} was compared"


def told(report: RerunReport, then: Sections | None = None) -> Iterator[str]:
    """Yield what a rerun found, line by line; of sections whose texts ``then`` has, what changed in them."""
    yield verdict_of(report)
    if report.difference is not None:
        yield from told_of(report.difference)
    for change, count in grouped(report.sections):
        yield section_said(change, count, then, report.today)
        if then is not None and change.then in then.texts:
            yield from (f"  {line}" for line in section_shown(change, then, report.today))


def told_of(difference: Difference) -> Iterator[str]:
    """Yield where a rerun parts from its log, and how."""
    yield f"{_KINDS[difference.kind]}{': ' if difference.said else ''}{difference.said}"
    for when, recorded in (("then", difference.want), ("now", difference.got)):
        if recorded is not None:
            yield f"  {when:<4}  {event_said(recorded)}"
    yield from (f"    {line}" for line in changes_said(difference.changes))


def event_said(recorded: Recorded) -> str:
    """Return an event in a few words: version, type, statuses, and the decision that it carries out."""
    envelope, decision = recorded.envelope, decision_of(recorded.event)
    decided = f"  {decision.rule} {decision.action}" if decision is not None else ""
    return f"{envelope.version:>4}  {envelope.type}  {envelope.source} -> {envelope.dest}{decided}"


def _change_said(change: Change) -> str:
    """Return a change in a line, contents by their sizes."""
    if change.before is MISSING or change.after is MISSING:
        return f"{change.path}: {'added' if change.before is MISSING else 'gone'}"
    return str(change)


def changes_said(changes: Sequence[Change], said: Callable[[Change], str] = _change_said) -> Iterator[str]:
    """Yield changes in lines; of many the first."""
    yield from map(said, changes[:SHOWN])
    if len(changes) > SHOWN:
        yield f"and {len(changes) - SHOWN} more"


def grouped(sections: Sequence[SectionChange]) -> Iterator[tuple[SectionChange, int]]:
    """Yield each change of a section once, where it was found first, with how many requests have it."""
    counts: dict[tuple[str, str, str], list[SectionChange]] = {}
    for change in sections:
        # Messages are others in each request: the first of them is what is to be looked at.
        same = ("", "") if change.section in ("messages", "instruction") else (change.then, change.now)
        counts.setdefault((change.section, *same), []).append(change)
    for found in counts.values():
        yield found[0], len(found)


def section_said(change: SectionChange, count: int, then: Sections | None = None, today: Sections | None = None) -> str:
    """Return a change of a section in a line.

    Args:
        change: The change.
        count: How many requests, or calls, have it.
        then: The texts of then, where any are at hand.
        today: Those of today.
    """
    if change.section == "calls":
        many = f"{count} calls, the first " if count > 1 else ""
        return f"calls: {change.now} ({many}at version {change.version})"
    if change.section == "policy":
        said = partial(_declared_said, then=then or Sections(), today=today or Sections())
        return f"policy: another one at version {change.version}: {'; '.join(changes_said(change.changes, said))}"
    requests = f"{count} requests" if count > 1 else "a request"
    hooks = " (or a hook at pre_compact had said something: no log has that)" if change.section == "instruction" else ""
    return f"{change.section}: another text in {requests}, first at version {change.version}{hooks}"


_DECLARATION: Final = re.compile(r"\$\.tools\[(?P<tool>.+)\]\.schema")
"""Where a policy has the digest of a tool's name, description and arguments."""


def _declared_said(change: Change, then: Sections, today: Sections) -> str:
    """Return a change of a policy in a line; of a digest, in words, what changed in what it covers."""
    found = _DECLARATION.fullmatch(change.path)
    if found is None or MISSING in (change.before, change.after):
        return _change_said(change)
    before, after = then.tool(str(change.before)), today.tool(str(change.after))
    if before is None or after is None:
        covered = "a digest of its description and its arguments"
        return f"declaration of tool {found['tool']}: {change.before} -> {change.after} ({covered})"
    return f"declaration of tool {found['tool']}: {', '.join(declaration_changes(before, after))}"


def section_shown(change: SectionChange, then: Sections, today: Sections) -> Iterator[str]:
    """Yield what changed in a section, as a diff where the old text is at hand."""
    if change.section in ("policy", "calls"):
        return
    if change.section in ("messages", "instruction"):
        place = then.first_other(change, today)
        yield _NOT_KEPT if place is None else f"message {place + 1} of the request is the first that is another one"
        return
    before, after = then.texts.get(change.then), today.texts.get(change.now)
    if before is None or after is None:
        yield _NOT_KEPT
        return
    lines = unified_diff(before.splitlines(), after.splitlines(), "then", "now", lineterm="")
    yield from islice(lines, 2, None)


_NOT_KEPT: Final = "the text of then is not at hand: it is kept by --keep-sections, before something changes"
