"""Runs commands apart from everything: what opens a connection, starts a process, runs a tool or asks a model raises.

A program of its own, since the interpreter's audit hooks stay for good. Reads commands from stdin and prints, for each,
its exit code, what it said, and what it did that it must not have done, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final, NoReturn

OUTSIDE: Final = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "pty.",
    "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.",
)  # fmt: skip
"""How the interpreter's audit events begin that lead out of the process."""
FOUND: Final[list[str]] = []


def found(what: str) -> NoReturn:
    """Note what must not be, with who did it, and refuse it."""
    FOUND.append(
        f"{what}: {' < '.join(f'{at.filename}:{at.lineno}' for at in reversed(traceback.extract_stack()[-9:-1]))}"
    )
    raise PermissionError(f"{what} is not allowed here")


class Watch:
    """Watches audit events. ``loop``: an event loop may make the pair of sockets that it wakes itself by."""

    def __init__(self) -> None:
        self.loop = False

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if event.startswith(OUTSIDE) and not (self.loop and event == "socket.__new__" and _wakes_itself()):
            found(event)


def _wakes_itself() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_make_self_pipe" and "asyncio" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def never(what: str) -> Callable[..., Any]:
    """Return what is called in vain in the place of something."""
    return lambda *_, **__: found(what)


def forbid() -> None:
    """Let all raise that runs a tool, asks a model or a context source, or starts a process."""
    from generation.context import StaticContext
    from generation.hooks.dispatch import Hooks
    from generation.providers.scripted import ScriptedProvider
    from generation.tools.contract import Tool
    from generation.tools.execute import RunningCall

    for owner, name in (
        (RunningCall, "__init__"),
        (Tool, "__call__"),
        (ScriptedProvider, "stream"),
        (StaticContext, "collect"),
        (Hooks, "ask"),
        (BaseProcess, "start"),
    ):
        setattr(owner, name, never(f"{owner.__name__}.{name}"))


def step_without_a_terminal() -> None:
    """Let the debugger run as its tests let it, and walk through the log."""
    from chatfold.cli import step
    from chatfold.stepper.app import StepApp

    async def walked(app: StepApp, *_: Any, **__: Any) -> None:
        async with app.run_test() as pilot:
            await pilot.press("home", *["right"] * 5, "d", "e", "o", "end", "left")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert app.stepper.version > 0
            await pilot.press("q")

    step._is_terminal = lambda stream: True
    StepApp.run_async = walked  # type: ignore[method-assign,assignment]  # there is no terminal


def main() -> None:
    """Run the commands: each a list of arguments, and whether it needs an event loop."""
    watch = Watch()
    from typer.testing import CliRunner

    from chatfold.cli.app import app
    from tests.corpus.kit import add

    forbid()
    step_without_a_terminal()
    sys.addaudithook(watch)
    for arguments, loop in json.loads(sys.stdin.read()):
        watch.loop = loop
        FOUND.clear()
        with contextlib.redirect_stderr(io.StringIO()):
            done = CliRunner().invoke(app, arguments)
        line = {"code": done.exit_code, "out": done.stdout, "err": done.stderr, "found": list(FOUND)}
        sys.__stdout__.write(json.dumps(line) + "\n")  # type: ignore[union-attr]  # it is there
    watch.loop = True
    controls: dict[str, Callable[[], object]] = {
        "socket": socket.socket,
        "process": lambda: subprocess.run(["true"], check=True),
        "tool": lambda: add(1, 2),
        "loop": lambda: asyncio.new_event_loop().close(),
    }
    for name, control in controls.items():
        FOUND.clear()
        with contextlib.suppress(PermissionError):
            control()
        sys.__stdout__.write(json.dumps({"control": name, "found": list(FOUND)}) + "\n")  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
