"""The play: what came from outside is done again in the order of the log, and all else is let happen.

Between two groups of events everything comes to rest: a timer of virtual time fires only when nothing else is ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Final

from chatfold.rerunning.comparison import Comparison, Parted
from chatfold.rerunning.declarations import NOTHING_KEPT, Declarations, sections_known
from chatfold.rerunning.declared import policy_today
from chatfold.rerunning.filling import filled
from chatfold.rerunning.gate import MOST_MORE, Endless, bounded, salt
from chatfold.rerunning.inverse import command_of
from chatfold.rerunning.player import GRACE, Player, RecordedLeftovers
from chatfold.rerunning.redacted import legible
from chatfold.rerunning.script import Group, Script
from chatfold.rerunning.sections import Sections
from chatfold.rerunning.store import RerunStore
from chatstate.errors import Refusal
from events import vocabulary as v
from events.control import Control
from events.effects import Interrupting
from events.envelope import Recorded
from events.ids import ChatId
from events.levels import level_of_all
from events.parts import ToolResultPart
from events.records import Policy, ReleaseReason
from generation.agents import Agent
from generation.plans import Held, let_go, take
from generation.prompt_types import ModelRequest
from generation.tools.policy import ToolCall
from generation.tools.registry import ToolSet
from store.append import CommandIdentity, Journal, Outcome, Plan, PlanRun
from store.warm import WarmChats

_TICK: Final = 1e-6
"""Virtual seconds: too few for any timer of the engine, and so the moment when all is at rest."""


def _chat(first: v.Event) -> ChatId:
    if not isinstance(first, v.ChatCreated | v.ChatForked):
        raise TypeError("the log has no beginning")
    return ChatId(first.chat)


class Director:
    """Plays one log.

    Args:
        log: Its events, as they were recorded.
        agents: Today's agents by name.
        kept: What agents said then, as far as it was kept.
        redacted: Whether its contents are made up.
        keeps_texts: Whether what requests say is kept.
    """

    def __init__(
        self,
        log: list[Recorded],
        agents: Mapping[str, Agent],
        kept: Declarations = NOTHING_KEPT,
        *,
        redacted: bool = False,
        keeps_texts: bool = False,
    ) -> None:
        self.chat: Final = _chat(log[0].event)
        self.agents: Final = agents
        self.kept: Final = kept
        self.redacted: Final = redacted
        self.script: Final = Script([filled(each) for each in (legible(log) if redacted else log)])
        self.store: Final = RerunStore(self.now, level_of_all(log))
        known = sections_known(self.script.policies, kept)
        self.comparison: Final = Comparison(log, agents, known, redacted=redacted)
        self.warm: Final = WarmChats()
        self.today: Final = Sections()
        self._keeps_texts: Final = keeps_texts
        self._ends_at_rest: Final = log[-1].envelope.dest != "running"
        self._journal: Final = Journal(self.store, salt, warm=self.warm, told=self.appended)
        self._player: Player | None = None
        self._numbers: Final = count(1)
        self._target = 0
        """The version whose event closes the gate."""

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
                if self.comparison.at < group.last.version:
                    raise self.comparison.part("missing")
            await self._look_behind()

    def now(self) -> int:
        """Return the log's time: that of the event that is next, microseconds UTC."""
        return self.comparison.now

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
        """Take a request that was made."""
        if self._keeps_texts:
            self.today.take(request)

    def called(self, call: ToolCall, result: ToolResultPart | None, tools: ToolSet) -> None:
        """See whether today's tools take a call as those of then did."""
        self.comparison.start(call, result, tools)

    def appended(self, outcome: Outcome) -> None:
        """Compare what an append did with the log."""
        self.comparison.take(outcome.recorded)
        if self._player is not None and self._target <= self.comparison.at:
            self._player.gate.close()

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
                command = command_of(each.event, run.state)
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
        await self._let_through(player, group)

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
        await self._let_through(player, group)

    def _give_before_interruption(self, group: Group) -> None:
        """Let a result come that was being recorded already when the interruption came: it is recorded by itself."""
        later = self.script.behind(group)
        while later is not None and later.driver == "outside":
            later = self.script.behind(later)
        if self._player is not None and later is not None and len(later.results) == len(later.events):
            self._player.give(later.results)

    async def _let_through(self, player: Player, group: Group | None = None) -> None:
        """Let a worker append until the events of a group are there, or at all; it may wait for a grace to end."""
        self._target = self.comparison.at + 1 if group is None else group.last.version
        for seconds in (_TICK, _TICK, 3 * GRACE + (self.script.context_timeout or 0)):
            player.gate.open()
            await asyncio.sleep(seconds)
            if self.comparison.at >= self._target or self.comparison.parted is not None:
                break
        player.gate.close()

    async def _append(self, plan: Plan, identity: CommandIdentity) -> Outcome:
        most = len(self.script.log) + MOST_MORE
        try:
            return await self._journal.execute(self.chat, bounded(plan, most), identity, transcript=True, now=self.now)
        except Refusal as refusal:
            raise self.comparison.part("refused", f"{refusal.code}: {refusal.reason}") from refusal
        except Exception as error:  # whatever it is, it is what today's code does
            raise self._failed(error) from error

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
            raise self.comparison.part("missing", "nobody holds the chat")
        return self._player

    async def _rest(self) -> None:
        """Let everything come to rest, and stop where it parted."""
        await asyncio.sleep(_TICK)
        if self.comparison.parted is not None:
            raise Parted(self.comparison.parted)
        if self._player is not None and self._player.fault is not None:
            raise self._failed(self._player.fault)

    async def _look_behind(self) -> None:
        """See that nothing comes behind the last event, where the log ends with the chat at rest."""
        if self._player is not None and self._ends_at_rest:
            await self._let_through(self._player)
            await self._rest()

    def _failed(self, error: Exception) -> Parted:
        if isinstance(error, Endless):
            return self.comparison.stuck(error.recorded, str(error))
        return self.comparison.part("fault", f"{type(error).__name__}: {error}")
