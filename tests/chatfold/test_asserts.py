"""What tests say of a recorded chat: in whatever form they have it, and with words that name where it is wrong."""

import asyncio
import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest
from msgspec import structs

from chatfold import Agent, Engine
from chatfold.debugging import find_log, rerun, write_sections
from chatfold.testing import (
    ScriptedProvider,
    VirtualTime,
    VirtualTimeStopped,
    assert_replays,
    assert_reruns,
    assert_valid_prompts,
    canonical_text,
    explain_change,
    fence_of,
    given,
)
from chatfold.testing.asserts import AnyLog
from events.envelope import Recorded
from events.errors import InvalidValue, LogFileError
from events.logfile import read_log
from events.vocabulary import AttemptStarted

AGENT: Final = Agent(name="a", model="scripted")


async def talked(agent: Agent) -> bytes:
    """Return the log file of a chat with one turn."""
    async with Engine("memory://", [agent], providers={"scripted": ScriptedProvider(["Hi."])}) as engine:
        chat = (await engine.create_chat("a", "Hello.")).chat
        await engine.settled(chat)
        return await engine.export_log(chat)


@pytest.fixture(scope="module")
def exported() -> bytes:
    """A log file of a chat with one turn."""
    return asyncio.run(talked(AGENT))


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
    file = written(exported.replace(b"Hello.", b"Hullo."), tmp_path)
    for check in (assert_replays, assert_reruns, assert_valid_prompts):
        with pytest.raises(AssertionError, match=rf"^{re.escape(str(file))} was altered, from version 1 on: "):
            check(file)


def test_no_agents_are_not_compared_in_silence(exported: bytes) -> None:
    with pytest.raises(InvalidValue, match=r"^\$.agents: has no agent, .*; leave it out for that$"):
        assert_reruns(exported, [])
    assert_reruns(exported)


@pytest.mark.parametrize(
    ("log", "error"), [(b"no log", LogFileError), ([1, 2], InvalidValue), (None, InvalidValue), (5, InvalidValue)]
)
def test_what_is_no_log_is_refused(log: AnyLog, error: type[Exception]) -> None:
    with pytest.raises(error):
        assert_replays(log)


@pytest.mark.parametrize("claim", [assert_replays, assert_reruns, assert_valid_prompts, given])
def test_nothing_can_be_said_of_no_event(claim: Callable[[AnyLog], object]) -> None:
    with pytest.raises(InvalidValue, match="the log has no event"):
        claim([])


GIVEN: Final[Sequence[tuple[str, Callable[[Any, Any], object], tuple[object, ...]]]] = [
    ("agents", assert_reruns, (None, 5, "a", AGENT, ["a"], [None], {"a": AGENT})),
    ("ignore", lambda log, value: assert_reruns(log, ignore=value), (None, 5, "tools", [None], ["tols", "tools"])),
    ("keep", lambda log, value: canonical_text(log, keep=value), (None, 5, "ids", [None], ["id"])),
    ("before", lambda _, value: explain_change(value, ""), (None, 5, b"", ["a"])),
    ("after", lambda _, value: explain_change("", value), (None, 5, b"", ["a"])),
    ("at", lambda log, value: given(log, at=value), ("1", 1.0, True, -1, 99, [1])),
    ("state", lambda _, value: fence_of(value), (None, 5, "W")),
    ("error", lambda log, value: given(log).refused(value), (None, 5, "NotAllowed", ValueError)),
]


@pytest.mark.parametrize(
    ("call", "name", "value"),
    [pytest.param(call, name, value, id=f"{name}-{value!r:.20}") for name, call, values in GIVEN for value in values],
)
def test_what_is_not_taken_is_refused_with_its_name(
    exported: bytes, call: Callable[[Any, Any], object], name: str, value: object
) -> None:
    with pytest.raises(InvalidValue) as refused:
        call(exported, value)
    assert refused.value.path.startswith(f"$.{name}")


def test_a_section_that_there_is_not_is_answered_with_those_that_are(exported: bytes) -> None:
    with pytest.raises(InvalidValue, match=r"there is no section 'tols'; there are: system, tools, .*, calls"):
        assert_reruns(exported, [AGENT], ignore=["tols"])  # type: ignore[list-item]


def test_what_changed_in_a_section_is_shown_where_its_text_was_kept(exported: bytes, tmp_path: Path) -> None:
    then = Agent(name="a", model="scripted", system="You help.")
    now = Agent(name="a", model="scripted", system="You help, and are brief.")
    file = tmp_path / "old.jsonl"
    file.write_bytes(asyncio.run(talked(then)))
    with pytest.raises(AssertionError) as failed:
        assert_reruns(file, [now])
    assert "+You help" not in str(failed.value)
    write_sections(tmp_path / "old.sections.json", rerun(find_log(str(file), str).read(), [then]).today)
    for log in (file, str(file), find_log(str(file), str).read()):
        with pytest.raises(AssertionError) as failed:
            assert_reruns(log, [now])
        assert "-You help.\n    +You help, and are brief." in str(failed.value)


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
    with pytest.raises(AssertionError, match="system: another text in a request, first at version 5") as failed:
        assert_reruns(exported, [other])
    assert str(failed.value).startswith("the log is not the same today:\n  all 6 events came out again; requests ")
    assert_reruns(exported, [other], ignore=["system"])


def test_agents_without_that_of_the_log_compare_nothing_and_fail(exported: bytes) -> None:
    renamed = dataclasses.replace(AGENT, name="renamed")
    with pytest.raises(
        AssertionError, match=f"{AGENT.name} is not among the agents given, so nothing that it declares"
    ):
        assert_reruns(exported, [renamed])
    assert_reruns(exported, [renamed], ignore=["system", "tools", "options", "policy"])
