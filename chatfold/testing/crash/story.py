"""What the chats of a crash test are about: an agent whose model does what the user's message asks for.

A message such as ``4: look act+look ask`` is a turn of three steps with calls of these tools, then an answer. The model
looks at nothing but its request, so whoever takes a chat over goes on with the same turn. What it says is in a ledger
before anybody gets it, with the time: of what it said some seconds before its worker died nothing may be lost.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final, Literal

from chatfold.testing.crash.ledger import Entry, Ledger, Said, now
from chatfold.testing.episodes import EPISODE
from events.parts import CrashPolicy
from generation.agents import Agent, Limits
from generation.parts import EpisodeKey
from generation.prompt_types import ModelRequest
from generation.providers.contract import StreamPart, TextDelta, UsageSoFar
from generation.providers.script import Cut, Say, Turn, UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool, ToolContext, client_tool

AGENT: Final = "crash-test"
PROVIDER: Final = "scripted"

REPORT: Final = frozenset({"act", "press", "pay"})
"""Tools that must not run twice: after a crash their call is reported to the model as of unknown outcome."""

RERUN: Final = frozenset({"look", "read"})
"""Tools that are run again after a crash."""

CLIENT: Final = "ask"
APPROVED: Final = "pay"

_STEPS: Final = ("look", "read", "act", "press", "act+look", "press+act+read", "look+look", "ask", "pay", "act+ask")
_MESSAGE: Final = re.compile(r"\d+:((?: [a-z+]+)*)")
_ACTION_TIMEOUT: Final = 1.5


SLOW: Final = "slow"
"""In a message: its first answer takes seconds, long enough for text to be old when its worker is killed."""

_QUICK_PAUSE: Final = 0.004
_SLOW_PAUSE: Final = 0.09
"""Seconds between two deltas."""

_LINE: Final = 0.03
"""Seconds of a stream that share a line of the ledger."""


def message(number: int, chance: random.Random, slow: float = 0.0) -> str:
    """Return a user's message: its number, and what it asks for; ``slow`` is the share of those answered slowly."""
    steps = [chance.choice(_STEPS) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
    extra = [each for each, share in (("long", 0.15), ("cut", 0.15), (SLOW, slow)) if chance.random() < share]
    return " ".join([f"{number}:", *steps, *extra])


class Storyteller:
    """The model.

    Args:
        chance: Whether a stream that may be cut is cut is drawn from it.
        said: The ledger of what it says; None: what it says is not noted.
        hurried: It is never slow.
    """

    name: Final = PROVIDER

    def __init__(self, chance: random.Random, said: Ledger | None = None, *, hurried: bool = False) -> None:
        self._chance = chance
        self._said = said
        self._hurried = hurried
        self._quick = ScriptedProvider(self._answer, delay=_QUICK_PAUSE)
        self._slow = ScriptedProvider(self._answer, delay=_SLOW_PAUSE)

    async def close(self) -> None:
        """Close nothing: there is no connection."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Answer, and note what is said; see the contract of providers."""
        slow = not self._hurried and not request.tool_choice_none and _is_slow(request)
        episode = EPISODE.get()
        scribe = _Scribe(episode, self._said) if episode is not None and self._said is not None else None
        async with aclosing((self._slow if slow else self._quick).stream(request)) as parts:
            async for part in parts:
                if scribe is not None:
                    scribe.hear(part)
                yield part

    def _answer(self, request: ModelRequest) -> Turn:
        if request.tool_choice_none:
            return turn("Much was said.")
        number, asked, done = _place(request)
        steps = [step for step in asked if step not in {"long", "cut", SLOW}]
        cut = [Cut()] if "cut" in asked and self._chance.random() < 0.4 else []
        long = "long" in asked or _is_slow(request)
        text = f"Step {done} of message {number}. " + "and so on " * (90 if long else 1)
        calls = [UseTool(name) for name in steps[done].split("+")] if done < len(steps) else []
        return turn(Say(text, chunk=24), *cut, *calls)


class _Scribe:
    """Writes down what one answer says; what was said in a moment shares a line with what ends it."""

    def __init__(self, episode: EpisodeKey, ledger: Ledger) -> None:
        self._episode = episode
        self._ledger = ledger
        self._text = ""
        self._written = 0.0

    def hear(self, part: StreamPart | UsageSoFar) -> None:
        """Take the next part, which the engine was not given yet."""
        delta, at = isinstance(part, TextDelta), time.time()
        if isinstance(part, TextDelta):
            self._text += part.text
        if self._text and (not delta or at - self._written > _LINE):
            chat, history_version, attempt = self._episode
            self._ledger.write(
                Said(
                    chat=chat,
                    history_version=history_version,
                    attempt=attempt,
                    process=os.getpid(),
                    at=at,
                    text=self._text,
                )
            )
            self._text, self._written = "", at


def _is_slow(request: ModelRequest) -> bool:
    _, asked, done = _place(request)
    return SLOW in asked and done == 0


def _place(request: ModelRequest) -> tuple[str, list[str], int]:
    """Return the newest message that asks for something, what it asks for, and how many answers followed it."""
    done = 0
    for each in reversed(request.messages):
        found = _MESSAGE.fullmatch(each.text) if each.role == "user" else None
        if found is not None:
            return each.text.partition(":")[0], found[1].split(), done
        done += each.role == "assistant"
    return "none", [], done


def agent(ledger: Ledger, chance: random.Random) -> Agent:
    """Return the agent, whose tools write into ``ledger``."""
    return Agent(
        name=AGENT,
        model=f"{PROVIDER}/storyteller",
        system="Do what the message asks for.",
        tools=list(_tools(ledger, chance)),
        limits=Limits(action_timeout=_ACTION_TIMEOUT, max_model_attempts=8),
    )


class _Run:
    """One run of a tool's function. It is in the ledger before it has any effect."""

    def __init__(self, ledger: Ledger, tool: str, context: ToolContext) -> None:
        self._ledger = ledger
        self._tool = tool
        self._context = context
        self._name = uuid.uuid4().hex
        self._write("began")

    def end(self) -> str:
        """Write that the effect is done; returns the name of the run, which is the tool's result."""
        self._write("ended")
        return self._name

    def _write(self, what: Literal["began", "ended"]) -> None:
        context = self._context
        self._ledger.write(
            Entry(
                what=what,
                tool=self._tool,
                key=context.idempotency_key,
                chat=context.chat,
                epoch=context.epoch,
                attempt=context.attempt,
                run=self._name,
                process=os.getpid(),
                at=now(),
            )
        )


def _tools(ledger: Ledger, chance: random.Random) -> Iterator[Tool]:
    yield from (_waiting(name, ledger, chance) for name in ("act", "look", APPROVED))
    yield from (_blocking(name, ledger, chance) for name in ("press", "read"))
    yield client_tool(CLIENT, "Ask the user.", {"type": "object", "properties": {}})


def _waiting(name: str, ledger: Ledger, chance: random.Random) -> Tool:
    async def work(context: ToolContext) -> str:
        """Do something that takes a while."""
        run = _Run(ledger, name, context)
        await asyncio.sleep(chance.expovariate(30))
        return run.end()

    return Tool.from_function(work, name=name, crash=_crash(name), needs_approval=name == APPROVED)


def _blocking(name: str, ledger: Ledger, chance: random.Random) -> Tool:
    def work(context: ToolContext) -> str:
        """Do something that takes a while, in a thread."""
        run = _Run(ledger, name, context)
        time.sleep(chance.expovariate(20))
        return run.end()

    return Tool.from_function(work, name=name, crash=_crash(name))


def _crash(name: str) -> CrashPolicy:
    return "report" if name in REPORT else "rerun"
