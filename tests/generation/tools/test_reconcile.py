"""A call that a holder which is gone may have done: its tool is asked first, and what it says decides."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from events.reasons import REASON_TEXTS, Reason
from generation.errors import ToolDeclarationError
from generation.tools.contract import Tool, ToolContext, ToolOutput, client_tool, tool
from generation.tools.execute import RunningCall, run_call
from generation.tools.output import Answer, CallResult
from generation.tools.reconcile import NOT_HAPPENED, NOT_KNOWN, Happened
from tests.generation.tools.support import call, env, until

Ask = Callable[[ToolContext, dict[str, Any]], object]


class Desk:
    """A tool that counts what it does, and how often it is asked."""

    def __init__(self, says: object = NOT_HAPPENED) -> None:
        self.says = says
        self.paid: list[int] = []
        self.asked: list[tuple[str, int, dict[str, Any]]] = []

    def tool(self, reconcile: Ask | None = None, **options: Any) -> Tool:
        def pay(cents: int) -> str:
            self.paid.append(cents)
            return "paid now"

        return Tool.from_function(pay, reconcile=reconcile or self.ask, **options)

    def ask(self, context: ToolContext, arguments: dict[str, Any]) -> object:
        self.asked.append((context.idempotency_key, context.epoch, arguments))
        if isinstance(self.says, BaseException):
            raise self.says
        return self.says

    async def ask_async(self, context: ToolContext, arguments: dict[str, Any]) -> object:
        await asyncio.sleep(0)
        return self.ask(context, arguments)


async def run(made: Tool, arguments: str | None = '{"cents": 5}', *, possibly_done: bool = True) -> CallResult | None:
    asked = replace(call("pay", arguments), possibly_done=possibly_done, reconcile=True)
    return await run_call(asked, env(made))


def lost(result: CallResult | None) -> bool:
    """Whether the call is recorded as one of which nobody knows."""
    assert result is not None
    part = result.part()
    assert (part.reason is Reason.WORKER_LOST) == (part.output is None)
    if part.reason is None:
        return False
    assert (part.is_error, part.started_at, result.answer.output) == (True, None, REASON_TEXTS[Reason.WORKER_LOST])
    return True


@pytest.mark.parametrize("sort", ["sync", "async"])
async def test_what_happened_is_recorded_and_not_done_again(sort: str) -> None:
    desk = Desk(Happened({"receipt": 7}))
    result = await run(desk.tool(desk.ask_async if sort == "async" else None))
    assert result is not None
    assert (result.answer, result.reason) == (Answer({"receipt": 7}), None)
    assert desk.paid == []
    context = env(desk.tool())
    assert desk.asked == [(f"{context.chat}/{call('pay').key}", context.epoch, {"cents": 5})]


async def test_what_failed_is_an_error_of_the_tool() -> None:
    result = await run(Desk(Happened(ToolOutput("over the limit", is_error=True))).tool())
    assert result is not None
    assert result.answer == Answer("over the limit", is_error=True)


@pytest.mark.parametrize("sort", ["sync", "async"])
async def test_what_did_not_happen_is_done_now(sort: str) -> None:
    desk = Desk(NOT_HAPPENED)
    result = await run(desk.tool(desk.ask_async if sort == "async" else None))
    assert result is not None
    assert (result.answer, desk.paid, len(desk.asked)) == (Answer("paid now"), [5], 1)


async def test_a_call_that_nobody_started_is_not_asked_about() -> None:
    desk = Desk(Happened("never"))
    result = await run(desk.tool(), possibly_done=False)
    assert result is not None
    assert (result.answer, desk.paid, desk.asked) == (Answer("paid now"), [5], [])


@pytest.mark.parametrize(
    "says", [NOT_KNOWN, None, "yes", True, OSError("no route"), SystemExit(1), asyncio.CancelledError()], ids=repr
)
async def test_what_is_not_known_is_reported_and_not_done(says: object) -> None:
    desk = Desk(says)
    assert lost(await run(desk.tool()))
    assert lost(await run(desk.tool(desk.ask_async)))
    assert (desk.paid, len(desk.asked)) == ([], 2)


async def test_who_does_not_answer_in_time_does_not_know() -> None:
    async def slow(_context: ToolContext, _arguments: dict[str, Any]) -> object:
        await asyncio.Event().wait()
        return NOT_HAPPENED

    desk = Desk()
    assert lost(await run(desk.tool(slow, timeout=0.01)))
    assert desk.paid == []


async def test_what_cannot_be_asked_any_more_is_not_known_and_not_done() -> None:
    desk = Desk(NOT_HAPPENED)
    assert lost(await run(desk.tool(), '{"cents": "many"}'))
    assert lost(await run(desk.tool(), None))
    assert lost(await run(dataclasses.replace(desk.tool(), reconcile=None)))
    assert lost(await run(dataclasses.replace(desk.tool(), name="renamed")))
    assert (desk.paid, desk.asked) == ([], [])


async def test_a_question_that_is_cancelled_leaves_the_call_unknown() -> None:
    entered, gate = threading.Event(), threading.Event()

    def ask(context: ToolContext, _arguments: dict[str, Any]) -> object:
        entered.set()
        context.wait_cancelled(30)
        gate.wait(30)
        return NOT_HAPPENED

    desk = Desk()
    running = RunningCall(replace(call("pay", '{"cents": 5}'), possibly_done=True, reconcile=True), env(desk.tool(ask)))
    await until(entered.is_set)
    running.cancel()
    gate.set()
    assert await running.wait() is None, "it says NOT_HAPPENED, and is not to run any more"
    assert (desk.paid, running.begun) == ([], False)


async def test_a_question_that_does_not_end_is_abandoned() -> None:
    entered, gate = threading.Event(), threading.Event()

    def ask(_context: ToolContext, _arguments: dict[str, Any]) -> object:
        entered.set()
        gate.wait(30)
        return NOT_HAPPENED

    desk = Desk()
    running = RunningCall(replace(call("pay", '{"cents": 5}'), possibly_done=True, reconcile=True), env(desk.tool(ask)))
    await until(entered.is_set)
    assert await running.wait(0.01) is None
    gate.set()
    assert desk.paid == []


def test_only_a_local_report_tool_can_be_asked() -> None:
    desk = Desk()
    with pytest.raises(ToolDeclarationError, match="reconcile is for crash=report"):
        desk.tool(crash="rerun")
    with pytest.raises(ToolDeclarationError, match="reconcile is a function, not str"):
        desk.tool("ask")  # type: ignore[arg-type]
    with pytest.raises(ToolDeclarationError, match="takes the context and the arguments"):
        desk.tool(lambda _context: NOT_HAPPENED)  # type: ignore[arg-type, misc]
    with pytest.raises(ToolDeclarationError, match="the client runs this tool"):
        dataclasses.replace(client_tool("pay", "Pay.", {"type": "object"}), reconcile=desk.ask)

    @tool(reconcile=desk.ask)
    def pay(cents: int) -> str:
        """Pay."""
        return str(cents)

    assert pay.reconcile == desk.ask
