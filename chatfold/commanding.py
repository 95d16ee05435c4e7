"""How the engine appends a command: its identity, the plan, and the worker of this process that may take the chat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeAlias

from msgspec.structs import replace

from chatfold.checks import checked_chat, checked_command_id, checked_id, checked_model
from chatfold.inputs import fingerprint
from chatfold.providers import ProviderPool
from chatfold.receipts import Receipt, receipt
from chatfold.refusals import Refusals
from chatstate import commands as c
from chatstate.errors import Refusal
from events.control import Control
from events.ids import ChatId, CommandId
from events.records import Actor
from events.vocabulary import Acquired
from generation.errors import UnknownAgent, UnknownModel
from generation.flushing import Leftovers, with_leftovers
from generation.runtime import Runtime
from generation.worker import Claim, Worker
from store.append import CommandIdentity, Outcome, PlanRun
from store.contract import LoadedHeader
from store.failpoints import reach
from store.loading import LoadedChat, must_be_there

Commands: TypeAlias = Callable[[PlanRun], Sequence[c.AnyCommand]]


class Commanding:
    """What the engine's commands share. ``Engine`` is one; it is not used by itself."""

    runtime: Runtime
    worker: Worker | None
    queue_limit: int
    providers: ProviderPool
    refusals: Refusals

    async def _header_of(self, what: str, chat: ChatId) -> LoadedHeader:
        """Return the header of a chat, as it was read, for ``what``, which is asked of chats that are there.

        Raises:
            ChatNotFound: It is not.
        """
        return must_be_there(await self.runtime.journal.store.load_header(chat), what, chat)

    async def _load(self, what: str, chat: ChatId) -> LoadedChat:
        """Return a chat with its transcript for ``what``, which is asked of chats that are there.

        Raises:
            ChatNotFound: It is not.
        """
        return must_be_there(await self.runtime.journal.load(chat, transcript=True), what, chat)

    def _check_agent(self, agent: str) -> str:
        # An engine without agents serves those of other processes: it cannot know them.
        checked_id(agent, "$.agent")
        if self.runtime.agents and agent not in self.runtime.agents:
            raise UnknownAgent(agent, tuple(self.runtime.agents))
        return agent

    def _check_model(self, reference: str | None) -> str | None:
        # Providers are known where agents are: an engine without agents serves other processes, which have their own.
        whole = checked_model(reference)
        if whole is not None and self.runtime.agents and not self.providers.knows(whole.partition("/")[0]):
            raise UnknownModel(whole, f"there is no such provider; known here: {', '.join(self.providers.names())}")
        return whole

    async def _command(
        self,
        chat: str,
        command: c.AnyCommand,
        command_id: str | None,
        *,
        transcript: bool = False,
        who: str | None = None,
    ) -> Receipt:
        given = (command.trigger, command)
        return await self._commands(chat, lambda _: (command,), command_id, given, transcript=transcript, who=who)

    async def _commands(
        self,
        chat: str,
        commands: Commands,
        command_id: str | None,
        given: tuple[object, ...],
        *,
        transcript: bool = False,
        who: str | None = None,
    ) -> Receipt:
        chosen, chat_id = checked_command_id(command_id), checked_chat(chat)
        identity = CommandIdentity(
            command=chosen if chosen is not None else CommandId(self.runtime.new_id()),
            actor=Actor(kind="user", id=who),
            fingerprint=fingerprint(*given) if chosen is not None else None,
        )
        worker = self.worker
        with worker.taking(chat_id) if worker is not None else nullcontext() as claim:
            try:
                outcome = await self._execute(chat_id, commands, identity, claim, transcript=transcript)
            except Refusal as refusal:
                self.refusals.note(chat_id, refusal, identity.actor, self.runtime.now())
                raise
            reach("command.done")
            if worker is not None and not outcome.repeated and _acquires(outcome):
                worker.adopt(outcome.chat)
        if worker is not None:
            worker.notice(outcome.chat)
            if outcome.repeated:
                # The first try may have taken the chat without its caller's or this worker's knowing.
                worker.suspect(chat_id)
        return await receipt(self.runtime.journal.store, outcome)

    async def _execute(
        self, chat: ChatId, commands: Commands, identity: CommandIdentity, claim: Claim | None, *, transcript: bool
    ) -> Outcome:
        worker, journal = self.worker, self.runtime.journal

        def plan(run: PlanRun, leftovers: Leftovers) -> None:
            before = run.state.control.status if run.state.control.exists else "waiting"
            for command in commands(run):
                run.do(_with_leftover(command, run.state.control, leftovers))
            control = run.state.control
            owed_here = control.status == "pending" and before != "pending" and control.not_before is None
            if (
                worker is None
                or claim is None
                or run.newer
                or not owed_here
                or self.runtime.policy_for(control, run.level) is None
            ):
                return
            if worker.may_take(chat):
                worker.take(claim, run)

        # The clock is set by the heartbeat: a process without a worker knows the database's time only by reading.
        estimate = self.runtime.now if worker is not None else None
        return await with_leftovers(
            lambda: journal.store.read_partials(chat),
            lambda left: journal.execute(
                chat, lambda run: plan(run, left), identity, transcript=transcript, estimate=estimate
            ),
            self.runtime.leftovers(chat),
        )


def _with_leftover(command: c.AnyCommand, control: Control, leftovers: Leftovers) -> c.AnyCommand:
    """Add to a command that ends the turn of a dead holder what came of its answer."""
    if not isinstance(command, c.Interrupt | c.SendInterrupting | c.PromoteQueued) or not command.lease_dead:
        return command
    left = leftovers.of(control)
    return replace(command, partial=left.message, report=left.beside)


def _acquires(outcome: Outcome) -> bool:
    """Whether the append took the chat: only then is it known that nothing that it started is under way."""
    return any(isinstance(recorded.event, Acquired) for recorded in outcome.recorded)
