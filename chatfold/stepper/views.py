"""What each pane of the debugger says, as styled text. Pure: from states and events to text, and no terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

import msgspec
from rich.text import Text

from chatfold.cli.output import one_line, printable
from chatfold.cli.timeline import STATUS_STYLES, note, said_of, text_of, time_of
from chatfold.replaying.changed import state_changes
from chatfold.replaying.words import explain
from chatfold.stepper.model import Stepper
from chatfold.stepper.styled import DIM, MOST_LINES, NAME, TEXT_WIDTH, head
from chatstate.classify import STATUS_OF, classify
from chatstate.table import ANY_TRIGGERS, TABLE
from events.content import Content
from events.control import Control
from events.diff import shown
from events.envelope import Recorded
from events.records import ErrorInfo
from events.state import ChatState
from events.vocabulary import decision_of

_MACHINE: Final = (
    " pending ---> running ----> waiting",
    "    ^           |   \\-----> error",
    "    |           v",
    "    \\---- requires_action",
)
"""The five statuses and the ways between them that a turn takes; users lead back to pending from waiting and error."""

_KEYS: Final = MappingProxyType(
    {
        "move": (
            ("down right j", "forward"),
            ("up left k", "back"),
            ("Page up, Page down", "a page"),
            ("Home, End", "before the first event; the end"),
            ("g", "go to a version"),
            ("click", "go to the line"),
        ),
        "jump": (
            ("d e o", "to the next decision, error or failed call, tool"),
            ("D E O", "to the one before"),
            ("t", "to the next event of a transition, by its name"),
            ("/", "to the next event that holds a text"),
            ("n N", "the same search again: forward, back"),
            ("b", "set a breakpoint: a condition; nothing lifts it"),
            ("c C", "run to the breakpoint: forward, back"),
        ),
        "look": (
            ("1 2 3 4", "what changed and why; state; event; prompt"),
            ("m", "mark: compare with this version; once more lifts it"),
            ("Tab, then arrows", "scroll the pane; Escape leads back"),
            ("y", "copy this moment as a test"),
            ("?", "these keys"),
            ("q", "end"),
        ),
    }
)
"""What each key does, by what it is for."""

NOT_TOLD: Final = ("$.version", "$.recorded_at", "$.updated_at")
"""What changes with every event."""


def row(recorded: Recorded, width: int) -> Text:
    """Return the line of an event in the timeline: version, event, where it leads, rule and action."""
    envelope = recorded.envelope
    decision = decision_of(recorded.event)
    text = Text()
    text.append(f"{envelope.version:>6} ", DIM)
    text.append(envelope.type, "bold red" if getattr(recorded.event, "error", None) is not None else "")
    if envelope.source != envelope.dest:
        text.append(f" > {envelope.dest}", STATUS_STYLES.get(envelope.dest, ""))
    if decision is not None:
        rule, action = (one_line(said, width) for said in (decision.rule, decision.action))
        said = f" {rule} {action}"
        fits = len(text) + len(said) <= width
        text.append(said if fits else f" {rule}", "bold yellow")
    text.truncate(width, overflow="ellipsis")
    return text


def failed(error: Exception, before: str = "") -> Text:
    """Return what stands in the place of what cannot be shown: why, on one line."""
    return Text(before + one_line(str(error), TEXT_WIDTH), "red")


def machine(control: Control, came: Recorded | None) -> Text:
    """Return the machine with the current status lit, and below it the execution state and how the chat came to it."""
    x = classify(control)
    status = STATUS_OF.get(x, "none")
    text = Text()
    text.append("\n".join(_MACHINE), DIM)
    text.highlight_words([status], f"bold reverse {STATUS_STYLES[status]}")
    by = f"by {came.event.trigger}" if came is not None else "before the first event"
    text.append("\n")
    text.append(f"{x}", f"bold {STATUS_STYLES[status]}")
    text.append(f"  {status}, {by}")
    return text


def changed(stepper: Stepper) -> Text:
    """Return the event of the version, why it is there, and what it changed; or what changed since the mark."""
    text = Text()
    event = stepper.event
    if stepper.mark is None and event is not None:
        _event(text, event)
    elif stepper.mark is not None:
        text.append(f"from version {stepper.compared} (marked) to {stepper.version}\n", NAME)
    else:
        text.append("before the first event\n", NAME)
    head(text, "changed")
    found = (str(each) for each in state_changes(stepper.base, stepper.state, ignore=NOT_TOLD))
    _listed(text, found, none="nothing")
    return text


def _event(text: Text, recorded: Recorded) -> None:
    envelope, event = recorded.envelope, recorded.event
    text.append(f"{envelope.version}  {envelope.type}", NAME)
    actor = envelope.actor.kind if envelope.actor.id is None else f"{envelope.actor.kind} {envelope.actor.id}"
    text.append(f"\n{time_of(envelope.recorded_at)} UTC, {printable(actor)}\n", DIM)
    if said := note(event):
        text.append(f"{said}\n")
    decision = decision_of(event)
    if decision is None:
        return
    told = explain(decision)
    head(text, "why")
    text.append(printable(f"{told.rule} {told.action}"), "bold yellow")
    text.append(f": {printable(told.because)}\n")
    for passed in told.passed:
        text.append(printable(f"  not {passed.rule}: {passed.because}\n"), DIM)


def state(now: ChatState, error: ErrorInfo | None = None) -> Text:
    """Return what may come next, and what control holds, without what is neutral; and an error in it with its text."""
    text = Text()
    following = [trigger for trigger in TABLE.get(classify(now.control), {}) if trigger not in ANY_TRIGGERS]
    text.append("may come next: ", DIM)
    text.append(f"{', '.join(following) or 'nothing'}\n")
    if error is not None:
        text.append(f"{printable(said_of(error))}\n", "red")
    head(text, "control")
    neutral = Control()
    for part, empty, name in ((now.control, neutral, ""), (now.control.indexes, neutral.indexes, "indexes")):
        if name:
            head(text, name)
        for field in part.__struct_fields__:
            value = getattr(part, field)
            if field != "indexes" and value != getattr(empty, field):
                text.append(f"{field:<22} ", DIM)
                text.append(f"{one_line(_value(field, value), TEXT_WIDTH)}\n")
    return text


def _value(field: str, value: object) -> str:
    if field.endswith("_at") and isinstance(value, int) and value:
        return time_of(value)
    return value if isinstance(value, str) else shown(value)


def event(recorded: Recorded | None) -> Text:
    """Return an event as it is stored, with its contents."""
    if recorded is None:
        return Text("before the first event")
    built = msgspec.to_builtins({"envelope": recorded.envelope, "event": recorded.event}, enc_hook=_content)
    data = msgspec.json.format(msgspec.json.encode(built), indent=2).decode()
    return Text("\n".join(one_line_kept(line) for line in data.splitlines()[: 5 * MOST_LINES]))


def one_line_kept(line: str) -> str:
    """Return a line with its indentation, cut where it is very long."""
    body = line.lstrip()
    return " " * (len(line) - len(body)) + one_line(body, TEXT_WIDTH)


def _content(value: object) -> Any:
    if isinstance(value, Content):
        return text_of(value) if not value.available else value.held
    if isinstance(value, bytes):
        return f"{len(value)} B"
    raise TypeError(type(value).__name__)


def _listed(text: Text, lines: Iterator[str], *, none: str) -> None:
    shown_lines: Sequence[str] = list(islice(lines, MOST_LINES + 1))
    for line in shown_lines[:MOST_LINES]:
        text.append(f"{one_line(line.removeprefix('$.'), TEXT_WIDTH)}\n")
    if not shown_lines:
        text.append(f"{none}\n", DIM)
    if len(shown_lines) > MOST_LINES:
        text.append("and more\n", DIM)


def status_line(stepper: Stepper, fault: str | None, *, following: bool) -> Text:
    """Return the line at the bottom: where it stands, what was said, and what is wrong with the log."""
    text = Text()
    # The folder would take the place of what there is to say.
    name = re.split(r"[/\\]", stepper.log.name)[-1]
    text.append(f" {printable(name)} {stepper.version}/{stepper.last} ", "reverse")
    if following:
        text.append(" live", "bold green")
    if stepper.mark is not None:
        text.append(f" mark {stepper.mark}", "magenta")
    if stepper.breakpoint is not None:
        text.append(f" break {printable(stepper.breakpoint.text)}", "yellow")
    if fault is not None:
        text.append(f" {printable(fault)}", "bold red")
    text.append(f" {printable(stepper.said)}")
    return text


def keys() -> Text:
    """Return what each key does."""
    text = Text()
    for purpose, lines in _KEYS.items():
        head(text, purpose)
        for key, does in lines:
            text.append(f"{key:<22}", "bold")
            text.append(f"{does}\n")
    return text
