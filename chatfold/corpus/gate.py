"""The gate: can this code read, fold, decide and run again every stored log, and does it all as it did?

Owns the checks of one log and their order. The first that finds something is the last, since the others would only
find what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from chatfold.corpus.expected import ExpectationError, FoldCheck, FoldDiffers, requests_expected
from chatfold.replaying.decisions import DRIFTS, decision_drifts
from chatfold.replaying.logs import LogSource, SourceNotFound, find_logs, problem_of
from chatfold.replaying.many import each
from chatfold.rerunning.declarations import declarations_beside
from chatfold.rerunning.run import rerun_events
from chatfold.rerunning.words import section_said, told_of
from chatfold.testing.prompts import prompt_problems
from chatstate.audit import audit
from events.diff import Change
from events.envelope import Recorded
from events.errors import EventsError
from events.replay import replay
from events.vocabulary import decision_of

Check: TypeAlias = Literal["read", "fold", "audit", "decide", "prompts", "rerun"]
CHECKS: Final[tuple[Check, ...]] = get_args(Check)
"""All checks, in their order: ``read`` is always made, since the others need it."""

FOLD: Final = ".fold"
NOTE: Final = ".md"
"""What stands beside a log NAME.jsonl: NAME.fold, and NAME.md, which says what wrote it."""


class CorpusFinding(Struct, frozen=True, kw_only=True):
    """What is wrong with a log of a corpus, or with what today's code makes of it.

    Attributes:
        log: The log's file.
        check: Which check found it.
        problem: What is wrong, in a line.
        version: The version at which it is; None where it is of none.
        rule: The decision rule under which that version was written; None where nothing was decided before it.
        changes: What differs, from then to today.
    """

    log: str
    check: Check
    problem: str
    version: int | None = None
    rule: str | None = None
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        """Say it in a line."""
        place = "" if self.version is None else f", version {self.version}"
        under = "" if self.rule is None else f" (under {self.rule})"
        return f"{self.log}{place}{under}: {self.check}: {self.problem}"


class CheckedLog(Struct, frozen=True, kw_only=True):
    """What the gate says of one log.

    Attributes:
        log: The log's file.
        events: How many it has.
        finding: What is wrong; None where all is well.
        unsupported: Why it cannot be run again, where that is so and no fault.
    """

    log: str
    events: int = 0
    finding: CorpusFinding | None = None
    unsupported: str | None = None


def check_corpus(
    folder: Path,
    *,
    checks: Collection[Check] = CHECKS,
    jobs: int | None = None,
    done: Callable[[], None] | None = None,
) -> Iterator[CheckedLog]:
    """Yield what the gate says of each log of a folder, in the order of their names.

    Args:
        folder: The corpus.
        checks: Which checks to make.
        jobs: Processes at once; 1 for this one alone, None for as many as there are cores.
        done: Called after each log.

    Raises:
        SourceNotFound: The folder is not there, or has no log.
    """
    yield from each(partial(check_log, checks=frozenset(checks)), logs_of(folder), jobs=jobs, done=done)


def logs_of(folder: Path) -> list[LogSource]:
    """Return the logs of a corpus, by their names.

    Raises:
        SourceNotFound: The folder is not there, or has no log.
    """
    if not folder.is_dir():
        raise SourceNotFound(str(folder), f"there is no folder {folder}")
    # By an absolute path: that of a folder in this one may look like a chat's id.
    return find_logs([str(folder.absolute())])


def beside(source: LogSource, suffix: str) -> Path:
    """Return the file of that kind which belongs to a log."""
    return Path(source.where.removesuffix(".jsonl") + suffix)


def check_log(source: LogSource, checks: Collection[Check] = CHECKS) -> CheckedLog:
    """Make the checks of one log."""
    name = source.name
    try:
        log = source.read()
        altered = log.altered()
        events = log.recorded()
    except (EventsError, SourceNotFound, OSError) as error:
        return CheckedLog(log=name, finding=CorpusFinding(log=name, check="read", problem=problem_of(name, error)))
    if altered is not None:
        problem = f"it is not as it was written: {altered.why}"
        changed = CorpusFinding(log=name, check="read", problem=problem, version=altered.version)
        return CheckedLog(log=name, events=len(events), finding=changed)
    run = _Run(source, events, redacted=log.redacted)
    finding = next(filter(None, (run.make(check) for check in CHECKS if check in checks)), None)
    return CheckedLog(log=name, events=len(events), finding=finding, unsupported=run.unsupported)


class _Run:
    """The checks of a log that could be read."""

    def __init__(self, source: LogSource, events: list[Recorded], *, redacted: bool) -> None:
        self._source: Final = source
        self._events: Final = events
        self._redacted: Final = redacted
        self.unsupported: str | None = None

    def make(self, check: Check) -> CorpusFinding | None:
        makes: Mapping[Check, Callable[[], CorpusFinding | None]] = {
            "fold": self._fold,
            "audit": self._audit,
            "decide": self._decide,
            "prompts": self._prompts,
            "rerun": self._rerun,
        }
        try:
            return makes[check]() if check in makes else None
        except Exception as error:  # noqa: BLE001 -- whatever today's code raises is what was to be found out
            return self._found(check, f"{type(error).__name__}: {error}")

    def _fold(self) -> CorpusFinding | None:
        file = beside(self._source, FOLD)
        version = 0
        try:
            with file.open("rb") as lines:
                expected = FoldCheck(lines)
                for step in replay(self._events):
                    version = step.recorded.version
                    expected.take(version, step.after)
                expected.end()
        except FileNotFoundError:
            return self._found(
                "fold", f"its fold expectations are missing: `chatfold corpus refold` writes {file.name}"
            )
        except FoldDiffers as differs:
            problem = f"it folds otherwise: {', '.join(map(str, differs.changes))}"
            return self._found("fold", problem, differs.version, differs.changes)
        except ExpectationError as error:
            return self._found("fold", f"{file.name}: {error}")
        except Exception as error:  # noqa: BLE001 -- as in make, and the version is known here
            return self._found("fold", f"{type(error).__name__}: {error}", version + 1)
        return None

    def _audit(self) -> CorpusFinding | None:
        for finding in audit(self._events):
            return self._found("audit", finding.problem, finding.version)
        return None

    def _decide(self) -> CorpusFinding | None:
        for drift in decision_drifts(self._events):
            rule = None if drift.then is None else drift.then.rule
            said = DRIFTS[drift.kind] if drift.kind != "rule" or drift.now is None else f"now {drift.now.rule} holds"
            problem = "; ".join([said, *map(str, drift.changes)])
            return self._found("decide", problem, drift.version, drift.changes, rule=rule)
        return None

    def _prompts(self) -> CorpusFinding | None:
        for problem in prompt_problems(self._events):
            place, _, said = problem.removeprefix("version ").partition(": ")
            return self._found("prompts", said, int(place))
        return None

    def _rerun(self) -> CorpusFinding | None:
        wanted = requests_expected(beside(self._source, FOLD))
        kept = declarations_beside(self._source.where)
        report = rerun_events(self._source.name, self._events, redacted=self._redacted, kept=kept)
        if report.unsupported is not None:
            self.unsupported = str(report.unsupported)
        if report.difference is None:
            built = [change for change in report.sections if change.section in wanted]
            return self._found("rerun", section_said(built[0], len(built)), built[0].version) if built else None
        said = " / ".join(line.strip() for line in told_of(report.difference))
        return self._found("rerun", said, report.difference.version, report.difference.changes)

    def _found(
        self,
        check: Check,
        problem: str,
        version: int | None = None,
        changes: tuple[Change, ...] = (),
        *,
        rule: str | None = None,
    ) -> CorpusFinding:
        under = rule if rule is not None or version is None else self._rule(version)
        return CorpusFinding(
            log=self._source.name, check=check, problem=problem, version=version, rule=under, changes=changes
        )

    def _rule(self, version: int) -> str | None:
        """Return the rule of the last decision up to a version."""
        rule = None
        for recorded in self._events[:version]:
            if (decision := decision_of(recorded.event)) is not None:
                rule = decision.rule
        return rule
