"""SVG as text: elements, escaped attributes and texts, and the document around them. Knows nothing of chats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Final

# What XML 1.0 cannot have, not even as a reference; and C1, which steers the terminal that a picture is printed on.
_NOT_SAID: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Return a text for XML and HTML: escaped, and what neither may have replaced by U+FFFD."""
    return escape(_NOT_SAID.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)


def element(name: str, inner: Iterable[str] = (), /, **attributes: str | float) -> str:
    """Return an element. ``inner`` is markup already; attributes are escaped, ``_`` in their names becomes ``-``.

    A trailing ``_`` is dropped (``class_``); numbers are rounded to a tenth.
    """
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    body = "".join(inner)
    return f"<{name}{said}>{body}</{name}>" if body else f"<{name}{said}/>"


def text(said: str, x: float, y: float, **attributes: str | float) -> str:
    """Return a text element."""
    return element("text", [clean(said)], x=x, y=y, **attributes)


def document(width: float, height: float, inner: Iterable[str], *, title: str, style: str) -> str:
    """Return a whole SVG. It shrinks with its place, and has its own style, so that it can stand alone.

    Args:
        width: Of its coordinates.
        height: Likewise.
        inner: Its elements.
        title: What it shows, for those who do not see it.
        style: CSS; no text of others.
    """
    return element(
        "svg",
        [f"<title>{clean(title)}</title><style>{style}</style>", *inner],
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        class_="picture",
    )


def _value(value: str | float) -> str:
    return clean(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
