"""What changed in a declaration is said in words where its text of then was kept, as sections or as declarations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from chatfold.engine import Engine
from chatfold.replaying.logs import Log
from chatfold.rerunning.declarations import DECLARATIONS, Declarations, write_declarations
from chatfold.rerunning.declared_tool import DeclaredTool, declaration_changes
from chatfold.rerunning.run import rerun
from chatfold.rerunning.sections import Sections
from chatfold.rerunning.then import Then, then_beside
from chatfold.rerunning.words import told, verdict_of
from chatfold.testing import UseTool, assert_reruns, turn
from generation.agents import Agent, Limits
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool
from tests.chatfold.rerunning.kit import SYSTEM, agent, log_of, look_up, written


def redescribed(order: str) -> str:
    """Look an order up, wherever it is."""
    return order


redescribed.__name__ = "look_up"
REDESCRIBED: Final = Agent(
    name="support", model="scripted", system=SYSTEM, tools=[Tool.from_function(redescribed, crash="rerun")]
)


def declarations() -> Declarations:
    """Return what the agent of the logs said."""
    kept = Declarations()
    kept.take(agent())
    return kept


def then_of(log: Log, kind: str) -> Sections:
    """Return the texts of then of a log, as they follow from one kind of what was kept."""
    kept = Then(declarations=declarations()) if kind == "declarations" else Then(sections=rerun(log, [agent()]).today)
    return kept.texts(log.recorded())


@pytest.mark.parametrize("kind", ["sections", "declarations"])
def test_a_description_that_changed_is_told_as_that(log: Log, kind: str) -> None:
    said = list(told(rerun(log, [REDESCRIBED]), then_of(log, kind)))
    assert "policy: another one at version 3: declaration of tool look_up: another description" in said
    assert '  -  "description": "Look an order up.",' in said


def test_what_the_digest_of_a_tool_covers_is_told_where_no_text_is_at_hand(log: Log) -> None:
    (line,) = (line for line in told(rerun(log, [REDESCRIBED])) if line.startswith("policy"))
    then, now = agent().tools[0].digest, REDESCRIBED.tools[0].digest
    covered = "a digest of its description and its arguments"
    assert line.endswith(f"declaration of tool look_up: {then} -> {now} ({covered})")


def test_declarations_make_all_texts_of_then_again(log: Log) -> None:
    then = then_of(log, "declarations")
    assert then == rerun(log, [agent()]).today
    assert rerun(log).today == Sections()
    assert Then().texts(log.recorded()) == Sections()


def test_a_corpus_beside_a_log_gives_the_failure_of_a_test_its_words(tmp_path: Path) -> None:
    (tmp_path / "help.jsonl").write_bytes(asyncio.run(written()))
    write_declarations(tmp_path / DECLARATIONS, declarations())
    assert then_beside(tmp_path / "help.jsonl").declarations == declarations()
    with pytest.raises(AssertionError, match=r"help\.jsonl is not the same today:\n  all 16 .* differ") as failed:
        assert_reruns(tmp_path / "help.jsonl", [agent("You help, and are brief.")])
    assert "-You help with orders." in str(failed.value)


DIFFERING: Final[dict[str, tuple[Agent, str]]] = {
    "nothing": (agent(), ""),
    "requests": (agent("Other."), "; requests differ"),
    "declarations": (agent(limits=Limits(max_steps=99)), "; declarations differ"),
    "both": (REDESCRIBED, "; requests and declarations differ"),
}


@pytest.mark.parametrize("what", DIFFERING)
def test_what_differs_though_all_events_came_is_in_the_verdict(log: Log, what: str) -> None:
    today, differ = DIFFERING[what]
    assert verdict_of(rerun(log, [today])) == f"all 16 events came out again{differ}"


ARGUMENTS: Final[dict[str, tuple[Mapping[str, Any], str]]] = {
    "gone and new": ({"properties": {"b": {}}, "required": ["b"]}, "argument a is gone, argument b is new"),
    "another one": ({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, "argument a is another one"),
    "left out": ({"properties": {"a": {}}}, "argument a may be left out now"),
    "rules": (
        {"properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
        "other rules for its arguments",
    ),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_arguments_that_changed_are_named(what: str) -> None:
    schema, said = ARGUMENTS[what]
    then = DeclaredTool(name="t", description="", schema={"properties": {"a": {}}, "required": ["a"]})
    now = DeclaredTool(name="t", description="", schema={**schema})
    assert ", ".join(declaration_changes(then, now)) == said
    assert list(declaration_changes(then, then)) == []


def of_a_tool(**declared: Any) -> Log:
    """Return the log of a chat that calls a tool; a call that asks is left waiting."""

    async def wrote() -> bytes:
        models = {"scripted": ScriptedProvider([turn(UseTool("look_up", {"order": "A"})), "Done."])}
        today = Agent(name="support", model="scripted", tools=[Tool.from_function(look_up, **declared)])
        async with Engine("memory://", [today], providers=models) as engine:
            await engine.create_chat("support", "Where?", chat_id="help")
            await engine.settled("help")
            return await engine.export_log("help")

    return log_of(asyncio.run(wrote()))


def renamed(order_id: str) -> str:
    """Look an order up."""
    return order_id


renamed.__name__ = "look_up"
GONE: Final = "there is no tool look_up today, which was called then"


@pytest.mark.parametrize("declared", [{"crash": "rerun"}, {"needs_approval": True}, {"exclusive": True}])
def test_of_a_tool_that_is_gone_nothing_is_made_up(declared: dict[str, Any]) -> None:
    report = rerun(of_a_tool(**declared), [Agent(name="support", model="scripted")])
    assert report.difference is not None
    said = list(told(report))
    assert f"another event came: {GONE}" in said
    assert [line for line in said if "$.added" in line] == [f"    $.added[0].parts[0].{next(iter(declared))}: gone"]
    assert f"calls: {GONE} (at version 5)" in said


def test_all_events_come_out_although_a_plain_tool_is_gone() -> None:
    report = rerun(of_a_tool(), [Agent(name="support", model="scripted")])
    assert report.same
    assert f"calls: {GONE} (at version 6)" in list(told(report))


def test_a_call_that_asks_and_is_not_taken_today_is_told_where_its_log_parts() -> None:
    today = Agent(name="support", model="scripted", tools=[Tool.from_function(renamed, needs_approval=True)])
    said = list(told(rerun(of_a_tool(needs_approval=True), [today])))
    why = "look_up does not take the arguments of then: order_id is missing; order is not known"
    assert f"calls: {why} (at version 5)" in said
    assert "    $.added[0].parts[0].needs_approval: gone" in said


def test_a_declaration_that_changed_is_told_with_both_values() -> None:
    today = Agent(name="support", model="scripted", tools=[Tool.from_function(look_up)])
    said = list(told(rerun(of_a_tool(crash="rerun"), [today])))
    assert "    $.added[0].parts[0].crash: 'rerun' -> 'report'" in said
    assert not any(line.startswith("calls") for line in said)
