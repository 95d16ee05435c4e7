"""Random lives of chats in a store: which of the commands that the machine takes is given next follows from numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from chatstate import commands as c
from chatstate.classify import classify
from chatstate.errors import Refusal
from chatstate.fork import plan_imports
from chatstate.table import TABLE
from events.ids import ChatId, CommandId
from events.records import Actor
from store.append import CommandIdentity, Journal, PlanRun
from store.contract import Store
from store.loading import LoadedChat
from tests.chatstate import build as b
from tests.chatstate.chat import START
from tests.chatstate.space import every_command

CHAT = ChatId("chat")
USER = Actor(kind="user", id="ann")
HOUR = 3_600_000_000
ASIDE = (
    c.SetTitle,
    c.SetLabels,
    c.SetModel,
    c.SetAgent,
    c.SetActiveTools,
    c.SetPinned,
    c.SetRetention,
    c.ReorderQueue,
    c.Erase,
)
"""Commands that do little to a history, and one that does all too much; drawn less often than the others."""
ENDING = (c.EditMessage, c.SendInterrupting, c.Interrupt, c.Archive, c.PromoteQueued, c.Release, c.FailTurn)
"""Commands that end a turn before much came of it; drawn less often too."""


class Life:
    """A chat that is driven by numbers. ``chat`` is it as its writer knows it, which has never read its transcript."""

    def __init__(self, store: Store, chat: ChatId = CHAT) -> None:
        self.store = store
        self.id = chat
        self.chat: LoadedChat | None = None
        self.now = START
        self._journal = Journal(store, lambda: bytes(16))
        self._steps = 0

    async def do(self, *commands: c.AnyCommand) -> None:
        """Give commands, in one append."""
        self._steps += 1

        def plan(run: PlanRun) -> None:
            for command in commands:
                run.do(command)

        identity = CommandIdentity(command=CommandId(f"c{self._steps}"), actor=USER)
        outcome = await self._journal.execute(
            self.id,
            plan,
            identity,
            transcript=True,
            base=self.chat,
            now=lambda: self.now,
        )
        self.chat = outcome.chat

    async def step(self, choice: int) -> None:
        """Give the command that ``choice`` draws among those that are taken."""
        assert self.chat is not None
        state = self.chat.state
        self.now += HOUR
        x = classify(state.control)
        possible = [t.command for t in every_command(state, self.now) if t.command.trigger in TABLE[x]]
        for rarely, kinds in ((4, ASIDE), (3, ENDING)):
            if choice % rarely:
                possible = [command for command in possible if not isinstance(command, kinds)] or possible
        # Of a trigger with many variants not more is drawn than of one with few.
        triggers = sorted({command.trigger for command in possible})
        for offset in range(len(triggers)):
            trigger = triggers[(choice + offset) % len(triggers)]
            variants = [command for command in possible if command.trigger == trigger]
            try:
                await self.do(variants[choice // len(triggers) % len(variants)])
            except Refusal:
                continue
            return


async def living(store: Store, choices: Sequence[int]) -> AsyncIterator[tuple[int, Life]]:
    """Yield a chat after each step of its life, with the number that drew it."""
    life = Life(store)
    await life.do(b.create(b.system(), b.user(), b.user("Two questions.")))
    for choice in choices:
        await life.step(choice)
        yield choice, life


async def forked(store: Store, origin: LoadedChat) -> Life:
    """Return a fork of a chat, in the same store."""
    life = Life(store, ChatId("fork"))
    await life.do(b.fork(owed=origin.state.control.owed), *plan_imports(origin.state, batch_bytes=40))
    return life
