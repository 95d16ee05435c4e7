"""The seam: what observers are told in which order, that they can fail nothing, and that reading a log tells nobody."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from chatfold.observing import Observer
from chatfold.verification import verify_chat
from events.replay import replay
from generation.observing import NOBODY, Observers, observer_of
from generation.providers.script import Script, UseTool, turn
from tests.chatfold.observing.kit import OVERLOADED, engine_of, said

METHODS = [name for name in vars(Observer) if not name.startswith("_") and name not in ("close", "attend")]


class Telling(Observer):
    """Notes what it is told, and fails where it shall."""

    def __init__(self, fails: bool = False) -> None:
        self.told: list[str] = []
        self.fails = fails

    def __getattribute__(self, name: str) -> Any:
        if name not in METHODS:
            return super().__getattribute__(name)

        def note(*args: object, **kwargs: object) -> None:
            self.told.append(name)
            if self.fails:
                raise RuntimeError(f"no {name}")

        return note


async def test_what_is_told_in_which_order() -> None:
    telling = Telling()
    script: Script = [turn(UseTool("add", {"a": 1, "b": 2})), turn(OVERLOADED), "Three."]
    async with engine_of(script, [telling]) as engine:
        await said(engine)
    effect = ["effect_begun", "call_begun", "first_part", "call_ended", "effect_ended", "appended", "committed"]
    tools = ["effect_begun", "tool_begun", "tool_ended", "effect_ended", "appended", "committed"]
    failed = [name for name in effect if name != "first_part"]
    assert telling.told == [
        "appended", "held", *effect, *tools, *failed, "let_go",
        "appended", "held", *effect, "let_go",
    ]  # fmt: skip


async def test_an_end_alone_is_no_first_part() -> None:
    telling = Telling()
    async with engine_of([turn()], [telling]) as engine:
        await said(engine)
    assert "call_ended" in telling.told
    assert "first_part" not in telling.told


async def test_an_observer_that_fails_fails_no_chat(caplog: pytest.LogCaptureFixture) -> None:
    failing, telling = Telling(fails=True), Telling()
    script: Script = [turn(UseTool("add", {"a": 1, "b": 2})), turn(OVERLOADED), "Three."]
    with caplog.at_level(logging.WARNING):
        async with engine_of(script, [failing, telling]) as engine:
            chat = await said(engine)
            control = (await engine.state(chat)).control
    assert control.status == "waiting"
    assert control.last_error is None
    assert failing.told == telling.told
    warned = [record.method for record in caplog.records if record.getMessage() == "observer_failed"]  # type: ignore[attr-defined]
    assert sorted(warned) == sorted(set(failing.told)), "once for each kind of call"


async def test_reading_replaying_and_verifying_tells_nobody() -> None:
    telling = Telling()
    async with engine_of(["Hello."], [telling]) as engine:
        chat = await said(engine)
        before = list(telling.told)
        assert await engine.export_log(chat)
        assert len(list(replay(await engine.events(chat)))) > 3
        assert (await verify_chat(engine.store, chat)).findings == ()
        await engine.state(chat, at=2)
        await engine.diagnose(chat)
        assert telling.told == before


def test_nobody_is_a_plain_observer() -> None:
    assert observer_of([]) is NOBODY
    assert isinstance(observer_of([Telling()]), Observers)


@pytest.mark.parametrize("name", METHODS)
def test_several_observers_are_told_all_that_one_is(name: str) -> None:
    method: Callable[..., None] = getattr(Observers, name)
    assert method is not getattr(Observer, name)


@pytest.mark.parametrize("module", ["chatfold", "chatfold.observing", "chatfold.engine"])
def test_the_packages_of_extras_stay_unloaded(module: str) -> None:
    code = (
        f"import sys, {module}; print([name for name in ('prometheus_client', 'opentelemetry') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("PrometheusObserver", "prometheus_client", "chatfold[prometheus]"),
        ("SpanObserver", "opentelemetry", "chatfold[otel]"),
    ],
)
def test_a_missing_package_names_its_extra(name: str, package: str, extra: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from chatfold.observing import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"pip install '{extra}'" in done.stderr
