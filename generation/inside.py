"""Reading within a directory and nowhere else: symbolic links are followed only as far as they stay inside."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import Final

from events.parts import ContextFault

_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotRead(Exception):
    """Something cannot be read, or must not be.

    Attributes:
        fault: Which of both, and why.
    """

    def __init__(self, fault: ContextFault, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault


class Inside:
    """A directory, and what lies in it.

    Args:
        root: The directory, by an absolute path; it may be a link itself.

    Raises:
        NotRead: There is no such directory.
    """

    def __init__(self, root: str) -> None:
        self.root = Path(_real(root))
        with self._opened(()) as directory:
            _listed(directory)

    def within(self, parts: Sequence[str]) -> Inside:
        """Return a directory in this one as one of its own: links must stay inside of that.

        Raises:
            NotRead: It is none, or a link leads out of this one.
        """
        return Inside(str(self.root.joinpath(*self._resolved(parts))))

    def names(self, parts: Sequence[str] = ()) -> list[str]:
        """Return the names in a directory, sorted, spelled as they are.

        Raises:
            NotRead: It is none, or a link leads out.
        """
        with self._opened(self._resolved(parts)) as directory:
            return sorted(_listed(directory))

    def is_directory(self, parts: Sequence[str]) -> bool:
        """Whether a directory is there.

        Raises:
            NotRead: It is a link that leads out, or nowhere.
        """
        return self.root.joinpath(*self._resolved(parts)).is_dir()

    def read(self, parts: Sequence[str], limit: int) -> str:
        """Return the text of a file, without a byte order mark.

        Args:
            parts: Its path.
            limit: Bytes that it may have.

        Raises:
            NotRead: It is larger, no regular file, no UTF-8 text, a link leads out, or the system refuses.
        """
        with self._opened(self._resolved(parts)) as opened:
            try:
                if not S_ISREG(os.fstat(opened).st_mode):
                    raise NotRead("invalid", "is no regular file")
                data = _read(opened, limit + 1)
            except OSError as error:
                raise NotRead("unreadable", _said(error)) from None
        if len(data) > limit:
            raise NotRead("oversize", f"is larger than {limit} bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise NotRead("invalid", "is no UTF-8 text") from None

    def files(self, limit: int, depth: int) -> Iterator[str]:
        """Yield the paths of regular files, at most ``limit``, hidden ones and links aside, down to a depth."""
        ahead: list[tuple[str, ...]] = [()]
        left = limit
        while ahead:
            parts = ahead.pop(0)
            try:
                with self._opened(parts) as directory, os.scandir(directory) as entries:
                    found = sorted(
                        (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                        for entry in entries
                        if not entry.name.startswith(".")
                    )
            except (NotRead, OSError):
                continue
            for name, is_directory, is_file in found:
                if is_file and left > 0:
                    left -= 1
                    yield "/".join((*parts, name))
                elif is_directory and len(parts) < depth:
                    ahead.append((*parts, name))

    def _resolved(self, parts: Sequence[str]) -> tuple[str, ...]:
        real = Path(_real(str(self.root.joinpath(*parts))))
        if not real.is_relative_to(self.root):
            raise NotRead("invalid", "is a link that leads out of its directory")
        return real.relative_to(self.root).parts

    @contextmanager
    def _opened(self, parts: Sequence[str]) -> Iterator[int]:
        """Open what lies at a path that was resolved: where a link came into it meanwhile, it is refused."""
        opened = _open(str(self.root), None)
        try:
            for part in parts:
                below = _open(part, opened)
                os.close(opened)
                opened = below
            yield opened
        finally:
            os.close(opened)


def _open(name: str, directory: int | None) -> int:
    try:
        return os.open(name, _FLAGS, dir_fd=directory)
    except (OSError, ValueError) as error:
        raise NotRead("unreadable", _said(error)) from None


def _real(path: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError) as error:
        raise NotRead("unreadable", _said(error)) from None


def _listed(directory: int) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError as error:
        raise NotRead("unreadable", _said(error)) from None


def _read(opened: int, limit: int) -> bytes:
    pieces, left = [], limit
    while left and (piece := os.read(opened, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _said(error: OSError | ValueError) -> str:
    """Return what the system said, without paths of the machine."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)
