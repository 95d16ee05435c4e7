"""Audit: every log that the engine wrote passes (the walks show it); here are logs that it did not write.

Each tampered log has one thing wrong, and the finding names the event that made it so.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.audit import Finding, audit
from chatstate.classify import X
from events import vocabulary as v
from events.envelope import Recorded
from events.ids import MessageId, WorkerId
from events.messages import Message
from events.parts import ToolResultPart
from events.reasons import Reason
from events.records import Answer
from tests.chatstate import build as b
from tests.chatstate.chat import SECOND, Chat
from tests.chatstate.reach import answered, called, generating, reach, running_tools

Tamper = Callable[[Recorded], Recorded]


def last(chat: Chat, tamper: Tamper) -> list[Recorded]:
    return [*chat.log[:-1], tamper(chat.log[-1])]


def envelope(**changes: object) -> Tamper:
    return lambda recorded: replace(recorded, envelope=replace(recorded.envelope, **changes))


def event(**changes: object) -> Tamper:
    return lambda recorded: replace(recorded, event=replace(recorded.event, **changes))


def found(log: list[Recorded]) -> list[Finding]:
    return list(audit(log))


def a_step() -> Chat:
    return reach(X.R0, work=answered)


def a_start() -> Chat:
    return reach(X.R0, work=generating)


def a_result() -> Chat:
    chat = reach(X.R0, work=running_tools("report"))
    chat.do(b.result(chat, chat.calls[0].key))
    return chat


def a_batch() -> Chat:
    chat = a_result()
    chat.do(b.commit(chat))
    return chat


def an_expiry() -> Chat:
    chat = reach(X.A0)
    chat.do(c.ExpireAction(action=chat.control.version), now=chat.now + b.TIMEOUT)
    return chat


def a_second_try() -> Chat:
    chat = reach(X.R0, work=generating)
    chat.do(b.retry(chat))
    chat.do(b.acquire("w2"), now=chat.now + 60 * SECOND)
    return chat


def a_promotion() -> Chat:
    chat = reach(X.P1)
    chat.do(c.Interrupt())
    return chat


def unrecorded(recorded: Recorded) -> Recorded:
    committed = recorded.event
    assert isinstance(committed, v.StepCommitted)
    return replace(recorded, event=replace(committed, answers=(Answer(call=b.a_call()),)))


def stray(recorded: Recorded) -> Recorded:
    result = Message(role="tool", parts=(ToolResultPart(call=b.a_call()),))
    committed = recorded.event
    assert isinstance(committed, v.StepCommitted)
    return replace(recorded, event=replace(committed, added=(*committed.added, result)))


WRONG: dict[str, tuple[Callable[[], Chat], Tamper, str]] = {
    "gap": (a_step, envelope(version=9), "version 9 follows"),
    "source": (a_step, envelope(source="waiting"), "says it left waiting, the state before was running"),
    "outcome": (a_step, envelope(dest="error"), "commit_step leads from R0 to R0, not to"),
    "time": (a_step, envelope(recorded_at=1), "recorded_at goes back"),
    "epoch": (lambda: reach(X.R0), event(epoch=7), "epoch 7 follows epoch 0"),
    "attempt": (a_start, event(attempt=3), "attempt 3 follows attempt 0"),
    "outcome of another attempt": (a_step, event(attempt=3), "attempt 3 was recorded while the one under way was 1"),
    "result of another attempt": (a_result, event(attempt=3), "attempt 3 was recorded"),
    "policy": (a_start, event(decision=replace(b.DECISION, policy="other")), "a policy that is not the recorded one"),
    "answer by nothing": (a_batch, unrecorded, "is answered and was not open"),
    "stray result": (a_step, stray, "has no call before it"),
    "early": (a_second_try, envelope(recorded_at=1_700_000_000_000_000 + 4 * SECOND), "before the time of its retry"),
    "expired early": (
        an_expiry,
        envelope(recorded_at=1_700_000_000_000_000 + 9 * SECOND),
        "expired before its deadline",
    ),
    "other action": (an_expiry, event(action=1), "action 1 is not the one that was open"),
    "promoted": (a_promotion, event(promoted=(MessageId("9.9"),)), "message 9.9 was not queued"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_tampered_event_is_found(what: str) -> None:
    make, tamper, problem = WRONG[what]
    chat = make()
    assert found(chat.log) == []
    log = last(chat, tamper)
    findings = found(log)
    assert any(problem in finding.problem for finding in findings), findings
    assert {finding.version for finding in findings} == {log[-1].version}


def test_an_event_that_is_not_legal_is_found_where_it_stands() -> None:
    chat = reach(X.P0)
    recorded = chat.do(b.acquire())
    log = [*chat.log, replace(recorded, envelope=replace(recorded.envelope, version=3, source="running"))]
    assert found(log)[0].version == 3


def test_a_result_that_was_not_recorded_is_found() -> None:
    chat = reach(X.R0, work=running_tools("report"))
    key = chat.calls[0].key
    chat.do(b.result(chat, key))
    chat.do(b.commit(chat))
    log = [*chat.log[:-2], replace(chat.log[-1], envelope=replace(chat.log[-1].envelope, version=6))]
    assert any("was not recorded" in finding.problem for finding in found(log))


def test_a_user_message_after_an_open_call_is_found() -> None:
    chat = reach(X.E0, work=called("client"))
    chat.do(b.send())
    log = last(chat, event(answers=()))
    assert any("is open when user message" in finding.problem for finding in found(log))


def test_a_call_answered_twice_is_found() -> None:
    chat = reach(X.E0, work=called("client"))
    chat.do(b.send())
    answer = Answer(call=chat.log[-1].event.answers[0].call, reason=Reason.EDIT)  # type: ignore[union-attr]
    log = last(chat, event(answers=(answer, answer)))
    assert any("has two results" in finding.problem for finding in found(log))


def test_what_an_edit_removes_is_looked_at_before_it_is_gone() -> None:
    chat = reach(X.E0, work=called("client"))
    chat.do(b.send())
    chat.log[-1] = event(answers=())(chat.log[-1])
    chat.do(c.EditMessage(target=MessageId("1.1"), message=b.user()))
    assert [finding.version for finding in found(chat.log)][-1] == chat.log[-1].version


def test_a_holder_of_a_log_is_who_its_events_say() -> None:
    chat = reach(X.R0)
    log = last(chat, event(worker=WorkerId("other")))
    assert found(log) == []


def test_an_empty_log_has_nothing_wrong() -> None:
    assert found([]) == []
