"""The diagnosis of one chat: why it does not move, what will happen next, and when. ``doctor`` prints it.

Pure: it is told what the store said. Where a chat stands decides who has to act; of workers it asks whether one lives
that may act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatstate.classify import X, classify
from chatstate.handlers.worker import TAKEOVER_LIMIT
from events.control import Control
from events.counting import counted
from events.envelope import Recorded
from events.ids import ChatId
from events.records import ActionItem
from events.reducer import evolve
from events.spending import standing
from events.state import initial_state
from store.contract import Header, LoadedHeader
from store.heading import header_of
from store.notes import LivingWorker, RefusalNote

Actor: TypeAlias = Literal["worker", "client", "user", "operator"]
"""Who has to act next: a worker by itself, the client that owes answers, a user, or whoever runs the service."""

PROMPT: Final = 5_000_000
"""Microseconds within which a worker that is free takes a chat; one that waits longer waits for capacity."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """Why a chat stands where it stands.

    Attributes:
        chat: Its id.
        status: Its status.
        state: Its execution state.
        moving: Whether it goes on without a human, as far as can be seen.
        acts: Who has to act next.
        next: What happens next, in a sentence.
        at: When, microseconds UTC; None where that depends on somebody.
        advice: What to do, where something can be done; else empty.
        now: Database time when this was read.
        header: What the header says.
        control: The control in it.
        workers: The leases that are kept.
        refusal: The last command that was refused, if one is known.
        unknown_tools: Tools that the chat chose (``set_active_tools``), and that its agent does not have in any worker:
            the model is not offered them. Empty where no worker says what its agent has.
        workers_known: Whether it is known which workers live; a log alone does not tell.
    """

    chat: str
    status: str
    state: str
    moving: bool
    acts: Actor
    next: str
    at: int | None
    advice: str
    now: int
    header: Header
    control: Control
    workers: tuple[LivingWorker, ...]
    refusal: RefusalNote | None
    unknown_tools: tuple[str, ...] = ()
    workers_known: bool = True

    @property
    def lease_until(self) -> int | None:
        """When the holder's lease ends or ended; None without a holder, or where no such lease is kept."""
        holder = self.header.holder
        return next((each.expires_at for each in self.workers if each.worker == holder), None)


@dataclass(frozen=True, slots=True)
class _Next:
    acts: Actor
    text: str
    at: int | None = None
    advice: str = ""
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    header: Header
    control: Control
    now: int
    alive: bool
    workers: Sequence[LivingWorker] | None

    @property
    def living(self) -> list[LivingWorker] | None:
        """The workers whose lease lives; None where nothing is known of workers."""
        return None if self.workers is None else [each for each in self.workers if each.expires_at > self.now]


def diagnose(
    loaded: LoadedHeader, control: Control, workers: Sequence[LivingWorker] | None, refusal: RefusalNote | None
) -> Diagnosis:
    """Say why a chat stands where it stands.

    Args:
        loaded: Its header as read.
        control: The control in it.
        workers: All leases that are kept; None where nothing is known of workers.
        refusal: The last command on it that was refused, if one is known.
    """
    header, state = loaded.header, classify(control)
    seen = _Seen(header, control, loaded.now, loaded.holder_alive, workers)
    found = _special(seen, state) or _BY_STATUS[control.status](seen)
    unknown = _unknown_tools(control, workers or ())
    advice = f"{found.advice} {_UNKNOWN_TOOLS.format(names=', '.join(map(repr, unknown)), agent=control.agent)}"
    return Diagnosis(
        chat=header.chat,
        status=control.status,
        state=str(state),
        moving=found.acts == "worker" and not found.stuck,
        acts="operator" if found.stuck else found.acts,
        next=found.text,
        at=found.at,
        advice=advice.strip() if unknown else found.advice,
        now=loaded.now,
        header=header,
        control=control,
        workers=tuple(workers or ()),
        refusal=refusal,
        unknown_tools=unknown,
        workers_known=workers is not None,
    )


def tools_of_workers(agent: str, workers: Iterable[LivingWorker]) -> frozenset[str] | None:
    """Return the tools that an agent has in any of some workers; None where none of them says."""
    said = [each.note.tools[agent] for each in workers if agent in each.note.tools]
    return frozenset(name for names in said for name in names) if said else None


def _unknown_tools(control: Control, workers: Iterable[LivingWorker]) -> tuple[str, ...]:
    known = tools_of_workers(control.agent, workers) if control.active_tools else None
    return () if known is None else tuple(name for name in control.active_tools or () if name not in known)


def diagnose_log(chat: ChatId, log: Iterable[Recorded]) -> Diagnosis:
    """Say why a chat stood where its log ends, and what was to happen next.

    No clock and no worker is in a log: now is the moment of its last event. Whether whoever held the chat then
    still lives is not known; what was to happen next is told as if it did.

    Args:
        chat: Its id.
        log: Its events, from the first one on; contents are not needed.

    Raises:
        EventsError: An event cannot be read or applied.
    """
    state = initial_state()
    for recorded in log:
        state = evolve(state, recorded)
    header = header_of(state, b"", chat=chat, title=None, foreign=False, reader_level=0)
    loaded = LoadedHeader(header=header, now=state.control.recorded_at, holder_alive=state.control.holder is not None)
    return diagnose(loaded, state.control, None, None)


def _special(seen: _Seen, state: X) -> _Next | None:
    header = seen.header
    if header.foreign:
        return _Next(
            "operator",
            "Nothing: it was imported and nobody runs it here.",
            advice=f"Take it over with `chatfold adopt {header.chat}`, or fork it.",
        )
    if state is X.INVALID:
        return _Next(
            "operator",
            "Nothing: its header says what no chat can be.",
            advice=f"See `chatfold verify {header.chat}`; `chatfold repair {header.chat}` rebuilds the header.",
        )
    if seen.control.archived:
        return _Next("user", "Nothing: it was put away.", advice="Unarchive it, or fork it.")
    return None


def _pending(seen: _Seen) -> _Next:
    due = seen.control.not_before
    if due is not None and due > seen.now:
        return _wanted(seen, f"Model attempt {seen.control.model_attempts + 1} is made.", due)
    ready = seen.control.updated_at if due is None else due
    return _wanted(seen, "A worker takes it and goes on with the turn.", seen.now, since=ready)


def _running(seen: _Seen) -> _Next:
    control = seen.control
    if not seen.alive:
        last = control.takeovers + 1 >= TAKEOVER_LIMIT
        what = "finishes the interruption" if control.interrupting else "fails the turn: its workers died too often"
        goes = what if control.interrupting or last else "goes on with the turn"
        return _wanted(seen, f"Its holder's lease has ended: another worker takes it over and {goes}.", seen.now)
    if control.interrupting:
        return _Next("worker", "Its holder ends the turn as soon as running tools ended or had their grace.")
    running = control.running
    if running is None:
        return _Next("worker", "Its holder decides what comes next.")
    names = ", ".join(call.name for call in control.indexes.open_calls if call.runs)
    doing = _DOING[running.kind].format(names=names or "a result")
    return _Next("worker", f"Its holder {doing}; then it decides what comes next. {_IF_DEAD}")


def _asked(item: ActionItem) -> str:
    about, call = item.spending, f" {item.call}" if item.call is not None else ""
    limits = [f"{name}: {standing(about, name)}" for name in about.reached] if about is not None else []
    return f"{_ASKED[item.kind]}{call}{': ' if limits else ''}{'; '.join(limits)}"


def _requires_action(seen: _Seen) -> _Next:
    action = seen.control.action
    if action is None:  # pragma: no cover - such a state is invalid
        return _Next("operator", "Nothing.")
    asked = ", ".join(map(_asked, action.items))
    then = "the turn goes on without it" if action.on_expiry == "go_on" else "the turn ends"
    if action.deadline <= seen.now:
        return _wanted(seen, f"Its deadline has passed: a worker lets it expire, and {then}.", seen.now)
    return _Next(
        "client",
        f"The client answers ({asked}); at its deadline {then}.",
        action.deadline,
        advice=f"Submit results for action {action.id}, or interrupt.",
    )


def _waiting(seen: _Seen) -> _Next:
    if seen.control.owed:
        return _Next(
            "user",
            "Nothing by itself: its turn was ended before the answer was complete.",
            advice="Resume it, or send a message.",
        )
    return _Next("user", "Nothing by itself: no turn is scheduled.", advice="Send a message.")


def _error(seen: _Seen) -> _Next:
    error = seen.control.last_error
    kind = error.kind if error is not None else "unknown"
    # What failed may owe no turn: a compaction that was asked for, for example.
    advice = "Resume it, or send a message." if seen.control.owed else "Send a message."
    if error is not None and error.detail is not None:
        advice += " Why it failed: state.control.last_error.detail."
    return _Next("user", f"Nothing by itself: its turn failed ({kind}).", advice=advice)


def _wanted(seen: _Seen, text: str, at: int, *, since: int | None = None) -> _Next:
    """Say whether a worker lives that may do it, and why not."""
    header = seen.header
    living = seen.living
    if living is None:
        return _Next("worker", text, at)
    having = [each for each in living if header.agent in each.note.agents]
    able = [each for each in having if each.note.reader_level >= header.reader_level]
    if not living:
        advice = (
            f"Start one that has agent {header.agent!r}: `chatfold worker`, with --agents for an application's agents."
        )
        return _Next("worker", f"{text} No worker is alive.".strip(), at, advice, stuck=True)
    if not having:
        known = ", ".join(sorted({name for each in living for name in each.note.agents})) or "none"
        return _Next(
            "worker",
            f"{text} No living worker ({len(living)}) has its agent {header.agent!r} (they have: {known}).".strip(),
            at,
            "Start a worker that has the agent, or hand the chat to another agent (set_agent).",
            stuck=True,
        )
    if not able:
        return _Next(
            "worker",
            f"{text} No worker of a release that may run it is alive (reader level {header.reader_level}).".strip(),
            at,
            "Upgrade the workers.",
            stuck=True,
        )
    waited = seen.now - since if since is not None else 0
    if waited > PROMPT:
        capacity = sum(each.note.capacity for each in able)
        workers, chats = counted(len(able), "worker"), counted(capacity, "chat")
        have = "has its agent: it" if len(able) == 1 else "have its agent: they"
        advice = f"{workers} with room for {chats} {have} may be at {'its' if len(able) == 1 else 'their'} capacity."
        return _Next("worker", text, at, f"It has waited for {waited / 1e6:.0f} s. {advice}")
    return _Next("worker", text, at)


_UNKNOWN_TOOLS: Final = "It chose tools that agent {agent!r} does not have: {names}. See set_active_tools."
_IF_DEAD: Final = "If its process died, another worker takes the chat when the lease has ended."

_BY_STATUS: Final[Mapping[str, Callable[[_Seen], _Next]]] = {
    "pending": _pending,
    "running": _running,
    "requires_action": _requires_action,
    "waiting": _waiting,
    "error": _error,
}

_DOING: Final = {
    "generate": "waits for the model",
    "tools": "waits for {names}",
    "compact": "waits for the model's summary",
    "context": "collects the agent's context",
}

_ASKED: Final = {
    "client_call": "result of call",
    "approval": "approval of call",
    "budget": "whether to spend more",
}
