"""What an application's own functions raise: one rule that keeps it apart from what is ours, and words for it.

Hooks, tools, context sources, observers and providers are an application's. Each of them is called within
:func:`contained`, and whoever calls it says in an ``except Exception`` what its failure means there. Otherwise one of
them that exits would end the process, or leave the task that called it without an end.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, final


class ForeignExit(Exception):
    """An application's function raised what is no ``Exception``: an exit, an interruption, or a class of its own.

    Attributes:
        error: What it raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(words_of(error))
        self.error = error


@final
class _Contained:
    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> None:
        self._task = _running()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception | asyncio.CancelledError):
            return
        if isinstance(error, GeneratorExit) and _running() is not self._task:
            return  # the coroutine that waits here is closed: nobody goes on with it
        raise ForeignExit(error) from error


def contained() -> _Contained:
    """Return a context within which an application's function is called; not for use in a generator.

    What it raises comes out as it is where it is an ``Exception`` or a cancellation.

    Raises:
        ForeignExit: It raised anything else, an exit for example.
    """
    return _Contained()


def original(error: BaseException) -> BaseException:
    """Return what an application's function raised, from what came out of :func:`contained`."""
    return error.error if isinstance(error, ForeignExit) else error


def words_of(error: BaseException) -> str:
    """Return the type and the text of what an application's function raised, also where its text cannot be read."""
    said = original(error)
    text = text_of(said)
    return f"{type(said).__name__}: {text}" if text else type(said).__name__


def text_of(error: BaseException) -> str:
    """Return the text of an exception; where that fails, words that say so."""
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001 - an exception whose text fails must not hide that it was raised
        return f"(its text cannot be read: {type(broken).__name__})"


def _running() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
