"""Adds to the golden corpus what is missing in it: ``python -m tests.corpus.make``. What is there stays as it is.

With a folder, it is made there. The same code makes the same bytes, whenever and in whichever process it is run. Beside
each log stand its fold expectations, and a note on what wrote it and what its failure means.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from chatfold import __version__
from chatfold.corpus.adding import add_log
from tests.corpus.conditions import CONDITIONS
from tests.corpus.details import DETAILS
from tests.corpus.ends import ENDS
from tests.corpus.exits import EXITS
from tests.corpus.faults import FAULTS
from tests.corpus.features import FEATURES
from tests.corpus.fields import FIELDS
from tests.corpus.kit import DECLARED, play
from tests.corpus.lost import LOST
from tests.corpus.picked import AGENTS, LOGS
from tests.corpus.states import STATES

FOLDER: Final = Path(__file__).parent / "v0.2"
"""The logs of this release."""

_SCENARIOS: Final = {**FEATURES, **FIELDS, **STATES, **EXITS, **LOST, **ENDS, **FAULTS, **DETAILS, **CONDITIONS}


def made() -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Yield name, note, and what makes it, of each log."""
    for name, scenario in _SCENARIOS.items():
        yield name, _note(name, scenario), partial(play, scenario)
    for name, make in LOGS.items():
        world, seed, chat = name.split("_")
        kind = "simulated world" if world == "simulated" else "random conversation"
        yield name, f"Written by chat {chat} of the {kind} of seed {seed}. {_MEANS}", make


_MEANS: Final = "A failure means that today's code reads, folds or decides what was written then otherwise."


def _note(name: str, scenario: object) -> str:
    said = getattr(scenario, "__doc__", None) if name not in STATES else None
    what = said or f"A chat in {name.removeprefix('in_')}, and all that leaves it there; then it is moved."
    return f"{what.strip()} {_MEANS}"


def main(folder: Path = FOLDER) -> None:
    """Add what is missing."""
    logging.disable()  # what is killed, or ends with its run, says so
    folder.mkdir(exist_ok=True)
    for name, note, make in made():
        if not (folder / f"{name}.jsonl").exists():
            log = make()
            add_log(log, folder, name, f"{note} (chatfold {__version__})", [*AGENTS, *DECLARED.values()])
            sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
