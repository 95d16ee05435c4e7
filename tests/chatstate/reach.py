"""Ways to every execution state by real commands, never by a hand-made control.

``reach`` leads to a state; ``work`` says what the holder did before the last step, for states that can be had with an
attempt under way, open calls, a boundary and the like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from chatstate import commands as c
from chatstate.classify import X
from tests.chatstate import build as b
from tests.chatstate.chat import Chat

Work: TypeAlias = Callable[[Chat], object]


def nothing(_chat: Chat) -> None:
    """The holder did nothing yet."""


def generating(chat: Chat) -> None:
    """A model call is under way."""
    chat.do(b.start(chat))


def compacting(chat: Chat) -> None:
    """A compaction is under way."""
    chat.do(b.start(chat, "compact"))


def collecting(chat: Chat) -> None:
    """A context is being collected."""
    chat.do(b.start(chat, "context"))


def answered(chat: Chat) -> None:
    """The model answered."""
    generating(chat)
    chat.do(b.commit(chat, b.answer()))


def called(*sorts: str) -> Work:
    """The model answered with calls of these sorts."""

    def work(chat: Chat) -> None:
        generating(chat)
        chat.do(b.commit(chat, b.answer(*sorts)))

    return work


def running_tools(*sorts: str) -> Work:
    """Calls of these sorts run."""

    def work(chat: Chat) -> None:
        called(*sorts)(chat)
        chat.do(b.start_tools(chat))

    return work


def compacted(chat: Chat) -> None:
    """The model answered, and the chat was compacted."""
    answered(chat)
    compacting(chat)
    chat.do(b.compaction(chat, manual=False))


def _queue(chat: Chat, count: int) -> None:
    for place in range(count):
        chat.do(b.send(f"Queued {place}"))


_QUEUED: Final = (X.P1, X.R1, X.I1, X.A1, X.E1, X.XE1)


def reach(x: X, queued: int = 1, work: Work | None = None, *, end: Work | None = None) -> Chat:
    """Lead a new chat to ``x``.

    Args:
        x: The state; Invalid cannot be reached.
        queued: Messages in the queue, where the state has any.
        work: What the holder does; by default what the state needs.
        end: Overrides the last step.
    """
    chat = Chat()
    if x is X.N:
        return chat
    chat.do(b.create())
    if x in (X.P0, X.P1):
        _queue(chat, queued if x is X.P1 else 0)
        return chat
    chat.do(b.acquire())
    (work or _usual_work(x))(chat)
    _queue(chat, queued if x in _QUEUED else 0)
    (end or _LAST[x])(chat)
    if x in (X.XW, X.XE0, X.XE1):
        chat.do(c.Archive())
    assert chat.x is x
    return chat


def _usual_work(x: X) -> Work:
    if x in (X.A0, X.A1):
        return called("client")
    return answered if x in (X.W, X.XW) else nothing


def _require(chat: Chat) -> None:
    chat.do(b.require(chat))


def require_end_turn(chat: Chat) -> None:
    """The client owes something, and its silence ends the turn."""
    chat.do(b.require(chat, "end_turn"))


def _finish(chat: Chat) -> None:
    chat.do(b.finish(chat))


def give_up(chat: Chat) -> None:
    """The turn ended at its step limit: it is owed still."""
    chat.do(b.finish(chat, "max_steps"))


def _fail(chat: Chat) -> None:
    chat.do(b.fail(chat))


def _interrupt(chat: Chat) -> None:
    chat.do(c.Interrupt())


_LAST: Final[dict[X, Work]] = {
    X.R0: nothing,
    X.R1: nothing,
    X.I0: _interrupt,
    X.I1: _interrupt,
    X.A0: _require,
    X.A1: _require,
    X.W: _finish,
    X.XW: _finish,
    X.E0: _fail,
    X.E1: _fail,
    X.XE0: _fail,
    X.XE1: _fail,
}


def forked() -> Chat:
    """A fork whose messages are not imported yet."""
    chat = Chat()
    chat.do(b.fork())
    return chat
