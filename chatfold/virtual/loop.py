"""The event loop of runs in virtual time: no sockets, no threads, and an order that a seed decides.

Owns time, the queue of what is ready, and the fate of handles whose host is dead or stopped. A *host* is a simulated
process; whose a handle is, is said by its context.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from operator import attrgetter
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

_WINDOW: Final = 4
"""How many steps of tasks that are ready together may be taken in another order than they came in."""

_AT_ONCE: Final = 50_000
"""Steps without the clock moving on after which nothing will move it any more."""


class Host:
    """A machine's process as the loop knows it.

    Attributes:
        name: What traces call it.
        dead: None of its handles runs any more.
        stopped: None of its handles runs now; they wait in ``held``.
        ahead: Microseconds by which its wall clock is ahead of the database's.
        troubles: When something kept it from writing down what its models say: its end, a pause, a call of the store
            that failed, was slow, or is not over.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.stopped = False
        self.ahead = 0
        self.held: list[asyncio.Handle] = []
        self.troubles: list[float] = []

    def context(self) -> Context:
        """Return a new context in which handles and tasks are this host's."""
        context = copy_context()
        context.run(HOST.set, self)
        return context


WORLD: Final = Host("world")
"""What is no process of anybody: users, the network, the database, and the simulation itself."""

HOST: Final[ContextVar[Host | None]] = ContextVar("chatfold_simulated_host", default=None)
"""Whose the running step is; None outside of simulations."""


class _Numbered:
    """Has a hash that is the same in every process, so that sets of tasks are gone through in the same order."""

    _number: int

    def __hash__(self) -> int:
        return self._number


class _Task(_Numbered, asyncio.Task[_T]):
    """A task, and the host that it is a part of."""

    def __init__(self, work: Coroutine[Any, Any, _T], *, number: int, **options: Any) -> None:
        self._number = number  # before the base class puts the task into a set
        given: Context | None = options.get("context")
        self.host = HOST.get() if given is None else given.get(HOST)
        super().__init__(work, **options)


class _Future(_Numbered, asyncio.Future[_T]):
    pass


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop whose clock stands still while anything is ready, and then jumps to the next timer.

    Args:
        random: Decides the order of steps.
        steps: After so many steps the run is given up.
        shuffled: Whether steps of different tasks that are ready together may swap places; else they come in order.

    Attributes:
        failure: Why the run was ended before its end.
        taken: Steps so far.
        tasks: All tasks ever made, in order.
    """

    def __init__(self, random: Random, *, steps: int, shuffled: bool) -> None:
        super().__init__()
        self._random = random
        self._most = steps
        self._shuffled = shuffled
        self._clock = 0.0
        self._numbers = 0
        self._moved_at = 0
        self._ending = False
        self._queue: deque[asyncio.Handle] = deque()
        self._ready = self._queue  # the base class puts what is ready there
        self._timers: list[asyncio.TimerHandle] = []
        self._scheduled = self._timers
        self.failure: str | None = None
        self.taken = 0
        self.tasks: list[_Task[Any]] = []
        self.set_task_factory(cast(Any, self._make_task))

    def time(self) -> float:
        """Return virtual seconds since the run began."""
        return self._clock

    def run_forever(self) -> None:
        """Run until ``stop`` or ``fail`` is called."""
        self._ending = False
        super().run_forever()

    def stop(self) -> None:
        """End after the step that runs now."""
        self._ending = True
        super().stop()

    def fail(self, why: str) -> None:
        """End the run; the first reason counts."""
        if self.failure is None:
            self.failure = why
        self.stop()

    def resume(self, host: Host) -> None:
        """Let a stopped host go on: what came while it stood still runs now, in the order in which it came."""
        host.stopped = False
        held, host.held = host.held, []
        self._queue.extend(held)

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        future: _Future[Any] = _Future(loop=self)
        future._number = self._next_number()
        return future

    def run_in_executor(self, executor: Any, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts) -> asyncio.Future[_T]:
        """Run ``func`` on the loop, in a step of its own: there are no threads here."""
        done: asyncio.Future[_T] = self.create_future()
        self.call_soon(_run_into, done, func, args)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Take what nobody caught for a failure of the run."""
        error = context.get("exception")
        self.fail(f"nobody caught: {context.get('message')}: {type(error).__name__}: {error}")

    def _make_task(self, loop: Any, work: Coroutine[Any, Any, _T], **options: Any) -> asyncio.Task[_T]:
        task: _Task[_T] = _Task(work, number=self._next_number(), loop=self, **options)
        self.tasks.append(task)
        return task

    def unretrieved(self) -> list[BaseException]:
        """Return the errors of tasks that nobody looked at, though somebody lived who might have."""
        ended = [task for task in self.tasks if task.done() and not task.cancelled()]
        lost = [task for task in ended if getattr(task, "_log_traceback", False)]
        # Who waits for several tasks looks at them when all have ended: the dead do so no more.
        alive = [task for task in lost if task.host is None or not task.host.dead]
        return [error for task in alive if (error := task.exception())]

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _run_once(self) -> None:
        queue = self._queue
        while queue and not self._ending:
            handle = self._take()
            if handle._cancelled:
                continue
            host: Host | None = _context(handle).get(HOST)
            if host is not None and host is not WORLD:
                if host.dead:
                    continue
                if host.stopped:
                    host.held.append(handle)
                    continue
            self.taken += 1
            handle._run()
            if self.taken > self._most:
                self.fail(f"livelock: {self.taken} steps were taken")
        if not self._ending:
            self._advance()

    def _take(self) -> asyncio.Handle:
        queue = self._queue
        if not self._shuffled or len(queue) < 2 or not _is_step(queue[0]):
            return queue.popleft()
        window = 1
        while window < min(_WINDOW, len(queue)) and _is_step(queue[window]):
            window += 1
        place = int(self._random.random() * window)
        chosen = queue[place]
        del queue[place]
        return chosen

    def _advance(self) -> None:
        timers, queue = self._timers, self._queue
        while timers and not queue:
            timer = heapq.heappop(timers)
            if timer._cancelled:
                continue
            if timer.when() > self._clock:
                self._clock, self._moved_at = timer.when(), self.taken
            elif self.taken - self._moved_at > _AT_ONCE:
                self.fail(f"livelock: {_AT_ONCE} steps in one moment")
            queue.append(timer)
        if not queue:
            self.fail("deadlock: nothing is ready, and no timer runs")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave it in the heap until its time comes: there is no thread that it could wake."""

    def _process_events(self, event_list: object) -> None:
        """Process nothing: there are no sockets."""

    def _write_to_self(self) -> None:
        """Wake nobody: the loop never sleeps."""

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        if not self.is_closed() and self.failure is None:
            self.call_soon(self.create_task, agen.aclose())


_context: Final[Callable[[asyncio.Handle], Context]] = attrgetter("_context")


def _is_step(handle: asyncio.Handle) -> bool:
    return isinstance(getattr(getattr(handle, "_callback", None), "__self__", None), asyncio.Task)


def _run_into(done: asyncio.Future[_T], func: Callable[..., _T], args: tuple[Any, ...]) -> None:
    if done.cancelled():
        return
    try:
        done.set_result(func(*args))
    except Exception as error:  # noqa: BLE001 - it is the caller's
        done.set_exception(error)
