"""Canonical text: the same for the same behaviour, other for another one, and changes of it told in words."""

import asyncio
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from chatfold import Agent, Engine, Limits, ModelConfig, Settings, tool
from chatfold.testing import (
    ClassifiedError,
    Fail,
    ScriptedProvider,
    Turn,
    UseTool,
    VirtualTime,
    canonical_text,
    explain_change,
    turn,
)
from chatfold.testing.canonical_fields import KINDS, Kept
from events.envelope import Recorded
from events.errors import InvalidValue
from events.vocabulary import TurnFinished


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


AGENT: Final = Agent(name="sums", model="scripted", tools=[add])
SCRIPT: Final[Sequence[str | Turn]] = [turn(UseTool("add", {"a": 2, "b": 3})), "It is\n  five."]


async def talk(engine: Engine) -> Sequence[Recorded]:
    chat = (await engine.create_chat("sums", "What is 2 + 3?")).chat
    await engine.settled(chat)
    return await engine.events(chat)


def talked(script: Sequence[str | Turn] = SCRIPT, store: str = "memory://") -> Sequence[Recorded]:
    async def run() -> Sequence[Recorded]:
        settings = Settings(model_retry_unit=0.001)
        model = ScriptedProvider(list(script))
        async with Engine(store, [AGENT], providers={"scripted": model}, settings=settings) as engine:
            return await talk(engine)

    return asyncio.run(run())


REQUEST: Final = (
    'request: system="T1PNoYwrqgwDVLtfmj7L5Q" tools="nYODLH4LWwslK1-pb84jgg" options="pbhOaLuN3jYKeIKDX9Q5_g"'
)
WANTED: Final = f"""\
== log
   1 chat_created             N -> P0    user  agent="sums"
      [1.0] user
      text | What is 2 + 3?
   2 acquired                 P0 -> R0   worker  epoch=1
   3 policy_recorded          R0         worker
      agent sums: action_on_expiry="go_on" action_timeout_us=300000000 max_model_attempts=26 max_steps=1200 \
model.compaction_threshold=70 model.name="friendly" model.provider="scripted" revision="{AGENT.revision}"
      tool add: crash="report" runner="local" schema="{add.digest}"
   4 attempt_started          R0         worker  attempt=1 kind="generate"
      D11 generate: attempt=1 last="user" max_steps=1200
   5 step_committed           R0         worker  attempt=1
      [5.0] assistant
      tool_call: name="add" runner="local"
      arguments | {{"a":2,"b":3}}
      step: provider="scripted" model="friendly" finish_reason="tool_calls"
      {REQUEST}
   6 attempt_started          R0         worker  attempt=1 kind="tools" calls=["5.0.0"]
      D1 run_tools: local=1 recorded=0
   7 tool_result_recorded     R0         worker  attempt=1
      tool_result: call="5.0.0"
      output | 5
   8 step_committed           R0         worker  attempt=1
      answer: call="5.0.0"
   9 attempt_started          R0         worker  attempt=1 kind="generate"
      D11 generate: attempt=1 last="tool" max_steps=1200 steps=1
  10 step_committed           R0         worker  attempt=1
      [10.0] assistant
      text | It is
           |   five.
      step: provider="scripted" model="friendly" finish_reason="stop"
      {REQUEST}
  11 turn_finished            R0 -> W    worker  cause="complete"
      D6 finish(complete): last="assistant"
== transcript
[1.0] user
[5.0] assistant
[8.0] tool
[10.0] assistant
== at the end
waiting W
"""


def test_it_is_what_a_person_can_review() -> None:
    assert canonical_text(talked()) == WANTED


def test_the_same_behaviour_is_the_same_text_on_any_store(sqlite_url: str) -> None:
    assert canonical_text(talked(store=sqlite_url)) == canonical_text(talked())


@pytest.mark.parametrize("keep", KINDS)
def test_what_is_kept_is_in_the_text(keep: Kept) -> None:
    time = VirtualTime(1)

    async def run() -> Sequence[Recorded]:
        async with time.engine([AGENT], providers={"scripted": ScriptedProvider(list(SCRIPT))}) as engine:
            return await talk(engine)

    text = canonical_text(time.run(run), keep=[keep])
    said = {"ids": 'actor="', "times": 'at="+0:00:00', "usage": "tokens input="}
    assert [kind for kind in KINDS if said[kind] in text] == [keep]
    if keep == "usage":
        assert "context_tokens=" in text


def test_nothing_else_can_be_kept() -> None:
    for wrong in (["time"], "times and ids"):
        with pytest.raises(InvalidValue, match=r"\$\.keep: .* ids, times, usage[;,] not"):
            canonical_text([], keep=wrong)  # type: ignore[arg-type]


def changed(script: Sequence[str | Turn]) -> str:
    return explain_change(WANTED, canonical_text(talked(script)))[0]


DOWN: Final = ClassifiedError(kind="auth", message="No.")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (["Five."], "decision at version 6 changed from D1 run_tools to D6 finish(complete)"),
        ([turn(Fail(DOWN))], "version 5 changed from step_committed to turn_failed"),
        ([SCRIPT[0], "Six."], r'text at version 10 changed: text "It is\n  five." -> "Six."'),
    ],
)
def test_the_first_change_is_told(script: Sequence[str | Turn], said: str) -> None:
    assert changed(script) == said


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (
            "D6 finish(complete)",
            "D10 compact(automatic)",
            "decision at version 11 changed from D6 finish(complete) to D10 compact(automatic)",
        ),
        ("R0 -> W ", "R0 -> E0", "turn_finished at version 11 leads R0 -> E0, and led R0 -> W"),
        ('last="assistant"', 'last="user"', 'decision at version 11 read last "assistant" -> "user"'),
        (" steps=1", "", "decision at version 9 read steps 1 -> none"),
        (" steps=1", " steps=1 refresh=true", "decision at version 9 read refresh false -> true"),
        ('="complete"', '="max_steps"', 'turn_finished at version 11 changed: cause "complete" -> "max_steps"'),
        ("text | What is", "text | What was", 'text at version 1 changed: text "What is 2 + 3?" -> "What was 2 + 3?"'),
        ("      answer:", "      queried:", "answer is no longer told at version 8"),
        (
            "[8.0] tool\n",
            "[8.0] tool\n      text | More.\n",
            "all transitions and decisions are as they were; the transcript changed, first at [8.0]",
        ),
        ("waiting W", "waiting XW", "all transitions and decisions are as they were; where the chat stands changed"),
    ],
)
def test_each_kind_of_change_has_its_sentence(was: str, now: str, said: str) -> None:
    assert explain_change(WANTED, WANTED.replace(was, now))[0] == said


def talked_with(agent: Agent, script: Sequence[str | Turn] = SCRIPT) -> str:
    async def run() -> Sequence[Recorded]:
        model = ScriptedProvider(list(script))
        async with Engine("memory://", [agent], providers={"scripted": model}) as engine:
            return await talk(engine)

    return canonical_text(asyncio.run(run()))


@tool(name="add")
def other_words(a: int, b: int) -> int:
    """Add numbers."""
    return a + b


@tool(name="add")
def other_arguments(first: int = 2, second: int = 3, a: int = 0, b: int = 0) -> int:
    """Add two numbers."""
    return first + second


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


OF_TOOL: Final = "declaration of tool add at version 3 changed: "
OF_AGENT: Final = "declaration of agent sums at version 3 changed: "
CHOOSING: Final = dataclasses.replace(AGENT, models=["scripted/other"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"system": "Be brief."}, [f"{OF_AGENT}its instruction (system)"]),
        ({"tools": [other_words]}, [f"{OF_TOOL}its description or arguments (schema)"]),
        ({"tools": [other_arguments]}, [f"{OF_TOOL}its description or arguments (schema)"]),
        (
            {"tools": [dataclasses.replace(add, crash="rerun")]},
            [f'{OF_TOOL}crash "report" -> "rerun"', 'tool_call at version 5 changed: crash none -> "rerun"'],
        ),
        ({"tools": [dataclasses.replace(add, timeout=9)]}, [f"{OF_TOOL}timeout_us none -> 9000000"]),
        (
            {"tools": [dataclasses.replace(add, exclusive=True)]},
            [
                f"{OF_TOOL}exclusive false -> true",
                "decision at version 6 read exclusive none -> 1",
                "tool_call at version 5 changed: exclusive false -> true",
            ],
        ),
        ({"tools": [add, multiply]}, ["tool multiply is now declared at version 3"]),
        (
            {"model": ModelConfig(provider="scripted", name="other")},
            [f'{OF_AGENT}model.name "friendly" -> "other"', 'step at version 5 changed: model "friendly" -> "other"'],
        ),
        ({"limits": Limits(max_model_attempts=3)}, [f"{OF_AGENT}max_model_attempts 26 -> 3"]),
        ({"models": ["scripted/other"]}, [f'{OF_AGENT}revision "{AGENT.revision}" -> "{CHOOSING.revision}"']),
    ],
)
def test_what_is_declared_otherwise_is_named(changes: Mapping[str, Any], said: Sequence[str]) -> None:
    lines = explain_change(WANTED, talked_with(dataclasses.replace(AGENT, **changes)))
    assert lines[: lines.index("")] == said


def test_what_happened_otherwise_comes_first_then_what_it_follows_from() -> None:
    few = talked_with(dataclasses.replace(AGENT, limits=Limits(max_steps=1)))
    assert explain_change(WANTED, few)[:4] == [
        "decision at version 9 changed from D11 generate to D7 finish(max_steps)",
        f"{OF_AGENT}max_steps 1200 -> 1",
        "decision at version 4 read max_steps 1200 -> 1",
        "",
    ]


def test_an_end_that_comes_earlier_or_later_is_told() -> None:
    events = list(talked())
    assert isinstance(events[-1].event, TurnFinished)
    shorter = canonical_text(events[:-1])
    assert explain_change(WANTED, shorter)[0] == (
        "the log ends before version 11, where turn_finished (D6 finish(complete)) followed"
    )
    assert explain_change(shorter, WANTED)[0] == (
        "the log goes on at version 11 with turn_finished (D6 finish(complete)), where it ended"
    )


def test_a_long_difference_is_cut() -> None:
    lines = explain_change(WANTED, WANTED.replace("worker", "somebody").replace("== log", "== log\n" + "\n" * 50))
    assert lines[-1].startswith("... and ")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_cannot_look_like_the_form_itself(said: str) -> None:
    """What a model says changes its own lines alone, and comes back from a file as it was."""
    events = list(_BASE)
    step = events[9].event
    message = step.added[0]  # type: ignore[union-attr]
    part = structs.replace(message.parts[0], text=type(message.parts[0].text)(said))  # type: ignore[union-attr]
    added = structs.replace(message, parts=(part,))
    events[9] = structs.replace(events[9], event=structs.replace(step, added=(added,)))
    text = canonical_text(events)
    assert unmarked(text) == unmarked(WANTED)
    assert text.encode().decode().splitlines() == text.split("\n")[:-1]


def unmarked(text: str) -> Sequence[str]:
    return [line for line in text.split("\n") if not re.match(r" {6}(text)? *\|", line)]


_BASE: Final = talked()
