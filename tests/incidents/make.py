"""Writes the logs of the prepared chats that are not there yet: ``python -m tests.incidents.make``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.incidents import scenes

FOLDER: Final = Path(__file__).parent
"""Where they are."""

SCENES: Final = (
    scenes.lost_result,
    scenes.compaction_loop,
    scenes.stop_after_good,
    scenes.stop_after_wrong,
    scenes.silent_client,
    scenes.retry_storm,
)


def main() -> None:
    """Write what is missing."""
    for scene in SCENES:
        file = FOLDER / f"{scene.__name__}.jsonl"
        if not file.exists():
            file.write_bytes(scene())
            sys.stdout.write(f"{file.name}\n")


if __name__ == "__main__":
    main()
