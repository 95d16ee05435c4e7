"""A seed is the same run wherever and however often it is run."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time

import pytest

from chatfold.testing.simulation import Size, simulate
from chatfold.testing.simulation.__main__ import main
from chatfold.testing.simulation.report import command_of, failure_of
from events.errors import InvalidValue
from tests.meta.source import ROOT
from tests.simulation.bugs import BUGS

SEEDS = range(40, 60)
_PROGRAM = (
    "from chatfold.testing.simulation import simulate\n"
    f"for seed in range({SEEDS.start}, {SEEDS.stop}):\n"
    "    outcome = simulate(seed)\n"
    "    print(seed, outcome.digest, outcome.steps, outcome.events, outcome.seconds)\n"
)


def told(hash_seed: str) -> str:
    """What another process makes of the seeds, whose hashes of texts are others."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _PROGRAM]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def test_other_processes_run_the_same_steps() -> None:
    here = "".join(
        f"{seed} {outcome.digest} {outcome.steps} {outcome.events} {outcome.seconds}\n"
        for seed in SEEDS
        for outcome in [simulate(seed)]
    )
    assert told("1") == here
    assert told("4711") == here


def test_other_seeds_are_other_runs() -> None:
    assert len({simulate(seed).digest for seed in range(10)}) == 10


def test_other_bounds_are_another_run_and_are_named_in_the_command() -> None:
    size = Size(chats=1, commands=4)
    outcome = simulate(3, size)
    assert outcome.digest != simulate(3).digest
    assert command_of(3, size).endswith("--seed 3 --chats 1 --commands 4")
    assert command_of(3, size) in failure_of(outcome, size)


def test_nothing_of_a_run_is_left_behind() -> None:
    clock, before = time.time, random.getstate()
    simulate(1)
    assert time.time is clock
    assert abs(time.time_ns() / 1e9 - clock()) < 10
    assert random.getstate() == before
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_the_command_says_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "7"]) == 0
    first = capsys.readouterr().out
    assert main(["--seed", "7", "--trace"]) == 0
    whole = capsys.readouterr().out
    assert whole.endswith(first)
    assert len(whole.splitlines()) > 50
    assert "seed 7: well" in first


def test_a_failing_seed_is_told_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    with BUGS["lost_lease_revived"]():
        assert main(["--seeds", "0:40", "--jobs", "1", "--failures", "1"]) == 1
        said = capsys.readouterr().out
        command = next(line for line in said.splitlines() if "--seed " in line)
        assert "is alive again" in said
        assert main(command.split()[3:]) == 1
    assert "is alive again" in capsys.readouterr().out


def test_many_seeds_run_in_processes_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0:45", "--jobs", "2"]) == 0
    assert capsys.readouterr().out.startswith("45 seeds, ")


async def test_a_coroutine_is_no_place_to_simulate() -> None:
    with pytest.raises(RuntimeError, match="call it from a function that is no coroutine"):
        simulate(1)


def test_bounds_without_a_world_are_refused() -> None:
    with pytest.raises(InvalidValue, match="commands"):
        Size(commands=0)


@pytest.mark.parametrize(
    "wrong",
    [["--seeds", "5:5"], ["--jobs", "0"], ["--trace"], ["--seconds", "0"], ["--seed", "1", "--seeds", "0:2"]],
)
def test_a_wrong_command_line_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err
