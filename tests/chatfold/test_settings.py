"""Settings: defaults, TOML file, environment, arguments, in that order of weight."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from chatfold import Settings


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
    with pytest.raises(ValidationError, match="pol"):
        Settings()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pol = 2.0", "pol\n  Extra inputs"),
        ("poll = 'soon'", "poll\n  Input should be a valid number"),
        ("base_url = 'foo'", "base_url\n  a service's URL is http"),
        ("poll ==", "is not TOML: Invalid value"),
    ],
)
def test_what_is_wrong_with_the_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    monkeypatch.setenv("CHATFOLD_CONFIG", str(file))
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert refused.value.title == str(file)
    assert problem in str(refused.value)


@pytest.mark.parametrize("name", ["none.toml", ""])
def test_a_file_that_is_named_and_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("CHATFOLD_CONFIG", str(tmp_path / name))
    with pytest.raises(ValidationError, match=f"{tmp_path / name}\n.*; CHATFOLD_CONFIG names it"):
        Settings()


@pytest.mark.parametrize("url", ["foo", "", "htp://x", "http://", "http://a b", "http://h:port", "http://h:0", "//x"])
def test_a_base_url_that_reaches_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with pytest.raises(ValidationError, match=r"http://HOST|holds blanks|Port could not"):
        Settings(base_url=url)
    monkeypatch.setenv("CHATFOLD_BASE_URL", url)
    with pytest.raises(ValidationError, match=r"http://HOST|holds blanks|Port could not"):
        Settings()


@pytest.mark.parametrize("url", ["http://localhost:11434/v1", "https://[::1]:1/", "https://gateway.example/a"])
def test_a_base_url_that_may_reach_something_is_taken(url: str) -> None:
    assert Settings(base_url=url).base_url == url


def test_a_value_out_of_range_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATFOLD_CAPACITY", "0")
    with pytest.raises(ValidationError, match="capacity"):
        Settings()


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e13, 10**30, -1])
@pytest.mark.parametrize(
    "name",
    ["capacity", "lease", "poll", "grace", "first_part_timeout", "silence_timeout", "model_retry_unit", "queue_limit"],
)
def test_every_number_has_its_bounds(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        Settings.model_validate({name: value})


def test_worker_settings_take_every_time_of_the_same_name() -> None:
    settings = Settings(lease=7, poll=6, grace=5, first_part_timeout=4, silence_timeout=3, capacity=2)
    worker = settings.worker_settings()
    for name in ("lease", "poll", "grace", "first_part_timeout", "silence_timeout", "capacity", "model_retry_unit"):
        assert getattr(worker, name) == getattr(settings, name)
