"""Worker processes die by a seeded schedule; nothing is lost, doubled or stuck. `make soak` runs the whole length."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from chatfold.testing.crash import CrashConfig, InvalidCrashConfig, Report, run_crash_test
from chatfold.testing.crash.__main__ import app
from chatfold.testing.crash.schedule import faults, life
from chatfold.testing.cuts import OWED
from store.failpoints import POINTS, read_orders
from tests.meta.source import ROOT


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'chats.db'}?synchronous=normal&poll=0.05"
    make: Callable[[], str] = request.getfixturevalue("postgres_database")
    return make()


def checked(config: CrashConfig) -> Report:
    """Run a crash test that must find nothing."""
    report = run_crash_test(config)
    print(report)
    assert not report.violations, str(report)
    assert sum(count for what, count in report.counts.items() if what.startswith("processes killed")) >= config.kills
    return report


def test_a_dozen_kills(url: str) -> None:
    report = checked(CrashConfig(db=url, seed=1, kills=12, workers=2, chats=12, think=0.5))
    assert report.counts["commands done"] > 12
    assert report.counts["runs of tools begun"] > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_kills(url: str) -> None:
    postgres = url.startswith("postgres")
    kills, chats = (500, 200) if postgres else (150, 60)
    # With fewer kills more of what they meet must be slow, or too few answers are cut late.
    report = checked(CrashConfig(db=url, seed=7, kills=kills, chats=chats, slow=0.1 if postgres else 0.3))
    points = {what for what in report.counts if what.startswith("processes killed at ")}
    assert len(points) > 10
    assert cut_late(report) > 0


def cut_late(report: Report) -> int:
    """How many answers the chats owed something of whose worker was lost: only these show that it is kept."""
    return sum(count for what, count in report.counts.items() if what.startswith("answers cut late, by another"))


def test_a_lost_command_is_found(tmp_path: Path) -> None:
    report = run_crash_test(
        CrashConfig(
            db=f"sqlite:///{tmp_path / 'chats.db'}?synchronous=normal&poll=0.05",
            kills=2,
            workers=2,
            chats=6,
            think=0.1,
            setup="tests.crash.planted:acknowledge_without_writing",
        )
    )
    # The command that is lost may be any of a chat, its first one too.
    assert {"acknowledged", "exists"} & {violation.check for violation in report.violations}
    assert "VIOLATION (" in str(report)
    assert report.command.startswith("python -m chatfold.testing.crash --seed 1 --kills 2 --workers 2 --chats 6 --db")


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_tool_that_runs_twice_is_found(url: str) -> None:
    report = run_crash_test(
        CrashConfig(db=url, kills=60, chats=40, think=1.0, setup="tests.crash.planted:run_lost_calls_again")
    )
    assert "tools once" in {violation.check for violation in report.violations}


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_text_that_is_lost_is_found(url: str) -> None:
    report = run_crash_test(
        CrashConfig(db=url, kills=60, chats=40, think=1.0, slow=0.5, setup="tests.crash.planted:keep_no_partials")
    )
    print(f"{len(report.violations)} answers of {cut_late(report)} lost what they had said")
    assert {violation.check for violation in report.violations} == {"streamed text kept"}
    assert len(report.violations) <= cut_late(report)


def test_the_last_of_several_workers_lives_long_enough_to_have_said_much() -> None:
    config = CrashConfig(db="sqlite:///x", workers=3)
    assert [life(config, slot, 5).spared > OWED for slot in range(3)] == [False, False, True]
    assert life(replace(config, workers=1), 0, 5).spared == 0


def test_the_schedule_is_derived_from_the_seed() -> None:
    def planned(seed: int) -> list[object]:
        config = CrashConfig(db="postgresql://x/y", seed=seed)
        return [fault for fault, _ in zip(faults(config), range(50), strict=False)] + [
            life(config, slot, number) for slot in range(4) for number in range(20)
        ]

    assert planned(1) == planned(1)
    assert planned(1) != planned(2)


def test_workers_are_armed_at_every_point_that_they_come_to() -> None:
    config = CrashConfig(db="sqlite:///x", workers=1)
    armed = {order.point for number in range(1000) for order in read_orders(life(config, 0, number).failpoints)}
    elsewhere = {"delete.committed", "import.committed", "migration.begun", "migration.written"}
    assert armed == set(POINTS) - elsewhere
    kinds = {fault.kind for fault, _ in zip(faults(config), range(1000), strict=False)}
    assert kinds == {"kill", "stop", "drain"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kills", -1),
        ("workers", 0),
        ("chats", 0),
        ("rate", 0.0),
        ("lease", float("nan")),
        ("seed", "one"),
        ("db", "memory://"),
        ("setup", "nothing"),
    ],
)
def test_what_cannot_be_run_is_refused(field: str, value: object) -> None:
    given: dict[str, object] = {"db": "sqlite:///x", field: value}
    with pytest.raises(InvalidCrashConfig, match=f"^{field}: "):
        CrashConfig(**given)  # type: ignore[arg-type]


def test_a_database_with_chats_is_refused(tmp_path: Path) -> None:
    config = CrashConfig(db=f"sqlite:///{tmp_path / 'chats.db'}", kills=0, workers=1, chats=1)
    assert not run_crash_test(config).violations
    with pytest.raises(InvalidCrashConfig, match="an empty one"):
        run_crash_test(config)


def test_by_hand() -> None:
    words = ["--kills", "1", "--chats", "2", "--workers", "1", "--think", "0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "chatfold.testing.crash", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("No violation.\n")


def test_by_hand_the_points_are_listed() -> None:
    done = CliRunner().invoke(app, ["points"])
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(POINTS)


@pytest.mark.parametrize(
    ("words", "said"), [(["--workers", "0"], "between 1 and 64"), (["pints"], "only word"), (["--db", "x://"], "x://")]
)
def test_by_hand_a_mistake_is_explained(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_by_hand_help_teaches() -> None:
    done = CliRunner().invoke(app, ["--help"])
    assert all(said in done.stdout for said in ("SIGKILL", "Examples:", "--seed", "Exit status"))
