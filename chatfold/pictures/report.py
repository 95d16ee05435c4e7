"""The report of a chat: one HTML file that says what happened, to be attached to a ticket.

Owns what stands in it and in which order. It has no script, refers to nothing outside of itself, and forbids the
browser to load anything; every text of the chat is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from chatfold.cli.shapes.chats import EventLine
from chatfold.cli.timeline import said_of, text_of, time_of, timeline
from chatfold.pictures.gantt import timeline_svg
from chatfold.pictures.machine import machine_svg, way_of
from chatfold.pictures.spans import MEANING, Span, duration, spans, totals
from chatfold.pictures.styles import PAGE
from chatfold.pictures.svg import clean, element
from chatfold.replaying.incidents import incidents
from chatstate.classify import classify
from events.envelope import Recorded
from events.given import checked_kind, one_log
from events.parts import Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.records import ErrorInfo
from events.reducer import fold
from events.state import ChatState
from events.transcript import TranscriptMessage

MOST: Final = 2000
"""Rows of one list; of more, the newest are told, and how many are left out."""

LONGEST: Final = 20_000
"""Characters of one text; of a longer one its beginning and its end are told, and how many are left out."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

T = TypeVar("T")


def report_html(log: Sequence[Recorded], *, altered: str | None = None) -> str:
    """Return the report of a chat as an HTML document.

    Args:
        log: All its events, with their contents; those that were erased, or are not at hand, are said to be so.
        altered: What is wrong with the log, where it is not as it was written.

    Raises:
        EventsError: The log cannot be folded.
        InvalidValue: It is no log, or not one whole one.
    """
    log = list(one_log(log))
    if altered is not None:
        checked_kind(altered, str, "$.altered", "a text or None")
    state = fold(log)
    lines, found = list(timeline(log)), list(spans(log))
    body = "".join(
        (
            _head(state, log),
            "" if altered is None else f'<p class="warn">{clean(altered)}</p>',
            _cards(state, log, found),
            _incidents(log),
            _errors(log),
            "<h2>Its way through the machine</h2>",
            f'<div class="scroll">{machine_svg("status", way_of(log, "status"), times=True)}</div>',
            "<h2>Where the time went</h2>",
            f'<div class="scroll">{timeline_svg(found)}</div>',
            _uses(found),
            _decisions(lines),
            _transcript(state),
            _events(lines),
        )
    )
    meta = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{clean(POLICY)}">'
        '<meta name="referrer" content="no-referrer">'
    )
    head = f"<head>{meta}<title>{clean(state.control.chat)}</title><style>{PAGE}</style></head>"
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body><main>{body}</main></body></html>\n'


def _head(state: ChatState, log: Sequence[Recorded]) -> str:
    control, title = state.control, state.need_transcript("report").title
    shown = text_of(title) if title is not None else control.chat
    said = [f"chat {control.chat}", f"agent {control.agent}", *([f"model {control.model}"] if control.model else [])]
    if log:
        said.append(f"{time_of(log[0].envelope.recorded_at)} to {time_of(log[-1].envelope.recorded_at)} UTC")
    return f'<h1>{clean(shown)}</h1><p class="sub">{clean(", ".join(said))}</p>'


def _cards(state: ChatState, log: Sequence[Recorded], found: Sequence[Span]) -> str:
    control = state.control
    busy = sum(length for use, length in totals(found).items() if use != "rest")
    cards = {
        "status": f"{control.status} {classify(control)}",
        "events": str(len(log)),
        "turns": str(control.turns),
        "tokens in": f"{control.usage.context:,}",
        "tokens out": f"{control.usage.output:,}",
        "time in turns": duration(busy),
        "cost": f"{control.cost_micros / 1e6:.4f}" if control.cost_micros else "",
        "queued": str(len(control.queue)) if control.queue else "",
    }
    shown = (
        f'<div class="card"><span>{clean(name)}</span><b>{clean(said)}</b></div>'
        for name, said in cards.items()
        if said
    )
    return f'<div class="cards">{"".join(shown)}</div>'


def _incidents(log: Sequence[Recorded]) -> str:
    """Return what went wrong or ended a turn, as ``doctor`` tells it; nothing where nothing did."""
    told = incidents(log)
    if not told:
        return ""
    cells = (
        (_number(each.version), _WHEN.get(each.turns_ago, f"{each.turns_ago} turns before"), clean(each.kind),
         f'<span class="bad">{clean(each.what)}</span>' if each.fault else clean(each.what), clean(each.advice))
        for each in told[:MOST]
    )  # fmt: skip
    gone = len(told) - MOST
    left = f'<p class="sub">{gone} of earlier turns are left out.</p>' if gone > 0 else ""
    return f"<h2>Incidents</h2>{left}{_table(('version', 'turn', 'kind', 'what happened', 'what to do'), cells)}"


_WHEN: Final = {0: "the newest", 1: "the one before"}


def _errors(log: Iterable[Recorded]) -> str:
    rows = []
    for recorded in log:
        error: ErrorInfo | None = getattr(recorded.event, "error", None)
        if error is not None:
            rows.append((recorded, error))
    if not rows:
        return ""
    cells = (
        (_number(recorded.version), clean(time_of(recorded.envelope.recorded_at)), clean(recorded.envelope.type),
         f'<span class="bad">{_said(said_of(error))}</span>')
        for recorded, error in _newest(rows)
    )  # fmt: skip
    return f"<h2>Errors</h2>{_left_out(rows)}{_table(('version', 'time', 'event', 'what was wrong'), cells)}"


def _uses(found: Sequence[Span]) -> str:
    sums = totals(found)
    cells = ((clean(use), clean(duration(length)), clean(MEANING[use])) for use, length in sums.items())
    return _table(("use", "time", "what it is"), cells) if sums else ""


def _decisions(lines: Sequence[EventLine]) -> str:
    decided = [line for line in lines if line.rule is not None]
    if not decided:
        return ""
    cells = (
        (_number(line.version), clean(line.rule or ""), clean(line.action or ""),
         clean(", ".join(f"{key} {value}" for key, value in (line.facts or {}).items())), clean(", ".join(line.passed)))
        for line in _newest(decided)
    )  # fmt: skip
    head = ("version", "rule", "action", "facts", "rules passed by")
    return f"<h2>Decisions</h2>{_left_out(decided)}{_table(head, cells)}"


def _transcript(state: ChatState) -> str:
    messages = state.need_transcript("report").messages
    queued = state.need_transcript("report").queued
    waiting = (
        TranscriptMessage(item.id, queued[item.id].message, state.control.queue_version) for item in state.control.queue
    )
    said = "".join(_message(each) for each in messages[max(0, len(messages) - MOST) :])
    said += "".join(_message(each, "in the queue") for each in waiting)
    return f"<h2>Transcript</h2>{_left_out(messages)}{said}" if said else ""


def _message(item: TranscriptMessage, *marks: str) -> str:
    message = item.message
    notes = [f"version {item.version}", *marks]
    notes += [f"for the {message.visibility} alone"] if message.visibility != "both" else []
    notes += ["interrupted"] if message.interrupted else []
    notes += [message.boundary] if message.boundary is not None else []
    if (step := message.step) is not None:
        notes.append(f"{step.provider}/{step.model}, {step.context} tokens in, {step.usage.output} out")
        if step.started_at is not None and step.ended_at is not None:
            notes.append(duration(max(0, step.ended_at - step.started_at)))
    parts = "".join(_part(part) for part in message.parts)
    head = f'<b>{clean(message.role)}</b> <span class="meta">{clean(", ".join(notes))}</span>'
    return f'<div class="said {clean(message.role)}">{head}{parts}</div>'


def _part(part: Part) -> str:
    match part:
        case TextPart(text=text):
            return f"<pre>{_said(text_of(text))}</pre>"
        case ReasoningPart(text=text):
            return f"<details><summary>reasoning</summary><pre>{_said(text_of(text))}</pre></details>"
        case ToolCallPart(name=name, arguments=arguments, runner=runner):
            return f"<pre>calls <b>{clean(name)}</b>({_said(text_of(arguments))}), {clean(runner)}</pre>"
        case ToolResultPart(call=call, is_error=is_error, output=output, reason=reason):
            said = text_of(output) if output is not None else f"no result: {reason}"
            mark = ' class="bad"' if is_error else ""
            return f"<pre{mark}>{clean(call)} {'failed: ' if is_error else '= '}{_said(said)}</pre>"
        case _:
            return f"<pre>({clean(part.kind)})</pre>"


def _said(text: str) -> str:
    """Return a text as markup; of a very long one its two ends, so that the report can still be sent and opened."""
    gone = len(text) - LONGEST
    if gone <= 0:
        return clean(text)
    half = LONGEST // 2
    left_out = f"[{gone:,} characters are left out here; `chatfold show` has all]"
    return clean(f"{text[:half]}\n{left_out}\n{text[-half:]}")


def _events(lines: Sequence[EventLine]) -> str:
    cells = (
        (_number(line.version), clean(time_of(line.recorded_at)), clean(line.event),
         clean(f"{line.state_before} \N{RIGHTWARDS ARROW} {line.state_after}"), clean(line.actor), clean(line.note))
        for line in _newest(lines)
    )  # fmt: skip
    table = _table(("version", "time", "event", "state", "by", "what it was about"), cells)
    return f"<h2>Events</h2>{_left_out(lines)}<details><summary>{len(lines)} events</summary>{table}</details>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are markup already."""
    top = "".join(f"<th>{clean(each)}</th>" for each in head)
    body = "".join(element("tr", (f'<td class="w">{cell}</td>' for cell in row)) for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _number(version: int) -> str:
    return f"<code>{version}</code>"


def _newest(rows: Sequence[T]) -> Iterator[T]:
    return iter(rows[max(0, len(rows) - MOST) :])


def _left_out(rows: Sequence[object]) -> str:
    gone = len(rows) - MOST
    return f'<p class="sub">{gone} earlier ones are left out.</p>' if gone > 0 else ""
