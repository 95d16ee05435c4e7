"""Sections of requests: a prompt, a tool, an option or a policy that changed is named although no decision moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from pydantic import TypeAdapter

from chatfold.engine import Engine
from chatfold.replaying.logs import Log
from chatfold.rerunning.run import RerunReport, rerun
from chatfold.rerunning.sections import SectionChange, Sections, read_sections, write_sections
from chatfold.rerunning.words import section_said, section_shown, told
from chatfold.testing import UseTool, turn
from events.diff import MISSING
from generation.agents import Agent, Limits
from generation.models import ModelConfig
from generation.prompt_types import ModelRequest, PromptMessage, PromptText
from generation.tools.contract import Tool
from tests.chatfold.replaying import pair
from tests.chatfold.rerunning.kit import ANSWERS, SYSTEM, agent, log_of, written
from tests.chatfold.rerunning.kit import look_up as original


def look_up(order: str, *, fast: bool = False) -> str:
    """Look an order up, wherever it is."""
    return f"{order} {fast}"


def other_tool() -> Agent:
    """Return the agent with a tool of the same name that is another one."""
    return Agent(name="support", model="scripted", system=SYSTEM, tools=[Tool.from_function(look_up, crash="rerun")])


def find(order: str) -> str:
    """Look an order up."""
    return order


def with_tools(*functions: Callable[..., object]) -> Agent:
    """Return the agent with other tools."""
    tools = [Tool.from_function(function, crash="rerun") for function in functions]
    return Agent(name="support", model="scripted", system=SYSTEM, tools=tools)


def renamed(order_id: str) -> str:
    """Look an order up."""
    return order_id


renamed.__name__ = "look_up"


def changed(report: RerunReport) -> set[str]:
    """Return the sections that changed."""
    return {change.section for change in report.sections}


def test_nothing_changed(log: Log) -> None:
    report = rerun(log, [agent()])
    assert report.same
    assert report.sections == ()
    assert report.not_compared == ()
    assert SYSTEM in report.today.texts.values()


CHANGES: dict[str, tuple[Agent, set[str]]] = {
    "system": (agent("You help, and are brief."), {"system"}),
    "tool": (other_tool(), {"tools", "policy"}),
    "an argument that was renamed": (with_tools(renamed), {"tools", "policy", "calls"}),
    "options": (
        agent(model=ModelConfig(provider="scripted", name="friendly", extra={"seed": 7})),
        {"options", "policy"},
    ),
    "limit of the context": (
        agent(model=ModelConfig(provider="scripted", name="friendly", context_limit=9_000)),
        {"policy"},
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_named_although_no_decision_moved(log: Log, what: str) -> None:
    today, sections = CHANGES[what]
    report = rerun(log, [today])
    assert report.same
    assert changed(report) == sections


async def compacts(engine: Engine, chat: str) -> None:
    """Have the chat summarised."""
    await engine.compact(chat)


@pytest.fixture(scope="module")
def compacted() -> Log:
    """A chat that was compacted."""
    return log_of(asyncio.run(written((*ANSWERS[:2], turn("They talked.")), compacts)))


@pytest.mark.parametrize("what", ["system", "tool", "limit of the context"])
def test_what_a_compaction_tells_of_texts_that_changed_is_no_difference(compacted: Log, what: str) -> None:
    today, sections = CHANGES[what]
    report = rerun(compacted, [today])
    assert report.difference is None, list(told(report))
    assert changed(report) >= sections


@pytest.mark.odd_reruns("another estimate is made")
def test_an_estimate_is_compared_where_its_texts_are_the_same(compacted: Log) -> None:
    with patch("generation.summary.tokens_of", lambda _: 7):
        said = list(told(rerun(compacted, [agent()])))
        assert rerun(compacted, [agent("You help, and are brief.")]).difference is None
    (line,) = [line for line in said if "estimated_context_tokens" in line]
    assert line.endswith("-> 7"), "what differs is named, and not its size"


def test_a_tool_that_changed_is_named_in_the_policy(log: Log) -> None:
    (policy,) = [change for change in rerun(log, [other_tool()]).sections if change.section == "policy"]
    assert [change.path for change in policy.changes] == ["$.tools[look_up].schema"]
    assert policy.version == 3


def test_tools_of_a_policy_are_compared_by_name(log: Log) -> None:
    found = [change for change in rerun(log, [with_tools(find, original)]).sections if change.section == "policy"]
    assert [(change.path, change.before) for change in found[0].changes] == [("$.tools[find]", MISSING)]


NARROW: Final = Tool(
    name="look_up",
    description="Look an order up.",
    schema={"type": "object", "properties": {"order": {"type": "string"}}},
    arguments=TypeAdapter(dict[Literal["order"], Literal["B-1"]]),
    function=original,
    crash="rerun",
)

CALLS: dict[str, tuple[Sequence[Tool], str]] = {
    "an argument was renamed": (
        with_tools(renamed).tools,
        "look_up does not take the arguments of then: order_id is missing; order is not known",
    ),
    "a value is none any more": ([NARROW], "look_up does not take the arguments of then: order: must be 'B-1'"),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_call_that_today_s_tool_would_not_take_is_told(log: Log, what: str) -> None:
    tools, said = CALLS[what]
    report = rerun(log, [Agent(name="support", model="scripted", system=SYSTEM, tools=tools)])
    assert report.same
    assert f"calls: {said} (at version 6)" in list(told(report))
    assert "A-17" not in "\n".join(told(report)), "values are content"


def test_a_tool_that_is_gone_is_told() -> None:
    log = log_of(pair.log())
    tools = [tool for tool in pair.agent().tools if tool.name != "pay"]
    report = rerun(log, [Agent(name="support", model="scripted/x", tools=tools)])
    assert report.same
    assert "calls: there is no tool pay today, which was called then (at version 11)" in list(told(report))


def test_a_tool_that_is_gone_is_told_where_its_log_parts(log: Log) -> None:
    said = list(told(rerun(log, [with_tools(find)])))
    assert "another event came: there is no tool look_up today, which was called then" in said
    assert "calls: there is no tool look_up today, which was called then (at version 5)" in said


def test_a_call_that_was_refused_then_and_would_be_run_today_is_told() -> None:
    answers = (turn(UseTool("find", {"order": "A-17"})), *ANSWERS)
    log = log_of(asyncio.run(written(answers)))
    assert rerun(log, [agent()]).sections == ()
    today = Agent(name="support", model="scripted", system=SYSTEM, tools=[*agent().tools, Tool.from_function(find)])
    said = list(told(rerun(log, [today])))
    assert "calls: find would be run today, and was not then: the call was refused (at version 6)" in said


def test_calls_are_not_compared_with_what_is_not_given(log: Log) -> None:
    assert rerun(log).sections == ()
    other = Agent(name="other", model="scripted", tools=())
    assert rerun(log, [other]).sections == ()


@pytest.mark.odd_decisions("another policy is run")
def test_a_limit_under_which_a_decision_moves_is_a_difference(log: Log) -> None:
    report = rerun(log, [agent(limits=Limits(max_steps=1))])
    assert report.difference is not None
    assert (report.difference.version, report.difference.rule) == (9, "D11")
    assert "D7 finish(max_steps)" in "\n".join(told(report))
    assert "policy: another one at version 3: $.max_steps: 1200 -> 1" in "\n".join(told(report))


@pytest.mark.odd_reruns("other digests are taken")
def test_a_word_of_the_prompt_that_the_engine_adds_is_seen_in_the_messages(log: Log) -> None:
    with patch("generation.digests.MessagesDigest.add", _other_digest):
        report = rerun(log)
    assert report.same
    assert changed(report) == {"messages"}
    assert "messages: another text in 3 requests, first at version 5" in list(told(report))


def _other_digest(self: Any, message: PromptMessage) -> None:
    self._sha.update(b"other" + str(len(message.parts)).encode())


def request(*texts: str, system: str = "Be brief.", tools: Iterable[Any] = ()) -> ModelRequest:
    return ModelRequest(
        model="m",
        system=(system,),
        messages=tuple(PromptMessage(role="user", parts=(PromptText(text=text),)) for text in texts),
        tools=tuple(tools),
    )


def kept(*requests: ModelRequest) -> Sections:
    sections = Sections()
    for each in requests:
        sections.take(each)
    return sections


def change(section: Any, then: ModelRequest, now: ModelRequest) -> SectionChange:
    from generation.digests import digest_request

    one, other = digest_request(then), digest_request(now)
    return SectionChange(version=5, section=section, then=getattr(one, section), now=getattr(other, section))


def test_a_text_that_changed_is_shown_as_a_diff() -> None:
    then, now = request("Hi.", system="Be brief.\nBe kind."), request("Hi.", system="Be brief.\nBe quick.")
    lines = list(section_shown(change("system", then, now), kept(then), kept(now)))
    assert lines == ["@@ -1,2 +1,2 @@", " Be brief.", "-Be kind.", "+Be quick."]


@pytest.mark.parametrize(
    ("then", "now", "place"),
    [(("a", "b"), ("a", "c"), 2), (("a",), ("a", "b"), 2), (("b",), ("a",), 1)],
)
def test_the_first_message_that_changed_is_named(then: tuple[str, ...], now: tuple[str, ...], place: int) -> None:
    one, other = request(*then), request(*now)
    (line,) = section_shown(change("messages", one, other), kept(one), kept(other))
    assert line == f"message {place} of the request is the first that is another one"


@pytest.mark.parametrize("section", ["system", "messages"])
def test_what_was_not_kept_is_not_shown(section: Any) -> None:
    then, now = request("a"), request("b", system="Other.")
    (line,) = section_shown(change(section, then, now), Sections(), kept(now))
    assert "not at hand" in line


def test_an_instruction_says_what_else_it_may_be() -> None:
    said = section_said(SectionChange(version=7, section="instruction", then="a", now="b"), 1)
    assert "pre_compact" in said


def test_messages_of_a_request_that_goes_on_are_not_kept() -> None:
    assert kept(replace(request("a"), continues="r1")).messages == {}


def test_sections_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "log.sections.json"
    write_sections(file, kept(request("a", "ü")))
    first = file.read_bytes()
    assert read_sections(file) == kept(request("a", "ü"))
    write_sections(file, read_sections(file))
    assert file.read_bytes() == first


def test_the_text_of_a_tool_that_is_none_is_not_taken_for_one() -> None:
    sections = kept(request("a", tools=[agent().tools[0].spec]))
    assert sections.tool(agent().tools[0].digest) is not None
    assert Sections(texts={"d": "no tool"}).tool("d") is None
