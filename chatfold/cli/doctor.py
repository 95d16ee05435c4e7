"""``doctor``: what went wrong in a chat, why it does not move, and what comes next, in one screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace

from chatfold.cli.checkups import run_checkups
from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Channel, Out, one_line, printable
from chatfold.cli.places import load_settings
from chatfold.cli.shapes import Diagnosed
from chatfold.cli.sources import all_chats, all_named, opened_with_fault, warned
from chatfold.cli.timeline import said_of, time_of
from chatfold.diagnosis import Diagnosis, diagnose_log
from chatfold.engine import Engine
from chatfold.replaying.incidents import Incident, incidents
from chatfold.replaying.logs import LogSource
from chatfold.settings import Settings
from events.control import Control, OpenCall, encode_control
from events.envelope import Recorded
from events.errors import EventsError
from events.ids import ChatId
from events.reducer import fold
from store.notes import LivingWorker

_WIDTH: Final = 400
_SHOWN: Final = 8
"""Calls, queued messages and workers that are shown one by one; of more than that their number."""


class Asked(Struct, frozen=True, kw_only=True):
    """What was typed: see the command."""

    sources: list[str]
    everything: bool
    strict: bool
    jobs: int | None
    json: bool


def run_doctor(out: Out, asked: Asked, *, db: str | None, log_level: str | None) -> None:
    """Diagnose a chat, or tell of each of several what went wrong; see the command.

    Raises:
        UsageProblem: Nothing is named, or something beside ``--all``.
        SourceNotFound: A log is not there.
        typer.Exit: With 1, where something went wrong in a newest turn (or happened at all, where that is strict), a
            chat that is looked at alone does not move without somebody who runs the service, or a log is not whole.
    """
    if bool(asked.sources) is asked.everything:
        raise UsageProblem("name chats or log files, or say --all, and only one of them")
    logs = all_chats(db, log_level) if asked.everything else all_named(asked.sources, db, log_level)
    if asked.everything or len(logs) > 1 or [source.where for source in logs] != asked.sources:
        run_checkups(out, logs, strict=asked.strict, jobs=asked.jobs, json=asked.json)
        return
    (source,) = logs
    if source.store is not None:
        _run_stored(out, source, source.store, load_settings(db, log_level), asked)
        return
    with opened_with_fault(out, source.where, db, log_level) as (file, fault):
        recorded = file.recorded()
        found = diagnose_log(ChatId(file.chat), recorded)
        _tell(out, _Told(file.name, found, incidents(recorded), fault), asked)


def _run_stored(out: Out, source: LogSource, url: str, settings: Settings, asked: Asked) -> None:
    found = asyncio.run(_diagnosed(url, settings, source.where))
    fault = None
    log: Sequence[Recorded] = ()
    try:
        read = source.read()
        log = read.recorded()[: found.header.version]
        fault = warned(out, read)
    except EventsError as error:
        out.warn(f"what happened cannot be told: {error}; `chatfold verify {source.where}` says more")
        fault = f"cannot be read: {error}"
    _tell(out, _Told(source.where, _with_texts(found, log), incidents(log), fault), asked)


async def _diagnosed(url: str, settings: Settings, chat: str) -> Diagnosis:
    """Return how a chat stands; the header tells it also where the log cannot be read."""
    async with Engine(url, worker=False, settings=settings) as engine:
        return await engine.diagnose(chat)


class _Told(NamedTuple):
    """A diagnosis with what happened, and what is wrong with the log that tells it."""

    name: str
    found: Diagnosis
    told: list[Incident]
    fault: str | None


def _with_texts(found: Diagnosis, log: Sequence[Recorded]) -> Diagnosis:
    """Return a diagnosis with the texts of errors, which no header has."""
    return replace(found, control=fold(log).control) if log else found


def _tell(out: Out, said: _Told, asked: Asked) -> None:
    newest = [each for each in said.told if each.turns_ago == 0]
    if asked.json:
        out.data.json(_shape(said))
    else:
        _print_incidents(out.data, said, newest)
        _print_diagnosis(out.data, said.found)
    wrong = any(asked.strict or each.fault for each in newest)
    if said.found.acts == "operator" or wrong or said.fault is not None:
        raise typer.Exit(FAILED)


def _print_incidents(channel: Channel, said: _Told, newest: list[Incident]) -> None:
    rest, before = newest, said.told[len(newest) :]
    if said.fault is not None:
        text = f"Not known: this log {said.fault}. What it tells may not be what happened."
        _line(channel, "cause", text, style="bold")
        _line(channel, "mend", "Take the log as it was written, from where it came or from a backup.")
        _line(channel, "more", f"chatfold verify {said.name}")
    elif not newest:
        _line(channel, "cause", "Nothing went wrong in its newest turn, as far as its log tells.", style="bold")
    else:
        first, *rest = newest
        _line(channel, "cause", f"{first.what} (version {first.version})", style="bold")
        _line(channel, "mend", first.advice)
        _line(channel, "more", f"chatfold why {said.name} {first.version}")
    for each in rest[:_SHOWN]:
        _line(channel, "also", f"{each.what} (version {each.version})")
        if each.fault:
            _line(channel, "mend", each.advice)
    for each in before[:_SHOWN]:
        _line(channel, "before", f"{each.what} (version {each.version})")
    if len(before) > _SHOWN:
        _line(channel, "before", f"and {len(before) - _SHOWN} more; --json tells all")
    channel.line()


def _print_diagnosis(channel: Channel, found: Diagnosis) -> None:
    for name, value in _fields(found):
        _line(channel, name, one_line(value, _WIDTH))
    channel.line()
    _line(channel, "next", found.next, style="bold")
    if found.at is not None and found.at > found.now:
        _line(channel, "when", _when(found.at, found.now), style="bold")
    if found.advice:
        _line(channel, "to do", found.advice, style="bold")


def _line(channel: Channel, name: str, text: str, style: str = "dim") -> None:
    channel.put(f"{name:<12}", style=style)
    channel.line(printable(text))


def _fields(found: Diagnosis) -> Iterator[tuple[str, str]]:
    control, header, now = found.control, found.header, found.now
    yield "chat", found.chat
    # A file has no now but the moment of its last event.
    when = _ago(control.recorded_at, now) if now != control.recorded_at else f"{time_of(now)} UTC"
    yield "state", f"{found.status} {found.state}, version {header.version}, {when}"
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
    if not found.workers_known:
        return "whether its lease lives no log tells"
    until = found.lease_until
    if until is None:
        return "whose lease is gone"
    if until > found.now:
        return f"lease lives, ends at {_when(until, found.now)}"
    return f"lease ended {_ago(until, found.now)}"


def _call(call: OpenCall) -> str:
    stands = "result recorded" if call.recorded else "running" if call.started else "not started"
    if call.possibly_done and not call.recorded:
        stands = f"possibly done, {'its tool is asked' if call.reconcile else 'it is run again'}"
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


def _shape(said: _Told) -> Diagnosed:
    found = said.found
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
        incidents=tuple(msgspec.to_builtins(said.told)),
        problem=said.fault,
    )


def _control(control: Control) -> Any:
    return msgspec.Raw(encode_control(control))
