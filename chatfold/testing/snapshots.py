"""Snapshots of chats for syrupy: one file of canonical text for each log, and changes that are told in words.

Owns how syrupy is served. It needs the extra ``syrupy``; nothing else of chatfold imports this module but the plug-in,
when a test asks for ``chatfold_snapshot``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from chatfold.testing.canonical import Kept, canonical_text, checked_kinds
from chatfold.testing.explained import explain_change
from events.errors import EventsError

__all__ = ["ChatSnapshotExtension"]


class ChatSnapshotExtension(SingleFileSnapshotExtension):
    """Keeps logs as canonical text: ``assert log == snapshot.use_extension(ChatSnapshotExtension)``.

    A log is what :data:`chatfold.testing.asserts.AnyLog` says.
    """

    file_extension = "chat"  # not .txt: what is said in a chat is no doctest, which pytest looks for in test*.txt
    _write_mode = WriteMode.TEXT

    keep: ClassVar[tuple[Kept, ...]] = ()
    """What is kept in the text though it is another each time."""

    @classmethod
    def keeping(cls, *keep: Kept) -> type[ChatSnapshotExtension]:
        """Return an extension that keeps ``ids``, ``times`` or ``usage`` in the text.

        Raises:
            InvalidValue: It is none of these.
        """
        return type("KeepingChatSnapshotExtension", (cls,), {"keep": tuple(checked_kinds(keep))})

    def serialize(self, data: Any, **options: Any) -> str:
        """See syrupy. What is no log fails the test with what is wrong: of an error syrupy would show the traceback."""
        for name in ("exclude", "include"):
            if options.get(name) is not None:
                pytest.fail(f"a snapshot of a chat takes no {name}=: keeping() chooses what is in it", pytrace=False)
        try:
            return canonical_text(data, keep=self.keep)
        except (EventsError, LookupError, OSError) as wrong:
            pytest.fail(f"nothing to compare with a snapshot of a chat: {wrong}", pytrace=False)

    def diff_lines(self, serialized_data: Any, snapshot_data: Any) -> Iterator[str]:
        """Tell what changed; see syrupy."""
        yield from explain_change(str(snapshot_data), str(serialized_data))
