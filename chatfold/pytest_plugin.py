"""The pytest plug-in: options, a marker, fixtures for tests of what is built on chatfold.

Owns what pytest has to know. It is loaded in every project of the environment, so it imports neither a layer nor an
extra until a fixture of it is used: such a project may have packages called ``events`` or ``store`` of its own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import pytest

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from chatfold.replaying.logs import Log, LogSource
    from chatfold.testing.fixtures import CrashRunner, EngineMaker, ProviderMaker
    from chatfold.testing.virtual import VirtualTime

POSTGRES: Final = "--chatfold-postgres"
MARKER: Final = "chatfold_logs"
_EXPLAINED: Final = (
    f"{MARKER}(*sources): run the test once for each log of these files, folders and patterns, relative to the "
    "test's file; the fixture chatfold_log is the log"
)
_SHOWN: Final = 300
"""Characters of an error's text, and of a value, that a failure shows."""
_SYRUPY_OFF: Final = (
    "chatfold_snapshot needs syrupy's plug-in, which is installed and off: take -p no:syrupy away, or where pytest "
    "loads no plug-ins by itself, add -p syrupy"
)
_SNAPSHOT_HIDDEN: Final = (
    "chatfold_snapshot needs syrupy's fixture snapshot; another one of that name, of a plug-in or conftest.py, hides it"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one option."""
    parser.getgroup("chatfold").addoption(
        POSTGRES,
        metavar="URL",
        help="run tests that use chatfold_store or chatfold_engine on PostgreSQL too: URL of a server whose user "
        "may create databases; each test gets one of its own, which is dropped",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marker means, for projects that allow no others, and look at the option.

    Raises:
        UsageError: It is no URL of a PostgreSQL server.
    """
    config.addinivalue_line("markers", _EXPLAINED)
    url = config.getoption(POSTGRES)
    if url is not None and not url.startswith(("postgresql://", "postgres://")):
        raise pytest.UsageError(f"{POSTGRES} takes the URL of a server, such as postgresql://me@localhost/postgres")


class _NoLogs(NamedTuple):
    """In the place of a log: why there is none. Its test fails, and the others of the file run."""

    why: str


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each log, and of each kind of store."""
    if "chatfold_log" in metafunc.fixturenames:
        found = _logs_of(metafunc.definition)
        logs, ids = ([found], ["no logs"]) if isinstance(found, _NoLogs) else ([*found.values()], [*found])
        metafunc.parametrize("chatfold_log", logs, ids=ids, indirect=True)
    if "chatfold_store" in metafunc.fixturenames:
        kinds = ["memory", "sqlite", *(["postgres"] if metafunc.config.getoption(POSTGRES) else [])]
        metafunc.parametrize("chatfold_store", kinds, indirect=True)


def _logs_of(test: pytest.Function) -> Mapping[str, LogSource] | _NoLogs:
    """Return the logs that the marks of a test name."""
    marks = list(test.iter_markers(MARKER))
    if not any(mark.args for mark in marks):
        return _NoLogs(f"chatfold_log needs a mark on the test that says which: @pytest.mark.{MARKER}('logs')")
    if strange := [name for mark in marks for name in mark.kwargs]:
        return _NoLogs(f"{MARKER} takes files, folders and patterns, and no {strange[0]}=")
    _ready()
    from chatfold.testing.fixtures import LogsNotFound, sources_of

    try:
        return sources_of(test.path.parent, [source for mark in marks for source in mark.args])
    except LogsNotFound as missing:
        return _NoLogs(str(missing))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test that names logs and looks at none."""
    if any(mark.name == MARKER for mark in item.own_markers) and "chatfold_log" not in getattr(
        item, "fixturenames", ()
    ):
        _fail(item, f"marked {MARKER}, and does not take the fixture chatfold_log: it looks at no log")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Tell of an error of a chat what it says, which its repr leaves out: that may go to logs."""
    said = [said for each in (left, right) if (said := _error_text(each)) is not None]
    if not said:
        return None
    return [f"{_short(left)} {op} {_short(right)}", *(f"the error says: {text}" for text in said)]


def _error_text(value: object) -> str | None:
    """Return what an ``ErrorInfo`` says; None of all else. No layer is imported for a test that has none."""
    if (type(value).__module__, type(value).__qualname__) != ("events.records", "ErrorInfo"):
        return None
    content = getattr(value, "message", None)
    text = getattr(content, "text", None) if getattr(content, "available", False) else None
    return textwrap.shorten(text, _SHOWN, placeholder=" ...") if isinstance(text, str) else None


def _short(value: object) -> str:
    return textwrap.shorten(repr(value), _SHOWN, placeholder=" ...")


def _fail(test: pytest.Item, why: str) -> NoReturn:
    pytest.fail(f"{getattr(test, 'originalname', test.name)}: {why}", pytrace=False)


@pytest.fixture
def chatfold_log(request: pytest.FixtureRequest) -> Log:
    """One log of those that the mark ``chatfold_logs`` names; the test runs for each."""
    _ready()
    if isinstance(request.param, _NoLogs):
        _fail(request.node, request.param.why)
    return request.param.read()  # type: ignore[no-any-return]


@pytest.fixture
def chatfold_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store; the test runs in memory, on SQLite, and with ``--chatfold-postgres`` there."""
    _ready()
    from chatfold.testing.fixtures import empty_store

    with empty_store(request.param, tmp_path, request.config.getoption(POSTGRES)) as url:
        yield url


@pytest.fixture
def chatfold_provider() -> Iterator[ProviderMaker]:
    """Makes scripted models, and fails the test where turns of a script are left over at its end."""
    _ready()
    from chatfold.testing.fixtures import ProviderMaker

    maker = ProviderMaker()
    yield maker
    if missing := maker.used_up():
        print(missing)  # noqa: T201 -- pytest shows it where the test failed, and it may be why
    if left := maker.left_over():
        pytest.fail(left, pytrace=False)


@pytest.fixture
def chatfold_engine(chatfold_store: str, chatfold_provider: ProviderMaker) -> EngineMaker:
    """Makes engines over the test's store, and fails the test where turns of a script are left over at its end.

    Used as ``async with chatfold_engine([AGENT], script=["Hi."]) as engine:``.
    """
    from chatfold.testing.fixtures import EngineMaker

    return EngineMaker(chatfold_store, chatfold_provider)


@pytest.fixture
def chatfold_snapshot(request: pytest.FixtureRequest) -> SnapshotAssertion:
    """The snapshot of a chat, by syrupy: ``assert chatfold_log == chatfold_snapshot``."""
    _ready()
    try:
        from syrupy.assertion import SnapshotAssertion
    except ImportError:
        pytest.fail("chatfold_snapshot needs syrupy: pip install 'chatfold[syrupy]'", pytrace=False)
    from chatfold.testing.snapshots import ChatSnapshotExtension

    try:
        snapshot = request.getfixturevalue("snapshot")
    except pytest.FixtureLookupError:
        pytest.fail(_SYRUPY_OFF, pytrace=False)
    if not isinstance(snapshot, SnapshotAssertion):
        pytest.fail(f"{_SNAPSHOT_HIDDEN} and gives {type(snapshot).__name__}", pytrace=False)
    return snapshot.use_extension(ChatSnapshotExtension)


@pytest.fixture
def chatfold_clock() -> VirtualTime:
    """Virtual time: ``chatfold_clock.run(main)`` runs a coroutine function in it."""
    _ready()
    from chatfold.testing.virtual import VirtualTime

    return VirtualTime()


@pytest.fixture
def chatfold_crash(tmp_path: Path) -> CrashRunner:
    """Runs the crash test, ``chatfold_crash(kills=20)``, on a SQLite file or ``db=URL``; fails on what must not be."""
    _ready()
    from chatfold.testing.fixtures import CrashRunner

    return CrashRunner(tmp_path)


def _ready() -> None:
    """Say what is wrong where the project hides a layer, rather than that some module is not there."""
    from chatfold._layers import ensure_layers

    ensure_layers()
