"""What counts as an incident: signs from logs of the golden corpus and of small chats; and how turns are cut."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from chatfold import Agent, Limits, ModelConfig, tool
from chatfold.debugging import Incident, IncidentKind, find_logs, incidents
from chatfold.replaying.incidents import _KINDS
from chatfold.replaying.turns import turns
from chatfold.testing import ClassifiedError, Fail, ScriptedProvider, Turn, UseTool, VirtualTime, turn
from events.envelope import Recorded
from events.messages import Usage
from events.vocabulary import TurnFailed
from generation.tools.registry import NOT_TAKEN
from tests.meta.source import ROOT

CORPUS = ROOT / "tests" / "corpus" / "v0.2"
INCIDENTS = ROOT / "tests" / "incidents"
LOGS = {Path(source.where).stem: source for source in find_logs([str(CORPUS), str(INCIDENTS)])}
BUSY = ClassifiedError(kind="overloaded", message="Busy.", retryable=True, status_code=529)
MODEL = ModelConfig(provider="scripted", name="m", context_limit=1_000, max_output=100)


@tool
def peek(place: str) -> str:
    """Look somewhere."""
    if place == "broken":
        raise RuntimeError("database away")
    return f"nothing at {place}"


def played(script: Sequence[Turn | str], **options: Any) -> list[Incident]:
    """Return the incidents of a chat whose model says a script."""
    time = VirtualTime()
    agent = Agent(name="a", model=MODEL, tools=[peek], **options)

    async def run() -> Sequence[Recorded]:
        async with time.engine([agent], providers={"scripted": ScriptedProvider(list(script))}) as engine:
            chat = (await engine.create_chat("a", "Go.")).chat
            await engine.settled(chat)
            return await engine.events(chat)

    return incidents(time.run(run))


def kinds(found: Sequence[Incident]) -> list[str]:
    return [each.kind for each in found]


def look(place: str, tokens: int = 10) -> Turn:
    return turn(UseTool("peek", {"place": place}), usage=Usage(input=tokens, output=5))


def test_the_logs_at_hand_have_every_kind() -> None:
    found = {each.kind for source in LOGS.values() for each in incidents(source.read().recorded())}
    found.update(each.kind for each in played([turn()]))
    assert found == set(get_args(IncidentKind))
    assert list(_KINDS) == list(get_args(IncidentKind))


@pytest.mark.parametrize("name", LOGS)
def test_contents_are_not_needed(name: str) -> None:
    log = LOGS[name].read()
    full = [each for each in incidents(log.recorded()) if each.kind != "repeated_call"]
    bare = incidents(log.bare())
    told, known = (
        [(each.kind, each.version) for each in found if each.kind != "failed_calls"] for found in (bare, full)
    )
    assert told == known
    assert set(kinds(bare)) == set(kinds(full)), "how a call failed is told by its text, that it did is not"


@pytest.mark.parametrize("name", LOGS)
def test_turns_are_the_log_in_pieces(name: str) -> None:
    log = LOGS[name].read()
    pieces = list(turns(log.bare()))
    versions = [step.recorded.version for piece in pieces for step in piece.steps]
    assert versions == list(range(1, len(log.events) + 1))
    opened = pieces[-1].steps[-1].after.control.turns
    assert len(pieces) in (opened, opened + 1) or opened == 0


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        (["Hi."], {}, []),
        ([turn()], {}, ["empty_answer"]),
        ([turn(Fail(BUSY))] * 2 + ["Hi."], {}, []),
        ([turn(Fail(BUSY))] * 3 + ["Hi."], {}, ["retry_storm"]),
        ([look("a"), look("b"), look("a"), "Hi."], {}, []),
        ([look("a"), look("b"), look("a"), look("a"), "Hi."], {}, ["repeated_call"]),
        ([look("a"), look("b")], {"limits": Limits(max_steps=2)}, ["step_limit"]),
        ([turn(UseTool("nowhere", {})), turn(UseTool("nowhere", {"a": 1})), "Hi."], {}, ["failed_calls"]),
        ([look("a"), look("b", 900), turn("So far.", usage=Usage(input=900)), "Hi."], {}, []),
    ],
    ids=[
        "none",
        "nothing",
        "two retries",
        "three retries",
        "twice the same",
        "thrice the same",
        "steps",
        "no such tool",
        "one compaction",
    ],
)
def test_what_counts(script: Sequence[Turn | str], options: dict[str, Any], expected: list[str]) -> None:
    assert kinds(played(script, **options)) == expected


def test_a_compaction_that_was_tried_again_is_one() -> None:
    full, summary = look("a", 900), turn("They looked.", usage=Usage(input=900))
    assert kinds(played([look("b"), full, turn(Fail(BUSY)), summary, "Hi."])) == []


def test_a_turn_that_was_resumed_tells_of_its_last_end() -> None:
    found = incidents(LOGS["max_steps"].read().recorded())
    assert "step_limit" not in kinds(found)


def test_the_cause_comes_before_what_it_led_to() -> None:
    found = played([turn(Fail(BUSY))] * 5, limits=Limits(max_model_attempts=5))
    assert kinds(found) == ["retry_storm", "failed_turn"]
    assert [each.turns_ago for each in found] == [0, 0]
    assert found[0].what.startswith("5 model calls of the turn failed (5 times overloaded, status 529), from version ")
    assert found[0].what.endswith("; the last of them ended the turn at version 17.")
    assert (
        found[1].what == "The turn failed (overloaded, status 529): Busy. Given up after 5 attempts; try again later."
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("taken_over_running", ["run_again"]),
        ("released_running", ["lost_result"]),
        ("failed_running", ["failed_turn"]),
        ("interrupt_tools", ["lost_result", "interrupted"]),
    ],
)
def test_calls_that_ran_when_something_ended_are_told(name: str, expected: list[str]) -> None:
    found = [each for each in incidents(LOGS[name].read().recorded()) if each.kind != "open_question"]
    assert kinds(found) == expected
    said = {each.kind: each.what for each in found}
    assert name == "interrupt_tools" or "declared safe to repeat" in "".join(said.values())
    assert "took effect is not known" in said.get("lost_result", "took effect is not known")


def test_a_turn_that_fails_while_a_call_runs_is_one_incident() -> None:
    """The log in which a call is run again, with a call that is not."""
    log = LOGS["failed_running"].read().recorded()
    (at,) = (at for at, each in enumerate(log) if isinstance(each.event, TurnFailed) and each.event.again)
    failed = log[at].event
    assert isinstance(failed, TurnFailed)
    log[at] = replace(log[at], event=replace(failed, unknown=failed.again, again=()))
    (found,) = (each for each in incidents(log[: at + 1]) if each.turns_ago == 0)
    assert (found.kind, found.version) == ("lost_result", at + 1)
    assert "the turn failed meanwhile (" in found.what
    assert found.advice.startswith("Before it is run again, look whether it took effect")


@pytest.mark.parametrize("name", LOGS)
def test_one_event_is_one_incident(name: str) -> None:
    told = [(each.turn, each.version) for each in incidents(LOGS[name].read().recorded())]
    assert len(set(told)) == len(told)


def test_a_fault_stands_above_calls_that_were_repeated_before_it() -> None:
    found = incidents(LOGS["compaction_loop"].read().recorded())
    assert kinds(found) == ["compaction_loop", "step_limit", "repeated_call"]
    assert found[-1].what.endswith("with the same arguments, from version 5 on.")
    summary = turn("They looked.", usage=Usage(input=900))
    compacted_first = played([*[look("a", 900), summary, look("b")] * 4, "Hi."])
    assert kinds(compacted_first) == ["compaction_loop", "repeated_call", "repeated_call"]
    later = played([*map(look, "abcd"), *[look("e")] * 3], limits=Limits(max_steps=7))
    assert kinds(later) == ["step_limit", "repeated_call"]


@pytest.mark.parametrize("name", LOGS)
def test_a_turn_is_ended_by_users_once(name: str) -> None:
    found = [each for each in incidents(LOGS[name].read().recorded()) if each.kind == "interrupted"]
    assert len({each.turn for each in found}) == len(found)


def test_calls_that_failed_are_told_by_tool_and_way_the_worst_first() -> None:
    script: list[Turn | str] = [
        turn(UseTool("nowhere", {})),
        turn(UseTool("peek", {"wrong": 1})),
        look("broken"),
        look("broken"),
        "Hi.",
    ]
    found = played(script)
    assert kinds(found) == ["failed_calls"] * 3
    assert [each.what.partition("; the model was told")[::2] for each in found] == [
        ("The model called peek 2 times, which ended in an error", ", at last: RuntimeError: database away."),
        (
            "The model called nowhere once, and there is no such tool, or it is not active",
            ": Tool not found: nowhere. Nothing was run.",
        ),
        (
            "The model called peek once, with arguments that it does not take",
            f": {NOT_TAKEN}$.place: Field required; $.wrong: Extra inputs are not permitted.",
        ),
    ]
    assert found[0].version > found[2].version > found[1].version
    assert not any(each.fault for each in found)


def test_the_ways_in_which_calls_failed_are_bounded() -> None:
    found = played([turn(*(UseTool(f"no_{number}", {}) for number in range(7))), "Hi."])
    assert kinds(found) == ["failed_calls"] * 5
    assert found[-1].what.endswith(". Calls failed in 2 more ways.")


def test_a_call_that_was_not_approved_did_not_fail() -> None:
    log = LOGS["approval"].read().recorded()
    assert "failed_calls" not in kinds(incidents(log))


def test_a_worker_that_died_during_a_model_call_is_told_with_the_time_that_was_lost() -> None:
    lost = [each for each in incidents(LOGS["lost_thrice"].read().recorded()) if each.kind == "taken_over"]
    died = "The worker that ran the chat died during a model call, and another one took the chat over: "
    assert [(each.fault, each.what) for each in lost] == [
        (False, f"{died}the model was called again at version 6, and 23.0 s were lost."),
        (False, f"{died}the model was called again at version 8, and 24.0 s were lost."),
        (False, f"{died}the model was not called again."),
    ]


def test_the_newest_turn_comes_first() -> None:
    found = incidents(LOGS["in_E1"].read().recorded())
    ago = [each.turns_ago for each in found]
    assert ago == sorted(ago)
    assert len({each.turn for each in found}) == len(set(ago))


def test_the_page_has_each_kind() -> None:
    rows = [line.split("|") for line in (ROOT / "docs" / "incidents.md").read_text().splitlines() if "| `" in line]
    told = [(row[1].strip().strip("`"), row[3].strip() == "yes") for row in rows]
    assert told == [(kind, fault) for kind, (fault, _) in _KINDS.items()]
