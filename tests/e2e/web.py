"""The application of docs/web.md, as its readers have it: written to a file, loaded, served by uvicorn."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import httpx2

from tests.chatfold.cli.kit import environment
from tests.meta.pages import read
from tests.meta.source import ROOT

LIMIT: Final = 5
"""Seconds that the page gives uvicorn for its connections."""

_RUNNING: Final = re.compile(rb"Uvicorn running on (http://127\.0\.0\.1:\d+)")


def write_module(folder: Path) -> Path:
    """Write the page's module, without the part that tries it."""
    blocks = read(ROOT / "docs" / "web.md").blocks
    code = [block.text for block in blocks if block.language == "python" and block.heading != "Try it"]
    file = folder / "myservice.py"
    file.write_text("\n\n".join(code), encoding="utf-8")
    return file


def load_module(folder: Path) -> ModuleType:
    """Load the page's module into this process."""
    spec = importlib.util.spec_from_file_location("myservice", write_module(folder))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Sent:
    """One Server-Sent Event."""

    name: str
    id: str | None
    data: dict[str, Any]


def events_of(response: httpx2.Response) -> Iterator[Sent]:
    """Read a stream, event by event, until it ends."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield Sent(fields["event"], fields.get("id"), json.loads(fields["data"]))
            fields = {}
        else:  # a comment alone
            fields = {}


@dataclass(frozen=True)
class Served:
    """A process that serves the page's application."""

    process: subprocess.Popen[bytes]
    client: httpx2.Client


@contextmanager
def served(folder: Path, **env: str) -> Iterator[Served]:
    """Serve the page's application by the command that the page shows."""
    write_module(folder)
    command = [sys.executable, "-m", "uvicorn", "myservice:app", f"--timeout-graceful-shutdown={LIMIT}", "--port=0"]
    with started(folder, command, **env) as process:
        assert process.stderr is not None
        found = next(found for line in process.stderr if (found := _RUNNING.search(line)))
        with httpx2.Client(base_url=found[1].decode(), headers={"X-User": "ada"}, timeout=30) as client:
            yield Served(process, client)


@contextmanager
def started(folder: Path, command: list[str], **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a folder; it is killed in the end, where it has not ended."""
    known = environment(folder, PYTHONPATH=os.pathsep.join([str(ROOT), str(folder)]), **env)
    process = subprocess.Popen(command, cwd=folder, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
