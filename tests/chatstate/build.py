"""Short ways to write messages and commands. Owns no rules; ``tests.chatstate.reach`` leads to states."""

from __future__ import annotations

from chatstate import commands as c
from events.content import Content
from events.ids import CallKey, ChatId, WorkerId, call_key, message_id
from events.messages import ContextMark, Message, QueuedMessage, Step, Usage
from events.parts import OnExpiry, Part, TextPart, ToolCallPart, ToolResultPart
from events.records import (
    NO_LIMIT,
    ApprovalAnswer,
    AttemptKind,
    Budget,
    BudgetAnswer,
    Decision,
    ErrorInfo,
    FinishCause,
    ModelPolicy,
    Origin,
    Policy,
    Spending,
    Spent,
)
from tests.chatstate.chat import Chat

DECISION = Decision(rule="D11", action="generate")
ERROR = ErrorInfo(kind="overloaded", message=Content("The model is overloaded."), retryable=True)
POLICY = Policy(agent="helper", revision="1", model=ModelPolicy(provider="scripted", name="m"))
TIMEOUT = 300_000_000
SPENDING = Spending(spent=Spent(turns=1), allowed=Budget(turns=1), reached=("turns",))
STEP = Step(provider="scripted", model="m", usage=Usage(input=10, output=5), cost_micros=3)

CALLS: dict[str, ToolCallPart] = {
    "rerun": ToolCallPart(name="rerun", arguments=Content("{}"), provider_call_id="p", runner="local", crash="rerun"),
    "report": ToolCallPart(name="report", arguments=Content("{}"), provider_call_id="p", runner="local"),
    "asked": ToolCallPart(name="asked", arguments=Content("{}"), provider_call_id="p", runner="local", reconcile=True),
    "exclusive": ToolCallPart(
        name="exclusive", arguments=Content("{}"), provider_call_id="p", runner="local", exclusive=True
    ),
    "exclusive client": ToolCallPart(
        name="exclusive client", arguments=Content("{}"), provider_call_id="p", runner="client", exclusive=True
    ),
    "exclusive approval": ToolCallPart(
        name="exclusive approval",
        arguments=Content("{}"),
        provider_call_id="p",
        runner="local",
        exclusive=True,
        needs_approval=True,
    ),
    "brief client": ToolCallPart(
        name="brief client",
        arguments=Content("{}"),
        provider_call_id="p",
        runner="client",
        action_timeout_us=TIMEOUT // 10,
    ),
    "patient client": ToolCallPart(
        name="patient client",
        arguments=Content("{}"),
        provider_call_id="p",
        runner="client",
        action_timeout_us=TIMEOUT * 10,
        action_on_expiry="go_on",
    ),
    "ending approval": ToolCallPart(
        name="ending approval",
        arguments=Content("{}"),
        provider_call_id="p",
        runner="local",
        needs_approval=True,
        action_on_expiry="end_turn",
    ),
    "stop": ToolCallPart(name="stop", arguments=Content("{}"), provider_call_id="p", runner="local", stop_after=True),
    "client": ToolCallPart(name="client", arguments=Content("{}"), provider_call_id="p", runner="client"),
    "approval": ToolCallPart(
        name="approval", arguments=Content("{}"), provider_call_id="p", runner="local", needs_approval=True
    ),
    "provider": ToolCallPart(name="provider", arguments=Content("{}"), provider_call_id="p", runner="provider"),
}
"""A call of each sort."""


def text(value: str) -> TextPart:
    return TextPart(text=Content(value))


def user(value: str = "Hello") -> Message:
    return Message(role="user", parts=(text(value),))


def system(value: str = "Be brief.") -> Message:
    return Message(role="system", parts=(text(value),))


def queued(value: str = "And then?", model: str | None = None) -> QueuedMessage:
    return QueuedMessage(message=user(value), model=model)


def answer(*calls: str, said: str = "Sure.", interrupted: bool = False, step: Step | None = STEP) -> Message:
    """An answer of the model with calls of the named sorts."""
    parts: tuple[Part, ...] = (text(said), *(CALLS[sort] for sort in calls))
    return Message(role="assistant", parts=parts, interrupted=interrupted, step=step)


def create(*messages: Message) -> c.CreateChat:
    given = messages or (system(), user())
    return c.CreateChat(chat=ChatId("chat"), owner="ann", agent="helper", release="0.1.0", messages=given)


def fork(*, owed: bool = True, origin: str = "origin") -> c.ForkChat:
    return c.ForkChat(
        chat=ChatId("fork"),
        owner="ann",
        agent="helper",
        release="0.1.0",
        origin=Origin(chat=origin, version=1, digest="00"),
        owed=owed,
    )


def send(value: str = "And then?", model: str | None = None) -> c.SendMessage:
    return c.SendMessage(message=queued(value, model))


def send_interrupting(
    value: str = "Stop.", *, dead: bool = False, partial: Message | None = None
) -> c.SendInterrupting:
    return c.SendInterrupting(message=queued(value), lease_dead=dead, partial=partial)


def acquire(worker: str = "w1", *, dead: bool = False) -> c.Acquire:
    return c.Acquire(worker=WorkerId(worker), release="0.1.0", lease_dead=dead)


def release(chat: Chat) -> c.Release:
    return c.Release(fence=chat.fence(), reason="shutdown")


def record_policy(chat: Chat, digest: str = "") -> c.RecordPolicy:
    return c.RecordPolicy(fence=chat.fence(), policy=POLICY, digest=digest)


def start(chat: Chat, kind: AttemptKind = "generate", *calls: CallKey) -> c.StartAttempt:
    return c.StartAttempt(fence=chat.fence(), kind=kind, decision=DECISION, calls=calls)


def start_tools(chat: Chat) -> c.StartAttempt:
    """Start all open calls that may run."""
    return start(chat, "tools", *(call.key for call in chat.calls if call.may_run and not call.recorded))


def commit(chat: Chat, message: Message | None = None) -> c.CommitStep:
    return c.CommitStep(fence=chat.fence(), message=message)


def result(chat: Chat, call: CallKey, value: str = "42", *, is_error: bool = False) -> c.RecordToolResult:
    part = ToolResultPart(call=call, output=Content(value), is_error=is_error)
    return c.RecordToolResult(fence=chat.fence(), result=part)


def compaction(chat: Chat, *, manual: bool = True) -> c.CommitCompaction:
    return c.CommitCompaction(
        fence=chat.fence(), manual=manual, summary=Content("They talked."), details=Content("{}"), context_tokens=9
    )


def context(chat: Chat, revision: str = "r1") -> c.PersistContext:
    mark = ContextMark(source="files", revision=revision)
    return c.PersistContext(fence=chat.fence(), message=Message(role="system", parts=(text("A file."),), context=mark))


def retry(chat: Chat, delay_us: int = 5_000_000) -> c.ScheduleRetry:
    return c.ScheduleRetry(fence=chat.fence(), delay_us=delay_us, error=ERROR)


def require(chat: Chat, on_expiry: OnExpiry = "go_on", *, budget: bool = False) -> c.RequireAction:
    return c.RequireAction(
        fence=chat.fence(),
        decision=DECISION,
        timeout_us=TIMEOUT,
        on_expiry=on_expiry,
        budget=SPENDING if budget else None,
    )


def finish(chat: Chat, cause: FinishCause = "complete") -> c.FinishTurn:
    return c.FinishTurn(fence=chat.fence(), cause=cause, decision=DECISION)


def fail(chat: Chat, message: Message | None = None) -> c.FailTurn:
    return c.FailTurn(fence=chat.fence(), error=ERROR, message=message)


def finish_interruption(chat: Chat, message: Message | None = None) -> c.FinishInterruption:
    return c.FinishInterruption(fence=chat.fence(), message=message)


def submit(chat: Chat, *, approve: bool = True, end_turn: bool = True, is_error: bool = False) -> c.SubmitResults:
    """Answer all that is owed; ``approve`` and ``end_turn`` are the answers to approvals and to a budget question."""
    action = chat.control.action
    items = action.items if action is not None else ()
    answer = BudgetAnswer(end_turn=end_turn, raised=None if end_turn else Budget(turns=NO_LIMIT))
    return c.SubmitResults(
        action=action.id if action is not None else 1,
        results=tuple(
            c.SubmittedResult(call=item.call, output=Content("done"), is_error=is_error)
            for item in items
            if item.kind == "client_call" and item.call is not None
        ),
        approvals=tuple(
            ApprovalAnswer(call=item.call, approved=approve)
            for item in items
            if item.kind == "approval" and item.call is not None
        ),
        budget=answer if any(item.kind == "budget" for item in items) else None,
    )


def a_call() -> CallKey:
    """A call that no chat has."""
    return call_key(message_id(99, 0), 0)
