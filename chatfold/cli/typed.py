"""Values of options that the engine refuses: told by the option that was typed, and not by the name within."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chatfold.cli.guard import UsageProblem
from events.errors import InvalidValue


@contextmanager
def told_as(**typed: str) -> Iterator[None]:
    """Tell of what the engine refuses in the block by what was typed.

    Args:
        typed: Arguments of the engine, by which names they are known on the command line: ``as_id="--as"``.

    Raises:
        UsageProblem: One of them is refused.
    """
    try:
        yield
    except InvalidValue as error:
        option = typed.get(error.path.removeprefix("$."))
        if option is None:
            raise
        raise UsageProblem(f"{option}: {error.why}") from error
