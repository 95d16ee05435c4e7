"""The checks of a crash test find what they are for: each is shown a sound chat, and the same chat spoilt."""

import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from chatfold import PartItem
from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.testing.crash import story
from chatfold.testing.crash.calls import Command, Reply, carry_out
from chatfold.testing.crash.checks import CHECKS, Case, late_runs, owing
from chatfold.testing.crash.ledger import Entry, Ledger, Said, read_ledger, read_said
from chatfold.testing.crash.users import Book, Sighting, Told
from chatfold.testing.crash.verify import case_of, violations
from chatfold.testing.episodes import NotedParts
from events.control import Control
from events.envelope import Recorded
from events.vocabulary import InterruptionFinished, ToolResultRecorded
from store.query import ChatQuery

CHAT: Final = "chat-1"
TEXTS: Final = ("0: act+look press", "1: pay", "2:")
SLOW: Final = "3: slow"


@asynccontextmanager
async def told(folder: Path) -> AsyncIterator[tuple[Engine, Book]]:
    """A chat in which every kind of local tool has run, and what its user was told of it."""
    book, chance = Book(), random.Random(1)
    with Ledger(folder / "ledger.jsonl") as ledger, Ledger(folder / "said.jsonl") as said:
        engine = Engine(
            f"sqlite:///{folder / 'chats.db'}?synchronous=normal",
            [story.agent(ledger, chance)],
            providers={story.PROVIDER: story.Storyteller(chance, said)},
            settings=Settings(poll=0.02),
        )
        engine.runtime.parts = NotedParts(time.monotonic)
        async with engine:
            for number, text in enumerate(TEXTS):
                await _give(engine, book, number, text)
                state = await engine.settled(CHAT)
                if (action := state.control.action) is not None:
                    answers = {"action": action.id}
                    await _do(
                        engine,
                        book,
                        Command(
                            id=f"answer-{number}",
                            chat=CHAT,
                            method="submit_tool_results",
                            arguments=answers,
                            approve=action.to_approve,
                        ),
                    )
                    await engine.settled(CHAT)
                await _look(engine, book)
            await _interrupt(engine, book)
            await _look(engine, book)
            yield engine, book


async def _look(engine: Engine, book: Book) -> None:
    (header,) = await engine.list_chats(ChatQuery())
    book.saw(CHAT, Sighting(header.version, header.digest))


async def _interrupt(engine: Engine, book: Book) -> None:
    """Ask for an answer that takes seconds, and interrupt it when some of it has come."""
    await _give(engine, book, 3, SLOW)
    parts = 0
    async with aclosing(engine.stream(CHAT)) as items:
        async for item in items:
            parts += isinstance(item, PartItem)
            if parts == 3:
                break
    await _do(engine, book, Command(id="interrupt", chat=CHAT, method="interrupt"))
    await engine.settled(CHAT)


def aged(said: Sequence[Said]) -> list[Said]:
    """Return what was said, as if the first of each answer were old."""
    begun = {(each.history_version, each.attempt): each for each in reversed(said)}
    return [replace(each, at=each.at - 10) if each in begun.values() else each for each in said]


async def _give(engine: Engine, book: Book, number: int, text: str) -> None:
    arguments = {"agent": story.AGENT, "message": text} if number == 0 else {"message": text}
    command = Command(id=f"command-{number}", chat=CHAT, method="send_message", arguments=arguments)
    await _do(engine, book, replace(command, method="create_chat") if number == 0 else command)


async def _do(engine: Engine, book: Book, command: Command) -> None:
    book.given.add(command.id)
    book.note(Told(command=command, reply=await carry_out(engine, command), tries=1))


@pytest.fixture
async def case(tmp_path: Path) -> Case:
    async with told(tmp_path) as (engine, book):
        said = aged(read_said(tmp_path / "said.jsonl"))
        found = await case_of(engine, CHAT, book, read_ledger(tmp_path / "ledger.jsonl"), frozenset())
    return replace(found, said=said)


def found(case: Case) -> dict[str, list[str]]:
    """Return what the checks find, by check."""
    all_found = {name: list(check(case)) for name, check in CHECKS.items()}
    return {name: problems for name, problems in all_found.items() if problems}


async def test_a_sound_chat_passes(case: Case) -> None:
    assert found(case) == {}
    assert {entry.tool for entry in case.ledger} == {"act", "look", "press", "pay"}
    assert [each.reply.what for each in case.told] == ["done"] * 6
    assert late_runs(case.ledger) == 0


async def test_text_is_owed_of_an_answer_that_was_cut_late(case: Case) -> None:
    (cut,) = owing(case)
    assert (cut.how, cut.answer.lost, cut.kept) == ("interruption_finished", False, True)
    assert "Step 0 of message 3".startswith(cut.owed[:19])
    assert owing(replace(case, frozen=cut.processes)) == []
    young = [replace(each, at=each.at + 10) for each in case.said]
    assert owing(replace(case, said=young)) == []


def _without_its_end(case: Case) -> list[Recorded]:
    """Return the log as if the interruption had kept nothing of the answer."""
    *log, end = case.log
    assert isinstance(end.event, InterruptionFinished)
    return [*log, replace(end, event=replace(end.event, added=()))]


def _last(case: Case, tool: str, what: str) -> int:
    return max(place for place, entry in enumerate(case.ledger) if entry.tool == tool and entry.what == what)


def _entry(case: Case, tool: str, what: str = "began") -> Entry:
    return case.ledger[_last(case, tool, what)]


def _without(entries: Sequence[Entry], gone: Entry) -> list[Entry]:
    return [entry for entry in entries if entry is not gone]


def _twice(case: Case, kind: type) -> list[Recorded]:
    """Return the log with one event of a kind told twice."""
    event = next(each for each in case.log if isinstance(each.event, kind))
    return [*case.log, replace(event, envelope=replace(event.envelope, version=len(case.log) + 1))]


def _control(case: Case, **changes: object) -> Control:
    control = case.control.clone()
    for name, value in changes.items():
        setattr(control, name, value)
    return control


SPOILT: Final[dict[str, tuple[str, Callable[[Case], Case]]]] = {
    "it runs for ever": ("at rest", lambda case: replace(case, control=_control(case, status="running"))),
    "an acknowledged event is lost": ("acknowledged", lambda case: replace(case, log=case.log[:-12])),
    "a receipt named another version": (
        "acknowledged",
        lambda case: replace(case, told=[replace(case.told[0], reply=replace(case.told[0].reply, version=99))]),
    ),
    "a refused command was written": (
        "refused",
        lambda case: replace(case, told=[replace(case.told[0], reply=Reply(what="refused", said="queue_full"))]),
    ),
    "a user was told nonsense": (
        "refused",
        lambda case: replace(case, told=[replace(case.told[0], reply=Reply(what="broken", said="KeyError"))]),
    ),
    "a command is written twice": ("commands once", lambda case: replace(case, log=[*case.log, *case.log[:1]])),
    "a command that nobody gave": ("commands once", lambda case: replace(case, given=frozenset({"command-0"}))),
    "a gap in the log": ("commands once", lambda case: replace(case, log=[*case.log[:1], *case.log[2:]])),
    "the end of the log is lost": ("nothing lost", lambda case: replace(case, digests=case.digests[:-1])),
    "history was changed": (
        "nothing lost",
        lambda case: replace(case, seen=[*case.seen, Sighting(2, b"another")]),
    ),
    "a result is recorded twice": ("results once", lambda case: replace(case, log=_twice(case, ToolResultRecorded))),
    "a result enters history twice": (
        "results once",
        lambda case: replace(case, log=[*case.log, *(each for each in case.log if getattr(each.event, "answers", ()))]),
    ),
    "a report tool runs twice": (
        "tools once",
        lambda case: replace(case, ledger=[*case.ledger, replace(_entry(case, "act"), epoch=9, run="again")]),
    ),
    "a tool runs twice in one attempt": (
        "tools once",
        lambda case: replace(case, ledger=[*case.ledger, replace(_entry(case, "look"), run="again")]),
    ),
    "a tool runs unannounced": (
        "tools announced",
        lambda case: replace(case, ledger=[*case.ledger, replace(_entry(case, "look"), attempt=99, run="again")]),
    ),
    "a result that no run gave": (
        "tools told true",
        lambda case: replace(case, ledger=_without(case.ledger, _entry(case, "press", "ended"))),
    ),
    "an older epoch after a newer one": (
        "epochs rise",
        lambda case: replace(case, ledger=[replace(_entry(case, "look"), epoch=9, key="x/y"), *case.ledger]),
    ),
    "an interruption kept nothing": ("streamed text kept", lambda case: replace(case, log=_without_its_end(case))),
}


@pytest.mark.parametrize("spoilt", SPOILT)
async def test_a_spoilt_chat_is_found(case: Case, spoilt: str) -> None:
    check, spoil = SPOILT[spoilt]
    assert check in found(spoil(case))


async def test_a_process_that_was_stopped_may_be_late(case: Case) -> None:
    entry = _entry(case, "look")
    late = replace(case, ledger=[replace(entry, epoch=9, key="x/y"), *case.ledger], frozen=frozenset({entry.process}))
    assert "epochs rise" not in found(late)
    assert late_runs(late.ledger) > 0


def test_every_check_is_shown_to_find_something() -> None:
    assert {check for check, _ in SPOILT.values()} == set(CHECKS)


async def test_what_the_store_says_is_verified_and_shown(tmp_path: Path) -> None:
    async with told(tmp_path) as (engine, book):
        ledger = read_ledger(tmp_path / "ledger.jsonl")
        assert [each async for each in violations(engine, book, ledger, frozenset())] == []
        book.saw(CHAT, Sighting(1, b"another"))
        book.note(Told(command=Command(id="x", chat="lost", method="interrupt"), reply=Reply(what="done"), tries=1))
        found = [each async for each in violations(engine, book, ledger, frozenset())]
    assert [(each.check, each.chat) for each in found] == [("nothing lost", CHAT), ("exists", "lost")]
    assert len(found[0].timeline) > 10
    assert "chat_created" in found[0].timeline[0]
