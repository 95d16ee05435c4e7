"""Shapes of what moving chats and stores did.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

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
