"""How the process ends: also where a tool's thread never does, and at once where Ctrl-C is pressed twice.

Python waits at its end for every thread that was not made a daemon, and no thread can be stopped from outside. A tool
has had its grace by then, so the process leaves without it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from chatfold.cli.guard import INTERRUPTED

_TOOLS: Final = ("AnyIO worker thread", "asyncio_")
"""How the threads are called in which sync functions run: those of tools, and those of ``asyncio.to_thread``.

Python waits for the latter also where they are daemons.
"""

_MOMENT: Final = 0.3
"""Seconds that threads get that are about to end by themselves."""


def end(code: int) -> NoReturn:
    """End the process, without waiting for threads of tools."""
    if tools_run_on():
        end_now(code)
    sys.exit(code)


def end_now(code: int) -> NoReturn:
    """End the process and everything in it, now."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def tools_run_on() -> bool:
    """Tell whether threads of tools are still at work."""
    deadline = time.monotonic() + _MOMENT
    for thread in threading.enumerate():
        if thread.name.startswith(_TOOLS):
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                return True
    return False


def leave_at_the_second_ctrl_c() -> None:
    """From now on the first Ctrl-C raises KeyboardInterrupt, and one more ends the process at once.

    Where the signal is ignored, as a shell starts jobs in the background of a script, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    pressed = False

    def told(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            # Nothing is flushed: the signal may have come in the middle of a write, and channels flush as they write.
            os._exit(INTERRUPTED)
        pressed = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, told)
