"""Shapes of what moving chats and stores did.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

from typing import Any

from chatfold.cli.shapes.base import Shape


class Imported(Shape, frozen=True, kw_only=True, tag="imported"):
    """What ``import`` did.

    Attributes:
        chat: The id that the chat has here.
        version: Its version.
        foreign: Whether it is marked as not to be run here.
        missing_blobs: Large contents that the file refers to and that are neither packed nor in the store.
    """

    chat: str
    version: int
    foreign: bool
    missing_blobs: int


class Adopted(Shape, frozen=True, kw_only=True, tag="adopted"):
    """What ``adopt`` did.

    Attributes:
        chat: The chat's id.
        version: Its version.
    """

    chat: str
    version: int


class Exported(Shape, frozen=True, kw_only=True, tag="exported"):
    """What ``export --output FILE`` did.

    Attributes:
        chat: The chat's id.
        version: Number of events.
        blobs: Number of packed contents.
        file: Where it was written.
    """

    chat: str
    version: int
    blobs: int
    file: str


class Migrated(Shape, frozen=True, kw_only=True, tag="migrated"):
    """What ``migrate`` did.

    Attributes:
        database: Its URL, without a password.
        schema: The schema that it has now.
    """

    database: str
    schema: str


class RecordedLine(Shape, frozen=True, kw_only=True, tag="recorded"):
    """What ``record`` did with each log that was picked.

    Attributes:
        source: The chat's id, or the file.
        file: The file that it was written to; ``null`` where it was not.
        chat: The id that stands for the chat's there.
        version: Number of events.
        decisions: Decisions that were taken again on both logs, and came out the same.
        contents: Contents that were compared.
        unchanged: Those of them that had nothing to replace.
        clear: Each distinct text that its facts still have: ``kind``, ``text``, ``version`` of the first event.
        problems: What the check found.
        failed: Why it was not written; ``null`` where it was.
    """

    source: str
    file: str | None
    chat: str | None
    version: int
    decisions: int
    contents: int
    unchanged: int
    clear: tuple[Any, ...]
    problems: tuple[str, ...]
    failed: str | None


class UnusedRenameLine(Shape, frozen=True, kw_only=True, tag="unused_rename"):
    """What ``record`` says after all logs of a name that its rules rename and none of them has.

    Attributes:
        rule: It, as the rules file has it.
        problem: What may have been meant.
    """

    rule: str
    problem: str
