"""Logs that the engine wrote fold, decide and ask as before when they are redacted, and are the same each time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chatfold.logcheck import verify_log
from chatfold.redacting.check import RedactionCheck, check_redacted
from chatfold.redacting.rewrite import Redacted, mark_of, redact
from chatfold.redacting.rules import KINDS, RedactionRules
from chatfold.testing.decisions import decision_problems
from chatfold.testing.prompts import prompt_problems
from chatfold.transfer import LoadedLog
from events.codec import decode_each
from events.content import Content, Json
from events.contentlist import erase_items
from events.envelope import StoredEvent
from events.errors import MalformedEvent
from events.ids import ChatId
from events.logfile import header_of, read_log, write_log
from events.messages import Message
from events.parts import TextPart
from events.reducer import fold
from events.vocabulary import ChatCreated, Event, LabelsChanged, MessageSent, TitleChanged
from tests.chatfold.redacting.logs import conversed, simulated
from tests.events.logs import Log, log_of
from tests.events.strategies import EVENTS
from tests.golden.add import FOLDER

KEY: Final = b"a key that nobody would guess"
MAPPED: Final = RedactionRules(names=dict.fromkeys(KINDS, "map"))
KEPT: Final = RedactionRules(names=dict.fromkeys(KINDS, "keep"))
KEPT_LOGS: Final = sorted([*FOLDER.glob("v*/logs/*.jsonl"), *(FOLDER.parent / "corpus").rglob("*.jsonl")])
SAMPLE: Final = log_of(
    [
        ChatCreated(chat="chat-1", owner="ada", agent="support", release="0.1.0", title=Content("Where is my order?")),
        MessageSent(added=(Message(role="user", parts=(TextPart(text=Content("Where is order A-17?")),)),)),
        LabelsChanged(labels={"customer": "ada", "kind": "order"}),
        TitleChanged(title=Content("Where is my order?")),
    ]
)


def redacted(log: LoadedLog | Log, rules: RedactionRules = RedactionRules(), key: bytes = KEY) -> Redacted:  # noqa: B008 -- frozen
    return redact("chat-1", log.events, log.blobs, rules, key)


def checked(log: LoadedLog | Log, made: Redacted, rules: RedactionRules = RedactionRules()) -> RedactionCheck:  # noqa: B008 -- frozen
    return check_redacted(log, made, rules)


@pytest.mark.parametrize("make", [lambda: simulated(0, 6), lambda: conversed(0, 10)], ids=["worlds", "conversations"])
def test_no_decision_drifts_and_no_state_changes(make: Callable[[], list[LoadedLog]]) -> None:
    decisions = 0
    for log, rules in product(make(), (RedactionRules(), MAPPED, KEPT)):
        made = redacted(log, rules)
        found = checked(log, made, rules)
        assert found.problems == ()
        decisions += found.decisions
        events = list(decode_each(made.events, blobs=made.blobs))
        assert list(decision_problems(events)) == []
        assert prompt_problems(events) == []
        assert verify_log("x", made.events, made.blobs).findings == ()
        assert redacted(log, rules) == made
    assert decisions > 200


@pytest.mark.parametrize("path", KEPT_LOGS, ids=lambda path: path.stem)
def test_the_logs_that_are_kept_drift_as_much_as_before(path: Path) -> None:
    """Not at all; but the samples of the stored form, whose decisions were written by hand."""
    log = read_log(path.read_bytes().splitlines(), path.name)
    made = redact(log.header.chat, log.events, log.blobs, RedactionRules(), KEY)
    assert check_redacted(log, made, RedactionRules()).problems == ()
    then, now = (list(decision_problems(decode_each(each.events, blobs=each.blobs))) for each in (log, made))
    assert len(then) == len(now)
    assert FOLDER in path.parents or now == []


def test_facts_without_a_name_are_byte_for_byte_the_same() -> None:
    made = redacted(SAMPLE)
    assert [new.facts == old.facts for old, new in zip(SAMPLE.events, made.events, strict=True)] == [
        False,  # chat and owner
        True,
        False,  # labels
        True,
    ]
    assert made.events[0].facts == SAMPLE.events[0].facts.replace(b'"chat-1"', f'"{made.chat}"'.encode()).replace(
        b'"ada"', f'"{_owner(made)}"'.encode()
    )


def _owner(made: Redacted) -> str:
    return fold(decode_each(made.events, content=False)).control.owner


def test_the_same_name_and_the_same_text_are_replaced_by_the_same() -> None:
    made = redacted(SAMPLE)
    state = fold(decode_each(made.events))
    first = next(decode_each(made.events[:1])).event
    assert isinstance(first, ChatCreated)
    assert first.title == state.need_transcript("look").title
    assert state.control.owner != state.control.labels[next(iter(state.control.labels))]  # a user is no label
    other = redacted(log_of([ChatCreated(chat="chat-2", owner="ada", agent="support", release="0.1.0")]))
    assert _owner(other) == _owner(made)


def test_another_key_gives_another_log() -> None:
    one, other = redacted(SAMPLE), redacted(SAMPLE, key=KEY + b"!")
    assert one.chat != other.chat
    assert one.mark != other.mark
    assert {each.digest for each in one.events}.isdisjoint(each.digest for each in other.events)
    assert mark_of(RedactionRules(), KEY) != mark_of(MAPPED, KEY)


def test_the_header_of_a_redacted_log_says_so_and_no_other_does() -> None:
    made = redacted(SAMPLE)
    marked = header_of(ChatId(made.chat), made.events, release="0.1.0", redacted=made.mark)
    plain = header_of(ChatId("chat-1"), SAMPLE.events, release="0.1.0")
    again = read_log(b"".join(write_log(marked, made.events)).splitlines(), "a.jsonl")
    assert again.header.redacted == made.mark
    assert again.header.is_redacted
    assert not plain.is_redacted
    assert b"redacted" not in next(write_log(plain, SAMPLE.events))


def test_what_is_erased_or_not_at_hand_is_so_afterwards() -> None:
    log = Log(limits=replace(SAMPLE.limits, blob_bytes=12))
    for event in decode_each(SAMPLE.events):
        log.add(event.event)
    erased = [
        replace(each, content=erase_items(each.content)) if each.envelope.type == "message_sent" else each
        for each in log.events
    ]
    made = redact("chat-1", erased, {}, RedactionRules(), KEY)
    assert made.blobs == {}
    found = check_redacted(Log(events=erased), made, RedactionRules())
    assert (found.problems, found.contents) == ((), 3)
    assert not {each.digest for each in log.events} & {each.digest for each in made.events}
    whole = redacted(log)
    assert len(whole.blobs) == len(log.blobs) > 0
    assert checked(log, whole).problems == ()


@pytest.mark.parametrize(
    "value",
    [
        "[" * 100 + "]" * 100,
        "[" * 900 + '"a secret in the middle"' + "]" * 900,
        "[" * 20_000,
        '{"recursive": true, "path": ""}',
        [True, False, None, 0, "", []],
        4_111_111_111_111_111,
        "4111111111111111",
        '"a secret in quotes"',
        "\u00e9\u00e8 \u4e2d\u6587 \U0001f600",
        "x" * 1_000_000,
    ],
    ids=["deep", "deeper", "no json", "nothing", "kept", "number", "digits", "quoted", "letters", "long"],
)
def test_odd_contents_are_redacted_and_checked(value: Json) -> None:
    log = log_of([TitleChanged(title=Content(value))])
    rules = RedactionRules(keep_keys=("recursive",))
    made = redacted(log, rules)
    assert checked(log, made, rules).problems == ()
    raw = made.events[0].content + b"".join(made.blobs.values())
    assert not [said for said in (b"secret", b"4111111111111111", "\u4e2d".encode(), b"xxxxxx") if said in raw]


def test_a_long_number_that_is_left_is_found() -> None:
    log = log_of([TitleChanged(title=Content({"card": 4_111_111_111_111_111}))])
    made = log_of([TitleChanged(title=Content({"cord": 4_111_111_111_111_111}))])
    problems = check_redacted(log, made, RedactionRules()).problems
    assert "1 text of the original is still in it, the longest of 16 characters" in problems


def _with(place: int, **changes: Any) -> Callable[[list[StoredEvent]], None]:
    def change(events: list[StoredEvent]) -> None:
        events[place] = replace(events[place], **changes)

    return change


def _original(place: int) -> Callable[[list[StoredEvent]], None]:
    return lambda events: events.__setitem__(place, SAMPLE.events[place])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_original(1), "its chain does not hold"),
        (_with(3, facts=b'{"title":[0,17]}'), "version 4: its facts are other ones"),
        (_with(2, facts=b'{"labels":{"a":"b"}}'), "version 3: its facts are other ones"),
        (lambda events: events.pop(), "it has another number of events"),
        (_with(3, envelope=replace(SAMPLE.events[3].envelope, recorded_at=5)), "version 4: its envelope is another"),
        (_with(3, envelope=replace(SAMPLE.events[3].envelope, command="other")), "a name (commands) has two"),
    ],
)
def test_the_check_finds_what_is_wrong(damage: Callable[[list[StoredEvent]], None], says: str) -> None:
    made = redacted(SAMPLE)
    events = list(made.events)
    damage(events)
    found = checked(SAMPLE, replace(made, events=tuple(events)))
    assert any(says in problem for problem in found.problems), found.problems


def test_the_check_finds_contents_that_are_not_what_they_must_be() -> None:
    """A log that was made by other means: sound by its chain, and not redacted as it should be."""
    texts = ("Where is my order?", "Where is order A-17?")
    for title, said, again, problem in (
        (*texts, texts[0], "2 texts of the original are still in it"),
        ("x" * 18, "y" * 20, "z" * 18, "is equal to others where it was not, or was and is no more"),
        ("x" * 18, " " * 20, "x" * 18, "has another form"),
        ("x" * 18, "y" * 21, "x" * 18, "has another size"),
    ):
        made = log_of(
            [
                ChatCreated(chat="c", owner="o", agent="support", release="0.1.0", title=Content(title)),
                MessageSent(added=(Message(role="user", parts=(TextPart(text=Content(said, 20)),)),)),
                LabelsChanged(labels={"a": "b", "c": "d"}),
                TitleChanged(title=Content(again)),
            ]
        )
        found = check_redacted(SAMPLE, made, RedactionRules())
        assert any(problem in each for each in found.problems), found.problems


def test_what_is_left_in_clear_is_listed_with_where_it_stands() -> None:
    log = conversed(3, 1)[0]
    clear = checked(log, redacted(log)).clear
    assert {"agents", "digests", "models", "own"} <= {each.kind for each in clear}
    raw = [event.facts.decode() + event.envelope.command + str(event.envelope.actor) for event in log.events]
    assert all(each.text in raw[each.version - 1] for each in clear)
    mapped = checked(log, redacted(log, MAPPED), MAPPED).clear
    assert {each.kind for each in mapped} <= {"own", "tools", "files", "errors", "hooks", "paths"}


def test_a_text_that_must_not_be_there_is_found_without_being_told() -> None:
    rules = RedactionRules(never=("SUPPORT",))
    (problem,) = checked(SAMPLE, redacted(SAMPLE, rules), rules).problems
    assert problem == (
        "text 1 of the rules' never is in a name (agents), first at version 1: another name for it under "
        '[rename.agents], or agents = "map" under [names], helps'
    )
    mapped = replace(rules, names={"agents": "map"})
    assert checked(SAMPLE, redacted(SAMPLE, mapped), mapped).problems == ()


@pytest.mark.parametrize(
    ("name", "never"),
    [
        ("Zoe\u0308", "zo\u00eb"),
        ("Zo\u00eb", "ZOE\u0308"),
        ("\uff21cme", "acme"),
        ("STRASSE", "stra\u00dfe"),
        ("o\ufb03ce", "OFFICE"),
        ("\u0130zmir", "i\u0307zmir"),
    ],
)
def test_a_text_that_must_not_be_there_is_found_in_all_its_forms(name: str, never: str) -> None:
    log = log_of([ChatCreated(chat="c", owner="o", agent=name, release="0.1.0")])
    rules = RedactionRules(never=(never,))
    (problem,) = checked(log, redacted(log, rules), rules).problems
    assert problem.startswith("text 1 of the rules' never is in a name (agents), first at version 1: ")


def test_it_is_told_of_each_kind_of_place_where_a_text_is_that_must_not_be_there() -> None:
    events = [
        ChatCreated(chat="c", owner="o", agent="acme", release="0.1.0"),
        *[TitleChanged(title=Content({"acme": 17, "other": True})) for _ in range(2)],
    ]
    rules = RedactionRules(never=("zzz", "acme"), keep_keys=("acme",))
    log = log_of(events)
    said = [problem.partition(":")[0] for problem in checked(log, redacted(log, rules), rules).problems]
    place = "text 2 of the rules' never is in"
    assert said == [f"{place} a name (agents), first at version 1", f"{place} a content ($.title), first at version 2"]


def test_no_made_up_text_has_a_form_of_what_must_not_be_there() -> None:
    """The sharp s stands for two letters, which words have by chance."""
    rules = RedactionRules(never=("\u00df",))
    for log in conversed(3, 2):
        made = redact(log.chat, log.events, log.blobs, rules, KEY)
        assert checked(log, made, rules).problems == ()


def test_the_id_of_an_imported_chat_is_looked_at_too() -> None:
    """It names the file, and is not in the facts."""
    log = LoadedLog(chat=ChatId("acme-7"), events=tuple(SAMPLE.events), blobs=SAMPLE.blobs, flags=())
    rules = RedactionRules(names={"chats": "keep"}, never=("acme",))
    found = check_redacted(log, redact(log.chat, log.events, log.blobs, rules, KEY), rules)
    (problem,) = found.problems
    assert problem.startswith("text 1 of the rules' never is in a name (chats), first at version 1: ")
    assert {each.text for each in found.clear if each.kind == "chats"} == {"acme-7", "chat-1"}


@pytest.mark.parametrize("facts", [b"[]", b"7", b'{"title":7}', b'{"title":[[null],3]}', b'{"title":[0]}', b"{"])
def test_facts_that_have_not_the_form_of_their_type_are_told_of(facts: bytes) -> None:
    events = [*SAMPLE.events[:3], replace(SAMPLE.events[3], facts=facts)]
    with pytest.raises(MalformedEvent, match="version 4"):
        redact("chat-1", events, SAMPLE.blobs, RedactionRules(), KEY)


@given(st.lists(EVENTS, min_size=1, max_size=3), st.sampled_from([RedactionRules(), MAPPED, KEPT]))
@settings(max_examples=200)
def test_any_events_with_any_values_are_redacted_soundly(events: list[Event], rules: RedactionRules) -> None:
    """Also those that no chat would have: what can be stored can be redacted."""
    log = log_of(events)
    assert checked(log, redacted(log, rules), rules).problems == ()


@pytest.mark.parametrize(
    ("never", "told"),
    [("ada", False), ("17", False), ("o z", False), ("E", True), ("user", True)],  # made-up users begin with user
)
def test_what_must_not_be_there_does_not_come_up_by_chance(never: str, told: bool) -> None:
    rules = RedactionRules(never=(never,), names={"agents": "map"})
    texts: list[Json] = ["Ada, E. " * 40_000, [f"some words {place}" for place in range(2000)], list(range(1000, 1400))]
    log = log_of(TitleChanged(title=Content(text)) for text in texts)
    made = redacted(log, rules)
    titles = b"".join((*(event.content.partition(b'"v":')[2] for event in made.events), *made.blobs.values())).lower()
    assert never.lower().encode() not in titles
    problems = checked(log, made, rules).problems
    assert bool(problems) is told
    assert all(each.startswith("text 1 of the rules' never is in a name (") for each in problems)
