"""What the tests of the command line share: a database of their own, and a process without what the last one set up."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatfold.cli.logs import OURS
from tests.chatfold.cli.kit import Cli, made_chats


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, levels = list(root.handlers), {name: logging.getLogger(name).level for name in ("", *OURS)}
    yield
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in this process, on a database that does not exist yet."""
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Cli(tmp_path / "chats.db")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with three chats, to be copied: `talk` (two turns), `asks` (requires action), `broken` (error)."""
    file = tmp_path_factory.mktemp("template") / "chats.db"
    made_chats(file)
    return file


@pytest.fixture
def chats(cli: Cli, template: Path) -> Cli:
    """The command line on a copy of the template."""
    shutil.copy(template, cli.file)
    return cli
