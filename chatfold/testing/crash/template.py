"""The template: a small process with everything imported, from which worker processes are forked in milliseconds.

``python -m chatfold.testing.crash.template`` reads orders from stdin and writes what became of workers to stdout, as
lines of JSON. It is their parent: it alone signals them, so that a signal never meets another process of the same
number, and it tells when one was stopped or ended. When its stdin ends it kills them all.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import sys
import threading
import traceback
from typing import Final, Literal

import msgspec
from msgspec import Struct

from chatfold.testing.crash.schedule import Life
from chatfold.testing.crash.worker import Place, run_worker


class Order(Struct, frozen=True, kw_only=True):
    """To the template: start a worker (``life``), or send it a ``signal``."""

    slot: int
    life: Life | None = None
    signal: int | None = None


class News(Struct, frozen=True, kw_only=True):
    """From the template. ``status`` is the exit status of one that ended, negative for the signal that ended it."""

    what: Literal["started", "stopped", "ended"]
    slot: int
    process: int
    status: int = 0


_ORDERS: Final = msgspec.json.Decoder(Order)


class Template:
    """The template's loop.

    Args:
        place: Where its workers work.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._workers: dict[int, int] = {}
        self._rest = b""
        self._lifeline, self._life = os.pipe()
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        self._waking = waking

    def run(self) -> None:
        """Work until stdin ends."""
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._woken in ready:
                    os.read(self._woken, 4096)
                    self._look()
                if 0 in ready and not self._read():
                    break
        for process in self._workers.values():
            os.kill(process, signal.SIGKILL)

    def _read(self) -> bool:
        data = os.read(0, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            order = _ORDERS.decode(line)
            if order.life is not None:
                self._start(order.life)
            elif order.signal is not None and order.slot in self._workers:
                os.kill(self._workers[order.slot], order.signal)
        return bool(data)

    def _start(self, life: Life) -> None:
        process = os.fork()
        if process == 0:
            self._become(life)
        self._workers[life.slot] = process
        _tell(News(what="started", slot=life.slot, process=process))

    def _become(self, life: Life) -> None:
        """Be a worker until its end."""
        status = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (self._life, self._woken, self._waking):
                os.close(each)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            log = os.open(self._place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            status = run_worker(self._place, life, self._lifeline)
        except BaseException:  # noqa: BLE001 - what a worker dies of is told, and never unwinds into the template
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _look(self) -> None:
        """Tell of workers that were stopped or have ended."""
        for slot, process in list(self._workers.items()):
            found, status = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
            if found == 0:
                continue
            if os.WIFSTOPPED(status):
                _tell(News(what="stopped", slot=slot, process=process))
                continue
            del self._workers[slot]
            _tell(News(what="ended", slot=slot, process=process, status=os.waitstatus_to_exitcode(status)))


def _tell(news: News) -> None:
    os.write(1, msgspec.json.encode(news) + b"\n")


def main() -> None:
    """Import what workers need, and run the template that the first argument describes."""
    place = msgspec.json.decode(sys.argv[1], type=Place)
    if place.db.startswith("sqlite"):
        import store.sqlite
    else:
        import store.postgres  # noqa: F401
    if threading.active_count() > 1:
        raise RuntimeError("a process with threads cannot be forked safely")
    gc.freeze()
    Template(place).run()


if __name__ == "__main__":
    main()
