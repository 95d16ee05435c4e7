"""The users of a crash test: what they do, and what they were told became of it.

Each has one chat. A command is repeated under its id, by way of one process or another, until it is known what became
of it: what a user was told once must hold for ever.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from chatfold.engine import Engine
from chatfold.testing.crash import story
from chatfold.testing.crash.calls import Command, Reply, ask, carry_out
from chatfold.testing.crash.config import CrashConfig
from chatfold.testing.crash.worker import Place
from events.control import Control, decode_control
from events.ids import ChatId
from store.errors import StoreError

_PATIENCE: Final = 5.0
"""Seconds after which a command is repeated whose reply does not come, from a process that was stopped perhaps."""

_OWNERS: Final = 20

_IMPATIENT: Final = 0.5
"""How often users interrupt an answer that takes seconds."""

_HASTE: Final = (0.1, 0.1, 1.0, 2.8)
"""Users come in bursts: what they wait between two actions, as parts of the mean time."""


class Told(Struct, frozen=True, kw_only=True):
    """What a user was told of a command in the end, and how often it was given."""

    command: Command
    reply: Reply
    tries: int


class Sighting(Struct, frozen=True):
    """A version of a chat that somebody read, and the log's digest there: what came before must stay as it was."""

    version: int
    digest: bytes


class Book:
    """What users were told and saw, by chat."""

    def __init__(self) -> None:
        self.told: dict[str, list[Told]] = {}
        self.seen: dict[str, list[Sighting]] = {}
        self.given: set[str] = set()
        self.counts: Counter[str] = Counter()

    def note(self, told: Told) -> None:
        """Write down what a user was told."""
        self.told.setdefault(told.command.chat, []).append(told)
        self.counts[f"commands {told.reply.what}"] += 1
        self.counts["commands given again"] += told.tries - 1

    def saw(self, chat: str, sighting: Sighting) -> None:
        """Write down what was read."""
        self.seen.setdefault(chat, []).append(sighting)


class User:
    """One user with one chat.

    Args:
        number: Which one.
        config: The test.
        place: Where workers listen.
        engine: An engine without a worker, the other way for commands to go.
        book: Where it is written down.
    """

    def __init__(self, number: int, config: CrashConfig, place: Place, engine: Engine, book: Book) -> None:
        self.chat = f"chat-{number:05d}"
        self._number = number
        self._config = config
        self._place = place
        self._engine = engine
        self._book = book
        self._chance = random.Random(f"{config.seed} user {number}")  # noqa: S311 - it is to be repeated
        self._commands = 0
        self._messages: list[str] = []
        self._slow = False
        self._rung = asyncio.Event()

    async def live(self, over: asyncio.Event) -> None:
        """Begin a chat, and talk until it is over."""
        await _pause(over, self._chance.random() * min(self._config.think, 2.0))
        text = self._message()
        await self._give("create_chat", agent=story.AGENT, message=text, owner=f"user-{self._number % _OWNERS}")
        while not over.is_set():
            pause = self._config.think * self._chance.choice(_HASTE) * self._chance.expovariate(1)
            await _pause(self._rung if self._chance.random() < 0.7 else over, pause)
            self._rung.clear()
            control = await self.look()
            if control is not None and not over.is_set():
                await self._act(control)

    def ring(self) -> None:
        """Say that the chat asks something, or that it is over: a user who listens need not wait longer."""
        self._rung.set()

    async def look(self) -> Control | None:
        """Read how the chat stands, and remember it; None where the database is away."""
        try:
            loaded = await self._engine.store.load_header(ChatId(self.chat))
        except StoreError:
            return None
        if loaded is None:
            return None
        self._book.saw(self.chat, Sighting(loaded.header.version, loaded.header.digest))
        return decode_control(loaded.header.control)

    async def _act(self, control: Control) -> None:
        chance = self._chance
        if control.action is not None and chance.random() < 0.9:
            await self._give(
                "submit_tool_results",
                approve=control.action.to_approve,
                action=control.action.id,
                results=dict.fromkeys(control.action.client_calls, "so be it"),
            )
        elif control.status == "error" and chance.random() < 0.6:
            await self._give("resume")
        elif control.status == "running" and self._slow and chance.random() < _IMPATIENT:
            await self._give("interrupt")
        else:
            kinds = [*_ANY, *(_QUEUE if control.queue else ())]
            (do,) = chance.choices([do for do, _ in kinds], [weight for _, weight in kinds])
            await do(self, control)

    def _message(self) -> str:
        text = story.message(self._commands, self._chance, self._config.slow)
        self._slow = story.SLOW in text
        return text

    async def _send(self, _: Control) -> None:
        await self._give("send_message", message=self._message())

    async def _break_in(self, _: Control) -> None:
        await self._give("send_message", message=self._message(), busy="interrupt")

    async def _edit(self, _: Control) -> None:
        if self._messages:
            target = self._chance.choice(self._messages[-3:])
            text = self._message()
            await self._give("edit_message", message_id=target, message=text)

    async def _give(self, method: Any, *, approve: tuple[str, ...] = (), **arguments: Any) -> None:
        """Give a command until it is known what became of it."""
        self._commands += 1
        command = Command(
            id=f"{self.chat}/{self._commands}", chat=self.chat, method=method, arguments=arguments, approve=approve
        )
        self._book.given.add(command.id)
        tries = 0
        while True:
            tries += 1
            reply = await self._once(command)
            if reply.what != "unknown":
                break
            await asyncio.sleep(self._chance.uniform(0.02, 0.3))
        self._book.note(Told(command=command, reply=reply, tries=tries))
        if method in {"create_chat", "send_message", "edit_message"} and reply.messages:
            self._messages.append(reply.messages[-1])

    async def _once(self, command: Command) -> Reply:
        if self._chance.random() < 0.4:
            return await carry_out(self._engine, command)
        slot = self._chance.randrange(self._config.workers)
        return await ask(self._place.socket(slot), command, _PATIENCE)


def _plain(method: str) -> Callable[[User, Control], Any]:
    return lambda user, _: user._give(method)  # noqa: SLF001 - a row of this module's table


def _queued(method: str) -> Callable[[User, Control], Any]:
    return lambda user, control: user._give(  # noqa: SLF001 - a row of this module's table
        method,
        message_id=user._chance.choice(control.queue).id,  # noqa: SLF001
    )


_ANY: Final[tuple[tuple[Callable[[User, Control], Any], int], ...]] = (
    (User._send, 60),  # noqa: SLF001
    (User._break_in, 9),  # noqa: SLF001
    (User._edit, 6),  # noqa: SLF001
    (_plain("interrupt"), 11),
    (_plain("resume"), 3),
    (_plain("compact"), 3),
    (_plain("clear"), 1),
)
"""What users do, and how often; much of it is refused, as the chat stands."""

_QUEUE: Final = ((_queued("delete_queued"), 6), (_queued("promote_queued"), 6))
"""What users do where messages are queued."""


async def _pause(over: asyncio.Event, seconds: float) -> None:
    """Wait, but not longer than until it is over."""
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        return
