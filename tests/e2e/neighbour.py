"""Sources of neighbouring releases, made from this one.

The one that follows has a column and a level more. The one before is of the first level: it knows nothing of what came
later (``events.levels.SINCE``).
"""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path
from typing import Final

from msgspec import Struct

from chatfold import __version__
from events.effects import EventBase
from events.levels import SINCE
from tests.meta.source import ROOT

PACKAGES: Final = ("events", "chatstate", "store", "generation", "chatfold")
RELEASE: Final = "99.0.0"
_LEVEL: Final = "READER_LEVEL: Final = GENERATION"
_READ: Final = "read=_read(control, policy, reads, facts)"

_MIGRATION: Final = '''"""What a later release adds: a column that the one before need not know."""

from alembic import op
from sqlalchemy import Column, Text

revision = "9999"
down_revision = {before!r}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it."""
    op.add_column("chats", Column("of_tomorrow", Text))
'''


def _copy(folder: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))


def make_previous_release(folder: Path) -> Path:
    """Write the release before this one into an empty folder, and return it: put it first on ``PYTHONPATH``."""
    _copy(folder)
    for number, key in enumerate(SINCE):
        cls, name = key if isinstance(key, tuple) else (key, None)
        if name is None and not _tagged(cls):
            continue  # a record that only a field of its own level holds, which goes
        _forget(folder / Path(inspect.getfile(cls)).relative_to(ROOT), cls.__name__, name, f"unknown_yet_{number}")
    # What each decision has, the release that does not know it does not write in its own chats either.
    _replace(folder / "generation/decide.py", _READ, "read={}")
    _replace(folder / "store/schema.py", _LEVEL, "READER_LEVEL: Final = FIRST")
    return folder


def _tagged(cls: type[Struct]) -> bool:
    return issubclass(cls, EventBase) or cls.__struct_config__.tag is not None


def _forget(file: Path, cls: str, name: str | None, stored_as: str) -> None:
    """Let a release store a type, or a field of it, under a name that no other has: the real one it does not know."""
    text = file.read_text(encoding="utf-8")
    begin = re.search(rf"^class {cls}\(", text, re.MULTILINE)
    assert begin is not None, f"{file.name} has no {cls}"
    end = text.find("\nclass ", begin.end())
    body = text[begin.start() : end if end >= 0 else len(text)]
    pattern = r'(\btag=|^    type = )"[^"]*"' if name is None else rf"^    {name}: ([^=\n]+) = (.+)$"
    found = re.search(pattern, body, re.MULTILINE)
    assert found is not None, f"{cls} of {file.name} has no {name or 'tag'} in one line"
    if name is None:
        new = f'{found[1]}"{stored_as}"'
    else:
        default = "default_factory=dict" if found[2] == "{}" else f"default={found[2]}"
        new = f'    {name}: {found[1]} = __import__("msgspec").field({default}, name="{stored_as}")'
    file.write_text(text[: begin.start()] + body.replace(found[0], new, 1) + text[begin.start() + len(body) :], "utf-8")


def make_next_release(folder: Path) -> Path:
    """Write the next release into an empty folder, and return it: put it first on ``PYTHONPATH``."""
    _copy(folder)
    revisions = sorted((folder / "store/migrations/versions").glob("[0-9]*.py"))
    before = revisions[-1].name[:4]
    text = _MIGRATION.format(before=before)
    (folder / "store/migrations/versions/9999_what_tomorrow_adds.py").write_text(text, encoding="utf-8")
    _replace(folder / "store/schema.py", f'"{before}")', f'"{before}", "9999")')
    _replace(folder / "store/schema.py", _LEVEL, f"{_LEVEL} + 1")
    _replace(folder / "chatfold/__init__.py", f'__version__ = "{__version__}"', f'__version__ = "{RELEASE}"')
    return folder


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file.name} has no {old}"
    file.write_text(text.replace(old, new), encoding="utf-8")
