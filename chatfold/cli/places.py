"""Where things are: settings of this call, and the store's URL.

Owns the default database. Opening stores and reading logs is left to others.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from chatfold.cli.guard import UsageProblem

if TYPE_CHECKING:
    from chatfold.settings import Settings

PROGRAM: Final = "chatfold"


def command(*arguments: str) -> str:
    """Return a command line that works as typed here: with the program's path where its name does not find it."""
    running, found = Path(sys.argv[0]), shutil.which(PROGRAM)
    if running.name == "__main__.py":
        return shlex.join([sys.executable, "-m", PROGRAM, *arguments])
    by_path = running.stem == PROGRAM and running.is_file() and (found is None or not running.samefile(found))
    return shlex.join([sys.argv[0] if by_path else PROGRAM, *arguments])


def load_settings(db: str | None, log_level: str | None, *, base_url: str | None = None) -> Settings:
    """Return the settings: what was typed before environment and TOML file. Sets up logging.

    Raises:
        InvalidValue: A setting is wrong.
    """
    from chatfold.cli.logs import set_up
    from chatfold.settings import Settings

    given: dict[str, Any] = {"db": db, "log_level": log_level, "base_url": base_url}
    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    set_up(settings.log_level)
    return settings


def store_url(settings: Settings) -> str:
    """Return the URL of the store; the folder of the default file is made."""
    if settings.db is not None:
        return settings.db
    file = default_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return f"sqlite:///{file}"


def default_file() -> Path:
    """Return the default database, a file in the user's data directory."""
    import platformdirs

    return platformdirs.user_data_path("chatfold", appauthor=False) / "chats.db"


def existing_store(settings: Settings) -> str:
    """Return the URL of a store to read from.

    Raises:
        UsageProblem: It is a SQLite file that does not exist: reading must not make one.
        InvalidStoreUrl: The URL has none of the known forms.
    """
    from store.urls import parse_sqlite

    url = store_url(settings)
    if url.startswith("sqlite:"):
        path = parse_sqlite(url).path
        if not path.is_file():
            raise UsageProblem(
                f"there is no database {path}; `chatfold chat` makes one, --db or CHATFOLD_DB names another"
            )
    return url
