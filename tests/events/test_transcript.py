"""The shared sequence of messages: old views stay, appending is cheap, branches part."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import FieldInfo, fields, replace

from events.content import Absent, Content
from events.control import Control
from events.errors import ContentUnavailable, TranscriptMissing
from events.ids import CallKey, MessageId, message_id
from events.messages import ContextMark, Message, Step, Usage
from events.parts import ReasoningPart, TextPart
from events.records import ActionItem, OpenAction
from events.state import ChatState, initial_state
from events.transcript import Messages, TranscriptMessage, empty_transcript, plain_text
from tests.events.older import stored
from tests.events.strategies import of_type, structs

T = TypeVar("T", bound=Struct)


def item(version: int) -> TranscriptMessage:
    return TranscriptMessage(message_id(version, 0), Message(role="user", parts=()), version)


def of(*versions: int) -> Messages:
    messages = Messages()
    for version in versions:
        messages = messages.append(item(version))
    return messages


def versions(messages: Messages) -> list[int]:
    return [message.version for message in messages]


def test_a_view_does_not_see_what_is_appended_after_it() -> None:
    old = of(1, 2)
    new = old.append(item(3))
    assert (versions(old), versions(new)) == ([1, 2], [1, 2, 3])


def test_appending_to_the_newest_view_copies_nothing() -> None:
    old = of(1, 2)
    assert old.append(item(3))._items is old._items


def test_a_branch_has_a_list_of_its_own() -> None:
    base = of(1, 2)
    left, right = base.append(item(3)), base.append(item(4))
    assert (versions(left), versions(right), versions(base)) == ([1, 2, 3], [1, 2, 4], [1, 2])
    assert len(base._items) == 3, "the branch left nothing in the list of the others"


def test_what_is_cut_off_stays_in_older_views() -> None:
    whole = of(1, 2, 3)
    cut = whole.before(1)
    again = cut.append(item(9))
    assert (versions(cut), versions(again), versions(whole)) == ([1], [1, 9], [1, 2, 3])


def test_a_message_is_found_by_its_id_within_the_view_alone() -> None:
    old = of(1, 2)
    new = old.append(item(3))
    assert (new.find(message_id(3, 0)), old.find(message_id(3, 0)), old.find(message_id(1, 0))) == (2, None, 0)


def test_places_are_those_of_the_view() -> None:
    old = of(1, 2)
    old.append(item(3))
    assert (len(old), old[-1].version, old[0].version) == (2, 2, 1)
    for place in (2, -3):
        with pytest.raises(IndexError):
            old[place]


def test_equal_is_what_holds_the_same_messages() -> None:
    assert of(1, 2) == of(1, 2)
    assert of(1, 2) != of(1, 3)
    assert of(1) != of(1, 2)
    assert of(1) != [item(1)]


def test_threads_that_append_to_one_view_each_get_their_own_branch() -> None:
    base = of(*range(100))
    with ThreadPoolExecutor(8) as pool:
        branches = list(pool.map(lambda version: base.append(item(version)).append(item(-version)), range(200, 600)))
    for branch, version in zip(branches, range(200, 600), strict=True):
        assert versions(branch) == [*range(100), version, -version]
    assert versions(base) == list(range(100))


def test_the_empty_transcript_is_a_new_one_each_time() -> None:
    assert empty_transcript() == empty_transcript()
    assert empty_transcript().messages is not empty_transcript().messages


def test_messages_are_a_sequence() -> None:
    items = [TranscriptMessage(MessageId(f"{n}.0"), Message(role="user", parts=()), n) for n in range(5)]
    messages = Messages()
    for each in items:
        messages = messages.append(each)
    shorter = messages.before(4)
    assert isinstance(shorter, Sequence)
    for part in (slice(-3, None), slice(None), slice(1, 3), slice(None, None, -1), slice(9, 99), slice(-99, 2)):
        assert list(shorter[part]) == items[:4][part]
    assert list(reversed(shorter)) == items[3::-1]
    assert shorter.index(items[2]) == 2
    assert shorter.count(items[2]) == 1
    assert items[3] in shorter
    assert items[4] not in shorter
    assert shorter[True] == items[1]
    for wrong in (4, -5):
        with pytest.raises(IndexError):
            shorter[wrong]
    with pytest.raises(TypeError):
        shorter["1"]  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"^$"):
        shorter.index(items[4])


@given(structs(Message))
def test_a_history_that_was_shrunk_reads_as_before(message: Message) -> None:
    assert list(shrunk(message)) == [TranscriptMessage(message_id(1, 0), message, 1)]


TEXT = TextPart(text=Content("t"))
STEP = Step(
    provider="p",
    model="m",
    finish_reason="length",
    usage=Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=5),
    response_id="r",
    started_at=6,
    first_part_at=7,
    ended_at=2**53,
    cost_micros=8,
)


@pytest.mark.parametrize("text", ["plain", "", "gr\u00f6\u00dfer \U0001f600"])
@pytest.mark.parametrize("step", [None, Step(provider="p", model="m"), replace(STEP, usage=Usage()), STEP])
def test_plain_messages_are_kept_as_their_text(text: str, step: Step | None) -> None:
    message = Message(role="assistant" if step else "user", parts=(TextPart(text=Content(text)),), step=step)
    messages = shrunk(message)
    assert type(messages._items[0]) is not TranscriptMessage
    assert plain_text(message) == text
    same = TranscriptMessage(message_id(1, 0), message, 1)
    assert (messages[0], messages[-1:], list(messages), messages.since(0)) == (same, (same,), [same], [same])
    assert messages.find(message_id(1, 0)) == 0
    assert Messages([same]) == messages == Messages([same])
    assert stored(messages[0]) == stored(same), "a segment of it has other bytes"


FIELDS = [(cls, field) for cls in (Message, TextPart, Step, Usage) for field in fields(cls)]


@pytest.mark.parametrize(("cls", "field"), FIELDS, ids=[f"{cls.__name__}.{field.name}" for cls, field in FIELDS])
@given(data=st.data())
def test_a_message_that_is_plain_but_for_one_field_reads_as_before(
    cls: type[Struct], field: FieldInfo, data: st.DataObject
) -> None:
    """Plain messages are kept without most of their fields: one that comes later must not be among these unseen."""
    other = data.draw(of_type(field.type))

    def changed(value: T) -> T:
        return replace(value, **{field.name: other}) if type(value) is cls else value

    step = changed(replace(STEP, usage=changed(STEP.usage)))
    message = changed(Message(role="assistant", parts=(changed(TEXT),), step=step))
    same = TranscriptMessage(message_id(1, 0), message, 1)
    assert list(shrunk(message)) == [same]
    assert stored(shrunk(message)[0]) == stored(same)


OTHERS = {
    "two texts": Message(role="user", parts=(TEXT, TEXT)),
    "no text": Message(role="user", parts=()),
    "reasoning": Message(role="assistant", parts=(ReasoningPart(text=Content("t")),), step=STEP),
    "metadata": Message(role="user", parts=(TextPart(text=Content("t"), metadata=Content("m")),)),
    "repaired": Message(role="user", parts=(TextPart(text=Content("t"), repaired=("$",)),)),
    "erased": Message(role="user", parts=(TextPart(text=Content(Absent.ERASED, 1)),)),
    "another size": Message(role="user", parts=(TextPart(text=Content("t", 2)),)),
    "no text but JSON": Message(role="user", parts=(TextPart(text=Content(["t"])),)),
    "hidden": Message(role="user", parts=(TEXT,), visibility="model"),
    "cut": Message(role="assistant", parts=(TEXT,), step=STEP, interrupted=True),
    "boundary": Message(role="user", parts=(TEXT,), boundary="chat_cleared"),
    "context": Message(role="system", parts=(TEXT,), context=ContextMark(source="s", revision="r")),
    "copied": Message(role="user", parts=(TEXT,), origin=message_id(1, 0)),
    "of an author": Message(role="user", parts=(TEXT,), author="ann"),
    "answer without a step": Message(role="assistant", parts=(TEXT,)),
    "system": Message(role="system", parts=(TEXT,)),
    "step's metadata": Message(role="assistant", parts=(TEXT,), step=replace(STEP, metadata=Content("m"))),
    "beyond 64 bits": Message(role="assistant", parts=(TEXT,), step=replace(STEP, ended_at=2**64)),
}


@pytest.mark.parametrize("message", OTHERS.values(), ids=OTHERS.keys())
def test_other_messages_are_kept_as_they_are(message: Message) -> None:
    messages = shrunk(message)
    assert messages[0].message is message


def test_shrinking_is_seen_by_all_views_and_by_none() -> None:
    plain = TranscriptMessage(message_id(2, 0), Message(role="user", parts=(TEXT,)), 2)
    old = of(1).append(plain)
    new = old.append(item(3))
    branch = old.append(item(4))
    new.shrink(1)
    assert (versions(old), versions(new), versions(branch)) == ([1, 2], [1, 2, 3], [1, 2, 4])
    assert old._items is new._items
    assert new.continues(old)
    assert old[1] == plain


def shrunk(message: Message) -> Messages:
    messages = Messages().append(TranscriptMessage(message_id(1, 0), message, 1))
    messages.shrink()
    return messages


def test_a_state_without_messages_says_so() -> None:
    assert list(initial_state().messages) == []
    with pytest.raises(TranscriptMissing, match="read the messages needs the transcript"):
        _ = ChatState(control=Control(), transcript=None).messages


def test_the_text_of_a_message_is_that_of_its_text_parts() -> None:
    parts = (TextPart(text=Content("One ")), ReasoningPart(text=Content("hm")), TextPart(text=Content("two.")))
    assert Message(role="assistant", parts=parts).text == "One two."
    assert Message(role="assistant", parts=parts[1:2]).text == ""
    erased = Message(role="user", parts=(TextPart(text=Content(Absent.ERASED, 3)),))
    with pytest.raises(ContentUnavailable, match="erased"):
        _ = erased.text


def test_an_action_names_its_calls_by_what_is_owed() -> None:
    items = (
        ActionItem(kind="client_call", call=CallKey("1.0.0")),
        ActionItem(kind="approval", call=CallKey("1.0.1")),
        ActionItem(kind="budget"),
    )
    action = OpenAction(id=1, deadline=0, on_expiry="go_on", items=items)
    assert (action.client_calls, action.to_approve, action.asks_budget) == (("1.0.0",), ("1.0.1",), True)
    assert not OpenAction(id=1, deadline=0, on_expiry="go_on", items=items[:2]).asks_budget
