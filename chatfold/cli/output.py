"""Where words go: data to stdout, talk to stderr; styled on a terminal, plain when piped, readable in any encoding.

Owns the two channels of a process and the cleaning of text that others wrote: a chat may hold characters that would
steer a terminal, and none of them reaches one. What is said is the commands' matter.
"""

from __future__ import annotations

import re
import sys
from functools import cached_property
from typing import IO, TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# C0 and C1 but for tab and line feed; DEL; characters that reorder what stands around them; lone surrogates.
_UNPRINTABLE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return ``text`` with everything that could steer a terminal written out as an escape of Python's."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str, width: int) -> str:
    """Return the beginning of ``text`` on one line of at most ``width`` characters."""
    flat = " ".join(printable(text[: 4 * width]).split())
    return flat if len(flat) <= width and len(text) <= 4 * width else flat[: width - 3].rstrip() + "..."


class Channel:
    """One of a process's two outputs.

    Args:
        stream: Where it goes.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream: Final = stream
        self.terminal: Final = stream.isatty()
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # Under a locale that cannot say a character it is written out; a text is never a reason to fail.
            reconfigure(errors="backslashreplace")

    @cached_property
    def console(self) -> Console:
        """The stream for styled text."""
        from rich.console import Console

        return Console(file=self._stream, highlight=False)

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where there is none, so that lines may be as long as they are."""
        if not self.terminal:
            return None
        import shutil

        return shutil.get_terminal_size().columns

    def line(self, text: Text | str = "") -> None:
        """Write a line."""
        self.put(text, end="\n")

    def put(self, text: Text | str, *, style: str = "", end: str = "") -> None:
        """Write a text as it comes, styled where that is possible, and show it at once.

        What could steer the terminal is written out, whoever forgot to.
        """
        given = text if isinstance(text, str) else text.plain
        plain = printable(given)
        if self.terminal and (style or not isinstance(text, str)):
            from rich.text import Text

            styled = Text(plain, style=style) if isinstance(text, str) or plain != given else text
            self.console.print(styled, soft_wrap=True, end=end, markup=False)
        else:
            self._stream.write(plain + end)
        self._stream.flush()

    def json(self, value: object) -> None:
        """Write a value as one line of JSON, in UTF-8 whatever the locale."""
        line = msgspec.json.encode(value) + b"\n"
        raw = getattr(self._stream, "buffer", None)
        self._stream.flush()
        if raw is None:
            self._stream.write(line.decode())
        else:
            raw.write(line)
        self._stream.flush()

    def lines(self, lines: bytes) -> None:
        """Write bytes as they are: lines of a log."""
        raw = getattr(self._stream, "buffer", None)
        if raw is None:
            self._stream.write(lines.decode())
        else:
            self._stream.flush()
            raw.write(lines)


class Out:
    """Both channels. ``data`` is what was asked for, ``talk`` what is said about it."""

    def __init__(self) -> None:
        self.data = Channel(sys.stdout)
        self.talk = Channel(sys.stderr)

    def note(self, text: str) -> None:
        """Say something on the way."""
        self.talk.put(text, style="dim", end="\n")

    def warn(self, text: str) -> None:
        """Say what is wrong with what is shown."""
        self.talk.put(printable(text), style="bold red", end="\n")
