"""Adding a log to a corpus: the log, its fold expectations, and a note; and writing expectations anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from chatfold.corpus.expected import expectations
from chatfold.corpus.gate import FOLD, NOTE, beside
from chatfold.corpus.names import checked_name
from chatfold.replaying.logs import SUFFIX, LogSource
from chatfold.rerunning.declarations import (
    DECLARATIONS,
    Declarations,
    declarations_beside,
    read_declarations,
    says,
    write_declarations,
)
from chatfold.rerunning.run import rerun_events
from chatfold.rerunning.sections import SECTIONS, Section
from chatfold.testing.asserts import read_events
from events.envelope import Recorded
from events.logfile import read_log
from events.records import Policy
from events.vocabulary import PolicyRecorded
from generation.agents import Agent


class Added(NamedTuple):
    """What was added: the log's file, and of which of its agents is not known what they said."""

    file: Path
    strangers: tuple[str, ...]


class LogThere(Exception):
    """A corpus has a log of that name already: what is in it stays as it is."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        """Say which, and what to do."""
        return f"there is a log {self.name} already, and logs of a corpus stay as they are: give another name"


def add_log(log: bytes, folder: Path, name: str, note: str, agents: Iterable[Agent] = ()) -> Added:
    """Write a log into a corpus, with what today's code folds it to.

    Args:
        log: The log as a file.
        folder: The corpus.
        name: The log's name there: that of its file, without the ending.
        note: What wrote it, and what its failure would mean.
        agents: The agents that wrote it: what they say in each request is kept in the corpus, so that it can be made
            again. Of others nothing is.

    Returns:
        The log's file, and of which of its agents nothing is kept.

    Raises:
        UnfitName: No file of the corpus can have that name.
        LogThere: There is one of that name.
        LogFileError: It is no log file.
        EventsError: An event cannot be read, or the log was altered.
        KeptFileError: What was kept of other agents cannot be read.
        OSError: It cannot be written.
    """
    file = folder / f"{checked_name(name)}{SUFFIX}"
    if file.exists():
        raise LogThere(name)
    recorded, redacted = read_events(log), read_log(log.splitlines(), name).header.is_redacted
    kept = _kept(recorded, folder, agents)
    # The log comes last: one that is there is whole.
    (folder / f"{name}{FOLD}").write_bytes(_expected(recorded, kept, redacted=redacted))
    (folder / f"{name}{NOTE}").write_text(f"# {name}\n\n{note}\n", encoding="utf-8")
    file.write_bytes(log)
    unknown = {policy.agent for policy in _policies(recorded) if policy.revision not in kept.agents}
    return Added(file, tuple(sorted(unknown)))


def refold(source: LogSource) -> bool:
    """Write the fold expectations of a log of a corpus anew; return whether they are others now.

    Raises:
        LogFileError: It is no log file.
        EventsError: An event cannot be read, or the log was altered.
        KeptFileError: What was kept of agents cannot be read.
        OSError: They cannot be written.
    """
    log = source.read()
    file = beside(source, FOLD)
    lines = _expected(read_events(log), declarations_beside(file), redacted=log.redacted)
    before = file.read_bytes() if file.exists() else b""
    file.write_bytes(lines)
    return lines != before


def _expected(recorded: list[Recorded], kept: Declarations, *, redacted: bool) -> bytes:
    requests = _requests(recorded, kept, redacted=redacted)
    return b"".join(line + b"\n" for line in expectations(recorded, requests))


def _requests(recorded: list[Recorded], kept: Declarations, *, redacted: bool) -> list[Section]:
    """Return the sections of requests that a rerun compares and makes again, as far as it comes."""
    report = rerun_events("log", recorded, redacted=redacted, kept=kept)
    others = {change.section for change in report.sections}
    return [section for section in SECTIONS if section in report.compared - others]


def _kept(recorded: list[Recorded], folder: Path, agents: Iterable[Agent]) -> Declarations:
    """Return what is kept of agents in a corpus, with what those say by which a log was written."""
    kept = read_declarations(folder / DECLARATIONS)
    known, agents = set(kept.agents), list(agents)
    for policy in _policies(recorded):
        if policy.revision in kept.agents:
            continue
        wrote = next((agent for agent in agents if says(agent, policy)), None)
        if wrote is not None:
            kept.take(wrote, policy.revision)
    if kept.agents.keys() != known:
        write_declarations(folder / DECLARATIONS, kept)
    return kept


def _policies(recorded: list[Recorded]) -> Iterator[Policy]:
    return (each.event.policy for each in recorded if isinstance(each.event, PolicyRecorded))
