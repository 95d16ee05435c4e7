"""Progress of long work, on stderr: a bar on a terminal, nothing where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chatfold.cli.output import Out


@contextmanager
def progress(out: Out, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar while the context is entered; what it gives is called for each of ``total`` things that is done."""
    if not out.talk.terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out.talk.console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
