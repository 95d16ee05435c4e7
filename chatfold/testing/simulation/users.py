"""Users of a simulated world: what they send, and how they insist on an answer.

Each command has an id and is sent again under it, to whichever process lives, until its user knows what became of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

from chatfold.engine import Engine
from chatfold.receipts import Receipt
from chatfold.testing.simulation.agents import AGENTS
from chatfold.testing.simulation.ledger import Ledger, LedgerStore
from chatfold.testing.simulation.process import Process, ProcessDied
from chatstate.errors import Refusal
from events.control import Control, decode_control
from events.errors import InvalidValue
from events.ids import ChatId
from events.records import ApprovalAnswer, Budget, BudgetAnswer
from generation.errors import HookDenied, HookFailed
from store.errors import ChatExists, StoreError

Send: TypeAlias = Callable[[Engine, str], Coroutine[Any, Any, Receipt | None]]
"""Sends a command under an id."""

_PATIENCE: Final = 6.0
"""Seconds after which a user takes an answer for lost."""

_TRIES: Final = 12


@dataclass(slots=True)
class Town:
    """What users share: where processes are, and which chats and messages they know.

    Attributes:
        chats: Chats that were created or forked, in order.
        messages: Ids of messages that receipts told, by chat.
        sent: Commands sent so far, which numbers them.
    """

    random: Random
    ledger: Ledger
    database: LedgerStore
    processes: list[Process]
    tell: Callable[[str], None]
    fail: Callable[[str], None]
    chats: list[ChatId] = field(default_factory=list)
    messages: dict[ChatId, list[str]] = field(default_factory=dict)
    sent: int = 0

    def open(self) -> list[Process]:
        """Return the processes that take commands; those that stand still seem to."""
        return [process for process in self.processes if process.running and not process.dead]

    async def command(self, chat: ChatId, what: str, send: Send) -> Receipt | None:
        """Have a command done; None where it was refused or nobody could say what became of it."""
        self.sent += 1
        identity = f"c{self.sent}"
        self.tell(f"user: {what} {chat} as {identity}")
        for _ in range(_TRIES):
            doors = self.open()
            if doors:
                door = self.random.choice(doors)
                known, receipt = await self._ask(door, chat, f"{what} {identity}", identity, send)
                if known:
                    return receipt
            await asyncio.sleep(0.3)
        self.tell(f"user: gives {identity} up")
        return None

    async def _ask(
        self, door: Process, chat: ChatId, what: str, identity: str, send: Send
    ) -> tuple[bool, Receipt | None]:
        """Send a command once; returns whether its outcome is known, and the receipt."""
        try:
            receipt = await _within(_PATIENCE, door.call(lambda engine: send(engine, identity)))
        except (ProcessDied, StoreError, TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, ChatExists):
                return True, None
            self.tell(f"user: {what} at {door.name}: no answer ({type(error).__name__})")
            return False, None
        except (Refusal, InvalidValue, HookDenied, HookFailed) as refusal:
            self.tell(f"user: {what} at {door.name}: refused ({refusal})")
            self.ledger.refused.append((chat, identity))
            return True, None
        except Exception as error:  # noqa: BLE001 - none other may come
            self.fail(f"{what} raised {type(error).__name__}: {error}")
            return True, None
        if receipt is not None:
            self.tell(f"user: {what} at {door.name}: done, version {receipt.version}")
            self.ledger.acknowledged.append((receipt.chat, identity))
            self.messages.setdefault(receipt.chat, []).extend((*receipt.messages, *receipt.queued))
        return True, receipt

    def control(self, chat: ChatId) -> Control | None:
        """Return a chat's control as it is in this moment."""
        header = self.database.header(chat)
        return decode_control(header.control) if header is not None else None


async def _within(seconds: float, answer: asyncio.Future[Any]) -> Any:
    """Wait for an answer; who gives up hangs up, and the process learns so."""
    await asyncio.wait([answer], timeout=seconds)
    if not answer.done():
        answer.cancel()
        raise TimeoutError
    return answer.result()


async def create(town: Town, number: int, agents: Sequence[str] = tuple(AGENTS)) -> None:
    """Create a chat of one of ``agents``."""
    chat = ChatId(f"chat{number}")
    agent = town.random.choice(agents)
    first = f"hello {number}" if town.random.random() < 0.8 else None
    receipt = await town.command(
        chat,
        "create",
        lambda engine, id_: engine.create_chat(
            agent, first, owner=f"o{number % 2}", system=None if first else "Be.", chat_id=chat, command_id=id_
        ),
    )
    if receipt is not None:
        town.chats.append(chat)


Action: TypeAlias = Callable[[Town, ChatId, Control], Awaitable[None]]
"""Does something to a chat that stands so."""

Weights: TypeAlias = tuple[tuple[str, float], ...]
"""Names of actions, and how often each is done."""


@dataclass(frozen=True, slots=True)
class Habits:
    """What users do to a chat that is busy, and to another one; ``more`` are actions of their own."""

    busy: Weights
    idle: Weights
    more: Mapping[str, Action] = field(default_factory=dict)


async def act(town: Town, habits: Habits | None = None) -> None:
    """Do something to some chat, as users of these habits do."""
    habits = habits or HABITS
    if not town.chats:
        return
    chat = town.random.choice(town.chats)
    control = town.control(chat)
    if control is None:
        return
    names, weights = zip(*(habits.busy if control.status in ("pending", "running") else habits.idle), strict=True)
    if control.status == "requires_action" and town.random.random() < 0.6:
        await _submit(town, chat, control)
        return
    name = town.random.choices(names, weights)[0]
    await (habits.more.get(name) or _ACTIONS[name])(town, chat, control)


async def _send(town: Town, chat: ChatId, control: Control) -> None:
    text = f"say {town.sent}"
    await town.command(chat, "send", lambda engine, id_: engine.send_message(chat, text, command_id=id_))


async def _send_interrupting(town: Town, chat: ChatId, control: Control) -> None:
    text = f"now {town.sent}"
    await town.command(
        chat,
        "send interrupting",
        lambda engine, id_: engine.send_message(chat, text, busy="interrupt", command_id=id_),
    )


async def _edit(town: Town, chat: ChatId, control: Control) -> None:
    known = town.messages.get(chat)
    if not known:
        return
    target, text = town.random.choice(known), f"rather {town.sent}"
    await town.command(
        chat, f"edit {target}", lambda engine, id_: engine.edit_message(chat, target, text, command_id=id_)
    )


def _queued(town: Town, chat: ChatId, control: Control) -> str | None:
    waiting: Sequence[str] = [item.id for item in control.queue] or town.messages.get(chat, [])
    return town.random.choice(waiting) if waiting else None


async def _promote(town: Town, chat: ChatId, control: Control) -> None:
    if (target := _queued(town, chat, control)) is not None:
        await town.command(
            chat, f"promote {target}", lambda engine, id_: engine.promote_queued(chat, target, command_id=id_)
        )


async def _delete_queued(town: Town, chat: ChatId, control: Control) -> None:
    if (target := _queued(town, chat, control)) is not None:
        await town.command(
            chat, f"delete queued {target}", lambda engine, id_: engine.delete_queued(chat, target, command_id=id_)
        )


async def _submit(town: Town, chat: ChatId, control: Control) -> None:
    action = control.action
    if action is None:
        return
    results = {item.call: {"said": 1} for item in action.items if item.call is not None and item.kind != "approval"}
    approvals = [
        ApprovalAnswer(call=item.call, approved=town.random.random() < 0.7)
        for item in action.items
        if item.call is not None and item.kind == "approval"
    ]
    budget = None
    if any(item.kind == "budget" for item in action.items):
        ends, spent = town.random.random() < 0.3, control.usage.input + control.usage.output
        budget = BudgetAnswer(end_turn=ends, raised=None if ends else Budget(tokens=spent + 300))
    await town.command(
        chat,
        f"submit {action.id}",
        lambda engine, id_: engine.submit_tool_results(
            chat, action.id, results, approvals=approvals, budget=budget, command_id=id_
        ),
    )


async def _fork(town: Town, chat: ChatId, control: Control) -> None:
    target = ChatId(f"fork{town.sent}")
    version = town.random.randint(1, control.version) if town.random.random() < 0.5 else None
    resume = control.owed and version is None
    receipt = await town.command(
        target,
        f"fork {chat} at {version}",
        lambda engine, id_: engine.fork(chat, at=version, chat_id=target, resume=resume, command_id=id_),
    )
    if receipt is not None:
        town.chats.append(target)


async def _erase(town: Town, chat: ChatId, control: Control) -> None:
    known = town.messages.get(chat)
    if known:
        target = town.random.choice(known)
        await town.command(chat, f"erase {target}", lambda engine, id_: engine.erase(chat, [target], command_id=id_))


async def _delete(town: Town, chat: ChatId, control: Control) -> None:
    await town.command(chat, "delete", lambda engine, _: engine.delete(chat))


def _plain(what: str, method: Callable[..., Any], *given: object) -> Callable[[Town, ChatId, Control], Awaitable[None]]:
    async def do(town: Town, chat: ChatId, control: Control) -> None:
        await town.command(chat, what, lambda engine, id_: method(engine, chat, *given, command_id=id_))

    return do


_ACTIONS: Final[dict[str, Action]] = {
    "send": _send,
    "send interrupting": _send_interrupting,
    "edit": _edit,
    "promote": _promote,
    "delete queued": _delete_queued,
    "fork": _fork,
    "erase": _erase,
    "delete": _delete,
    "interrupt": _plain("interrupt", Engine.interrupt),
    "resume": _plain("resume", Engine.resume),
    "compact": _plain("compact", Engine.compact),
    "uncompact": _plain("uncompact", Engine.uncompact),
    "clear": _plain("clear", Engine.clear),
    "archive": _plain("archive", Engine.archive),
    "unarchive": _plain("unarchive", Engine.unarchive),
    "title": _plain("title", Engine.set_title, "A title"),
}
_BUSY: Final[Weights] = (
    ("send", 5.0), ("send interrupting", 4.0), ("interrupt", 5.0), ("edit", 3.0), ("promote", 2.0),
    ("delete queued", 1.0), ("fork", 0.5), ("erase", 0.5), ("title", 0.5), ("archive", 0.2),
)  # fmt: skip
_IDLE: Final[Weights] = (
    ("send", 8.0), ("send interrupting", 1.0), ("edit", 3.0), ("resume", 3.0), ("compact", 2.0), ("uncompact", 0.5),
    ("clear", 0.7), ("archive", 1.0), ("unarchive", 1.5), ("fork", 1.0), ("erase", 0.5), ("delete", 0.3),
    ("promote", 0.5), ("delete queued", 0.5), ("title", 0.3), ("interrupt", 0.5),
)  # fmt: skip


HABITS: Final = Habits(busy=_BUSY, idle=_IDLE)
"""Those of simulated worlds."""


async def break_off(town: Town, chat: ChatId) -> None:
    """Interrupt a chat whose answer has stopped, if it still seems to come."""
    control = town.control(chat)
    if control is not None and control.status == "running":
        await _ACTIONS["interrupt"](town, chat, control)
