"""Writes golden samples that are missing: ``python -m tests.golden.add``.

A sample that exists is never written again. If one is not what the code gives now, a release's stored form has
changed: that needs a schema number and an upcast step, and the new form a sample in the folder of the new release.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from events.digest import GENESIS
from events.envelope import StoredEvent
from events.ids import ChatId
from events.logfile import event_line, header_of, write_log
from events.vocabulary import ChatCreated, Event
from tests.golden import events_v0_1, events_v0_2
from tests.golden.logs_v0_1 import LOGS
from tests.golden.story import USER, Story, stored_event

FOLDER: Final = Path(__file__).parent
EVENTS: Final[dict[str, dict[str, Event]]] = {"v0.1": events_v0_1.EVENTS, "v0.2": events_v0_2.EVENTS}
"""Folder -> the events in it by the names of their files."""

STORIES: Final = "v0.1"
"""The folder with the logs."""


def sample_event(event: Event) -> StoredEvent:
    """Return the stored form of an event's sample."""
    return stored_event(event, version=1, previous=GENESIS, actor=USER, source="running", dest="running")


def event_file(stored: StoredEvent) -> bytes:
    """Return a line of a log file with line breaks before facts, content and digest, where the format allows them."""
    line = event_line(stored)
    sections = {"facts": stored.facts, "content": stored.content, "digest": b'"' + stored.digest.hex().encode()}
    for name, value in sections.items():
        place = f',"{name}":'.encode() + value
        line = line.replace(place, place.replace(b",", b",\n", 1))
    return line + b"\n"


def log_file(story: Story) -> bytes:
    """Return a story as a log file."""
    created = story.events[0]
    if not isinstance(created, ChatCreated):
        raise TypeError("a story begins with a chat's creation")
    header = header_of(ChatId(created.chat), story.stored, release=created.release, flags=created.flags)
    return b"".join(write_log(header, story.stored))


def samples() -> dict[Path, bytes]:
    """Return all samples as the code gives them now."""
    events = {
        FOLDER / release / "events" / f"{name}.json": event_file(sample_event(event))
        for release, named in EVENTS.items()
        for name, event in named.items()
    }
    logs = {FOLDER / STORIES / "logs" / f"{name}.jsonl": log_file(story) for name, story in LOGS.items()}
    return events | logs


def add(found: dict[Path, bytes]) -> tuple[list[Path], list[Path]]:
    """Write what is missing, and nothing at all if a sample that exists differs.

    Returns:
        The files written, and the files that differ.
    """
    different = [path for path, text in found.items() if path.exists() and path.read_bytes() != text]
    missing = [] if different else [path for path in found if not path.exists()]
    for path in missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found[path])
    return missing, different


def main() -> int:
    """Add samples; the exit code is 1 if one that exists would have to change."""
    missing, different = add(samples())
    for path in missing:
        print(f"added {path.relative_to(FOLDER)}")
    for path in different:
        print(f"refused: {path.relative_to(FOLDER)} exists and is not what the code gives now", file=sys.stderr)
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
