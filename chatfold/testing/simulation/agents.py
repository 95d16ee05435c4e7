"""Who answers in simulated chats: one agent with every kind of tool, and a model that a seed plays.

What it says is numbered, so that a text that is committed twice, cut in the middle or mixed up is found.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random
from typing import Final

from chatfold.testing.episodes import EPISODE
from chatfold.testing.simulation.profile import Profile
from chatfold.virtual.loop import HOST, WORLD, Host
from events.messages import Usage
from events.parts import CrashPolicy, OnExpiry
from generation.agents import Agent, Limits
from generation.context import ContextFile, StaticContext
from generation.errors import ClassifiedError, ProviderError
from generation.models import ModelConfig
from generation.naming import Titles
from generation.parts import EpisodeKey
from generation.prompt_types import ModelRequest, PromptCall, PromptResult
from generation.providers.contract import CallDelta, CallEnd, Finish, StreamPart, TextDelta, TextEnd, UsageSoFar
from generation.tools.contract import Tool, ToolContext, client_tool
from store.log import get_logger

_log: Final = get_logger("chatfold.testing.simulation")

_MODEL: Final = ModelConfig(provider="simulated", name="m", context_limit=4000)
_OVER: Final = 3500
"""Tokens that an answer reports where the chat is to be compacted."""

_PAUSE: Final = 1.5
"""Seconds between two words of a slow answer, at most."""

ERRORS: Final = (
    ClassifiedError(kind="overloaded", message="overloaded", retryable=True),
    ClassifiedError(kind="rate_limit", message="slow down", retryable=True, retry_after_us=700_000),
    ClassifiedError(kind="auth", message="wrong key"),
)


@dataclass(slots=True)
class Spoken:
    """What one model call said: for which attempt, in which process, and each word with its virtual time."""

    episode: EpisodeKey | None
    host: Host
    words: list[tuple[float, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(word for _, word in self.words)

    def is_old(self, now: float, seconds: float) -> bool:
        """Whether it has been going on for longer than so many seconds, as far as can be seen."""
        return bool(self.words) and self.words[0][0] < now - seconds and self.words[-1][0] > now - _PAUSE

    def owed(self, ended: float, seconds: float) -> str:
        """Return what was said so many seconds before the attempt ended, its last word, and any trouble on the way."""
        if not self.words:
            return ""
        first, last = self.words[0][0], self.words[-1][0]
        until = min([ended, last, *(at for at in self.host.troubles if at >= first - seconds)]) - seconds
        return "".join(word for at, word in self.words if at < until)


class Mood:
    """How models and tools behave in this run, and what they did.

    Attributes:
        calm: Faults are over: models answer and tools work.
        spoken: What each model call has said so far, in order.
        effects: How often each call of a tool had its effect, by tool and idempotency key.
        complaints: What must not have happened.
    """

    def __init__(self, profile: Profile, random: Random) -> None:
        self.profile = profile
        self.random = random
        self.calm = False
        self.spoken: list[Spoken] = []
        self.effects: Counter[tuple[str, str]] = Counter()
        self.complaints: list[str] = []

    def chance(self, share: float) -> bool:
        """Draw whether something bad happens."""
        return not self.calm and self.random.random() < share


MOOD: Final[ContextVar[Mood]] = ContextVar("chatfold_simulated_mood")
"""The run that a tool is called in: tools are declared once, and runs are many."""


async def _effect(name: str, context: ToolContext, crash: CrashPolicy) -> str:
    mood = MOOD.get()
    key = (name, context.idempotency_key)
    mood.effects[key] += 1
    if crash == "report" and mood.effects[key] > 1:
        mood.complaints.append(f"tool {name} ran {mood.effects[key]} times for call {context.idempotency_key}")
    await asyncio.sleep(mood.random.random() * (4.0 if mood.chance(mood.profile.tool_slow) else 0.1))
    if mood.chance(0.1):
        raise ValueError("the tool fails")
    return f"done {mood.effects[key]}"


async def _pay(context: ToolContext) -> str:
    """Do something once."""
    return await _effect("pay", context, "report")


async def _look(context: ToolContext) -> str:
    """Do something harmless."""
    return await _effect("look", context, "rerun")


async def _halt(context: ToolContext) -> str:
    """End the turn."""
    return await _effect("halt", context, "report")


async def _alone(context: ToolContext) -> str:
    """Be the only one."""
    return await _effect("alone", context, "report")


async def _grant(context: ToolContext) -> str:
    """Do what the client allows."""
    return await _effect("grant", context, "report")


def _count(context: ToolContext) -> str:
    """Do something once, in a thread."""
    mood = MOOD.get()
    key = ("count", context.idempotency_key)
    mood.effects[key] += 1
    if mood.effects[key] > 1:
        mood.complaints.append(f"tool count ran {mood.effects[key]} times for call {context.idempotency_key}")
    return "counted"


_ASK: Final = client_tool("ask", "Ask the client.", {"type": "object", "properties": {}})
_TOOLS: Final = (
    Tool.from_function(_pay, name="pay", timeout=2.0),
    Tool.from_function(_look, name="look", crash="rerun"),
    Tool.from_function(_halt, name="halt", stop_after=True),
    Tool.from_function(_alone, name="alone", exclusive=True),
    Tool.from_function(_grant, name="grant", needs_approval=True),
    Tool.from_function(_count, name="count"),
    _ASK,
)
_NAMES: Final = tuple(tool.name for tool in _TOOLS)


def _agent(name: str, on_expiry: OnExpiry, context: StaticContext | None = None, titles: Titles | None = None) -> Agent:
    limits = Limits(max_steps=5, max_model_attempts=4, action_timeout=4.0, on_expiry=on_expiry)
    return Agent(name=name, model=_MODEL, tools=_TOOLS, limits=limits, context=context, titles=titles)


AGENTS: Final[Mapping[str, Agent]] = {
    "plain": _agent("plain", "go_on"),
    "ending": _agent("ending", "end_turn", titles=Titles(cheap=[])),
    "informed": _agent("informed", "go_on", StaticContext([ContextFile(path="a.txt", text="known")])),
}


class SimulatedModel:
    """A provider whose answers are drawn."""

    name: Final = "simulated"

    def __init__(self, mood: Mood) -> None:
        self._mood = mood

    async def close(self) -> None:
        """Close nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Answer with numbered words and tool calls, fail, or break off. See the contract of providers.

        Raises:
            ProviderError: It was drawn so.
        """
        mood, random = self._mood, self._mood.random
        number = len(mood.spoken)
        mood.spoken.append(spoken := Spoken(EPISODE.get(), HOST.get() or WORLD))
        mood.complaints += _wrong_with(request)
        slow = mood.chance(mood.profile.model_slow)
        words = random.randint(1, 8 if slow else 3)
        breaks = random.randrange(words + 1) if mood.chance(mood.profile.model_fails) else None
        yield UsageSoFar(usage=Usage(input=10))
        for place in range(words):
            await asyncio.sleep(random.random() * (_PAUSE if slow else 0.1))
            if place == breaks:
                raise ProviderError(random.choice(ERRORS))
            word = f"w{number}.{place} "
            spoken.words.append((asyncio.get_running_loop().time(), word))
            yield TextDelta(block=0, text=word)
        if breaks == words:
            return  # cut: the last part never comes
        yield TextEnd(block=0)
        names = self._calls(request)
        for block, name in enumerate(names, 1):
            identity = f"call_{number}_{block}"
            yield CallDelta(block=block, text="", name=name, id=identity)
            yield CallEnd(block=block, id=identity, name=name, arguments="{}")
        full = mood.chance(0.05)
        reason = "tool_calls" if names else "stop"
        yield Finish(reason=reason, usage=Usage(input=_OVER if full else 10, output=words))  # type: ignore[arg-type]

    def _calls(self, request: ModelRequest) -> list[str]:
        mood = self._mood
        if mood.calm or request.tool_choice_none or mood.random.random() > mood.profile.tool_calls:
            return []
        return [mood.random.choice(_NAMES) for _ in range(mood.random.randint(1, 3))]


def _wrong_with(request: ModelRequest) -> list[str]:
    """Check what no prompt may have (rule 7 of history)."""
    found = []
    if request.messages[-1].role == "assistant":
        found.append("a prompt ends with an assistant message")
    calls = [part.id for message in request.messages for part in message.parts if isinstance(part, PromptCall)]
    results = [part.id for message in request.messages for part in message.parts if isinstance(part, PromptResult)]
    if calls != results and sorted(calls) != sorted(results):
        found.append(f"a prompt has calls {calls} and results {results}")
    return found
