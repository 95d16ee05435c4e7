"""What a worker's parts share: the journal, agents, providers, live parts, clock and settings."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from events.control import Control
from events.ids import ChatId, CommandId, WorkerId
from events.levels import readable_at
from events.records import Actor, Policy
from generation.actions.silence import SilenceWatch
from generation.agents import Agent
from generation.digest import digest_of
from generation.digests import OptionsDigests, tools_digest
from generation.errors import UnknownModel
from generation.flushing import Flusher, Leftovers, no_leftovers_read
from generation.foreign import contained
from generation.hooks.dispatch import NO_HOOKS, Hooks
from generation.observing import NOBODY, Observer
from generation.parts import PartBuffer
from generation.plans import Held
from generation.policy import policy_digest, policy_of
from generation.prompt_types import ModelRequest, ToolSpec
from generation.providers.contract import Provider
from generation.tools.execute import CallStarter, start_call
from generation.tools.registry import ToolSet
from store.append import CommandIdentity, Journal
from store.log import get_logger
from store.notes import WorkerNote
from store.schema import READER_LEVEL

_log: Final = get_logger(__name__)

MOST_KEPT: Final = 1024
"""Policies, and declarations of agents under them, that are kept to be used again."""


def boot_clock() -> float:
    """Return seconds since the machine started, its sleep included."""
    # Linux has one clock that counts sleep; of those of macOS this one does, and the one of time.monotonic does not.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC_RAW))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Times and limits of a worker, in seconds.

    Attributes:
        capacity: Chats that it runs at once.
        lease: How long its lease lasts without a heartbeat; it renews it three times in that time.
        poll: How often it looks for due chats where no hint came, and compares its chats with the store.
        grace: How long an interruption or a release waits for tools that run.
        first_part_timeout: How long a model may take to its first part.
        silence_timeout: How long a model may be silent after that.
        context_timeout: How long a context source may take to collect.
        model_retry_unit: What stands for one second in the table of waits before a failed model call is tried again.
        watch_loop: Whether a thread watches that the event loop turns.
        retry_initial, retry_cap: First and longest wait before a store that is away is tried again.
    """

    capacity: int = 100
    lease: float = 15.0
    poll: float = 1.0
    grace: float = 5.0
    first_part_timeout: float = 60.0
    silence_timeout: float = 600.0
    context_timeout: float = 60.0
    model_retry_unit: float = 1.0
    retry_initial: float = 0.1
    retry_cap: float = 5.0
    watch_loop: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What an agent says in each request, with the digests of these sections, its tools, and which are not active."""

    system: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    system_digest: str
    tools_digest: str
    tool_set: ToolSet
    inactive: frozenset[str]


@dataclass(slots=True, kw_only=True)
class Runtime:
    """The shared parts.

    Attributes:
        journal: Runs plans against the store.
        agents: Agents by name.
        provider: Gives the provider of a model, or of a provider's name.
        parts: Live parts of this process.
        now: Database time as this process estimates it, microseconds UTC.
        new_id: Gives ids that are never used twice.
        release: The release written into acquire events.
        settings: Times and limits.
        worker: The id of this start of the worker.
        lease_until: When that lease ends unless it is renewed, by ``boot``, counted from before the request for it.
        ready: Whether a runner may acquire a chat now.
        began: Told of each chat that a runner begins to run.
        boot: Seconds of a clock that goes on while the machine sleeps.
        put_back: Chats whose time has come although the database's clock, put back since, does not say so, with that
            time (``generation.timers``).
        flusher: Keeps what is streamed and not committed yet.
        silences: Looks after model calls and context sources that say nothing.
        observer: Is told of what happens.
        hooks: Are asked before and after what happens.
        policies: Gives policies instead of what the agents declare, as ``policy_for`` does: those that a log has.
        call_starter: Starts the calls of local tools.
        leftovers: Gives what is to be read and asked of a chat's dead holders (``generation.flushing``).
    """

    journal: Journal
    agents: Mapping[str, Agent]
    provider: Callable[[str], Provider]
    parts: PartBuffer
    now: Callable[[], int]
    new_id: Callable[[], str]
    release: str
    settings: WorkerSettings
    worker: WorkerId
    lease_until: float = math.inf
    ready: Callable[[ChatId, Control], bool] = lambda _chat, _control: True
    began: Callable[[ChatId, Control], None] = lambda _chat, _control: None
    boot: Callable[[], float] = boot_clock
    put_back: dict[ChatId, int] = field(default_factory=dict)
    flusher: Flusher = field(init=False)
    silences: SilenceWatch = field(default_factory=SilenceWatch)
    observer: Observer = NOBODY
    hooks: Hooks = NO_HOOKS
    policies: Callable[[Control, int], Held | None] | None = None
    call_starter: CallStarter = start_call
    leftovers: Callable[[ChatId], Leftovers] = no_leftovers_read
    _policies: dict[tuple[object, ...], Held] = field(default_factory=dict)
    _missing: dict[tuple[object, ...], None] = field(default_factory=dict)
    _declared: dict[tuple[str, str], Declared] = field(default_factory=dict)
    _options: OptionsDigests = field(default_factory=OptionsDigests)
    _actor: Actor | None = None

    def __post_init__(self) -> None:
        """Make what belongs to the store."""
        self.flusher = Flusher(self.journal.store)

    @property
    def observed(self) -> bool:
        """Whether anybody observes: what only observers want need not be found out else."""
        return self.observer is not NOBODY

    def lease_fresh(self) -> bool:
        """Whether the lease is in force as far as this process can know."""
        return self.boot() < self.lease_until

    def now_at(self, chat: ChatId) -> int:
        """Return the time by which events of a chat are recorded, microseconds UTC: not before its time has come."""
        now = self.now()
        return max(now, self.put_back.get(chat, now)) if self.put_back else now

    def policy_for(self, control: Control, level: int) -> Held | None:
        """Return the policy under which this worker decides for the chat; None where its agent is not here.

        Args:
            control: The chat's.
            level: Its release level: what releases of that level cannot read is left out.
        """
        if self.policies is not None:
            return self.policies(control, level)
        agent = self.agents.get(control.agent)
        if agent is None:
            return None
        chosen = control.active_tools
        active = None if chosen is None else tuple(tool.name for tool in agent.offered(chosen))
        if chosen and active is not None and len(active) < len(chosen):
            self._tell_missing(control, set(chosen) - set(active))
        key = (control.agent, control.model, control.effort, active, min(level, READER_LEVEL))
        held = self._policies.get(key)
        revision = _revision(agent)
        if held is None or held.policy.context_revision != revision:
            _make_room(self._policies)
            held = self._policies[key] = _held(agent, control, level, self.settings.model_retry_unit)
        return held

    def _tell_missing(self, control: Control, missing: set[str]) -> None:
        """Log once that a chat chose tools that its agent does not have, or not any more."""
        key = (control.chat, control.active_tools)
        if key not in self._missing:
            _make_room(self._missing)
            self._missing[key] = None
            _log.warning("active_tools_unknown", chat=control.chat, agent=control.agent, tools=sorted(missing))

    def declared(self, agent: Agent, policy: Policy, digest: str) -> Declared:
        """Return what an agent of this process says in each request under a policy, known by its digest.

        Of its tools these are the active ones alone.
        """
        known = self._declared.get((agent.name, digest))
        if known is None:
            active = tuple(tool.name for tool in policy.tools)
            system, tools = agent.system_texts, tuple(tool.spec for tool in agent.tools if tool.name in active)
            known = Declared(
                system=system,
                tools=tools,
                system_digest=digest_of(system),
                tools_digest=tools_digest(tools, agent.provider_tools),
                tool_set=ToolSet(agent.tools, active),
                inactive=agent.tool_names - frozenset(active),
            )
            _make_room(self._declared)
            self._declared[agent.name, digest] = known
        return known

    def options_digest(self, request: ModelRequest) -> str:
        """Return the digest of a request's options."""
        return self._options.of(request)

    def identity(self) -> CommandIdentity:
        """Return a fresh identity for a command of this worker."""
        return CommandIdentity(command=CommandId(self.new_id()), actor=self.actor)

    def note(self) -> WorkerNote:
        """Return what the worker says of itself to people who look why a chat does not move."""
        return WorkerNote(
            agents=tuple(self.agents),
            capacity=self.settings.capacity,
            release=self.release,
            reader_level=READER_LEVEL,
            process=f"{socket.gethostname()}:{os.getpid()}",
            lease=round(self.settings.lease * 1e6),
            tools={name: tuple(sorted(agent.tool_names)) for name, agent in self.agents.items()},
        )

    @property
    def actor(self) -> Actor:
        """The worker as the actor of events."""
        actor = self._actor
        if actor is None or actor.id != self.worker:
            actor = self._actor = Actor(kind="worker", id=self.worker)
        return actor


def _revision(agent: Agent) -> str | None:
    if agent.context is None:
        return None
    with contained():
        return agent.context.revision


def _make_room(known: dict[Any, Any]) -> None:
    """Forget what was made first where there is no room: chats choose models, efforts and tools as their users like."""
    if len(known) >= MOST_KEPT:
        del known[next(iter(known))]


def _held(agent: Agent, control: Control, level: int, retry_unit: float) -> Held:
    try:
        policy = policy_of(
            agent,
            model=control.model,
            effort=control.effort,
            active_tools=control.active_tools,
            retry_unit=retry_unit,
        )
    except UnknownModel:
        # The chat chose a model that no reference names: the policy has none, and rule D0 says so to the user.
        policy = Policy(agent=agent.name, revision=agent.revision, model=None)
    policy = readable_at(policy, level)
    return Held(policy=policy, digest=policy_digest(policy))
