"""What is given to the functions that look into logs and is not what they take is refused where it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import chatfold.debugging as looking
from chatfold.replaying.logs import Log
from chatfold.replaying.whatif import WhatIfNames
from chatstate.audit import audit
from events.errors import EventsError, InvalidValue
from events.records import Decision
from events.replay import replay, state_at
from events.vocabulary import PolicyRecorded
from generation.decide import decide_again, decide_generation_action
from tests.chatfold.replaying.pair import recorded

EVENTS: Final = recorded()
LOG: Final = Log(name="a", chat="a", events=(), blobs={})
STATE: Final = state_at(EVENTS, 3)
POLICY: Final = next(each.event.policy for each in EVENTS if isinstance(each.event, PolicyRecorded))
DECISION: Final = Decision(rule="D11", action="generate", facts={}, policy="")
RULES: Final = looking.read_redaction_rules("")
MOVES: Final = list(looking.moves(EVENTS))
NOT_GIVEN: Final = (7, None, object(), Path("a.jsonl"), b"\x00", "a.jsonl", [1, 2], {"a": 1}, LOG)

CALLS: Final[Sequence[tuple[str, Callable[..., Any], tuple[Any, ...]]]] = [
    ("replay", replay, (EVENTS,)),
    ("state_at", state_at, (EVENTS, 3)),
    ("audit", audit, (EVENTS,)),
    ("decision_drifts", looking.decision_drifts, (EVENTS,)),
    ("DecisionCheck", looking.DecisionCheck, (looking.WhatIf(),)),
    ("take", lambda event: looking.DecisionCheck().take(event), (EVENTS[0],)),
    ("check_decisions", looking.check_decisions, (LOG, WhatIfNames())),
    ("check_source", looking.check_source, (looking.LogSource("file", "none"), WhatIfNames())),
    ("moves", looking.moves, (EVENTS,)),
    ("moves origins", looking.moves, (EVENTS, {"a": EVENTS})),
    ("align", looking.align, (MOVES, MOVES)),
    ("align context", lambda context: looking.align(MOVES, MOVES, context=context), (5,)),
    ("causes", looking.causes, (EVENTS,)),
    ("effects_after", looking.effects_after, (EVENTS, 3)),
    ("incidents", looking.incidents, (EVENTS,)),
    ("explain", looking.explain, (DECISION,)),
    ("find_log", looking.find_log, ("a",)),
    ("find_logs", looking.find_logs, (["a"],)),
    ("first_where", looking.first_where, (EVENTS, looking.parse_condition("rule"))),
    ("parse_condition", looking.parse_condition, ("rule",)),
    ("way_of", looking.way_of, (EVENTS, "status")),
    ("machine_svg", looking.machine_svg, ("status",)),
    ("machine_svg way", lambda way: looking.machine_svg("status", way), (looking.way_of(EVENTS, "status"),)),
    ("spans", looking.spans, (EVENTS,)),
    ("timeline_svg", looking.timeline_svg, (list(looking.spans(EVENTS)),)),
    ("report_html", looking.report_html, (EVENTS,)),
    ("rerun", looking.rerun, (LOG, ())),
    ("each", lambda work, items: looking.each(work, items, jobs=1), (str, [1])),
    ("read_sections", looking.read_sections, (Path("none"),)),
    ("write_sections", looking.write_sections, (Path("none"), looking.Sections())),
    ("read_redaction_rules", looking.read_redaction_rules, ("",)),
    ("redact", looking.redact, ("a", (), {}, RULES, b"k" * 32)),
    ("check_redacted", looking.check_redacted, (LOG, LOG, RULES)),
    ("Checkpoints", looking.Checkpoints, ((), {})),
    ("decide_again", decide_again, (DECISION, STATE, POLICY)),
    ("decide_generation_action", decide_generation_action, (STATE, POLICY)),
]
WALKS: Final[dict[str, Callable[..., Any]]] = {
    "replay": replay,
    "state_at": lambda events: state_at(events, 10_000),
    "moves": looking.moves,
    "causes": looking.causes,
    "spans": looking.spans,
    "incidents": looking.incidents,
    "report_html": looking.report_html,
    "effects_after": lambda events: looking.effects_after(events, 3),
    "way_of": lambda events: looking.way_of(events, "execution"),
    "first_where": lambda events: looking.first_where(events, looking.parse_condition("action == nothing")),
}
ANYTHING: Final = {"changes", "plain"}
"""Functions that take any value there is."""


def used(call: Callable[..., Any], arguments: Sequence[object]) -> None:
    """Call, and take all that it yields."""
    result = call(*arguments)
    if isinstance(result, Iterator):
        list(result)


MAY_BE_NONE: Final = (looking.WhatIf, looking.Way)


def is_taken(value: object, good: object) -> bool:
    """Whether a value is of a kind that an argument takes: a text for a text, nothing where it may be left out."""
    if value is None:
        return isinstance(good, MAY_BE_NONE)
    if isinstance(value, list) and isinstance(good, list | tuple):
        return not good or isinstance(good[0], int)
    return type(value) is type(good)


WRONG: Final = [
    pytest.param(call, arguments, at, value, id=f"{name}-{at}-{type(value).__name__}")
    for name, call, arguments in CALLS
    for at, good in enumerate(arguments)
    for value in NOT_GIVEN
    if not is_taken(value, good)
]


@pytest.mark.parametrize(("call", "arguments", "at", "value"), WRONG)
def test_what_is_of_another_kind_is_refused_and_named(
    call: Callable[..., Any], arguments: tuple[Any, ...], at: int, value: object
) -> None:
    given = [*arguments]
    given[at] = value
    with pytest.raises(InvalidValue, match="must be") as refused:
        used(call, given)
    assert refused.value.path.startswith("$.")


def test_each_exported_function_is_in_the_table() -> None:
    functions = {name for name in looking.__all__ if callable(getattr(looking, name)) and name[0].islower()}
    assert functions - {name.split()[0] for name, _, _ in CALLS} == ANYTHING


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((*EVENTS[:5], *EVENTS[7:]), r"\$\.events\[5\]: version 8 follows version 5: events are missing"),
        (EVENTS[3:], r"\$\.events\[0\]: version 4 follows version 0: events are missing"),
        ((*EVENTS, *EVENTS), r"version 1 follows version \d+: these are the events of two logs, or not in order"),
        ((EVENTS[0], EVENTS[0]), "version 1 follows version 1: these are the events of two logs"),
        ((*EVENTS[:2], "three"), r"\$\.events\[2\]: must be Recorded, not str; give the events of a log"),
    ],
)
@pytest.mark.parametrize("call", list(WALKS.values()), ids=list(WALKS))
def test_events_that_are_not_one_log_are_refused(call: Callable[..., Any], events: Sequence[Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        used(call, [events])


def test_a_replay_that_goes_on_begins_behind_its_state() -> None:
    assert len(list(replay(EVENTS[3:], STATE))) == len(EVENTS) - 3
    with pytest.raises(InvalidValue, match="version 5 follows version 3"):
        list(replay(EVENTS[4:], STATE))


@pytest.mark.parametrize("version", [-1, True, "3", None, 1.0, 10_000])
def test_a_version_that_is_none_is_refused(version: Any) -> None:
    with pytest.raises(InvalidValue, match=r"\$\.version: "):
        state_at(EVENTS, version)


def test_nothing_is_a_log_without_events() -> None:
    for walk in (replay, looking.moves, audit, looking.causes, looking.spans):
        assert list(walk([])) == []
    assert state_at([], 0).control.version == 0
    with pytest.raises(EventsError, match="there is no version 1; the events given end at 0"):
        state_at([], 1)
