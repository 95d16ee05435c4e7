"""Invalid states: every combination of fields outside of the legal ones leads to error by reconcile alone, and out.

Commands cannot reach these states, so they are made by hand, and are seeds of a walk of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import get_args

import pytest

from chatstate import commands as c
from chatstate.classify import EXISTING, X, classify
from chatstate.decide import decide
from chatstate.errors import InvalidState, Refusal, TransitionNotAllowed
from chatstate.invariants import violations
from chatstate.table import TABLE, TRIGGERS
from events.control import Control, encode_control
from events.envelope import Status
from events.ids import WorkerId
from events.records import ActionItem, OpenAction
from events.state import ChatState
from tests.chatstate import build as b
from tests.chatstate.cases import COMMANDS
from tests.chatstate.chat import Chat
from tests.chatstate.reach import called, reach, running_tools
from tests.chatstate.space import every_command

STATUSES: tuple[Status, ...] = get_args(Status)


def seeds() -> Iterator[Chat]:
    """Yield chats in every combination of status, queue, flags, holder and action, with and without open calls."""
    bases = [
        reach(x, work=work)
        for x in (X.R0, X.R1)
        for work in (None, called("report", "client"), running_tools("rerun", "report"))
    ]
    flags = (False, True)
    for base, status, interrupting, archived, held, acting in product(bases, STATUSES, flags, flags, flags, flags):
        yield broken(base, status, interrupting=interrupting, archived=archived, held=held, acting=acting)


def broken(base: Chat, status: Status, *, interrupting: bool, archived: bool, held: bool, acting: bool) -> Chat:
    control = base.control.clone()
    control.status = status
    control.interrupting = interrupting
    control.archived = archived
    control.holder = WorkerId("w1") if held else None
    items = (ActionItem(kind="budget"),)
    control.action = OpenAction(id=1, deadline=1, on_expiry="end_turn", items=items) if acting else None
    control.not_before = base.now if acting else None
    control.last_error = b.ERROR if archived else None
    return Chat(ChatState(control=control, transcript=base.state.transcript))


SEEDS = list(seeds())
INVALID = [chat for chat in SEEDS if chat.x is X.INVALID]


def shown(chat: Chat) -> str:
    control = chat.control
    marks = [name for name in ("interrupting", "archived", "holder", "action") if getattr(control, name)]
    return f"{control.status}-{len(control.queue)}-{'-'.join(marks)}-{len(chat.calls)}"


def test_a_combination_is_legal_exactly_where_the_specification_lists_it() -> None:
    """Section 1, in words of its own: it shall not be the classifier that says what the classifier must say."""
    for chat in SEEDS:
        control = chat.control
        queue, status = bool(control.queue), control.status
        legal = (
            (not control.interrupting or status == "running")
            and (not control.archived or status in ("waiting", "error"))
            and (not queue or status != "waiting")
            and (control.holder is not None) == (status == "running")
            and (control.action is not None) == (status == "requires_action")
        )
        assert (chat.x in EXISTING) == legal, shown(chat)
        assert legal or violations(chat.state), shown(chat)
    print(f"{len(INVALID)} of {len(SEEDS)} combinations are invalid")
    assert len(INVALID) > 300


def test_each_legal_combination_has_a_state_of_its_own() -> None:
    chats = [chat for chat in SEEDS if chat.x is not X.INVALID]
    fields = {
        (chat.control.status, bool(chat.control.queue), chat.control.interrupting, chat.control.archived): chat.x
        for chat in chats
    }
    assert sorted(fields.values()) == sorted(set(EXISTING))


def test_a_chat_without_events_does_not_exist_whatever_its_fields_say() -> None:
    assert classify(Control(status="running", archived=True)) is X.N


def test_nothing_but_reconcile_leads_out_of_an_invalid_state() -> None:
    assert set(TABLE[X.INVALID]) == {"reconcile"}
    for chat in INVALID[:: max(1, len(INVALID) // 60)]:
        before = encode_control(chat.control)
        for trigger in TRIGGERS:
            if trigger == "reconcile":
                continue
            with pytest.raises(InvalidState) as caught:
                decide(chat.state, COMMANDS[trigger](chat, True), chat.now)
            assert (caught.value.trigger, caught.value.state) == (trigger, X.INVALID)
        assert encode_control(chat.control) == before


def test_reconcile_leads_every_invalid_state_to_error_and_leaves_it_sound() -> None:
    for seed in INVALID:
        chat = Chat(seed.state)
        epoch, held = chat.control.epoch, chat.control.holder is not None
        chat.do(c.Reconcile(error=b.ERROR))
        assert chat.x is (X.E1 if seed.control.queue else X.E0), shown(seed)
        assert violations(chat.state) == [], shown(seed)
        assert chat.calls == ()
        assert chat.control.epoch == epoch + held, "a holder that was found is fenced off"


def test_a_reconciled_chat_goes_on() -> None:
    for seed in INVALID[:: max(1, len(INVALID) // 60)]:
        for command in (b.send(), c.Resume()):
            chat = Chat(seed.state)
            chat.do(c.Reconcile(error=b.ERROR))
            chat.do(command)
            chat.do(b.acquire("w9"))
            assert chat.x in (X.R0, X.R1)
            assert violations(chat.state) == []


def test_a_reconciled_chat_takes_every_command_without_breaking_an_invariant() -> None:
    for seed in INVALID[:: max(1, len(INVALID) // 12)]:
        chat = Chat(seed.state)
        chat.do(c.Reconcile(error=b.ERROR))
        taken = 0
        for timed in every_command(chat.state, chat.now):
            other = Chat(chat.state)
            if timed.command.trigger not in TABLE[chat.x]:
                continue
            taken += accepted(other, timed.command, timed.now)
            assert violations(other.state) == []
        assert taken > 5


def accepted(chat: Chat, command: c.AnyCommand, now: int) -> bool:
    try:
        chat.do(command, now=now)
    except Refusal:
        return False
    return True


@pytest.mark.parametrize("x", EXISTING)
def test_reconcile_is_refused_where_nothing_is_wrong(x: X) -> None:
    with pytest.raises(TransitionNotAllowed):
        reach(x).do(c.Reconcile(error=b.ERROR))
