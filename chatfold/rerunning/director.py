"""The play: what came from outside is done again in the order of the log, and all else is let happen, and compared.

Between two groups of events everything comes to rest: a timer of virtual time fires only when nothing else is ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Final, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import Struct

from chatfold.rerunning.compare import differences
from chatfold.rerunning.declared import policy_today
from chatfold.rerunning.filling import filled, lacking
from chatfold.rerunning.gate import MOST_MORE, Endless, bounded, salt
from chatfold.rerunning.inverse import command_of
from chatfold.rerunning.player import GRACE, Player, RecordedLeftovers
from chatfold.rerunning.script import Group, Script
from chatfold.rerunning.sections import DECLARED, Section, SectionChange, Sections, section_changes
from chatfold.rerunning.store import RerunStore
from chatstate.errors import Refusal
from events import vocabulary as v
from events.control import Control
from events.diff import Change
from events.effects import Interrupting
from events.envelope import Recorded
from events.errors import EventsError
from events.ids import ChatId
from events.levels import level_of_all
from events.records import Policy, ReleaseReason
from generation.agents import Agent
from generation.plans import Held, let_go, take
from generation.prompt_types import ModelRequest
from store.append import CommandIdentity, Journal, Outcome, Plan, PlanRun
from store.warm import WarmChats

_TICK: Final = 1e-6
"""Virtual seconds: too few for any timer of the engine, and so the moment when all is at rest."""

DifferenceKind: TypeAlias = Literal["event", "extra", "missing", "refused", "fault", "stuck"]


class Difference(Struct, frozen=True, kw_only=True):
    """Where a rerun parts from its log.

    Attributes:
        version: The version.
        kind: ``event``: another one came, or it says something else; ``extra``: one came beyond the log's end;
            ``missing``: none came; ``refused``: what was done from outside is not taken any more; ``fault``: the engine
            failed; ``stuck``: it did not come to rest.
        want: What the log has there; None beyond its end.
        got: What came; None where nothing did.
        changes: What differs between the two.
        said: What else is to be said of it.
    """

    version: int
    kind: DifferenceKind
    want: Recorded | None = None
    got: Recorded | None = None
    changes: tuple[Change, ...] = ()
    said: str = ""

    @property
    def rule(self) -> str | None:
        """The rule by which the log's event was decided, or else the one that came; None where there was none."""
        for each in (self.want, self.got):
            decision = getattr(each.event, "decision", None) if each is not None else None
            if decision is not None:
                return str(decision.rule)
        return None


class Parted(Exception):
    """The rerun has parted from its log.

    Attributes:
        difference: Where, and how.
    """

    def __init__(self, difference: Difference) -> None:
        super().__init__(f"version {difference.version}: {difference.kind}")
        self.difference = difference


def _chat(first: v.Event) -> ChatId:
    if not isinstance(first, v.ChatCreated | v.ChatForked):
        raise TypeError("the log has no beginning")
    return ChatId(first.chat)


class Director:
    """Plays one log.

    Args:
        log: Its events, as they were recorded.
        agents: Today's agents by name.
    """

    def __init__(self, log: list[Recorded], agents: Mapping[str, Agent]) -> None:
        self.chat: Final = _chat(log[0].event)
        self.agents: Final = agents
        self.script: Final = Script([filled(each) for each in log])
        self.store: Final = RerunStore(self.now, level_of_all(log))
        self.at = 0
        self._log: Final = log
        self.warm: Final = WarmChats()
        self._journal: Final = Journal(self.store, salt, warm=self.warm, told=self.appended)
        self._player: Player | None = None
        self._numbers: Final = count(1)
        self._parted: Difference | None = None
        self._agent = ""
        self._kind = ""
        self.today: Final = Sections()
        self.sections: Final[list[SectionChange]] = []
        self.lacks_from: Final = next((each.version for each in log if any(lacking([each]))), None)

    @property
    def next(self) -> Recorded | None:
        """The event that is to come out next; None behind the last."""
        return self._log[self.at] if self.at < len(self._log) else None

    async def play(self) -> None:
        """Play it to its end.

        Raises:
            Parted: At the first difference.
        """
        async with self.store:
            for group in self.script.groups:
                await self._rest()
                await self._drive(group)
                await self._rest()
                if self.at < group.events[-1].version:
                    self._part("missing")
            await self._look_behind()

    def now(self) -> int:
        """Return the log's time: that of the event that is next, microseconds UTC."""
        return self._log[min(self.at, len(self._log) - 1)].envelope.recorded_at

    def new_id(self) -> str:
        """Return the id of a worker's command: none that the log has."""
        return f"rerun {next(self._numbers)}"

    def held(self, control: Control, level: int) -> Held | None:
        """Return the policy that was held at a moment; None where the agent was not there."""
        digest = self.script.policy(control.version)
        if digest is None:
            return None
        policy = self.script.policies.get(digest)
        if policy is None:  # nothing is decided under it
            return Held(policy=Policy(agent=control.agent, revision="", model=None), digest=digest)
        return Held(policy=policy_today(self.agents, control, policy, level), digest=digest)

    def asked(self, request: ModelRequest) -> None:
        """Take a request that was made: what it says is kept where agents are at hand."""
        if self.agents:
            self.today.take(request)

    def appended(self, outcome: Outcome) -> None:
        """Compare what an append did with the log, as far as they go together."""
        for recorded in outcome.recorded:
            if self._parted is not None:
                return
            self._compare(recorded)

    def _compare(self, got: Recorded) -> None:
        want = self.next
        if want is None:
            self._parted = Difference(version=got.version, kind="extra", got=got)
            return
        group = self.script.group(want.version)
        split = isinstance(group.first.event, v.ToolResultRecorded)
        found = differences(want, got, declared=bool(self.agents), split=split)
        summary = self._kind == "compact"
        self.sections.extend(section_changes(want, got, self._compared(want), summary=summary))
        if isinstance(want.event, v.AttemptStarted):
            self._kind = want.event.kind
        if found:
            self._parted = Difference(version=want.version, kind="event", want=want, got=got, changes=found)
            return
        self.at += 1
        if self._player is not None and self.at >= group.events[-1].version:
            self._player.gate.close()

    def _compared(self, want: Recorded) -> frozenset[Section]:
        """Return the sections that can be compared at an event."""
        whole = self.lacks_from is None or want.version <= self.lacks_from
        sections: set[Section] = {"messages", "instruction"} if whole else set()
        if self._agent_of(want) in self.agents:
            sections |= {*DECLARED, "policy"}
        return frozenset(sections)

    def _agent_of(self, want: Recorded) -> str:
        if isinstance(want.event, v.PolicyRecorded):
            self._agent = want.event.policy.agent
        return self._agent

    async def _drive(self, group: Group) -> None:
        match group.driver:
            case "outside":
                await self._from_outside(group)
            case "acquire":
                await self._acquire(group)
            case "stray":
                await self._let_go(group)
            case "holder":
                await self._hold(group)

    async def _from_outside(self, group: Group) -> None:
        """Do what users, clients, timers and keepers did; a worker of the same process may take the chat with it."""
        first, event = group.first, group.first.event
        if isinstance(event, Interrupting) and event.epoch is not None:
            await self._lose_holder()
        elif isinstance(event, Interrupting):
            self._give_before_interruption(group)
            await self._rest()
        if isinstance(event, v.ChatAdopted):
            await self._lose_holder()
            self.store.import_as_foreign(self.chat)
            self.warm.drop(self.chat)
        acquired = group.acquired
        player = None if acquired is None else await self._new_player(acquired, group.stop)

        def plan(run: PlanRun) -> None:
            for each in group.events:
                if isinstance(each.event, v.Acquired) and player is not None:
                    take(run, each.event.worker, each.event.release, player.hold_at)
                    return
                command = command_of(each.event, run.state.control)
                if command is None:
                    return
                run.do(command, each.envelope.actor)

        outcome = await self._append(plan, CommandIdentity(command=first.envelope.command, actor=first.envelope.actor))
        if player is not None:
            player.began(outcome)
            player.begin(outcome.chat)
        elif self._player is not None:
            self._player.runner.hint(outcome.chat.header.version)

    async def _acquire(self, group: Group) -> None:
        acquired = group.acquired
        if acquired is None:
            raise TypeError("no acquisition")
        await self._lose_holder()
        player = await self._new_player(acquired, group.stop)
        player.begin()
        await self._let_through(player)

    async def _let_go(self, group: Group) -> None:
        """Let a chat go whose runner is gone, as the worker does that finds it; where it holds it still, it goes on."""
        gone = self._need_player()
        gone.lose()
        died = group.released is None or group.released.reason == "fault"
        left = RecordedLeftovers(self.script)

        def plan(run: PlanRun) -> None:
            let_go(run, gone.hold_at(run.state.control.epoch), left.of, died=died and not group.goes_on)

        identity = CommandIdentity(command=group.first.envelope.command, actor=gone.runtime.actor)
        outcome = await self._append(plan, identity)
        if group.goes_on:
            self._player = Player(self, gone.runtime.worker, gone.runtime.release)
            self._player.begin(outcome.chat)

    async def _hold(self, group: Group) -> None:
        """Let the holder do what it did."""
        player = self._need_player()
        player.gate.let_go()
        results = group.results
        behind = [each.event for each in group.events[len(results) :]]
        # What came to its end is told before the worker is asked to stop; else it is cut by that.
        ends = any(not isinstance(event, v.Released) for event in behind)
        if group.stop is not None and not ends:
            player.runner.stop(group.stop)
            await self._rest()
        player.give(results, *behind)
        await self._rest()
        if group.stop is not None:
            player.runner.stop(group.stop)
        await self._let_through(player)

    def _give_before_interruption(self, group: Group) -> None:
        """Let a result come that was being recorded already when the interruption came: it is recorded by itself."""
        later = self.script.behind(group)
        if self._player is not None and later is not None and len(later.results) == len(later.events):
            self._player.give(later.results)

    async def _let_through(self, player: Player) -> None:
        before = self.at
        for seconds in (_TICK, _TICK, 3 * GRACE + (self.script.context_timeout or 0)):
            player.gate.open()
            await asyncio.sleep(seconds)
            if self.at > before or self._parted is not None:
                break
        player.gate.close()
        if player.fault is not None and self._parted is None:
            self._fail(player.fault)

    async def _append(self, plan: Plan, identity: CommandIdentity) -> Outcome:
        most = len(self._log) + MOST_MORE
        try:
            return await self._journal.execute(self.chat, bounded(plan, most), identity, transcript=True, now=self.now)
        except Refusal as refusal:
            self._part("refused", f"{refusal.code}: {refusal.reason}")
        except (EventsError, Endless, ValueError, TypeError) as error:
            self._fail(error)

    async def _new_player(self, acquired: v.Acquired, stop: ReleaseReason | None) -> Player:
        await self.store.begins(acquired.worker)
        self._player = Player(self, acquired.worker, acquired.release, stop)
        return self._player

    async def _lose_holder(self) -> None:
        holder = await self.store.holder(self.chat)
        if holder is None:
            return
        await self.store.forget_worker(holder)
        if self._player is not None:
            self._player.lose()
            await self._rest()

    def _need_player(self) -> Player:
        if self._player is None:
            self._part("missing", "nobody holds the chat")
        return self._player

    async def _rest(self) -> None:
        """Let everything come to rest, and stop where it parted."""
        await asyncio.sleep(_TICK)
        if self._parted is not None:
            raise Parted(self._parted)
        if self._player is not None and self._player.fault is not None:
            self._fail(self._player.fault)

    async def _look_behind(self) -> None:
        """See that nothing comes behind the last event, where the log ends with the chat at rest."""
        if self._player is not None and self._log[-1].envelope.dest != "running":
            await self._let_through(self._player)
            await self._rest()

    def _part(self, kind: DifferenceKind, said: str = "") -> NoReturn:
        if self._parted is not None:
            raise Parted(self._parted)
        raise Parted(Difference(version=self.at + 1, kind=kind, want=self.next, said=said))

    def _fail(self, error: Exception) -> NoReturn:
        if not isinstance(error, Endless):
            self._part("fault", f"{type(error).__name__}: {error}")
        for recorded in error.recorded:
            self._compare(recorded)
            if self._parted is not None:
                raise Parted(msgspec.structs.replace(self._parted, kind="stuck", said=str(error)))
        self._part("stuck", str(error))
