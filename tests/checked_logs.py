"""Checks, after each test, all logs that its engines wrote in this process: prompts, decisions, a rerun.

What engines of other processes write, their tests check themselves, where they read the logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from chatfold.rerunning.run import RerunReport, rerun_events
from chatfold.rerunning.words import told
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
    """Fail if an event of any log, or a request's messages, do not come out again when it is run through the engine."""
    reports = (rerun_events("log", log) for log in written.logs())
    problems = ["\n".join(told(report)) for report in reports if report.unsupported is None and not _came_again(report)]
    assert not problems, "\n".join(problems)


def _came_again(report: RerunReport) -> bool:
    # What hooks add to the request for a summary no log has.
    return report.same and all(change.section == "instruction" for change in report.sections)


def check_decisions(written: Written) -> None:
    """Fail if a decision of any log is not the one that the rules give on the state before it."""
    problems = [problem for log in written.logs() for problem in decision_problems(log)]
    assert not problems, "\n".join(problems)
