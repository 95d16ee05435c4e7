"""What the fixtures of the pytest plug-in give; each is of use without pytest too."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from chatfold.checks import checked_providers
from chatfold.engine import Engine
from chatfold.replaying.logs import SUFFIX, LogSource, SourceNotFound, find_logs
from chatfold.settings import Settings
from chatfold.testing.crash.config import CrashConfig
from chatfold.testing.crash.report import Report
from chatfold.testing.crash.run import run_crash_test
from events.counting import counted
from generation.agents import Agent
from generation.providers.script import Script
from generation.providers.scripted import NAME, ScriptedProvider
from store import open_store
from store.urls import parse_postgres

__all__ = ["CrashRunner", "EngineMaker", "LogsNotFound", "ProviderMaker", "StoreKind", "empty_store", "sources_of"]

StoreKind: TypeAlias = Literal["memory", "sqlite", "postgres"]


class LogsNotFound(LookupError):
    """A test should run for each log of a source that has none."""


def sources_of(folder: Path, sources: Sequence[object]) -> dict[str, LogSource]:
    """Return the logs that sources name, by names that are the same wherever the tests are run.

    Args:
        folder: What relative sources start from.
        sources: Files, folders and patterns.

    Raises:
        LogsNotFound: One is no text or path, or names no log.
    """
    named = []
    for source in sources:
        if not isinstance(source, str | os.PathLike):
            raise LogsNotFound(f"chatfold_logs takes files, folders and patterns, not {source!r}")
        named.append(str(folder / source))
    try:
        found = find_logs(named)
    except SourceNotFound as missing:
        raise LogsNotFound(str(missing)) from None
    logs: dict[str, LogSource] = {}
    for each in found:
        if not Path(each.where).exists():
            raise LogsNotFound(f"there is no file or folder {each.where}")
        # Without what no file's name has, so that a snapshot of the test can be named so.
        name = os.path.relpath(each.where, folder).removesuffix(SUFFIX).replace(os.sep, ".")
        while name in logs:
            name += "+"
        logs[name] = each
    return logs


@contextmanager
def empty_store(kind: StoreKind, folder: Path, server: str | None = None) -> Iterator[str]:
    """Give the URL of an empty store while the context is entered.

    Args:
        kind: Which store.
        folder: Where a SQLite file goes.
        server: URL of the PostgreSQL server, for that kind: a database is made there, and dropped at the end.

    Raises:
        InvalidStoreUrl: It is no such URL.
        MissingExtra: The PostgreSQL driver is not installed.
    """
    match kind:
        case "memory":
            yield "memory://"
        case "sqlite":
            yield f"sqlite:///{folder / 'chatfold.db'}"
        case "postgres":
            with _database(server or "") as url:
                yield url


@contextmanager
def _database(server: str) -> Iterator[str]:
    open_store(server)  # makes no connection, and says where this is no URL or the driver is not installed
    import psycopg
    from psycopg import sql

    name = f"chatfold_{uuid.uuid4().hex}"
    with psycopg.connect(parse_postgres(server).conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            before, _, query = server.partition("?")
            scheme, _, rest = before.partition("://")
            yield f"{scheme}://{rest.partition('/')[0]}/{name}" + (f"?{query}" if query else "")
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


class ProviderMaker:
    """Makes scripted models, and knows which of them were not asked as often as their scripts say."""

    def __init__(self) -> None:
        self._made: Final[list[tuple[Sequence[object], ScriptedProvider]]] = []

    def __call__(self, script: Script, *, name: str = NAME) -> ScriptedProvider:
        """Return a model that answers from a script; see :class:`chatfold.testing.ScriptedProvider`."""
        made = ScriptedProvider(script, name=name)
        if not callable(script):
            self._made.append((script, made))
        return made

    def left_over(self) -> str:
        """Say which scripts have turns left; nothing where all were played."""
        return self._other(lambda calls, turns: calls < turns)

    def used_up(self) -> str:
        """Say which models were called once more than their scripts have turns; nothing where none was."""
        return self._other(lambda calls, turns: calls > turns)

    def _other(self, differs: Callable[[int, int], bool]) -> str:
        return "\n".join(
            f"the model {made.name!r} was called {counted(len(made.requests), 'time')}, "
            f"its script has {counted(len(script), 'turn')}"
            for script, made in self._made
            if differs(len(made.requests), len(script))
        )


class EngineMaker:
    """Makes engines over one store.

    Args:
        store: Its URL.
        models: Makes the scripted models, and knows whose scripts were not played to their end.

    Attributes:
        store: Its URL. Each engine over ``memory://`` has chats of its own; those over others share them.
    """

    def __init__(self, store: str, models: ProviderMaker | None = None) -> None:
        self.store: Final = store
        self._models: Final = ProviderMaker() if models is None else models

    def __call__(
        self,
        agents: Iterable[Agent],
        *,
        script: Script | None = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> Engine:
        """Return an engine, to be entered.

        Args:
            agents: Agents that chats may name.
            script: What the model ``scripted`` answers; or give ``providers``.
            settings: Times and limits, as for :class:`chatfold.Engine`.
            options: Further arguments of :class:`chatfold.Engine`.

        Raises:
            ValueError: Both a script and a model of that name are given.
            InvalidValue: The script is none, or an argument none that an engine takes.
        """
        if script is not None:
            providers = checked_providers(options.get("providers"))
            if NAME in providers:
                raise ValueError(f"give script= or a provider {NAME!r}, not both")
            options["providers"] = {**providers, NAME: self._models(script)}
        return Engine(self.store, agents, settings=settings, **options)


class CrashRunner:
    """Runs crash tests, each on a database of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._runs = 0

    def __call__(self, *, db: str | None = None, kills: int = 20, chats: int = 20, **config: Any) -> Report:
        """Run one and return its report.

        Args:
            db: URL of an empty database; None for a SQLite file.
            kills: Processes to be killed; half a minute goes by for some thirty.
            chats: Chats, each with a user.
            config: Further fields of :class:`chatfold.testing.crash.CrashConfig`.

        Raises:
            AssertionError: Something was found that must not be; the text tells how to run it again.
            InvalidCrashConfig: Such a test cannot be run.
        """
        self._runs += 1
        url = db or f"sqlite:///{self._folder / f'crash{self._runs}.db'}?poll=0.05"
        report = run_crash_test(CrashConfig(db=url, kills=kills, chats=chats, **config))
        if report.violations:
            raise AssertionError(str(report))
        return report
