"""A rerun comes to the same where nothing changed, parts where something did, and always comes to an end."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from chatfold.engine import Engine
from chatfold.replaying.logs import Log
from chatfold.rerunning.limits import Unsupported
from chatfold.rerunning.run import rerun, rerun_events
from chatfold.rerunning.words import told
from chatfold.testing import UseTool, turn
from chatfold.testing.simulation.run import simulate
from events import vocabulary as v
from events.content import Content
from events.envelope import Envelope, Recorded
from events.records import Actor, ErrorInfo
from generation.cancellation import Cause
from generation.decide import decide_generation_action
from generation.decision import Finish, GenerationDecision
from generation.older import result_at
from generation.plans import Hold
from generation.providers.scripted import ScriptedProvider
from generation.runner import ChatRunner
from tests.chatfold.rerunning.kit import agent, log_of, written
from tests.checked_logs import watched


def test_all_events_come_out_again(log: Log) -> None:
    report = rerun(log)
    assert report.same
    assert (report.again, report.difference, report.sections) == (report.events, None, ())
    assert report.not_compared == ("system, tools, options: support is not given",)
    assert list(told(report)) == [f"all {report.events} events came out again"]


async def test_a_summary_of_calls_alone_is_none_again() -> None:
    async def compacts(engine: Engine, chat: str) -> None:
        await engine.compact(chat)

    answers = [turn("One."), turn(UseTool("look_up", {"order": "A-17"})), turn("They talked.")]
    log = log_of(await written(answers, compacts))
    errors = [each.event.error for each in log.recorded() if isinstance(each.event, v.RetryScheduled)]
    assert [error.message.text for error in errors] == ["The scripted model gave an empty summary."]
    assert rerun(log).same


async def test_it_runs_within_a_coroutine(log: Log) -> None:
    assert rerun(log).same
    await asyncio.sleep(0)  # the loop that was here is here still


def test_what_the_engine_logs_of_it_is_nobodys_news(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        rerun(log)
    assert not [record for record in caplog.records if record.name.startswith(("generation", "store"))]
    assert logging.getLogger("generation").level == logging.NOTSET


def test_nothing_outside_is_touched(log: Log) -> None:
    def raises(*_: object, **__: object) -> Any:
        raise AssertionError("something outside was touched")

    with (
        patch.object(socket, "socket", raises),
        patch.object(socket, "socketpair", raises),
        patch.object(subprocess, "Popen", raises),
        patch.object(ScriptedProvider, "stream", raises),
        patch("generation.tools.execute.Invocation", raises),
        patch("generation.tools.execute.RunningCall", raises),
    ):
        assert rerun(log).same
        assert rerun(log, [agent()]).same


SEEDS = range(40)


def test_what_crashing_worlds_wrote_comes_out_again() -> None:
    """Workers die, stop, are taken over; replies are lost; users interrupt, edit, erase."""
    with watched() as written:
        for seed in SEEDS:
            simulate(seed)
    parted = [list(told(report)) for each in written.logs() if not (report := rerun_events("log", each)).same]
    assert not parted


# What changed -------------------------------------------------------------------------------------------------


@contextmanager
def finishing_too_early() -> Iterator[None]:
    """D6 where D11 is due: a turn ends with nobody having answered."""
    decide = decide_generation_action

    def other(*args: Any) -> GenerationDecision:
        decision = decide(*args)
        if decision.record.rule != "D11":
            return decision
        return Finish(record=replace(decision.record, rule="D6", action="finish(complete)"), cause="complete")

    with patch("generation.plans.decide_generation_action", other):
        yield


@contextmanager
def forgetting_results() -> Iterator[None]:
    """A batch is not recorded as it should be: each result is said to be an error."""

    def other(result: Any, level: int) -> Any:
        return replace(result_at(result, level), is_error=True)

    with patch("generation.outcomes.result_at", other):
        yield


@contextmanager
def failing_at_once() -> Iterator[None]:
    """What comes of an effect makes the runner fail."""

    async def other(*_: object) -> None:
        raise RuntimeError("it broke")

    with patch.object(ChatRunner, "_settle", other):
        yield


@contextmanager
def writing_nothing() -> Iterator[None]:
    """The runner waits for ever."""

    async def other(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    with patch.object(ChatRunner, "_settle", other):
        yield


@contextmanager
def going_round() -> Iterator[None]:
    """The runner goes round and round and does nothing."""

    async def other(*_: object) -> tuple[None, None]:
        await asyncio.sleep(0)
        return None, None

    async def nothing(*_: object) -> None:
        pass

    with patch.object(ChatRunner, "_act", other), patch.object(ChatRunner, "_settle", nothing):
        yield


@contextmanager
def refusing_messages() -> Iterator[None]:
    """A user's message is not taken any more."""
    from chatstate.errors import QueueFull
    from chatstate.handlers.context import Context

    def other(self: Context, _: object) -> None:
        self.refuse(QueueFull, "nobody may say anything")

    with patch.object(Context, "check_user_message", other):
        yield


CHANGES = {
    finishing_too_early: (4, "event", "D11", "$.type"),
    forgetting_results: (7, "event", None, "$.result.is_error"),
    failing_at_once: (5, "fault", None, "RuntimeError: it broke"),
    writing_nothing: (5, "missing", None, "nothing came"),
    going_round: (5, "stuck", None, "livelock"),
    refusing_messages: (1, "refused", None, "nobody may say anything"),
}
"""What changed -> version, kind, rule, and a word of what is said."""


@pytest.mark.odd_decisions("wrong code is run")
@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_found_where_it_shows_first(log: Log, change: Any) -> None:
    version, kind, rule, word = CHANGES[change]
    with change():
        report = rerun(log)
    assert report.difference is not None
    assert (report.difference.version, report.difference.kind, report.difference.rule) == (version, kind, rule)
    assert report.again == version - 1
    text = "\n".join(told(report))
    assert word in text
    assert f"it parts at version {version}" in text
    assert rerun(log).same


@pytest.mark.odd_decisions("wrong code is run")
def test_a_plan_that_goes_on_for_ever_is_ended(log: Log) -> None:
    """A worker that holds a chat whatever its state is, and always decides, finishes the turn again and again."""
    with patch.object(Hold, "holds", lambda *_: True), patch("generation.plans.decision_due", lambda *_, **__: True):
        report = rerun(log)
    difference = report.difference
    assert difference is not None
    assert (difference.version, difference.kind) == (5, "stuck")
    assert "events in one append" in difference.said
    assert difference.got is not None


@pytest.mark.odd_decisions("wrong code is run")
def test_an_interruption_that_is_taken_for_an_edit_is_found() -> None:
    with watched() as written:
        for seed in range(30):
            simulate(seed)
    logs = list(written.logs())
    cause = ChatRunner._cause

    def other(self: ChatRunner, *args: Any) -> Cause | None:
        found = cause(self, *args)
        return Cause.HISTORY_CHANGED if found is Cause.USER_INTERRUPT else found

    with patch.object(ChatRunner, "_cause", other):
        reports = [rerun_events("log", log) for log in logs]
    parted = [report.difference for report in reports if report.difference is not None]
    assert parted
    assert all(each.want is not None for each in parted)


# What cannot be run -------------------------------------------------------------------------------------------


def test_a_log_without_its_beginning_is_not_run(log: Log) -> None:
    report = rerun_events("log", log.recorded()[1:])
    assert report.unsupported is Unsupported.NO_BEGINNING
    assert not report.same
    assert rerun_events("log", []).unsupported is Unsupported.NO_BEGINNING


def test_a_log_with_a_repaired_state_is_not_run(log: Log) -> None:
    events = log.recorded()
    error = ErrorInfo(kind="repaired", message=Content("It was repaired."))
    envelope = Envelope(
        version=len(events) + 1,
        type="reconciled",
        schema=1,
        recorded_at=events[-1].envelope.recorded_at,
        actor=Actor(kind="system"),
        source="waiting",
        dest="error",
        command=events[-1].envelope.command,
        index=0,
    )
    report = rerun_events("log", [*events, Recorded(envelope, v.Reconciled(error=error))])
    assert report.unsupported is Unsupported.RECONCILED
    assert list(told(report)) == [f"it cannot be run again: {Unsupported.RECONCILED}"]
