"""What the settings say of observing: debug records in a folder. Imports what is needed for it only where it is."""

from __future__ import annotations

from generation.observing import Observer


def recording(folder: str | None) -> tuple[Observer, ...]:
    """Return what records model calls in ``folder``; nothing where there is none."""
    if folder is None:
        return ()
    from chatfold.observing.debug import DebugRecords
    from chatfold.observing.records import FolderSink

    return (DebugRecords(FolderSink(folder)),)
