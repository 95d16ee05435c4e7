"""The seam for whoever observes a worker: metrics, traces, debug records. It owns the calls and what they are told.

An observer sees what happens and changes nothing. Its methods are called on the event loop, in passing, and return at
once. What it is told holds content (requests, answers, arguments): an observer shows content only where its user asked
for that. Reading, replaying and verifying a log calls no observer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args

from msgspec import Struct

from events.ids import ChatId, MessageId
from events.messages import Step
from events.parts import Part
from events.records import AttemptKind, ModelPolicy, Policy, SideCallKind
from generation.errors import AgentDeclarationError, ClassifiedError
from generation.foreign import contained
from generation.prompt_types import ModelRequest
from generation.tools.output import CallResult
from generation.tools.policy import ToolCall
from store.append import Outcome
from store.contract import Store
from store.loading import LoadedChat
from store.log import get_logger

_log = get_logger(__name__)

CLOSING: Final = 10.0
"""Seconds that an observer may take to close."""

EffectKind: TypeAlias = AttemptKind | SideCallKind

_BESIDE: Final = frozenset(get_args(SideCallKind))


class Effect(Struct, frozen=True, kw_only=True, gc=False):
    """An effect that a worker does, or what a call of a model beside the turns is for. Times are microseconds UTC.

    Attributes:
        chat, owner, agent: Whose it is.
        turn: The message that opened the turn; None where there is none (a manual compaction).
        history_version, attempt: Which attempt it is; the attempt is 0 beside the turns.
        epoch: Of the holder.
        kind: What it does.
        policy: What it runs under.
        began_at: When the worker set to it; 0 where nobody observes.
        inactive: Tools of the agent that the model may not call under this policy.
        version: The version of the chat of which the worker set to it.
    """

    chat: ChatId
    owner: str
    agent: str
    turn: MessageId | None
    history_version: int
    attempt: int
    epoch: int
    kind: EffectKind
    policy: Policy
    began_at: int
    inactive: Collection[str] = ()
    version: int = 0

    @property
    def key(self) -> tuple[ChatId, int, int]:
        """What tells it from every other effect of a turn."""
        return self.chat, self.history_version, self.attempt

    @property
    def beside(self) -> bool:
        """Whether it is no attempt of a turn: its calls are told, but not that it begins or ends."""
        return self.kind in _BESIDE

    @property
    def manual(self) -> bool:
        """Whether it is a compaction that was asked for, and so belongs to no turn."""
        return self.kind == "compact" and self.turn is None


@dataclass(slots=True, eq=False)
class CallBegun:
    """A model is called now. Each call is an object of its own, told apart by identity."""

    effect: Effect
    model: ModelPolicy
    request: ModelRequest
    at: int


class CallEnded(Struct, frozen=True, kw_only=True, gc=False):
    """How a model call ended.

    Attributes:
        step: What is known of it: times, usage, why it finished.
        parts: Gives the parts of the answer, as far as they came.
        error: Why it failed; None where it did not.
        cause: By what it was cancelled, in lower case; None where it was not.
    """

    step: Step
    parts: Callable[[], tuple[Part, ...]]
    error: ClassifiedError | None = None
    cause: str | None = None


class Observer:
    """Observes a worker. Each method does nothing: derive from it and replace what you want to see.

    Times are microseconds UTC, as the process estimates the database's clock.
    """

    def held(self, loaded: LoadedChat, *, wanted_at: int, at: int) -> None:
        """A runner has the chat, with its transcript, and goes on with it; it set out to hold it at ``wanted_at``."""

    def let_go(self, chat: ChatId, *, lost: bool, at: int) -> None:
        """The runner of a chat has ended; ``lost``: its lease was lost, so that it wrote nothing at its end."""

    def appended(self, outcome: Outcome) -> None:
        """Events of this process were appended: a user's command, an acquisition, a commit, a retry, an end."""

    def committed(self, chat: ChatId, *, began_at: int, at: int) -> None:
        """A runner appended what an effect came to; the append took from ``began_at`` to ``at``."""

    def effect_begun(self, effect: Effect) -> None:
        """An effect begins. Called within the task that does it."""

    def effect_ended(self, effect: Effect, *, at: int) -> None:
        """An effect has ended, well or not, or was left behind."""

    def call_begun(self, call: CallBegun) -> None:
        """A model's provider is called now, in a turn or beside them. Called within the task that makes the call."""

    def first_part(self, call: CallBegun, *, at: int) -> None:
        """The first part of the answer came. Usage, warnings and the mere end of an answer are none."""

    def call_ended(self, call: CallBegun, ended: CallEnded) -> None:
        """A model call ended, failed, was cancelled or left behind."""

    def tool_begun(self, effect: Effect, call: ToolCall, *, at: int) -> None:
        """A call of a tool begins. Called within the task that runs it."""

    def tool_ended(self, effect: Effect, call: ToolCall, result: CallResult | None, *, at: int) -> None:
        """A call of a tool ended; without a result where it was cancelled or left behind."""

    def preview_dropped(self) -> None:
        """A live part was not kept for those who watch: its attempt's preview is full."""

    def deleted(self, chat: ChatId) -> None:
        """A chat was deleted: nothing of it is to be kept."""

    async def attend(self, store: Store) -> None:
        """The engine is open: do what is done beside it. A task of its own, cancelled when the engine closes."""

    async def close(self) -> None:
        """The engine has let go of everything and closes; it waits for this, but not for long."""


NOBODY: Final = Observer()
"""Observes nothing."""


class Observers(Observer):
    """Several observers as one. What one of them raises is logged, once for each kind of call, and goes no further.

    Args:
        members: They are told in this order.
    """

    def __init__(self, members: Iterable[Observer]) -> None:
        self._members = tuple(members)
        self._failed: set[tuple[int, str]] = set()

    def _tell(self, name: str, *args: Any, **kwargs: Any) -> None:
        for member in self._members:
            try:
                with contained():
                    getattr(member, name)(*args, **kwargs)
            except Exception:  # noqa: BLE001 - who observes a chat must not be able to fail it
                key = (id(member), name)
                if key not in self._failed:
                    self._failed.add(key)
                    _log.warning("observer_failed", observer=type(member).__name__, method=name, exc_info=True)

    def held(self, loaded: LoadedChat, *, wanted_at: int, at: int) -> None:
        """See :class:`Observer`."""
        self._tell("held", loaded, wanted_at=wanted_at, at=at)

    def let_go(self, chat: ChatId, *, lost: bool, at: int) -> None:
        """See :class:`Observer`."""
        self._tell("let_go", chat, lost=lost, at=at)

    def appended(self, outcome: Outcome) -> None:
        """See :class:`Observer`."""
        self._tell("appended", outcome)

    def committed(self, chat: ChatId, *, began_at: int, at: int) -> None:
        """See :class:`Observer`."""
        self._tell("committed", chat, began_at=began_at, at=at)

    def effect_begun(self, effect: Effect) -> None:
        """See :class:`Observer`."""
        self._tell("effect_begun", effect)

    def effect_ended(self, effect: Effect, *, at: int) -> None:
        """See :class:`Observer`."""
        self._tell("effect_ended", effect, at=at)

    def call_begun(self, call: CallBegun) -> None:
        """See :class:`Observer`."""
        self._tell("call_begun", call)

    def first_part(self, call: CallBegun, *, at: int) -> None:
        """See :class:`Observer`."""
        self._tell("first_part", call, at=at)

    def call_ended(self, call: CallBegun, ended: CallEnded) -> None:
        """See :class:`Observer`."""
        self._tell("call_ended", call, ended)

    def tool_begun(self, effect: Effect, call: ToolCall, *, at: int) -> None:
        """See :class:`Observer`."""
        self._tell("tool_begun", effect, call, at=at)

    def tool_ended(self, effect: Effect, call: ToolCall, result: CallResult | None, *, at: int) -> None:
        """See :class:`Observer`."""
        self._tell("tool_ended", effect, call, result, at=at)

    def preview_dropped(self) -> None:
        """See :class:`Observer`."""
        self._tell("preview_dropped")

    def deleted(self, chat: ChatId) -> None:
        """See :class:`Observer`."""
        self._tell("deleted", chat)

    async def attend(self, store: Store) -> None:
        """See :class:`Observer`."""
        await asyncio.gather(*(self._attend(member, store) for member in self._members))

    async def _attend(self, member: Observer, store: Store) -> None:
        try:
            with contained():
                await member.attend(store)
        except Exception:  # noqa: BLE001 - as above
            _log.warning("observer_failed", observer=type(member).__name__, method="attend", exc_info=True)

    async def close(self) -> None:
        """See :class:`Observer`."""
        for member in self._members:
            closing = asyncio.ensure_future(_close(member))
            # Not a timeout of asyncio's: whoever closes the engine may be cancelled already.
            await asyncio.wait({closing}, timeout=CLOSING)
            error = None if not closing.done() or closing.cancelled() else closing.exception()
            if not closing.done():
                closing.cancel()
            elif error is None:
                continue
            _log.warning("observer_failed", observer=type(member).__name__, method="close", exc_info=error)


async def _close(member: Observer) -> None:
    with contained():
        await member.close()


def checked_observers(given: object) -> tuple[Observer, ...]:
    """Return the observers that an engine is given.

    Raises:
        AgentDeclarationError: They are no list, or something in it is no observer.
    """
    if not isinstance(given, Iterable) or isinstance(given, str | Observer):
        why = f"must be a list of observers, not {type(given).__name__}: write observers=[observer]"
        raise AgentDeclarationError("observers", why)
    members = tuple(given)
    for member in members:
        if not isinstance(member, Observer):
            raise AgentDeclarationError("observers", f"{member!r:.80} is no Observer: derive from it")
    return members


def observer_of(members: Iterable[Observer]) -> Observer:
    """Return one observer that stands for all: none of them can fail what it observes."""
    given = tuple(members)
    return Observers(given) if given else NOBODY
