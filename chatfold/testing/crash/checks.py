"""What must hold of a chat after a crash test: its log against what users were told and what tools did. Pure.

A check takes a case and yields what is wrong. What needs the store (digests, header, audit, export) is in ``verify``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from chatfold.testing.crash import story
from chatfold.testing.crash.ledger import Entry, Said
from chatfold.testing.crash.streams import Cut, cuts
from chatfold.testing.crash.users import Sighting, Told
from events.control import Control
from events.effects import Effects
from events.envelope import AT_REST, Recorded
from events.ids import CallKey
from events.parts import ToolResultPart
from events.reasons import Reason
from events.replay import unchecked_replay
from events.vocabulary import AttemptStarted, ToolResultRecorded, results_of


class Case(Struct, frozen=True, kw_only=True):
    """All that is known of one chat.

    Attributes:
        chat: Its id.
        log: Its events.
        digests: The log's digest after each event, from version 1 on.
        control: The state that it ended in.
        now: Database time when that was read.
        told: What its user was told.
        seen: What was read of it on the way.
        given: Ids of all commands that its user gave.
        ledger: What tools did for it, in order.
        frozen: Processes that were stopped at some time, and may have gone on without their lease for a moment.
        said: What models said in it, in order.
    """

    chat: str
    log: Sequence[Recorded]
    digests: Sequence[bytes]
    control: Control
    now: int
    told: Sequence[Told]
    seen: Sequence[Sighting]
    given: frozenset[str]
    ledger: Sequence[Entry]
    frozen: frozenset[int]
    said: Sequence[Said] = ()


def at_rest(case: Case) -> Iterator[str]:
    """The chat waits, has failed, or asks its client until a deadline that has not passed."""
    control = case.control
    if control.status == "requires_action":
        if control.action is not None and control.action.deadline < case.now:
            yield f"its action was to expire {(case.now - control.action.deadline) / 1e6:.1f} s ago"
    elif control.status not in AT_REST:
        yield f"it is {control.status}, held by {control.holder or 'nobody'}"


def acknowledged(case: Case) -> Iterator[str]:
    """What a user was told that was done is in the log, once, where the receipt says."""
    last: dict[str, int] = {recorded.envelope.command: recorded.version for recorded in case.log}
    for told in case.told:
        version = last.get(told.command.id)
        if told.reply.what == "done" and version != told.reply.version:
            where = "is not in the log" if version is None else f"ends at version {version}"
            yield f"{_named(told)} was acknowledged at version {told.reply.version} and {where}"


def refused(case: Case) -> Iterator[str]:
    """What a user was told that was refused is not in the log; nobody was told nonsense."""
    written = {recorded.envelope.command for recorded in case.log}
    for told in case.told:
        if told.reply.what == "refused" and told.command.id in written:
            yield f"{_named(told)} was refused ({told.reply.said}) and is in the log"
        if told.reply.what == "broken" or told.reply.said == "idempotency_conflict":
            yield f"{_named(told)} was answered with {told.reply.said}"


def commands_once(case: Case) -> Iterator[str]:
    """Each command is in the log once, as one run of events; users' commands are ones that their user gave."""
    starts = Counter(recorded.envelope.command for recorded in case.log if recorded.envelope.index == 0)
    for command, count in starts.items():
        if count > 1:
            yield f"command {command} is in the log {count} times"
    for before, recorded in zip([None, *case.log], case.log, strict=False):
        follows = before is not None and before.envelope.command == recorded.envelope.command
        if recorded.envelope.index != (before.envelope.index + 1 if follows and before is not None else 0):
            yield f"version {recorded.version} is number {recorded.envelope.index} of a command and does not follow on"
        if recorded.envelope.actor.kind == "user" and recorded.envelope.command not in case.given:
            yield f"version {recorded.version} is of command {recorded.envelope.command}, which nobody gave"


def nothing_lost(case: Case) -> Iterator[str]:
    """Every version that was ever read is there, with the same history before it."""
    for sighting in case.seen:
        if sighting.version > len(case.digests):
            yield f"version {sighting.version} was read, and the log ends at {len(case.digests)}"
        elif case.digests[sighting.version - 1] != sighting.digest:
            yield f"version {sighting.version} was read with another digest: its history was changed"


def results_once(case: Case) -> Iterator[str]:
    """No call got two results: recorded by a worker, or in history."""
    recorded: Counter[CallKey] = Counter()
    entered: Counter[CallKey] = Counter()
    for each in case.log:
        event = each.event
        if isinstance(event, ToolResultRecorded):
            recorded[event.result.call] += 1
        if isinstance(event, Effects):
            entered.update(answer.call for answer in event.answers)
            parts = (part for message in event.added for part in message.parts)
            entered.update(part.call for part in parts if isinstance(part, ToolResultPart))
    for what, counts in (("was recorded", recorded), ("entered history", entered)):
        for call, count in counts.items():
            if count > 1:
                yield f"the result of call {call} {what} {count} times"


def tools_once(case: Case) -> Iterator[str]:
    """A tool that must not run twice ran at most once for a call; any other at most once for an attempt."""
    runs = Counter((entry.key, entry.tool) for entry in case.ledger if entry.what == "began")
    attempts = Counter((entry.key, entry.epoch, entry.attempt) for entry in case.ledger if entry.what == "began")
    for (key, tool), count in runs.items():
        if count > 1 and tool in story.REPORT:
            yield f"{tool} ran {count} times for call {key}"
    for (key, epoch, attempt), count in attempts.items():
        if count > 1:
            yield f"call {key} ran {count} times in attempt {attempt} under epoch {epoch}"


def tools_announced(case: Case) -> Iterator[str]:
    """What ran was recorded as started before it ran: under that epoch, in that attempt."""
    announced = {
        (f"{case.chat}/{call}", step.after.control.epoch, step.recorded.event.attempt)
        for step in unchecked_replay(case.log)
        if isinstance(step.recorded.event, AttemptStarted)
        for call in step.recorded.event.calls
    }
    for entry in case.ledger:
        if (entry.key, entry.epoch, entry.attempt) not in announced:
            yield f"{entry.tool} ran for {entry.key} under epoch {entry.epoch}, attempt {entry.attempt}: no such start"


def tools_told_true(case: Case) -> Iterator[str]:
    """A result in the log is that of a run that ended; a call that is told not to have run did not."""
    ended = {entry.run: entry.key for entry in case.ledger if entry.what == "ended"}
    began = {entry.key for entry in case.ledger}
    tools = _tools(case.log)
    for call, output, reason in _results(case.log):
        tool, key = tools.get(call), f"{case.chat}/{call}"
        if tool is None or tool == story.CLIENT:
            continue
        if reason is None and (not isinstance(output, str) or ended.get(output) != key):
            yield f"call {call} of {tool} has the result {output!r}, which no run of it gave"
        if reason in _NOT_RUN and key in began:
            yield f"call {call} of {tool} is answered as {reason}, and it ran"


def epochs_rise(case: Case) -> Iterator[str]:
    """Tools see epochs that never fall, but for a process that was stopped on its way into a tool."""
    highest = 0
    for entry in case.ledger:
        if entry.what == "began" and entry.epoch < highest and entry.process not in case.frozen:
            yield f"{entry.tool} ran for {entry.key} under epoch {entry.epoch} after epoch {highest} had been seen"
        highest = max(highest, entry.epoch)


def streamed_text_kept(case: Case) -> Iterator[str]:
    """What an answer had said a while before it was cut is kept where its turn ended then."""
    for cut in owing(case):
        if not cut.kept:
            who = "whose worker was lost" if cut.answer.lost else "that its own worker ended"
            yield (
                f"{cut.how} at version {cut.answer.ending.version} keeps {cut.answer.kept!r} of an answer {who} and "
                f"that had said {cut.owed!r} in time"
            )


def owing(case: Case) -> list[Cut]:
    """Return the answers of which something must be kept; not those of processes that were stopped at some time."""
    return [cut for cut in cuts(case.log, case.said) if cut.owed and not cut.processes & case.frozen]


CHECKS: Final[Mapping[str, Callable[[Case], Iterator[str]]]] = {
    "at rest": at_rest,
    "acknowledged": acknowledged,
    "refused": refused,
    "commands once": commands_once,
    "nothing lost": nothing_lost,
    "results once": results_once,
    "tools once": tools_once,
    "tools announced": tools_announced,
    "tools told true": tools_told_true,
    "epochs rise": epochs_rise,
    "streamed text kept": streamed_text_kept,
}
"""The checks of one chat, in the order in which they are made."""

_NOT_RUN: Final = frozenset(
    {
        Reason.NEW_MESSAGE,
        Reason.PROMOTION,
        Reason.EDIT,
        Reason.INTERRUPT,
        Reason.NOT_STARTED,
        Reason.CLEAR,
        Reason.COMPACT,
    }
)
"""Reasons that say that a call had no effect."""


def late_runs(ledger: Sequence[Entry]) -> int:
    """Return how many runs began under an epoch that was over: what a tool that fences by epoch would have refused."""
    late, highest = 0, dict[str, int]()
    for entry in ledger:
        known = highest.get(entry.chat, 0)
        late += entry.what == "began" and entry.epoch < known
        highest[entry.chat] = max(known, entry.epoch)
    return late


def _named(told: Told) -> str:
    return f"{told.command.method} ({told.command.id}, given {told.tries} times)"


def _tools(log: Sequence[Recorded]) -> dict[CallKey, str]:
    """Return the tool of each call of the log."""
    found = (each.event.tool_calls(each.version) for each in log if isinstance(each.event, Effects))
    return {key: part.name for calls in found for key, part in calls}


def _results(log: Sequence[Recorded]) -> Iterator[tuple[CallKey, object, Reason | None]]:
    """Yield each result: the call, and what the tool gave or the reason why there is none."""
    for each in log:
        event = each.event
        for answer in event.answers if isinstance(event, Effects) else ():
            if answer.reason is not None:
                yield answer.call, None, answer.reason
        for part in results_of(event):
            if part.output is not None:
                yield part.call, part.output.value, part.reason
            else:
                yield part.call, None, part.reason
