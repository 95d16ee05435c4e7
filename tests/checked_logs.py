"""Checks, after each test, all logs that its engines wrote in this process: prompts, decisions, a rerun.

What engines of other processes write, their tests check themselves, where they read the logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from chatfold.rerunning.director import Difference
from chatfold.rerunning.run import rerun_events
from chatfold.testing.decisions import decision_problems
from chatfold.testing.prompts import prompt_problems
from events.digest import GENESIS
from events.envelope import Recorded
from store.append import Journal


class Written:
    """What journals have written: each append by the digest of the log after it."""

    def __init__(self) -> None:
        self._prepared: dict[bytes, tuple[bytes, tuple[Recorded, ...]]] = {}
        self._appended: dict[bytes, tuple[bytes, tuple[Recorded, ...]]] = {}

    def prepared(self, before: bytes, after: bytes, recorded: tuple[Recorded, ...]) -> None:
        """Note what may be written."""
        self._prepared[after] = (before, recorded)

    def appended(self, after: bytes) -> None:
        """Note that it was."""
        if after in self._prepared:
            self._appended[after] = self._prepared.pop(after)

    def logs(self) -> Iterator[list[Recorded]]:
        """Yield all logs whose beginning was written here too."""
        inner = {before for before, _ in self._appended.values()}
        for head in self._appended.keys() - inner:
            pieces, at = [], head
            while at in self._appended:
                at, recorded = self._appended[at]
                pieces.append(recorded)
            if at == GENESIS:
                yield [each for piece in reversed(pieces) for each in piece]


@contextmanager
def watched() -> Iterator[Written]:
    """Watch what all journals of this process write."""
    written, prepare, execute = Written(), Journal._prepare, Journal._execute

    def preparing(self: Journal, chat: Any, loaded: Any, run: Any, *rest: Any) -> Any:
        made = prepare(self, chat, loaded, run, *rest)
        before = GENESIS if loaded is None else loaded.header.digest
        written.prepared(before, made[1].header.digest, tuple(run.recorded))
        return made

    async def executing(self: Journal, *args: Any, **named: Any) -> Any:
        outcome = await execute(self, *args, **named)
        written.appended(outcome.chat.header.digest)
        return outcome

    with patch.object(Journal, "_prepare", preparing), patch.object(Journal, "_execute", executing):
        yield written


def check_prompts(written: Written) -> None:
    """Fail if a prompt of any prefix of any log is not what the services take."""
    problems = [problem for log in written.logs() for problem in prompt_problems(log)]
    assert not problems, "\n".join(problems)


def check_reruns(written: Written) -> None:
    """Fail if an event of any log does not come out again when it is run through the engine."""
    reports = (rerun_events("log", log) for log in written.logs())
    problems = [told for report in reports if report.unsupported is None for told in _parted(report.difference)]
    assert not problems, "\n".join(problems)


def _parted(difference: Difference | None) -> Iterator[str]:
    if difference is None:
        return
    want, got = (each and each.event.type for each in (difference.want, difference.got))
    changes = ", ".join(map(str, difference.changes))
    yield f"version {difference.version}: {difference.kind}, {want} -> {got}: {changes} {difference.said}"


def check_decisions(written: Written) -> None:
    """Fail if a decision of any log is not the one that the rules give on the state before it."""
    problems = [problem for log in written.logs() for problem in decision_problems(log)]
    assert not problems, "\n".join(problems)
