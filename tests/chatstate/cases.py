"""Every allowed and every forbidden (state, trigger) pair, derived from the production table.

A case is a plan of commands that leads a new chat to a state, one more command, and what must come of it: the state
after, or the refusal. Cases know no store, so they can be run against any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from chatstate import commands as c
from chatstate.classify import X
from chatstate.errors import ChatNotFound, InvalidState, Refusal, TransitionNotAllowed
from chatstate.table import TABLE, TRIGGERS
from events.content import Content
from events.ids import MessageId, message_id
from events.records import AttemptReport
from events.state import ChatState
from tests.chatstate import build as b
from tests.chatstate.chat import SECOND, Chat, Timed
from tests.chatstate.reach import (
    called,
    collecting,
    compacted,
    compacting,
    forked,
    generating,
    give_up,
    reach,
    require_end_turn,
    running_tools,
)


class Case(NamedTuple):
    """One case.

    Attributes:
        state: The execution state that the command meets.
        trigger: What is tried.
        case: Case of the table's cell, or "forbidden".
        plan: Commands that lead there, with their times.
        command: The command tried.
        expected: The state after, or the type of the refusal.
    """

    state: X
    trigger: str
    case: str
    plan: tuple[Timed, ...]
    command: Timed
    expected: X | type[Refusal]

    @property
    def id(self) -> str:
        """Name of the case."""
        after = self.expected if isinstance(self.expected, X) else self.expected.__name__
        return f"{self.state}-{self.trigger}-{self.case}-{after}"


def broken(state: ChatState) -> ChatState:
    """Bring a pending chat into a combination that must not be, as no command can but a store that lost a write."""
    control = state.control.clone()
    control.archived = True
    return ChatState(control=control, transcript=state.transcript)


_Build = Callable[[Chat, bool], c.AnyCommand]
_Prepare = Callable[[X, int], Chat]


def _head(chat: Chat) -> MessageId:
    return chat.control.queue[0].id if chat.control.queue else message_id(99, 0)


def _tail(chat: Chat) -> MessageId:
    return chat.control.queue[-1].id if chat.control.queue else message_id(99, 0)


def _action(chat: Chat) -> int:
    return chat.control.action.id if chat.control.action is not None else 1


def _call(chat: Chat) -> c.RecordToolResult:
    call = chat.calls[0].key if chat.calls else b.a_call()
    return b.result(chat, call)


COMMANDS: Final[dict[str, _Build]] = {
    "create": lambda _chat, _dead: b.create(),
    "fork": lambda _chat, _dead: b.fork(),
    "import_messages": lambda _chat, _dead: c.ImportMessages(messages=(b.user(),)),
    "send": lambda _chat, _dead: b.send(),
    "send_interrupt": lambda _chat, dead: b.send_interrupting(dead=dead),
    "edit": lambda _chat, _dead: c.EditMessage(target=message_id(1, 1), message=b.user("Hi")),
    "edit_queued": lambda chat, _dead: c.EditQueued(target=_head(chat), message=b.queued("Or this?")),
    "reorder_queue": lambda chat, _dead: c.ReorderQueue(order=tuple(i.id for i in chat.control.queue[::-1])),
    "delete_queued": lambda chat, _dead: c.DeleteQueued(target=_head(chat)),
    "promote_queued": lambda chat, dead: c.PromoteQueued(target=_tail(chat), lease_dead=dead),
    "interrupt": lambda _chat, dead: c.Interrupt(lease_dead=dead),
    "submit_results": lambda chat, _dead: b.submit(chat),
    "resume": lambda _chat, _dead: c.Resume(),
    "compact": lambda _chat, _dead: c.Compact(),
    "clear": lambda _chat, _dead: c.Clear(),
    "archive": lambda _chat, _dead: c.Archive(),
    "unarchive": lambda _chat, _dead: c.Unarchive(),
    "set_title": lambda _chat, _dead: c.SetTitle(title=Content("A talk")),
    "set_labels": lambda _chat, _dead: c.SetLabels(labels={"team": "red"}),
    "set_model": lambda _chat, _dead: c.SetModel(model="m2"),
    "set_active_tools": lambda _chat, _dead: c.SetActiveTools(tools=("look",)),
    "set_agent": lambda _chat, _dead: c.SetAgent(agent="other"),
    "set_pinned": lambda _chat, _dead: c.SetPinned(pinned=True),
    "set_retention": lambda _chat, _dead: c.SetRetention(retention_us=1),
    "set_turn_label": lambda _chat, _dead: c.SetTurnLabel(label=Content("Fixed the build")),
    "record_side_call": lambda _chat, _dead: c.RecordSideCall(kind="title", report=AttemptReport(step=b.STEP)),
    "mark_context": lambda _chat, _dead: c.MarkContext(mark="stale", revision="r2"),
    "erase": lambda _chat, _dead: c.Erase(targets=(message_id(1, 1),)),
    "adopt": lambda _chat, _dead: c.Adopt(),
    "uncompact": lambda _chat, _dead: c.Uncompact(),
    "acquire": lambda _chat, dead: b.acquire("w2", dead=dead),
    "release": lambda chat, _dead: b.release(chat),
    "record_policy": lambda chat, _dead: b.record_policy(chat, "p1"),
    "start_attempt": lambda chat, _dead: b.start(chat),
    "record_tool_result": lambda chat, _dead: _call(chat),
    "commit_step": lambda chat, _dead: b.commit(chat, b.answer()),
    "commit_compaction": lambda chat, _dead: b.compaction(chat),
    "persist_context": lambda chat, _dead: b.context(chat),
    "schedule_retry": lambda chat, _dead: b.retry(chat),
    "require_action": lambda chat, _dead: b.require(chat),
    "finish_turn": lambda chat, _dead: b.finish(chat),
    "fail_turn": lambda chat, _dead: b.fail(chat),
    "finish_interruption": lambda chat, _dead: b.finish_interruption(chat),
    "expire_action": lambda chat, _dead: c.ExpireAction(action=_action(chat)),
    "expire_action_end_turn": lambda chat, _dead: c.ExpireActionEndTurn(action=_action(chat)),
    "reconcile": lambda _chat, _dead: c.Reconcile(error=b.ERROR),
}
"""A well-formed command for each trigger, in whatever state the chat is."""

PREPARE: Final[dict[str, _Prepare]] = {
    "import_messages": lambda _x, _queued: forked(),
    "resume": lambda x, queued: reach(x, queued, end=give_up if x is X.W else None),
    "compact": lambda x, queued: reach(x, queued, called("client") if x in (X.E0, X.E1) else None),
    "uncompact": lambda x, queued: reach(x, queued, compacted),
    "record_tool_result": lambda x, queued: reach(x, queued, running_tools("report")),
    "commit_step": lambda x, queued: reach(x, queued, generating),
    "commit_compaction": lambda x, queued: reach(x, queued, compacting),
    "persist_context": lambda x, queued: reach(x, queued, collecting),
    "schedule_retry": lambda x, queued: reach(x, queued, generating),
    "require_action": lambda x, queued: reach(x, queued, called("client")),
    "finish_interruption": lambda x, queued: reach(x, queued, generating),
    "expire_action_end_turn": lambda x, queued: reach(x, queued, end=require_end_turn),
}
"""What has to have happened in a state before a trigger has something to do; ``reach`` alone where nothing has."""


def _prepared(x: X, trigger: str, queued: int) -> Chat:
    if x is X.INVALID:
        return reach(X.P1 if queued == 2 else X.P0)
    return PREPARE.get(trigger, reach)(x, queued)


def _case(chat: Chat, x: X, trigger: str, case: str, expected: X | type[Refusal]) -> Case:
    command = COMMANDS[trigger](chat, case == "dead")
    if case == "unanswered":
        command = b.create(b.system())
    # Deadlines have passed, a retry's time has come.
    timed = Timed(command, chat.now + SECOND + b.TIMEOUT)
    return Case(x, trigger, case, tuple(chat.commands), timed, expected)


def allowed() -> Iterator[Case]:
    """Yield a case for every outcome in every case of every cell."""
    for x, cells in TABLE.items():
        for trigger, cell in cells.items():
            for case, outcomes in cell._asdict().items():
                for place, outcome in enumerate(outcomes):
                    # Of two outcomes the first is the one with the shorter queue.
                    yield _case(_prepared(x, trigger, place + 1), x, trigger, case, outcome)


def forbidden() -> Iterator[Case]:
    """Yield a case for every pair that the table does not have, and for those it has for a dead holder alone."""
    refusals = {X.N: ChatNotFound, X.INVALID: InvalidState}
    for x, cells in TABLE.items():
        for trigger in TRIGGERS:
            if trigger not in cells or not cells[trigger].usual:
                expected = refusals.get(x, TransitionNotAllowed)
                yield _case(_prepared(x, "", 1), x, trigger, "forbidden", expected)


def unfenced(command: c.AnyCommand) -> list[c.AnyCommand]:
    """Return a worker's command under each fence that does not hold: another epoch, another history, no history."""
    fence: c.Fence | None = getattr(command, "fence", None)
    if fence is None:
        return []
    fences = [replace(fence, epoch=fence.epoch + 1), replace(fence, epoch=fence.epoch - 1)]
    if fence.history_version is not None:
        fences.append(replace(fence, history_version=fence.history_version + 1))
    return [replace(command, fence=stale) for stale in fences]
