"""Shapes of what is compared, and found, in logs: ``diff``, ``bisect``, ``fork``, ``report``.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

from typing import Any

from chatfold.cli.shapes.base import Shape
from chatfold.cli.shapes.chats import EventLine


class Compared(Shape, frozen=True, kw_only=True, tag="comparison"):
    """What ``diff`` says of two logs.

    Attributes:
        same: Moves that both made before they part.
        last: Versions of the last of these, one of either log; ``null`` where they part at once. What a fork's origin
            did, the fork has by the version at which it was copied.
        parts: Whether they part.
        then: What either log did next, the parting move first; each is ``version`` with the fields of the move:
            ``source``, ``trigger``, ``dest``, ``rule``, ``action``, ``tools``, ``cause``; and ``origin``, the chat in
            whose log it stands, where that is one that the log's chat was forked from, else ``null``. Empty where it
            ends there.
        origins: What either log's chat was forked from, the nearest first: ``chat``, ``version``, and ``known``,
            whether that log was at hand. Empty where it is no fork.
    """

    same: int
    last: tuple[int, int] | None
    parts: bool
    then: tuple[tuple[Any, ...], tuple[Any, ...]]
    origins: tuple[tuple[Any, ...], tuple[Any, ...]]


class ChangeLine(Shape, frozen=True, kw_only=True, tag="change"):
    """What ``diff`` says of each thing that differs between two versions of one log.

    Attributes:
        path: Where it stands in the state, a JSON path.
        before: What the first version has there; a content by its size, ``{"missing": true}`` where it has nothing.
        after: What the second has there, likewise.
    """

    path: str
    before: Any
    after: Any


class FirstWhere(Shape, frozen=True, kw_only=True, tag="first_where"):
    """What ``bisect`` found.

    Attributes:
        condition: The condition.
        version: The first version at which it holds; ``null`` where it never does.
        event: That event, as ``replay`` prints it; ``null`` where there is none.
        versions: The log's last version: from 1 to it the condition was looked for.
    """

    condition: str
    version: int | None
    event: EventLine | None
    versions: int


class ForkedLine(Shape, frozen=True, kw_only=True, tag="forked"):
    """What ``fork`` did, or would do.

    Attributes:
        origin: The chat that was forked.
        at: The version from which.
        chat: The new chat's id; ``null`` where nothing was made, since ``--yes`` was not given.
        version: The new chat's version; ``null`` likewise.
        effects: Calls of tools after that version, which a fork does not take back: ``version``, ``call``, ``tool``,
            ``runner``, ``repeatable``.
    """

    origin: str
    at: int
    chat: str | None
    version: int | None
    effects: tuple[Any, ...]
