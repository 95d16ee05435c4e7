"""Which contents a message has: erasing it by its id finds all of them, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from events.codec import decode
from events.content import Content
from events.contentlist import erase_items
from events.digest import verify_chain
from events.envelope import Status, StoredEvent
from events.erasure import content_of_message, content_of_messages, has_message
from events.ids import CallKey, MessageId
from events.messages import Message, QueuedMessage
from events.parts import TextPart, ToolCallPart, ToolResultPart
from events.records import Answer, ApprovalAnswer, ErrorInfo
from events.vocabulary import (
    ChatCreated,
    CompactionCommitted,
    CompactionRequested,
    Event,
    MessageEdited,
    MessageSent,
    MessagesImported,
    QueuedMessageEdited,
    ResultsSubmitted,
    RetryScheduled,
    StepCommitted,
    TitleChanged,
    ToolResultRecorded,
    TurnFailed,
    TurnLabelChanged,
    TurnResumed,
)
from tests.events.logs import Draft, log_of, text


def call(arguments: str) -> ToolCallPart:
    return ToolCallPart(name="shell", arguments=Content(arguments), provider_call_id="c", runner="local")


LOG = log_of(
    [
        ChatCreated(
            chat="chat-1",
            owner="user-1",
            agent="a",
            release="0.1.0",
            title=Content("A title"),
            added=(text("B system", "system"),),
        ),
        MessageSent(
            added=(Message(role="user", parts=(TextPart(text=Content("C one")), TextPart(text=Content("C two")))),),
            queued=(QueuedMessage(message=text("D queued")),),
        ),
        QueuedMessageEdited(id=MessageId("2.1"), message=QueuedMessage(message=text("D edited"))),
        StepCommitted(attempt=1, added=(Message(role="assistant", parts=(call("E arguments"),)),)),
        ResultsSubmitted(
            action=1, approvals=(ApprovalAnswer(call=CallKey("4.0.0"), approved=True, arguments=Content("E replaced")),)
        ),
        ToolResultRecorded(attempt=1, result=ToolResultPart(call=CallKey("4.0.0"), output=Content("F output"))),
        StepCommitted(attempt=1, answers=(Answer(call=CallKey("4.0.0")),), added=(text("G after"),)),
        CompactionCommitted(
            attempt=2,
            manual=True,
            added=(text("H summary"), msgspec.structs.replace(text("C one again"), origin=MessageId("2.0"))),
        ),
        MessagesImported(added=(msgspec.structs.replace(text("I imported"), origin=MessageId("2.0")),)),
    ]
).events


def values(log: list[StoredEvent]) -> str:
    return "".join(repr(stored.content) for stored in log)


@pytest.mark.parametrize(
    ("version", "index", "places"), [(1, 0, (0,)), (2, 0, (0, 1)), (2, 1, (2,)), (7, 0, ()), (7, 1, (0,)), (8, 1, (1,))]
)
def test_places_of_a_message_in_its_event(version: int, index: int, places: tuple[int, ...]) -> None:
    assert content_of_message(LOG[version - 1], index) == places


@pytest.mark.parametrize(("version", "index"), [(1, 1), (2, -1), (3, 0), (6, 0)])
def test_a_message_that_the_event_did_not_create(version: int, index: int) -> None:
    with pytest.raises(IndexError):
        content_of_message(LOG[version - 1], index)


@pytest.mark.parametrize(
    ("message", "letter", "versions"),
    [
        ("1.0", "B", [1]),
        ("2.0", "C", [2, 8]),
        ("2.1", "D", [2, 3]),
        ("4.0", "E", [4, 5]),
        ("7.0", "F", [6]),
        ("7.1", "G", [7]),
        ("8.0", "H", [8]),
        ("9.0", "I", [9]),
    ],
)
def test_all_that_a_message_said_is_found_and_nothing_else(message: str, letter: str, versions: list[int]) -> None:
    found = content_of_messages(LOG, [MessageId(message)])
    assert list(found) == versions
    erased = list(LOG)
    for version, places in found.items():
        stored = LOG[version - 1]
        erased[version - 1] = msgspec.structs.replace(stored, content=erase_items(stored.content, places))
    assert f'"v":"{letter} ' not in values(erased)
    for other in "ABCDEFGHI".replace(letter, ""):
        assert values(erased).count(f'"v":"{other} ') == values(LOG).count(f'"v":"{other} ') > 0
    assert verify_chain(erased) == LOG[-1].digest
    assert [decode(stored, content=False) for stored in erased] == [decode(stored, content=False) for stored in LOG]


def test_ids_that_do_not_exist_find_nothing() -> None:
    assert content_of_messages(LOG, [MessageId("2.7"), MessageId("99.0")]) == {}


@pytest.mark.parametrize(("message", "versions"), [("3.0", [2, 3]), ("3.2", [2, 3]), ("1.0", [1, 3]), ("4.0", [4])])
def test_what_was_asked_of_a_summary_goes_with_the_summary(message: str, versions: list[int]) -> None:
    again = msgspec.structs.replace(text("Who am I?"), origin=MessageId("1.0"))
    boundary = (text("Ada."), text("Ada."), text("Ada."))
    log = log_of(
        [
            MessageSent(added=(text("Who am I?"),)),
            CompactionRequested(hint=Content("Keep that she is Ada.")),
            CompactionCommitted(attempt=1, manual=True, added=(*boundary, again)),
            CompactionCommitted(attempt=2, manual=False, added=boundary),
        ]
    ).events
    assert list(content_of_messages(log, [MessageId(message)])) == versions


@pytest.mark.parametrize(
    "after",
    [
        [],
        [CompactionRequested(hint=Content("Keep that she is Bob."))],
        [CompactionCommitted(attempt=2, manual=False, added=(text("Ada."), text("Ada."), text("Ada.")))],
    ],
    ids=["that may come", "that was asked again", "that came for another reason"],
)
def test_what_was_asked_of_a_summary_that_did_not_come_goes_with_any_message(after: list[Event]) -> None:
    asked = CompactionRequested(hint=Content("Keep that she is Ada."))
    log = log_of([MessageSent(added=(text("Who?"), text("Me?"))), asked, *after]).events
    assert 2 in content_of_messages(log, [MessageId("1.1")])
    assert 2 in content_of_messages(log, [MessageId("7.0")])
    assert content_of_messages(log, []) == {}


def test_a_recorded_result_whose_call_was_edited_away_goes_with_the_call() -> None:
    calls = Message(role="assistant", parts=(call("a"), call("b")))
    events: list[Event] = [
        MessageSent(added=(text("First"),)),
        StepCommitted(attempt=1, added=(calls,)),
        ToolResultRecorded(attempt=2, result=ToolResultPart(call=CallKey("2.0.0"), output=Content("One"))),
        ToolResultRecorded(attempt=2, result=ToolResultPart(call=CallKey("2.0.1"), output=Content("Two"))),
    ]
    edited = log_of([*events, MessageEdited(removed_from=MessageId("1.0"))]).events
    assert content_of_messages(edited, [MessageId("2.0")]) == {2: (0, 1), 3: (0,), 4: (0,)}
    entered = StepCommitted(attempt=2, answers=(Answer(call=CallKey("2.0.0")), Answer(call=CallKey("2.0.1"))))
    later = [*events, entered, MessageEdited(removed_from=MessageId("1.0"))]
    assert content_of_messages(log_of(later).events, [MessageId("2.0")]) == {2: (0, 1)}
    assert content_of_messages(log_of(later).events, [MessageId("5.1")]) == {4: (0,)}


@pytest.mark.parametrize(
    ("message", "there"),
    [("1.0", True), ("2.1", True), ("7.0", True), ("2.2", False), ("3.0", False), ("0.0", False), ("10.0", False)]
    + [(wrong, False) for wrong in ("", "1", "01.0", "1.-0", "1.0.0", "a.b", "\N{SUPERSCRIPT ONE}.0")],
)
def test_which_messages_a_log_has(message: str, *, there: bool) -> None:
    assert has_message(LOG, MessageId(message)) == there


def test_former_titles_and_labels_go_with_any_message_and_the_title_stays() -> None:
    created = ChatCreated(
        chat="chat-1", owner="u", agent="a", release="0.1.0", title=Content("One"), added=(text("Hello"),)
    )
    log: list[Event] = [created, TitleChanged(title=Content("Two")), TurnLabelChanged(label=Content("Greeted"))]
    assert content_of_messages(log_of(log).events, [MessageId("1.0")]) == {1: (0, 1), 3: (0,)}
    cleared = log_of([*log, TitleChanged(title=None)]).events
    assert content_of_messages(cleared, [MessageId("1.0")]) == {1: (0, 1), 2: (0,), 3: (0,)}


_ERROR = ErrorInfo(kind="generic", message=Content("Failed."), detail=Content("no such thing as 'Hello'"))
_FAILED: list[tuple[Event, Status]] = [(TurnFailed(error=_ERROR), "error")]
_RETRIED: list[tuple[Event, Status]] = [(RetryScheduled(attempt=1, delay_us=1, not_before=1, error=_ERROR), "pending")]


@pytest.mark.parametrize(
    ("events", "goes"),
    [
        (_FAILED, False),
        ([*_FAILED, (TitleChanged(title=None), "error")], False),
        ([*_FAILED, (TurnResumed(), "pending")], True),
        (_RETRIED, False),
        ([*_RETRIED, (TitleChanged(title=None), "running")], False),
        ([*_RETRIED, (TitleChanged(title=None), "waiting")], True),
        ([*_RETRIED, *_FAILED], True),
    ],
    ids=["failed", "still failed", "resumed", "to be retried", "taken up", "interrupted", "failed after it"],
)
def test_texts_of_errors_that_are_over_go_with_any_message(events: list[tuple[Event, Status]], goes: bool) -> None:
    log = log_of([ChatCreated(chat="chat-1", owner="u", agent="a", release="0.1.0", added=(text("Hello"),))])
    for event, dest in events:
        log.add(event, Draft(dest=dest))
    assert content_of_messages(log.events, [MessageId("1.0")]) == {1: (0,)} | ({2: (0, 1)} if goes else {})
