"""Which logs are picked: by failures, drift, transitions, and how new they are."""

from __future__ import annotations

from typing import Final

import pytest

from chatfold.redacting.picking import TRIGGERS, Picking
from events.codec import decode_each
from events.content import Content
from events.envelope import Recorded
from events.logfile import read_log
from events.records import ErrorInfo
from events.vocabulary import ChatArchived, ChatCreated, Reconciled, TurnFailed
from tests.events.logs import TIME, log_of
from tests.golden.add import FOLDER

ERROR: Final = ErrorInfo(kind="auth", message=Content("no"))
CREATED: Final = ChatCreated(chat="c", owner="", agent="a", release="0.1.0")


def recorded(*events: ChatArchived | Reconciled | TurnFailed) -> list[Recorded]:
    return list(decode_each(log_of([CREATED, *events]).events))


@pytest.mark.parametrize(
    ("picking", "log", "taken"),
    [
        (Picking(), recorded(), True),
        (Picking(errors=True), recorded(ChatArchived()), False),
        (Picking(errors=True), recorded(TurnFailed(error=ERROR)), True),
        (Picking(errors=True), recorded(Reconciled(error=ERROR)), True),
        (Picking(covers=("archive", "fork")), recorded(ChatArchived()), True),
        (Picking(covers=("fork",)), recorded(ChatArchived()), False),
        (Picking(covers=("archive",), errors=True), recorded(ChatArchived()), False),
        (Picking(since=TIME + 2_000_000), recorded(ChatArchived()), True),
        (Picking(since=TIME + 2_000_001), recorded(ChatArchived()), False),
        (Picking(since=TIME), [], False),
        (Picking(drift=True), recorded(ChatArchived()), False),
    ],
)
def test_a_log_is_all_that_is_asked_for(picking: Picking, log: list[Recorded], taken: bool) -> None:
    assert picking.takes(log) is taken
    assert picking.asks is (picking != Picking())


def test_a_log_whose_decisions_were_written_by_hand_drifts() -> None:
    log = read_log(
        (FOLDER / "v0.1" / "logs" / "decision_record.jsonl").read_bytes().splitlines(), "decision_record.jsonl"
    )
    assert Picking(drift=True).takes(list(decode_each(log.events, content=False)))


def test_the_transitions_are_those_of_the_machine() -> None:
    assert {"create", "send", "finish_turn", "reconcile"} <= set(TRIGGERS)
    assert len(set(TRIGGERS)) == len(TRIGGERS)
