"""``rerun``: one log through the engine again, from its first event to its last."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from threading import Thread
from typing import Final, TypeVar

from msgspec import Struct, field

from chatfold.replaying.logs import LOG, Log
from chatfold.rerunning.comparison import Difference, Parted
from chatfold.rerunning.declarations import NOTHING_KEPT, Declarations
from chatfold.rerunning.director import Director
from chatfold.rerunning.filling import lacking
from chatfold.rerunning.limits import Unsupported, unsupported
from chatfold.rerunning.sections import Section, SectionChange, Sections
from chatfold.virtual.loop import SimulatedLoop
from chatfold.virtual.running import alone, drive, end, is_in_a_loop
from events.envelope import Recorded
from events.given import checked_items, checked_kind, one_log
from generation.agents import Agent

_T = TypeVar("_T")

_LAYERS: Final = ("chatfold", "generation", "store", "chatstate", "events")
_STEPS: Final = 100_000
_STEPS_PER_EVENT: Final = 2_000
"""Steps of the event loop that a log may take: an event takes some fifty."""


class RerunReport(Struct, frozen=True, kw_only=True):
    """What became of a rerun.

    Attributes:
        log: What the log is called.
        events: Events of the log.
        again: How many of them came out again, from the first one on.
        difference: Where it parted from the log; None where it did not.
        unsupported: Why the log cannot be run again; None where it can.
        sections: The sections of requests that are others today, as far as it was run.
        compared: The sections that were compared: some request of the log has them, and what they follow from is known.
        strangers: Agents of the log that were not given: what they declare today was not compared.
        contents: What of the log's contents was not compared, and why: they are made up, or not there.
        today: What its requests say when it is run, where agents are given.
    """

    log: str
    events: int
    again: int
    difference: Difference | None = None
    unsupported: Unsupported | None = None
    sections: tuple[SectionChange, ...] = ()
    compared: frozenset[Section] = frozenset()
    strangers: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    today: Sections = field(default_factory=Sections)

    @property
    def same(self) -> bool:
        """Whether all events came out again. Their requests may say something else all the same: see ``sections``."""
        return self.difference is None and self.unsupported is None

    @property
    def not_compared(self) -> tuple[str, ...]:
        """What was not compared, and why: what strangers declare, and contents."""
        if not self.strangers:
            return self.contents
        are = "is" if len(self.strangers) == 1 else "are"
        return (f"system, tools, options: {', '.join(self.strangers)} {are} not given", *self.contents)


def rerun(log: Log, agents: Iterable[Agent] = ()) -> RerunReport:
    """Run a recorded chat through today's engine, and return where it parts from its log.

    No model is called, no tool is run, no hook and no context source is asked, and no connection is opened: what they
    gave is taken from the log. It may be called from a coroutine too, whose event loop waits for it.

    Args:
        log: The log.
        agents: Today's agents, where what they declare is to be compared with what was recorded. What is not among them
            is run with what the log has of it.

    Raises:
        EventsError: An event cannot be read.
        InvalidValue: It is no log, or not one whole one; or the agents are none.
    """
    recorded = list(one_log(checked_kind(log, Log, "$.log", LOG).recorded(), path="$.log.events"))
    agents = list(checked_items(agents, Agent, "$.agents", "agents in a list"))
    return rerun_events(log.name, recorded, agents, redacted=log.redacted)


def rerun_events(
    name: str,
    recorded: list[Recorded],
    agents: Iterable[Agent] = (),
    *,
    redacted: bool = False,
    kept: Declarations = NOTHING_KEPT,
    keeps_texts: bool = False,
) -> RerunReport:
    """Do what ``rerun`` does, with events that are at hand.

    Args:
        name: What the log is called.
        recorded: Its events.
        agents: Today's agents.
        redacted: Whether its contents are made up.
        kept: What agents said when it was written.
        keeps_texts: Whether what requests say is kept (``today``) although no agents are given.
    """
    reason = unsupported(recorded)
    if reason is not None:
        return RerunReport(log=name, events=len(recorded), again=0, unsupported=reason)
    by_name = {agent.name: agent for agent in agents}
    keeps_texts = keeps_texts or bool(by_name)
    return _by_itself(lambda: _rerun(name, recorded, by_name, kept, redacted=redacted, keeps_texts=keeps_texts))


def _rerun(
    name: str,
    recorded: list[Recorded],
    agents: Mapping[str, Agent],
    kept: Declarations,
    *,
    redacted: bool,
    keeps_texts: bool,
) -> RerunReport:
    steps = _STEPS + _STEPS_PER_EVENT * len(recorded)
    loop = SimulatedLoop(Random(0), steps=steps, shuffled=False)  # noqa: S311 -- nothing is drawn
    director = Director(recorded, agents, kept, redacted=redacted, keeps_texts=keeps_texts)
    found: list[Difference] = []

    async def main() -> None:
        try:
            await director.play()
        except Parted as parted:
            found.append(parted.difference)

    with alone(), _quiet():
        try:
            drive(loop, main())
        finally:
            failure = loop.failure
            end(loop)
    comparison = director.comparison
    if not found and failure is not None:
        found.append(comparison.part("stuck", failure).difference)
    return RerunReport(
        log=name,
        events=len(recorded),
        again=comparison.at,
        difference=found[0] if found else None,
        sections=tuple(comparison.sections),
        compared=comparison.compared,
        strangers=_strangers(director),
        contents=tuple(_contents(recorded, director, redacted=redacted)),
        today=director.today,
    )


def _strangers(director: Director) -> tuple[str, ...]:
    return tuple(sorted({policy.agent for policy in director.script.policies.values()} - director.agents.keys()))


def _contents(recorded: list[Recorded], director: Director, *, redacted: bool) -> Iterator[str]:
    if redacted:
        yield "messages: the log was redacted, so contents are compared by their kind and size, and prompts are not"
        if director.agents:
            yield "calls: arguments are made up, so it is looked whether there is the tool, and no more"
        if director.comparison.mapped and director.agents:
            yield "system, tools, options: the log's digests are mapped, by the rules that it was redacted with"
    erased, unpacked = lacking(recorded)
    for count, why in ((erased, "erased"), (unpacked, "not packed with it (`chatfold export --blobs`)")):
        if count:
            said = f"{count} contents were" if count > 1 else "a content was"
            yield f"messages, from version {director.comparison.lacks_from} on: {said} {why}"


def _by_itself(work: Callable[[], _T]) -> _T:
    """Do work that needs an event loop of its own: in a thread where this one has one."""
    if not is_in_a_loop():
        return work()
    done: list[_T] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 -- it is the caller's
            failed.append(error)

    thread = Thread(target=do, name="rerun")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Let the engine log nothing: what it says of a chat that is long over would be taken for news."""
    loggers = [logging.getLogger(name) for name in _LAYERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
