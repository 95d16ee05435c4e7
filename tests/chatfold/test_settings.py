"""Settings: defaults, TOML file, environment, arguments, in that order of weight."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from chatfold import Engine, InvalidValue, Settings
from chatfold.settings import stray_variables


def test_each_source_outweighs_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("poll = 2.0\ngrace = 3.0\nlease = 4.0\n")
    monkeypatch.setenv("CHATFOLD_CONFIG", str(file))
    monkeypatch.setenv("CHATFOLD_GRACE", "30")
    monkeypatch.setenv("CHATFOLD_LEASE", "40")
    settings = Settings(lease=50)
    assert (settings.capacity, settings.poll, settings.grace, settings.lease) == (100, 2.0, 30.0, 50.0)


def test_the_file_in_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chatfold.toml").write_text("queue_limit = 3\n")
    monkeypatch.chdir(tmp_path)
    assert Settings().queue_limit == 3


def test_a_setting_that_is_misspelt_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("pol = 2.0\n")
    monkeypatch.setenv("CHATFOLD_CONFIG", str(file))
    with pytest.raises(InvalidValue, match="pol"):
        Settings()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pol = 2.0", "pol: there is no such setting; did you mean poll?"),
        ("nothing_like_it = 2.0", "nothing_like_it: there is no such setting"),
        ("pol = 2.0\nlease = 0", "pol: there is no such setting; did you mean poll?"),
        ("poll = 'soon'", "poll: must be a valid number"),
        ("base_url = 'foo'", "base_url: a service's URL is http"),
        ("poll ==", "is not TOML: Invalid value"),
    ],
)
def test_what_is_wrong_with_the_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    monkeypatch.setenv("CHATFOLD_CONFIG", str(file))
    with pytest.raises(InvalidValue) as refused:
        Settings()
    assert refused.value.path.startswith(str(file))
    assert problem in str(refused.value)


@pytest.mark.parametrize("name", ["none.toml", ""])
def test_a_file_that_is_named_and_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("CHATFOLD_CONFIG", str(tmp_path / name))
    with pytest.raises(InvalidValue, match=f"^{tmp_path / name}: .*; CHATFOLD_CONFIG names it"):
        Settings()


@pytest.mark.parametrize("url", ["foo", "", "htp://x", "http://", "http://a b", "http://h:port", "http://h:0", "//x"])
def test_a_base_url_that_reaches_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with pytest.raises(InvalidValue, match=r"http://HOST|holds blanks|Port could not"):
        Settings(base_url=url)
    monkeypatch.setenv("CHATFOLD_BASE_URL", url)
    with pytest.raises(InvalidValue, match=r"http://HOST|holds blanks|Port could not"):
        Settings()


@pytest.mark.parametrize("url", ["http://localhost:11434/v1", "https://[::1]:1/", "https://gateway.example/a"])
def test_a_base_url_that_may_reach_something_is_taken(url: str) -> None:
    assert Settings(base_url=url).base_url == url


def test_a_value_out_of_range_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATFOLD_CAPACITY", "0")
    with pytest.raises(InvalidValue, match="CHATFOLD_CAPACITY: must be"):
        Settings()


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e13, 10**30, -1])
@pytest.mark.parametrize(
    "name",
    ["capacity", "lease", "poll", "grace", "first_part_timeout", "silence_timeout", "model_retry_unit", "queue_limit"],
)
def test_every_number_has_its_bounds(name: str, value: float) -> None:
    with pytest.raises(InvalidValue, match=name):
        Settings.model_validate({name: value})


def test_worker_settings_take_every_time_of_the_same_name() -> None:
    settings = Settings(lease=7, poll=6, grace=5, first_part_timeout=4, silence_timeout=3, capacity=2)
    worker = settings.worker_settings()
    for name in ("lease", "poll", "grace", "first_part_timeout", "silence_timeout", "capacity", "model_retry_unit"):
        assert getattr(worker, name) == getattr(settings, name)


@pytest.mark.parametrize(
    ("given", "variables", "path", "why"),
    [
        ({"leese": 3}, {}, "$.leese", "there is no such setting; did you mean lease?"),
        ({"zzz": 3}, {}, "$.zzz", "there is no such setting"),
        ({"lease": 0}, {}, "$.lease", "must be greater than 0"),
        ({"lease": 0}, {"CHATFOLD_LEASE": "3"}, "$.lease", "must be greater than 0"),
        ({}, {"CHATFOLD_LEASE": "0"}, "CHATFOLD_LEASE", "must be greater than 0"),
        ({"leese": 3}, {"CHATFOLD_POLL": "0"}, "CHATFOLD_POLL", "must be greater than 0; $.leese: there is no such"),
    ],
)
def test_a_wrong_setting_is_an_error_of_ours_that_says_where(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], variables: dict[str, str], path: str, why: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidValue) as refused:
        Settings(**given)
    assert refused.value.path == path
    assert refused.value.why.startswith(why)


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("CHATFOLD_LEESE", "CHATFOLD_LEASE"),
        ("chatfold_quee_limit", "CHATFOLD_QUEUE_LIMIT"),
        ("CHATFOLD_ZZZ", None),
        ("CHATFOLD_DB_PORTS", None),
    ],
)
async def test_a_variable_that_is_no_setting_is_warned_of_and_refused_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, nearest: str | None
) -> None:
    monkeypatch.setenv(variable, "3")
    engine = Engine("memory://", worker=False)
    assert engine.settings == Settings()
    (record,) = [each for each in caplog.records if each.getMessage() == "setting_unknown"]
    said: Any = vars(record)
    assert (record.levelname, said["variable"], said["nearest"]) == ("WARNING", variable, nearest)


@pytest.mark.parametrize(
    "variable",
    [
        "CHATFOLD_CONFIG",
        "CHATFOLD_FAILPOINTS",
        "CHATFOLD_TEST_PYTHONS",
        "CHATFOLD_BENCH_POSTGRES",
        "CHATFOLD_LEASE",
        "chatfold_lease",
        "CHATFOLDLEESE",
        "ANTHROPIC_BASE_URL",
        "CHATFOLD_SERVICE_HOST",
        "CHATFOLD_SERVICE_PORT",
        "CHATFOLD_SERVICE_PORT_HTTP",
        "CHATFOLD_PORT",
        "CHATFOLD_PORT_8000_TCP",
        "CHATFOLD_PORT_8000_TCP_ADDR",
        "CHATFOLD_DB_SERVICE_HOST",
        "CHATFOLD_DB_PORT_5432_TCP_PROTO",
    ],
)
def test_what_others_read_is_not_warned_of(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    for name in [name for name in os.environ if name.upper().startswith("CHATFOLD")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, "3")
    assert list(stray_variables()) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"log_level": "loud"}, r"\$\.log_level: must be one of debug, info, warning, error"),
        ({"capacity": True}, r"\$\.capacity: must be no flag"),
        ({"lease": True}, r"\$\.lease: must be no flag"),
    ],
)
def test_what_only_looks_like_a_value_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        Settings(**given)


def test_a_level_may_be_written_in_capitals() -> None:
    assert Settings(log_level="DEBUG").log_level == "DEBUG"


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chatfold.toml").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match=r"chatfold\.toml: Is a directory"):
        Settings()
