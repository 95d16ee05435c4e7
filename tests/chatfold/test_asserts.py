"""What tests say of a recorded chat: in whatever form they have it, and with words that name where it is wrong."""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest
from msgspec import structs

from chatfold import Agent, Engine
from chatfold.debugging import find_log
from chatfold.testing import (
    ScriptedProvider,
    VirtualTime,
    VirtualTimeStopped,
    assert_replays,
    assert_reruns,
    assert_valid_prompts,
    given,
)
from chatfold.testing.asserts import AnyLog
from events.envelope import Recorded
from events.errors import DigestMismatch, LogFileError
from events.logfile import read_log
from events.vocabulary import AttemptStarted

AGENT: Final = Agent(name="a", model="scripted")


@pytest.fixture(scope="module")
def exported() -> bytes:
    """A log file of a chat with one turn."""

    async def talk() -> bytes:
        async with Engine("memory://", [AGENT], providers={"scripted": ScriptedProvider(["Hi."])}) as engine:
            chat = (await engine.create_chat("a", "Hello.")).chat
            await engine.settled(chat)
            return await engine.export_log(chat)

    return asyncio.run(talk())


def written(exported: bytes, folder: Path) -> Path:
    file = folder / "chat.jsonl"
    file.write_bytes(exported)
    return file


FORMS: Final[dict[str, Callable[[bytes, Path], AnyLog]]] = {
    "path": written,
    "text": lambda exported, folder: str(written(exported, folder)),
    "bytes": lambda exported, _: exported,
    "log file": lambda exported, _: read_log(exported.splitlines(), "chat"),
    "log": lambda exported, folder: find_log(str(written(exported, folder)), str).read(),
    "events": lambda exported, folder: find_log(str(written(exported, folder)), str).read().recorded(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_is_taken_in_each_form(exported: bytes, tmp_path: Path, form: str) -> None:
    assert_replays(FORMS[form](exported, tmp_path))
    assert_valid_prompts(FORMS[form](exported, tmp_path))
    assert_reruns(FORMS[form](exported, tmp_path), [AGENT])


def events_of(exported: bytes, folder: Path) -> list[Recorded]:
    return find_log(str(written(exported, folder)), str).read().recorded()


def test_a_decision_that_is_taken_otherwise_today_is_named(exported: bytes, tmp_path: Path) -> None:
    events = events_of(exported, tmp_path)
    at, started = next((at, each) for at, each in enumerate(events) if isinstance(each.event, AttemptStarted))
    assert isinstance(started.event, AttemptStarted)
    decision = structs.replace(started.event.decision, rule="D10")
    events[at] = structs.replace(started, event=structs.replace(started.event, decision=decision))
    with pytest.raises(AssertionError, match=f"version {started.version}: then D10 generate, now D11 generate; "):
        assert_replays(events)


def test_a_step_that_is_not_legal_is_named(exported: bytes, tmp_path: Path) -> None:
    events = events_of(exported, tmp_path)
    with pytest.raises(AssertionError, match="the log does not replay:\n  version 2: "):
        assert_replays(
            [events[0], structs.replace(events[-1], envelope=structs.replace(events[-1].envelope, version=2))]
        )


def test_what_was_altered_is_named(exported: bytes, tmp_path: Path) -> None:
    for check in (assert_replays, assert_valid_prompts):
        with pytest.raises(DigestMismatch):
            check(written(exported.replace(b"Hello.", b"Hullo."), tmp_path))


@pytest.mark.parametrize(
    ("log", "error"), [(b"no log", LogFileError), ([1, 2], TypeError), (None, TypeError), (5, TypeError)]
)
def test_what_is_no_log_is_refused(log: AnyLog, error: type[Exception]) -> None:
    with pytest.raises(error):
        assert_replays(log)


@pytest.mark.parametrize("claim", [assert_replays, assert_reruns, assert_valid_prompts, given])
def test_nothing_can_be_said_of_no_event(claim: Callable[[AnyLog], object]) -> None:
    with pytest.raises(ValueError, match="the log has no event"):
        claim([])


def test_a_run_that_waits_for_ever_is_told() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(VirtualTimeStopped, match="deadlock"):
        VirtualTime().run(wait)


def test_a_run_repeats_by_its_seed() -> None:
    def ids(seed: int) -> Sequence[str]:
        time = VirtualTime(seed)

        async def talk() -> list[str]:
            async with time.engine([AGENT], providers={"scripted": ScriptedProvider(["Hi."])}) as engine:
                chat = (await engine.create_chat("a", "Hello.")).chat
                await engine.settled(chat)
                return [each.envelope.command for each in await engine.events(chat)]

        return time.run(talk)

    assert ids(1) == ids(1) != ids(2)


def test_an_engine_in_virtual_time_is_made_in_it() -> None:
    with pytest.raises(RuntimeError, match=r"within VirtualTime.run"):
        VirtualTime().engine([AGENT])


async def test_a_log_is_run_again_within_a_coroutine(exported: bytes) -> None:
    assert_reruns(exported)


@pytest.mark.odd_decisions("wrong code is run")
def test_a_log_that_does_not_come_out_again_is_said_to_part_where_it_does(exported: bytes) -> None:
    with (
        patch("generation.plans.decision_due", lambda *_, **__: False),
        pytest.raises(AssertionError, match="the log does not come out again:") as raised,
    ):
        assert_reruns(exported)
    lines = str(raised.value).splitlines()
    assert lines[1] == "  2 of 6 events came out again; it parts at version 3"
    assert lines[2] == "  nothing came"
    assert lines[3].split() == ["then", "3", "policy_recorded", "running", "->", "running"]


def test_a_prompt_that_changed_fails_unless_it_may(exported: bytes) -> None:
    other = Agent(name="a", model="scripted", system="Be brief.")
    with pytest.raises(AssertionError, match="system: another text in a request, first at version 5"):
        assert_reruns(exported, [other])
    assert_reruns(exported, [other], ignore=["system"])


def test_agents_without_that_of_the_log_compare_nothing_and_fail(exported: bytes) -> None:
    renamed = dataclasses.replace(AGENT, name="renamed")
    with pytest.raises(
        AssertionError, match=f"{AGENT.name} is not among the agents given, so nothing that it declares"
    ):
        assert_reruns(exported, [renamed])
    assert_reruns(exported, [renamed], ignore=["system", "tools", "options", "policy"])
    assert_reruns(exported, [])
