"""``worker``: runs chats until it is told to stop, then lets go of them.

Owns signals and what is said; how chats are run and let go is the engine's.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

from chatfold.cli.agents import load_agents, load_engine
from chatfold.cli.ending import end_now
from chatfold.cli.guard import UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import load_settings, store_url
from chatfold.cli.session import LETTING_GO, let_go
from chatfold.cli.shapes import WorkerLine
from chatfold.collector import tune_collector
from chatfold.engine import Engine
from store import redacted

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def made_engine(
    agents: Sequence[str], engine: str | None, *, db: str | None, log_level: str | None, base_url: str | None
) -> tuple[Engine, str]:
    """Return the engine whose worker is to run, and what to call its store.

    Args:
        agents: Names of agents; without them it has the built-in one.
        engine: Name of an application's own engine; None to make one.
        db: The store.
        log_level: What is logged.
        base_url: Where the models' service is.

    Raises:
        UsageProblem: Agents or the engine cannot be loaded, or both are named.
    """
    if engine is None:
        settings = load_settings(db, log_level, base_url=base_url)
        url = store_url(settings)
        return Engine(url, load_agents(agents), settings=settings), redacted(url)
    given = [name for name, value in (("--agents", agents), ("--db", db), ("--base-url", base_url)) if value]
    if given:
        raise UsageProblem(f"--engine brings its own of {', '.join(given)}: leave that out")
    load_settings(None, log_level)  # sets logging up; the engine has settings of its own
    return load_engine(engine), f"the store of {engine}"


def run_worker(out: Out, engine: Engine, store: str, *, json: bool) -> None:
    """Run a worker; see the command.

    Raises:
        UsageProblem: The engine has no worker.
        StoreError: The store cannot be opened.
    """
    names = tuple(sorted(engine.runtime.agents))

    def say(worker: str, state: str, text: str) -> None:
        if json:
            out.data.json(WorkerLine(worker=worker, state=state, agents=names))
        else:
            out.note(printable(text))

    async def run() -> None:
        stop = asyncio.Event()
        _on_signal(stop, engine)
        async with engine:
            worker = engine.worker
            if worker is None:
                raise UsageProblem("--engine has no worker: make the engine without worker=False")
            lease = worker.worker
            tune_collector()
            say(lease, "started", f"worker {lease} runs chats of {', '.join(names)} in {store}")
            await stop.wait()
            say(lease, "draining", "stopping: letting go of chats (once more to stop at once)")
            await worker.stop("drain")
        say(lease, "stopped", "stopped")
        if not await _threads_ended():
            end_now(0)

    asyncio.run(run())


async def _threads_ended() -> bool:
    """End the loop's own threads, in which async tools may run sync functions; ``asyncio.run`` waits long for them."""
    ending = asyncio.ensure_future(asyncio.get_running_loop().shutdown_default_executor())
    done, _ = await asyncio.wait({ending}, timeout=LETTING_GO)
    return bool(done)


def _on_signal(stop: asyncio.Event, engine: Engine) -> None:
    """Set ``stop`` at the first signal; let go of everything and end the process at the second, or else the third."""
    loop = asyncio.get_running_loop()
    leaving: list[asyncio.Task[None]] = []

    async def leave(code: int) -> None:
        # The user does not want to wait: neither do those who take the chats over.
        await let_go(engine)
        end_now(code)

    def told(number: int) -> None:
        if leaving:
            end_now(128 + number)
        if stop.is_set():
            leaving.append(loop.create_task(leave(128 + number)))
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, told, number)
