"""What came of a crash test, and how it is shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from chatfold.testing.crash.config import CrashConfig

_ENTRY: Final = re.compile(r"^\d{4}-\S+ \S+ \S+ \d+ (?P<level>[A-Z]+) (?P<said>.*)$")
"""The first line of an entry in the workers' log; what a traceback says follows on lines of its own."""


class Violation(Struct, frozen=True, kw_only=True):
    """Something that must not be.

    Attributes:
        check: Which check found it.
        chat: The chat; empty where it is of none.
        problem: What is wrong.
        timeline: The chat's log, a line for each event.
    """

    check: str
    chat: str
    problem: str
    timeline: tuple[str, ...] = ()


class Report(Struct, frozen=True, kw_only=True):
    """What came of a crash test.

    Attributes:
        config: What was asked for.
        seconds: How long it was disturbed, how long the chats took to come to rest, and how long the checks took.
        counts: What happened how often.
        violations: What must not be and was found.
        logged: What workers logged as errors, a line each.
    """

    config: CrashConfig
    seconds: tuple[float, float, float]
    counts: dict[str, int]
    violations: tuple[Violation, ...]
    logged: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that runs this test again."""
        config, usual = self.config, CrashConfig(db="sqlite:")
        db = "postgres" if config.on_postgres else "sqlite"
        words = [f"python -m chatfold.testing.crash --seed {config.seed} --kills {config.kills}"]
        words += [f"--workers {config.workers} --chats {config.chats} --db {db}"]
        for name in ("rate", "capacity", "lease", "think", "slow", "patience"):
            if (value := getattr(config, name)) != getattr(usual, name):
                words.append(f"--{name} {value:g}")
        words += [f"--setup {config.setup}"] if config.setup else []
        return " ".join([*words, *(() if config.failpoints else ("--no-failpoints",))])

    def lines(self) -> Iterator[str]:
        """Yield the report as text."""
        disturbed, resting, checking = self.seconds
        yield f"disturbed for {disturbed:.1f} s, at rest after {resting:.1f} s more, checked in {checking:.1f} s"
        for what, count in sorted(self.counts.items()):
            yield f"{count:>8}  {what}"
        for violation in self.violations:
            yield ""
            yield f"VIOLATION ({violation.check}) {violation.chat}: {violation.problem}"
            yield from violation.timeline
        for line in self.logged:
            yield f"logged: {line}"
        yield ""
        yield f"{len(self.violations)} violations. Again: {self.command}" if self.violations else "No violation."

    def __str__(self) -> str:
        return "\n".join(self.lines())


def error_lines(log: str) -> list[str]:
    """Return what workers logged as errors, each kind once with how often; of a traceback the last line."""
    entries: list[list[str]] = []
    for line in log.splitlines():
        if _ENTRY.match(line):
            entries.append([line])
        elif entries:
            entries[-1].append(line)
    counts: Counter[str] = Counter()
    for first, *rest in entries:
        found = _ENTRY.match(first)
        if found is not None and found["level"] == "ERROR":
            counts[" | ".join([found["said"], *rest[-1:]])] += 1
    return [f"{count} times: {said}" for said, count in counts.most_common()]
