"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path


def write_whole(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file under another name beside it, and give it its own when it is whole; one that is there is replaced.

    Raises:
        OSError: It cannot be written. Nothing is left of it; one that was there is as it was.
    """
    _write(path, lines, lambda made: made.replace(path))


def write_new(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file as ``write_whole`` does, but never in the place of one that is there, or that another makes now.

    Raises:
        FileExistsError: There is one.
        OSError: It cannot be written. Nothing is left of it.
    """

    def named(made: Path) -> None:
        try:
            path.hardlink_to(made)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            made.replace(path)
        else:
            made.unlink()

    _write(path, lines, named)


def _write(path: Path, lines: Iterable[bytes], named: Callable[[Path], object]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(lines)
        named(Path(name))
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
