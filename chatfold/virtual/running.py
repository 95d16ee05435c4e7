"""A run in virtual time, from its first step to its last: nothing of it is heard of afterwards."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Any

from chatfold.virtual.loop import SimulatedLoop


@contextmanager
def alone() -> Iterator[None]:
    """Keep the garbage collector out of a run, and what ends with it silent; around all that knows its world.

    Raises:
        RuntimeError: It was called from a coroutine: a run has an event loop of its own.
    """
    if is_in_a_loop():
        raise RuntimeError(
            "a run in virtual time has an event loop of its own: call it from a function that is no coroutine"
        )
    enabled = gc.isenabled()
    gc.disable()
    hook = sys.unraisablehook
    try:
        yield
    finally:
        sys.unraisablehook = lambda _: None
        gc.collect(0)
        sys.unraisablehook = hook
        if enabled:
            gc.enable()


def is_in_a_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def drive(loop: SimulatedLoop, main: Coroutine[Any, Any, None], context: Context | None = None) -> None:
    """Run a coroutine until it ends, or the loop is told to fail; what it raises becomes the loop's failure.

    Args:
        loop: Virtual time.
        main: What to run.
        context: The context of its steps; None for the one that calls.
    """
    task = loop.create_task(main, context=context)
    task.add_done_callback(lambda _: loop.stop(), context=context)
    loop.run_forever()
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        loop.fail(f"the run itself failed: {type(error).__name__}: {error}")


def end(loop: SimulatedLoop) -> None:
    """End what is left, and close the loop: no task of a run may be heard of after it."""
    for task in loop.tasks:
        if not task.done():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            with suppress(RuntimeError, asyncio.CancelledError, StopIteration):
                coroutine.close()
        elif not task.cancelled():
            task.exception()
    loop.tasks.clear()
    loop._queue.clear()
    loop._timers.clear()
    loop.close()
