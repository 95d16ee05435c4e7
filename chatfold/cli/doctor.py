"""``doctor``: why a chat does not move, in one screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import typer

from chatfold.cli.guard import FAILED
from chatfold.cli.output import Out, one_line, printable
from chatfold.cli.places import existing_store, load_settings
from chatfold.cli.shapes import Diagnosed
from chatfold.cli.timeline import said_of, time_of
from chatfold.diagnosis import Diagnosis
from chatfold.engine import Engine
from chatfold.settings import Settings
from events.control import Control, OpenCall, encode_control
from store.contract import LivingWorker

_WIDTH: Final = 400
_SHOWN: Final = 8
"""Calls, queued messages and workers that are shown one by one; of more than that their number."""


def run_doctor(out: Out, chat: str, *, json: bool, db: str | None, log_level: str | None) -> None:
    """Diagnose a chat; see the command.

    Raises:
        typer.Exit: With 1, where it does not move without somebody who runs the service.
    """
    settings = load_settings(db, log_level)
    found = asyncio.run(_diagnose(existing_store(settings), settings, chat))
    if json:
        out.data.json(_shape(found))
    else:
        for name, value in _fields(found):
            out.data.put(f"{name:<12}", style="dim")
            out.data.line(one_line(value, _WIDTH))
        out.data.line()
        out.data.put("next        ", style="bold")
        out.data.line(printable(found.next))
        if found.at is not None and found.at > found.now:
            out.data.put("when        ", style="bold")
            out.data.line(printable(_when(found.at, found.now)))
        if found.advice:
            out.data.put("to do       ", style="bold")
            out.data.line(printable(found.advice))
    if found.acts == "operator":
        raise typer.Exit(FAILED)


async def _diagnose(url: str, settings: Settings, chat: str) -> Diagnosis:
    async with Engine(url, worker=False, settings=settings) as engine:
        return await engine.diagnose(chat)


def _fields(found: Diagnosis) -> Iterator[tuple[str, str]]:
    control, header, now = found.control, found.header, found.now
    yield "chat", found.chat
    yield "state", f"{found.status} {found.state}, version {header.version}, {_ago(control.recorded_at, now)}"
    yield "agent", header.agent + (f", model {control.model}" if control.model is not None else "")
    if header.holder is not None:
        yield "holder", f"{header.holder}, epoch {header.epoch}, {_lease(found)}"
    if control.running is not None:
        running = control.running
        yield "attempt", f"{running.attempt}, {running.kind}, started {_ago(running.started_at, now)}"
    if control.takeovers:
        yield "takeovers", f"{control.takeovers} on this history"
    if control.retry is not None:
        retry = control.retry
        counted = f" (model attempt {control.model_attempts})" if control.model_attempts else ""
        yield "retry", f"of attempt {retry.attempt}{counted}, at {_when(retry.at, now)}: {said_of(retry.error)}"
    if control.action is not None:
        yield "deadline", f"action {control.action.id}, at {_when(control.action.deadline, now)}"
    if control.last_error is not None:
        yield "error", said_of(control.last_error)
    yield from _many("call", [_call(call) for call in control.indexes.open_calls])
    yield from _many("queued", [item.id for item in control.queue])
    yield from _refusal(found)
    living = [worker for worker in found.workers if worker.expires_at > now]
    yield from _many("worker", [_worker(each, found) for each in living])


def _many(name: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines[:_SHOWN]:
        yield name, line
    if len(lines) > _SHOWN:
        yield name, f"and {len(lines) - _SHOWN} more"


def _refusal(found: Diagnosis) -> Iterator[tuple[str, str]]:
    refusal = found.refusal
    if refusal is not None:
        what = f"{refusal.trigger} by {refusal.actor} in {refusal.state}: {refusal.code}, {refusal.reason}"
        yield "refused", f"{_ago(refusal.at, found.now)}, {what}"


def _lease(found: Diagnosis) -> str:
    until = found.lease_until
    if until is None:
        return "whose lease is gone"
    if until > found.now:
        return f"lease lives, ends at {_when(until, found.now)}"
    return f"lease ended {_ago(until, found.now)}"


def _call(call: OpenCall) -> str:
    stands = "result recorded" if call.recorded else "running" if call.started else "not started"
    stands = "possibly done, its tool is asked" if call.possibly_done and not call.recorded else stands
    asks = ", waits for approval" if call.needs_approval and not call.approved else ""
    return f"{call.key} {call.name} ({call.runner}, {stands}{asks})"


def _worker(worker: LivingWorker, found: Diagnosis) -> str:
    note = worker.note
    has = "has the agent" if found.header.agent in note.agents else "has not the agent"
    return f"{worker.worker}, {has}, room for {note.capacity}, release {note.release}, {note.process}"


def _when(moment: int, now: int) -> str:
    seconds = (moment - now) / 1e6
    return f"{time_of(moment)} UTC ({f'in {_span(seconds)}' if seconds >= 0 else f'{_span(-seconds)} ago'})"


def _ago(moment: int, now: int) -> str:
    return f"{_span(max(0.0, (now - moment) / 1e6))} ago"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _shape(found: Diagnosis) -> Diagnosed:
    living = [worker for worker in found.workers if worker.expires_at > found.now]
    return Diagnosed(
        chat=found.chat,
        status=found.status,
        state=found.state,
        moving=found.moving,
        acts=found.acts,
        next=found.next,
        at=found.at,
        advice=found.advice,
        now=found.now,
        holder=found.header.holder,
        lease_until=found.lease_until,
        control=_control(found.control),
        workers=tuple(
            {"worker": each.worker, "expires_at": each.expires_at, **msgspec.to_builtins(each.note)} for each in living
        ),
        refusal=msgspec.to_builtins(found.refusal),
    )


def _control(control: Control) -> Any:
    return msgspec.Raw(encode_control(control))
