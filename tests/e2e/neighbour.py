"""Sources of neighbouring releases, made from this one.

The one that follows has a column and a level more. The one before does not know the field that the level of this one
is for.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from chatfold import __version__
from tests.meta.source import ROOT

PACKAGES: Final = ("events", "chatstate", "store", "generation", "chatfold")
RELEASE: Final = "99.0.0"

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
    for file in ("records.py", "parts.py", "control.py"):
        # What is stored under this name it does not know, as if it had no such field.
        unknown = '__import__("msgspec").field(default=False, name="unknown_yet")'
        _replace(folder / "events" / file, "    reconcile: bool = False", f"    reconcile: bool = {unknown}")
    _replace(folder / "store/schema.py", "READER_LEVEL: Final = RECONCILE", "READER_LEVEL: Final = RECONCILE - 1")
    return folder


def make_next_release(folder: Path) -> Path:
    """Write the next release into an empty folder, and return it: put it first on ``PYTHONPATH``."""
    _copy(folder)
    revisions = sorted((folder / "store/migrations/versions").glob("[0-9]*.py"))
    before = revisions[-1].name[:4]
    text = _MIGRATION.format(before=before)
    (folder / "store/migrations/versions/9999_what_tomorrow_adds.py").write_text(text, encoding="utf-8")
    _replace(folder / "store/schema.py", f'"{before}")', f'"{before}", "9999")')
    _replace(folder / "store/schema.py", "READER_LEVEL: Final = RECONCILE", "READER_LEVEL: Final = RECONCILE + 1")
    _replace(folder / "chatfold/__init__.py", f'__version__ = "{__version__}"', f'__version__ = "{RELEASE}"')
    return folder


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file.name} has no {old}"
    file.write_text(text.replace(old, new), encoding="utf-8")
