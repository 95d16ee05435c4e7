"""What a plan does with what a dead holder's attempt left: keeps it where the turn ends, else tells its cost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from chatstate.classify import X
from chatstate.errors import ContentTooLarge
from chatstate.handlers.worker import TAKEOVER_LIMIT
from events.control import Control
from events.ids import ChatId, WorkerId
from events.messages import Message, Usage
from events.records import AttemptReport, Policy
from events.vocabulary import (
    AttemptStarted,
    InterruptionFinished,
    Released,
    TurnFailed,
)
from generation.flushing import Leftovers, with_leftovers
from generation.partials import CallStart, Leftover, Timed, encode_chunk
from generation.plans import acquire, let_go
from generation.providers.contract import TextDelta
from store.append import PlanRun
from store.contract import PartialChunk
from store.errors import MalformedRow
from tests.chatstate import build as b
from tests.chatstate.chat import Chat
from tests.chatstate.reach import compacting, generating, running_tools
from tests.generation.test_worker_plans import DIGESTS, held, hold, run_of, types, working

STEP = replace(b.STEP, usage=Usage(input=7))
MESSAGE = Message(role="assistant", parts=b.answer().parts, step=STEP, interrupted=True)
LEFT = Leftover(message=MESSAGE, report=AttemptReport(step=STEP, request=DIGESTS))
BESIDE = AttemptReport(request=DIGESTS)
NO_MODEL = Policy(agent="helper", revision="1", model=None)


def taken(chat: Chat, left: Leftover = LEFT, policy: Policy | None = b.POLICY) -> PlanRun:
    """The plan of a worker that takes a chat over."""
    run = run_of(chat, alive=False)
    given = held(policy) if policy is not None else None
    acquire(WorkerId("w1"), "0.1.0", lambda epoch: hold(epoch, policy=given), lambda _: left)(run)
    return run


def lost_often(x: X = X.R0) -> Chat:
    """A chat at its last worker but one, whose model call is under way."""
    chat = working(generating, x)
    for _ in range(TAKEOVER_LIMIT - 1):
        chat.do(b.acquire("w0", dead=True))
        chat.do(b.start(chat))
    return chat


def used(run: PlanRun) -> int:
    return run.state.control.usage.input


def test_a_takeover_that_finishes_an_interruption_keeps_it() -> None:
    run = taken(working(generating, X.I1))
    assert types(run)[:2] == ["acquired", "interruption_finished"]
    finished = run.recorded[1].event
    assert isinstance(finished, InterruptionFinished)
    assert (finished.added[0], finished.report) == (MESSAGE, BESIDE)
    assert used(run) == 7
    assert isinstance(run.recorded[-1].event, AttemptStarted)
    assert run.recorded[-1].event.cut is None


def test_a_turn_that_lost_its_last_worker_keeps_it() -> None:
    run = taken(lost_often())
    failed = run.recorded[-1].event
    assert isinstance(failed, TurnFailed)
    assert (failed.error.kind, failed.added, failed.report) == ("worker_lost", (MESSAGE,), BESIDE)
    assert used(run) == 7


def test_a_turn_that_a_rule_fails_at_the_takeover_keeps_it() -> None:
    run = taken(working(generating), policy=NO_MODEL)
    failed = run.recorded[-1].event
    assert isinstance(failed, TurnFailed)
    assert (failed.error.kind, failed.added, failed.report) == ("config", (MESSAGE,), BESIDE)
    assert failed.decision is not None


def test_a_retry_makes_it_void_and_tells_its_cost() -> None:
    run = taken(working(generating))
    started = run.recorded[-1].event
    assert isinstance(started, AttemptStarted)
    assert started.cut == LEFT.report
    assert used(run) == 7
    assert all(not item.message.interrupted for item in run.state.need_transcript("a test").messages)


def test_a_chat_that_is_let_go_at_the_takeover_tells_its_cost() -> None:
    run = taken(working(generating), policy=None)
    released = run.recorded[-1].event
    assert isinstance(released, Released)
    assert released.report == LEFT.report


@pytest.mark.parametrize("work", [compacting, running_tools("rerun")])
def test_other_attempts_leave_no_answer_and_nothing_is_read(work: Callable[[Chat], object]) -> None:
    chat = working(work)
    run = run_of(chat, alive=False)
    acquire(WorkerId("w1"), "0.1.0", hold, Leftovers().of)(run)
    assert types(run) == ["acquired", "attempt_started"]


def test_a_free_chat_is_taken_without_a_question() -> None:
    chat = working(generating)
    chat.do(b.release(chat))
    acquire(WorkerId("w1"), "0.1.0", hold, _never)(run_of(chat))


def _never(_: Control) -> Leftover:
    raise AssertionError("nobody holds this chat")


@pytest.mark.parametrize(
    ("x", "takeovers", "kind"),
    [(X.I0, 0, InterruptionFinished), (X.R0, TAKEOVER_LIMIT - 1, TurnFailed), (X.R0, 0, Released)],
)
def test_a_chat_whose_runner_died_here_keeps_it_by_the_same_rule(x: X, takeovers: int, kind: type) -> None:
    run = run_of(working(generating, x))
    run.state.control.takeovers = takeovers
    let_go(run, hold(), lambda _: LEFT, died=True)
    event = run.recorded[-1].event
    assert isinstance(event, kind)
    keeps = kind is not Released
    assert getattr(event, "added", ()) == ((MESSAGE,) if keeps else ())
    assert getattr(event, "report", None) == (BESIDE if keeps else LEFT.report)


@pytest.mark.parametrize(("x", "status"), [(X.I0, "waiting"), (X.I1, "running")])
def test_an_interruption_that_nobody_runs_keeps_what_was_left(x: X, status: str) -> None:
    """Its runner had taken the lease for lost, and it was not: the chat is still this worker's."""
    run = run_of(working(generating, x))
    let_go(run, hold(), lambda _: LEFT, died=False)
    (finished,) = [recorded.event for recorded in run.recorded]
    assert isinstance(finished, InterruptionFinished)
    assert finished.added[0] == MESSAGE
    assert finished.report == BESIDE
    assert run.state.control.status == status


def chunk(attempt: int, text: str) -> PartialChunk:
    start = CallStart(model=b.POLICY.model, digests=DIGESTS, started_at=1) if b.POLICY.model is not None else None
    data = encode_chunk([Timed(1, TextDelta(block=0, text=text))], {}, start)
    return PartialChunk(chat=ChatId("chat"), epoch=1, history_version=1, attempt=attempt, n=0, data=data)


class Reader:
    """Gives chunks, and counts."""

    def __init__(self, *chunks: PartialChunk) -> None:
        self.chunks = chunks
        self.times = 0

    async def __call__(self) -> Sequence[PartialChunk]:
        self.times += 1
        return self.chunks


def at_attempt(chat: Chat, attempt: int) -> Control:
    control = chat.control.clone()
    assert control.running is not None
    control.history_version = 1
    control.running = replace(control.running, attempt=attempt)
    return control


async def test_a_plan_that_meets_another_attempt_does_not_get_what_was_read_for_the_first() -> None:
    """Between its runs another worker had the chat, and died too."""
    chat = working(generating)
    read = Reader(chunk(1, "first"), chunk(2, "second"))
    met = [1, 1, 2, 2]
    seen: list[str] = []

    async def work(leftovers: Leftovers) -> str:
        while met:
            message = leftovers.of(at_attempt(chat, met.pop(0))).message
            seen.append(message.text if message is not None else "")
        return "done"

    assert await with_leftovers(read, work) == "done"
    assert seen == ["first", "second"]
    assert read.times == 2


async def test_work_that_asks_for_nothing_reads_nothing() -> None:
    read = Reader()

    async def work(_: Leftovers) -> str:
        return "done"

    assert await with_leftovers(read, work) == "done"
    assert read.times == 0


async def test_what_cannot_be_stored_keeps_no_turn_from_ending(caplog: pytest.LogCaptureFixture) -> None:
    chat = working(generating)
    kept: list[Leftover] = []

    async def work(leftovers: Leftovers) -> str:
        kept.append(leftovers.of(at_attempt(chat, 1)))
        if kept[-1].message is not None:
            raise ContentTooLarge("interrupt", X.R0, "too large")
        return "done"

    with caplog.at_level(logging.WARNING):
        assert await with_leftovers(Reader(chunk(1, "secret")), work) == "done"
    assert kept[-1].message is None
    assert kept[-1].report is not None
    assert [record.getMessage() for record in caplog.records] == ["partial_not_storable"]
    assert "secret" not in caplog.text

    async def worse(_: Leftovers) -> str:
        raise ContentTooLarge("send_interrupt", X.R0, "the message itself is too large")

    with pytest.raises(ContentTooLarge):
        await with_leftovers(Reader(), worse)


async def test_a_chunk_whose_row_was_damaged_keeps_no_turn_from_ending(caplog: pytest.LogCaptureFixture) -> None:
    chat = working(generating)

    async def read() -> Sequence[PartialChunk]:
        raise MalformedRow("chat", None, "column data holds str, not bytes", table="chat_partials", column="data")

    async def work(leftovers: Leftovers) -> str:
        return "done" if leftovers.of(at_attempt(chat, 1)).message is None else "more"

    with caplog.at_level(logging.WARNING):
        assert await with_leftovers(read, work) == "done"
    assert [record.getMessage() for record in caplog.records] == ["partial_left_out"]
