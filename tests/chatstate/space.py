"""The bounded space of chats: what makes two states alike, and every command that is tried in each.

Bounds: two queued messages, two open calls. Ids, versions, texts and counters are left out of what makes states alike,
since no transition looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from chatstate import commands as c
from chatstate.classify import classify
from chatstate.table import TABLE
from events.content import Content
from events.control import OpenCall
from events.ids import MessageId, message_id
from events.messages import Message
from events.records import AttemptReport, FinishCause
from events.state import ChatState
from tests.chatstate import build as b
from tests.chatstate.chat import SECOND, Chat, Timed

Key: TypeAlias = tuple[object, ...]

QUEUE_LIMIT: Final = 2
CALLS: Final[tuple[tuple[str, ...], ...]] = (
    ("report",),
    ("client",),
    ("stop", "provider"),
    ("rerun", "report"),
    ("asked",),
    ("exclusive", "client"),
    ("exclusive client", "approval"),
    ("client", "approval"),
)
"""The answers with calls that are tried."""

CAUSES: Final[tuple[FinishCause, ...]] = ("complete", "stop_after_tool", "max_steps", "compacted", "budget")


def key(state: ChatState) -> Key:
    """Return what a transition can look at."""
    control, indexes = state.control, state.control.indexes
    action = control.action
    interrupted_last = indexes.last_interrupted and indexes.last_role == "assistant"
    return (
        classify(control),
        len(control.queue),
        tuple(_call(call) for call in indexes.open_calls),
        control.running.kind if control.running is not None else None,
        control.not_before is not None,
        control.retry is not None,
        (action.on_expiry, tuple(item.kind for item in action.items)) if action is not None else None,
        control.owed,
        control.compaction,
        control.importing,
        interrupted_last,
        indexes.boundary_kind,
        indexes.visible_after > 0,
        indexes.assistants_after > 0,
    )


def _call(call: OpenCall) -> Key:
    return (call.name, call.approved, call.started, call.recorded, call.possibly_done)


def every_command(state: ChatState, now: int) -> Iterator[Timed]:
    """Yield the commands tried in a state, most of which it refuses."""
    chat = Chat(state)
    row = TABLE[classify(state.control)]
    due = max(now, _due(state)) + SECOND
    tried = set()
    for command in (*_users(chat), *_queue(chat), *_idle(chat), *_metadata(chat), *_holding(chat), *_outcomes(chat)):
        # What the row does not have is refused whatever the command says: once is enough.
        if command.trigger in row or command.trigger not in tried:
            yield Timed(command, due)
        tried.add(command.trigger)
    # The same before a retry's time has come, and before a deadline.
    early = [b.acquire(), *_expiries(chat)] if _due(state) > now + SECOND else []
    for command in early:
        yield Timed(command, now + SECOND)


def _due(state: ChatState) -> int:
    control = state.control
    return control.not_before or (control.action.deadline if control.action is not None else 0)


_PARTIALS: Final = (None, b.answer(interrupted=True, step=None), b.answer("report", "client"))


def _first_user(chat: Chat) -> Iterator[MessageId]:
    users = [m.id for m in chat.state.need_transcript("a test").messages if m.message.opens_turn]
    yield from dict.fromkeys((*users[:1], *users[-1:], message_id(99, 0)))


def _users(chat: Chat) -> Iterator[c.AnyCommand]:
    yield b.create()
    yield b.create(b.system())
    yield b.fork()
    message = b.queued()
    yield c.SendMessage(message=message, queue_limit=QUEUE_LIMIT)
    for partial in _PARTIALS:
        for dead in (False, True):
            yield c.SendInterrupting(message=message, queue_limit=QUEUE_LIMIT, lease_dead=dead, partial=partial)
            yield c.Interrupt(lease_dead=dead, partial=partial)
    for target in _first_user(chat):
        yield c.EditMessage(target=target, message=b.user("Hi"))
    yield b.submit(chat)
    yield b.submit(chat, approve=False, end_turn=False, is_error=True)
    yield c.SubmitResults(action=chat.control.action.id if chat.control.action is not None else 1)
    yield from _expiries(chat)


def _queue(chat: Chat) -> Iterator[c.AnyCommand]:
    ids = [item.id for item in chat.control.queue] or [message_id(99, 0)]
    yield c.EditQueued(target=ids[0], message=b.queued("Or this?", model="m2"))
    yield c.ReorderQueue(order=tuple(ids[::-1]))
    yield c.DeleteQueued(target=message_id(98, 0))
    for target in dict.fromkeys((ids[0], ids[-1])):
        yield c.DeleteQueued(target=target)
        for dead in (False, True):
            yield c.PromoteQueued(target=target, lease_dead=dead)


def _idle(_chat: Chat) -> Iterator[c.AnyCommand]:
    yield c.Resume()
    yield c.Compact(hint=Content("Keep the names."))
    yield c.Clear()
    yield c.Archive()
    yield c.Unarchive()
    yield c.Uncompact()
    yield c.Reconcile(error=b.ERROR)
    yield c.ImportMessages(messages=(b.user(), b.answer("client")))
    yield c.ImportMessages(messages=())


def _metadata(chat: Chat) -> Iterator[c.AnyCommand]:
    yield c.SetTitle(title=Content("A talk"))
    yield c.SetLabels(labels={"team": "red"})
    yield c.SetModel(model="m2")
    yield c.SetAgent(agent="helper")
    yield c.SetActiveTools(tools=("look",))
    yield c.SetPinned(pinned=True)
    yield c.SetRetention(retention_us=1)
    yield c.MarkContext(mark="stale", revision="r2")
    yield c.SetTurnLabel(label=Content("Fixed the build"))
    yield c.RecordSideCall(kind="label", report=AttemptReport(step=b.STEP))
    yield c.MarkContext(mark="refresh")
    yield c.Erase(targets=tuple(_first_user(chat))[:1])
    yield c.Adopt()


def _holding(chat: Chat) -> Iterator[c.AnyCommand]:
    yield b.acquire()
    yield b.acquire("w2", dead=True)
    yield b.release(chat)
    yield b.record_policy(chat)
    yield b.start(chat)
    yield b.start(chat, "compact")
    yield b.start(chat, "context")
    yield b.start_tools(chat)
    yield b.start(chat, "tools", *(call.key for call in chat.calls))
    yield b.start(chat, "tools", *(call.key for call in chat.calls[:1]))


def _outcomes(chat: Chat) -> Iterator[c.AnyCommand]:
    for call in chat.calls:
        yield b.result(chat, call.key)
        yield b.result(chat, call.key, is_error=True)
    yield b.commit(chat)
    yield b.commit(chat, b.answer())
    for sorts in CALLS:
        yield b.commit(chat, b.answer(*sorts))
    yield b.compaction(chat)
    yield b.compaction(chat, manual=False)
    yield b.context(chat)
    yield b.retry(chat)
    for budget in (False, True):
        yield b.require(chat, budget=budget)
        yield b.require(chat, "end_turn", budget=budget)
    for cause in CAUSES:
        yield b.finish(chat, cause)
    for message in _KEPT:
        yield b.fail(chat, message)
        yield b.finish_interruption(chat, message)


_KEPT: Final[tuple[Message | None, ...]] = (
    None,
    b.answer(interrupted=True),
    b.answer(),
    b.answer("report", "client", "provider"),
)


def _expiries(chat: Chat) -> Iterator[c.AnyCommand]:
    action = chat.control.action.id if chat.control.action is not None else 1
    yield c.ExpireAction(action=action)
    yield c.ExpireActionEndTurn(action=action)
