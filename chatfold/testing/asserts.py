"""What a test says of a recorded chat: its log is sound, it decides as it did, its prompts are what services take.

Owns the reading of what a test calls a log, and the texts of failures. The checks live elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from chatfold.replaying.logs import Log, LogSource, is_file
from chatfold.rerunning.run import rerun_events
from chatfold.rerunning.sections import Section, Sections, checked_sections
from chatfold.rerunning.then import then_beside
from chatfold.rerunning.words import strangers_said, told
from chatfold.testing.decisions import decision_problems
from chatfold.testing.prompts import prompt_problems
from chatstate.audit import audit
from events.codec import decode_each
from events.digest import verify_chain
from events.envelope import Recorded
from events.errors import DigestMismatch, InvalidValue
from events.given import checked_items
from events.logfile import LogFile, read_log
from generation.agents import Agent

__all__ = ["AnyLog", "assert_replays", "assert_reruns", "assert_valid_prompts"]

AnyLog: TypeAlias = Log | LogFile | Path | str | bytes | Iterable[Recorded]
"""A log as tests have it: a file's path, the bytes of one, what was read of one, or the events of a chat."""

_LOG: Final = "a log: a file's path, its bytes, or recorded events, such as `await engine.events(chat)`"
SHOWN = 5
"""Problems that a failure shows; how many more there are is said."""


def assert_replays(log: AnyLog) -> None:
    """Assert that a log is as it was written, every step in it legal, and every decision the one that is taken today.

    It runs no model and no tool, and needs no agent: the log has the policies under which was decided.

    Args:
        log: The log, from the chat's first event on.

    Raises:
        AssertionError: It is not; the text names the first versions, with rule, facts and action then and now. Or the
            log was altered.
        InvalidValue: It is nothing that holds a log, or has no event.
        LogFileError: It is no log file.
        EventsError: An event cannot be read.
        OSError: The file cannot be read.
    """
    events = _unaltered(log, _name(log))
    problems = [f"version {finding.version}: {finding.problem}" for finding in audit(events)]
    # Decisions on states that no chat can come to would only repeat what is wrong with these.
    _fail_for(log, problems or list(decision_problems(events)), "does not replay")


def assert_reruns(
    log: AnyLog, agents: Iterable[Agent] | UnsetType = UNSET, *, ignore: Collection[Section] = ()
) -> None:
    """Assert that a chat comes out again when it is run through today's engine, its log being the script.

    No model is called and no tool is run. Within a coroutine it waits for a thread of its own. The contents of a log
    that was redacted are compared by kind and size. Where ``NAME.sections.json`` lies beside the file ``NAME.jsonl``
    (``chatfold rerun --keep-sections``), or the ``declarations.json`` of a corpus,
    the failure shows what changed in a section, line by line.

    Args:
        log: The log, from the chat's first event on.
        agents: Today's agents, where what they send and declare is to be what it was then; left out, nothing of it is
            compared.
        ignore: Names of sections of requests that may be others: ``system``, ``tools``, ``messages``, ``instruction``,
            ``options``, ``policy``, ``calls``.

    Raises:
        AssertionError: It does not; the text names the first version where it parts from the log, with what came then
            and now, and the sections that changed. Or it cannot be run again, or was altered, or agents are given and
            the log's own is not among them; the text says so.
        InvalidValue: It is nothing that holds a log, the agents are none, or there is no section of a name.
        KeptFileError: A file of sections or of declarations lies beside the log, and is none.
        LogFileError: It is no log file.
        EventsError: An event cannot be read.
        OSError: The file cannot be read.
    """
    ignored = checked_sections(ignore, "$.ignore")
    given = _agents(agents)
    opened = _opened(log)
    report = rerun_events(_name(log), _unaltered(opened, _name(log)), given, redacted=_is_redacted(opened))
    unsaid = strangers_said(report, ignored) if given else None
    if unsaid is not None:
        raise AssertionError(f"{_name(log)}: {unsaid}")
    changed = tuple(change for change in report.sections if change.section not in ignored)
    if not report.same or changed:
        lines = told(replace(report, sections=changed), _texts_of_then(log, opened) if changed else None)
        said = "is not the same today" if report.same else "does not come out again"
        raise AssertionError("\n  ".join([f"{_name(log)} {said}:", *lines]))


def assert_valid_prompts(log: AnyLog) -> None:
    """Assert that the prompt after each event of a log is what each service takes: Anthropic, OpenAI's two.

    Args:
        log: The log, from the chat's first event on, with its contents: those that a file lacks cannot be checked.

    Raises:
        AssertionError: It is not; the text names the versions, the service, and what it would refuse. Or the log was
            altered.
        InvalidValue: It is nothing that holds a log, or has no event.
        LogFileError: It is no log file.
        EventsError: An event cannot be read.
        OSError: The file cannot be read.
    """
    _fail_for(log, prompt_problems(_unaltered(log, _name(log))), "has prompts that are not valid")


def _agents(given: Iterable[Agent] | UnsetType) -> list[Agent]:
    if given is UNSET:
        return []
    agents = list(checked_items(given, Agent, "$.agents", "agents in a list"))
    if not agents:
        raise InvalidValue("$.agents", "has no agent, so nothing would be compared with it; leave it out for that")
    return agents


def _unaltered(log: AnyLog, name: str) -> list[Recorded]:
    """Return the events of a log; that it was altered is a failure as any other, with its name and the version."""
    try:
        return read_events(log)
    except DigestMismatch as error:
        raise AssertionError(f"{name} was altered, from version {error.version} on: {error.why}") from error


def read_events(log: AnyLog) -> list[Recorded]:
    """Return the events of what a test calls a log; what has stored bytes is checked against its digests.

    Raises:
        LogFileError: It is no log file.
        EventsError: An event cannot be read, or the log was altered.
        OSError: The file cannot be read.
        InvalidValue: It is nothing that holds a log, or has no event, so there is nothing to be said of it.
    """
    events = _events(log)
    if not events:
        raise InvalidValue("$.log", "the log has no event: a chat's first is the one that began it")
    return events


def _opened(log: AnyLog) -> AnyLog:
    """Return what a file holds; anything else as it is."""
    if isinstance(log, str | Path):
        return LogSource("file", str(log)).read()
    return read_log(log.splitlines(), "log") if isinstance(log, bytes) else log


def _is_redacted(log: AnyLog) -> bool:
    return log.redacted if isinstance(log, Log) else isinstance(log, LogFile) and log.header.is_redacted


def _events(log: AnyLog) -> list[Recorded]:
    log = _opened(log)
    if isinstance(log, Log | LogFile):
        verify_chain(log.events, log.blobs)
        return list(decode_each(log.events, blobs=log.blobs))
    given: Any = log  # what a test gives may be anything
    return list(checked_items(given, Recorded, "$.log", _LOG))


def _texts_of_then(log: AnyLog, opened: AnyLog) -> Sections | None:
    """Return the texts of then that were kept beside the file of a log; None where it is no file."""
    name = log.name if isinstance(log, Log) else log
    if not isinstance(name, str | Path) or not is_file(str(name)):
        return None
    return then_beside(name).texts(read_events(opened), redacted=_is_redacted(opened))


def _fail_for(log: AnyLog, problems: list[str], what: str) -> None:
    if not problems:
        return
    shown = problems[:SHOWN]
    if len(problems) > SHOWN:
        shown.append(f"and {len(problems) - SHOWN} more")
    raise AssertionError("\n  ".join([f"{_name(log)} {what}:", *shown]))


def _name(log: AnyLog) -> str:
    if isinstance(log, Log):
        return log.name
    if isinstance(log, LogFile):
        return log.header.chat
    return str(log) if isinstance(log, str | Path) else "the log"
