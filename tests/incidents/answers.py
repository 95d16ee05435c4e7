"""Transcripts: the commands by which a person finds the cause of an incident, with what they print.

One text file stands beside each log. ``python -m tests.incidents.answers`` writes them anew; read the difference.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from typer.testing import CliRunner

from chatfold.cli.app import app
from tests.incidents.make import FOLDER

COMMANDS = {
    "lost_result": ("doctor lost_result.jsonl", "why lost_result.jsonl 7"),
    "compaction_loop": ("doctor compaction_loop.jsonl", "why compaction_loop.jsonl 38"),
    "stop_after_wrong": (
        "doctor stop_after_wrong.jsonl",
        "why stop_after_wrong.jsonl",
        "diff stop_after_good.jsonl stop_after_wrong.jsonl",
    ),
    "silent_client": ("doctor silent_client.jsonl", "why silent_client.jsonl 7"),
    "retry_storm": ("doctor retry_storm.jsonl", "why retry_storm.jsonl 23"),
}
"""What is asked of each; nobody needs to know more than the log's name."""


def transcript(name: str) -> str:
    """Return what a person sees who finds the cause of an incident; the working folder is that of the logs."""
    return "\n".join(_asked(name))


def _asked(name: str) -> Iterator[str]:
    for command in COMMANDS[name]:
        done = CliRunner().invoke(app, shlex.split(command))
        yield f"$ chatfold {command}\n{done.stdout}(exit code {done.exit_code})\n"


def main() -> None:
    """Write all transcripts."""
    os.chdir(FOLDER)
    for name in COMMANDS:
        (FOLDER / f"{name}.txt").write_text(transcript(name), encoding="utf-8")


if __name__ == "__main__":
    main()
