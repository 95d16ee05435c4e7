"""The command ``python -m chatfold.testing.simulation``: one seed, or many in processes of their own."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from chatfold.testing.simulation.many import Run, outcomes
from chatfold.testing.simulation.profile import Size
from chatfold.testing.simulation.report import COMMAND, failure_of, summary_of
from chatfold.testing.simulation.run import simulate

_DESCRIPTION: Final = """\
Run the engine in simulated worlds: real code over a store in memory, virtual time, a network that loses and delays,
processes that die, stop and come back. A seed decides everything and does so again. Exits with 1 where something was
violated, and prints the command that runs the failing seed again."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a command line runs: one of a module of its own, by the name that ``python -m`` takes."""

    command: str
    description: str
    run: Run


SIMULATION: Final = Program(COMMAND, _DESCRIPTION, simulate)


def main(arguments: Sequence[str] | None = None, program: Program = SIMULATION) -> int:
    """Run what the command line asks for; returns the exit code."""
    parser = _parser(program)
    options = parser.parse_args(arguments)
    size = Size(**{field.name: getattr(options, field.name) for field in fields(Size)})
    if options.seed is not None:
        return _one(program, options.seed, size, trace=options.trace)
    seeds = range(1000) if options.seeds is None else options.seeds
    if options.trace:
        parser.error("--trace is for one --seed")
    # Asked to end, it ends its processes first.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _many(program, seeds, size, jobs=options.jobs, failures=options.failures)
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def _one(program: Program, seed: int, size: Size, *, trace: bool) -> int:
    outcome = program.run(seed, size, trace=trace)
    if trace:
        _say(str(outcome.profile), *outcome.trace)
    if outcome.violation is not None:
        _say(failure_of(outcome, size, program.command))
    _say(summary_of(outcome))
    return int(outcome.violation is not None)


def _many(program: Program, seeds: range, size: Size, *, jobs: int, failures: int) -> int:
    failed = events = done = 0
    columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("seeds", total=len(seeds))
            for outcome in outcomes(seeds, size, jobs=jobs, run=program.run):
                progress.advance(bar)
                done += 1
                events += outcome.events
                if outcome.violation is not None:
                    failed += 1
                    progress.stop()
                    _say(failure_of(outcome, size, program.command), "")
                    progress.start()
                    if failed >= failures:
                        break
    finally:
        # Also of a run that is cut short.
        of = f" of {len(seeds)}" if done < len(seeds) else ""
        _say(f"{done}{of} seeds, {events} events, {failed or 'no'} {'violation' if failed == 1 else 'violations'}")
    return int(failed > 0)


def _parser(program: Program) -> argparse.ArgumentParser:
    usual = Size()
    parser = argparse.ArgumentParser(prog=program.command, description=program.description)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seed", type=int, metavar="N", help="run this seed alone")
    which.add_argument("--seeds", type=_range, metavar="A:B", help="run the seeds from A to B - 1 (0:1000 by default)")
    parser.add_argument("--trace", action="store_true", help="print every step of the seed")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="processes at once")
    parser.add_argument("--failures", type=_positive, default=3, metavar="N", help="end after so many failing seeds")
    about = "bounds of the worlds; a seed is another world under other bounds"
    world = parser.add_argument_group("world", about)
    for name, kind, what in (
        ("workers", _positive, "processes that run chats, at most"),
        ("chats", _positive, "chats that users begin with, at most"),
        ("commands", _positive, "commands that users send, at most"),
        ("seconds", _seconds, "virtual seconds in which they send them"),
        ("steps", _positive, "steps after which a run is given up"),
    ):
        default = getattr(usual, name)
        world.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=f"{what} ({default})")
    return parser


def _range(text: str) -> range:
    first, colon, end = text.partition(":")
    seeds = range(int(first), int(end)) if colon else range(int(first))
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text} holds no seed: write A:B with A below B")
    return seeds


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
