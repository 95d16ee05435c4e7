"""Asks hooks, one after the other, and fails closed: what cannot be asked, or answers badly, stops what it was about.

Delivery is best effort: the same call may come twice, with the same id, and none is sent again.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, Protocol, cast, runtime_checkable

from anyio import to_thread

from events.content import Json, size_of
from generation.errors import AgentDeclarationError, HookFailed
from generation.foreign import contained, words_of
from generation.hooks.contract import (
    ADMISSION,
    HOOK_EVENTS,
    MOST,
    HookAnswer,
    HookCall,
    HookEvent,
    check_answer,
    hook_id,
)
from generation.models import check_count
from generation.tools.contract import duration_problem
from store.failpoints import reach
from store.log import get_logger

_log: Final = get_logger(__name__)


@runtime_checkable
class Hook(Protocol):
    """What can be asked: ``PythonHook`` and ``HttpHook`` are hooks.

    Attributes:
        name: For messages.
        events: The events that it is asked at.
        timeout: Seconds that it has, the wait for a slot among them.
    """

    @property
    def name(self) -> str:
        """See the class."""
        ...

    @property
    def events(self) -> tuple[HookEvent, ...]:
        """See the class."""
        ...

    @property
    def timeout(self) -> float:
        """See the class."""
        ...

    async def ask(self, call: HookCall) -> object:
        """Ask; returns a ``HookAnswer`` or None. Whatever it raises stops what was asked about."""
        ...


def checked_events(name: str, events: Iterable[str]) -> tuple[HookEvent, ...]:
    """Return the events that a hook is declared for.

    Raises:
        AgentDeclarationError: There is none, or one of them is not known.
    """
    if not isinstance(cast("object", events), Iterable):
        raise AgentDeclarationError(f"hook {name!r}", f"events must be a list of events, not {type(events).__name__}")
    given = (events,) if isinstance(events, str) else tuple(events)
    if stray := [event for event in given if event not in HOOK_EVENTS]:
        raise AgentDeclarationError(
            f"hook {name!r}", f"there is no event {stray[0]!r}; there are: {', '.join(HOOK_EVENTS)}"
        )
    if not given:
        raise AgentDeclarationError(f"hook {name!r}", "it has no events")
    return cast("tuple[HookEvent, ...]", given)


def checked_timeout(name: str, seconds: float) -> float:
    """Return the seconds that a hook is declared to have.

    Raises:
        AgentDeclarationError: They are no number of seconds that ends.
    """
    if (problem := duration_problem(seconds)) is not None:
        raise AgentDeclarationError(f"hook {name!r}", f"timeout {problem}")
    return seconds


class PythonHook:
    """A function as a hook.

    Args:
        function: Takes a ``HookCall``; gives a ``HookAnswer``, or None. An async one is awaited, another one runs in a
            thread.
        events: The events that it is asked at.
        timeout: Seconds that it has. A thread that takes longer cannot be ended, but is not waited for.

    Raises:
        AgentDeclarationError: It is no function, an event is not known, or there is none; the timeout is no positive
            number.
    """

    def __init__(
        self,
        function: Callable[[HookCall], HookAnswer | Awaitable[HookAnswer | None] | None],
        events: Iterable[HookEvent],
        *,
        timeout: float = 10.0,
    ) -> None:
        self.name: Final = getattr(function, "__name__", type(function).__name__)
        if not callable(cast("object", function)):
            raise AgentDeclarationError(f"hook {self.name!r}", "it is no function: write PythonHook(function, events)")
        self.events: Final = checked_events(self.name, events)
        self.timeout: Final = checked_timeout(self.name, timeout)
        self._function: Final = function

    async def ask(self, call: HookCall) -> object:
        """Call the function."""
        if inspect.iscoroutinefunction(self._function):
            return await self._function(call)
        answer = await to_thread.run_sync(self._function, call, abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all hooks together say: the contexts in order, and the input as the last of them left it."""

    contexts: tuple[str, ...] = ()
    deny: str | None = None
    input: Json = None

    @property
    def context(self) -> str | None:
        """The contexts as one text; None where there is none."""
        return "\n\n".join(self.contexts) or None


_SILENT: Final = Verdict()


class Hooks:
    """The hooks of one process, with its slots.

    Args:
        hooks: The hooks, in the order in which they are asked.
        slots: Calls of hooks that may be under way at once.
        admission: How many of these may let new work in, so that work under way always finds one.

    Raises:
        AgentDeclarationError: Something is no hook, one has no name, no known events or no time, or ``admission``
            leaves no slot to work under way.
    """

    def __init__(self, hooks: Iterable[Hook] = (), *, slots: int = 32, admission: int = 16) -> None:
        given = cast("object", hooks)
        if not isinstance(given, Iterable) or isinstance(given, str):
            why = f"must be a list of hooks, not {type(given).__name__}: write hooks=[hook]"
            raise AgentDeclarationError("hooks", why)
        self._hooks: Final = tuple(hooks)
        for hook in self._hooks:
            if not isinstance(cast("object", hook), Hook) or isinstance(hook, type):
                raise AgentDeclarationError("hooks", f"{hook!r:.80} is no hook")
            if not isinstance(name := cast("object", hook.name), str):
                raise AgentDeclarationError(
                    "hooks", f"the name of {hook!r:.80} must be a text, not {type(name).__name__}"
                )
            checked_events(name, hook.events)
            checked_timeout(name, hook.timeout)
        for name, count in (("slots", slots), ("admission", admission)):
            check_count("hooks", name, count, 1)
        if not admission < slots:
            raise AgentDeclarationError("hooks", f"admission must be 1 to {slots - 1}, not {admission}")
        self._slots: Final = asyncio.Semaphore(slots)
        self._admission: Final = asyncio.Semaphore(admission)

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def at(self, *events: HookEvent) -> bool:
        """Whether any hook is asked at one of some events."""
        # Each effect asks this, and most processes have no hooks.
        return bool(self._hooks) and any(event in hook.events for hook in self._hooks for event in events)

    async def ask(
        self, event: HookEvent, chat: str, place: str, facts: Mapping[str, Json], *, input_as: str | None = None
    ) -> Verdict:
        """Ask all hooks of an event in order; the first that denies ends it.

        Args:
            event: What it is about.
            chat: The chat.
            place: Which event of the chat it is; see ``hook_id``.
            facts: What hooks are told.
            input_as: The name of the fact that an answer's input replaces for the hooks after it.

        Raises:
            HookFailed: One of them could not be asked, or gave no answer that is allowed.
        """
        try:
            return await self._ask_all(event, chat, place, facts, input_as)
        except HookFailed as failure:
            # Not ``event``: so is called what a line of the log says.
            _log.warning(
                "hook_failed",
                at=event,
                hook=failure.hook,
                chat=chat,
                id=hook_id(chat, event, place),
                kind=failure.kind,
                reason=failure.why,
            )
            raise

    async def _ask_all(
        self, event: HookEvent, chat: str, place: str, facts: Mapping[str, Json], input_as: str | None
    ) -> Verdict:
        verdict = _SILENT
        for hook in self._hooks:
            if event not in hook.events:
                continue
            # A copy: what a hook changes in it is neither what the next one sees, nor what is compared or recorded.
            call = HookCall(id=hook_id(chat, event, place), event=event, chat=chat, facts=deepcopy(dict(facts)))
            answer = await self._within(hook, call)
            if answer.deny is not None:
                return Verdict(deny=answer.deny)
            contexts = verdict.contexts if answer.context is None else (*verdict.contexts, answer.context)
            verdict = Verdict(contexts, input=verdict.input if answer.input is None else answer.input)
            if sum(map(size_of, contexts)) > MOST:
                raise HookFailed(hook.name, event, f"with those before it, its context has more than {MOST} bytes")
            if answer.input is not None and input_as is not None:
                facts = {**facts, input_as: answer.input}
        if verdict is not _SILENT:
            reach("hook.answered")
        return verdict

    async def _within(self, hook: Hook, call: HookCall) -> HookAnswer:
        """Ask one hook within its time. Not by ``asyncio.timeout``: the caller may be about to be cancelled."""
        task = asyncio.create_task(self._ask(hook, call), name=f"hook {call.id}")
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody else looks at a late one
        try:
            await asyncio.wait({task}, timeout=hook.timeout)
        finally:
            late = not task.done()
            task.cancel()
        if late:
            raise HookFailed(hook.name, call.event, f"it did not answer within {hook.timeout:g} seconds")
        try:
            answer = task.result()
        except HookFailed:
            raise
        except asyncio.CancelledError:
            raise HookFailed(hook.name, call.event, "it ended itself by a cancellation") from None
        except Exception as error:  # an application's part may raise anything
            raise HookFailed(hook.name, call.event, words_of(error)) from error
        return check_answer(hook.name, call.event, answer)

    async def _ask(self, hook: Hook, call: HookCall) -> object:
        if call.event not in ADMISSION:
            async with self._slots:
                with contained():
                    return await hook.ask(call)
        async with self._admission, self._slots:
            with contained():
                return await hook.ask(call)


NO_HOOKS: Final = Hooks()
