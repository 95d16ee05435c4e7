"""Files in prompts, where a wire format does not take them as they are. Pure."""

from __future__ import annotations

import base64
import binascii
import html
from typing import Final

from generation.prompt_texts import fenced
from generation.prompt_types import PromptFile

IMAGES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""Types of images that all services take."""

PDF: Final = "application/pdf"
_TEXTS: Final = frozenset({"application/json", "application/xml", "application/yaml"})


def is_text(media_type: str) -> bool:
    """Whether models can be shown a file of this type as text."""
    return media_type.startswith("text/") or media_type in _TEXTS


def as_text(file: PromptFile) -> str:
    """Return a file as text: its own in a tag, where it is text; else what type of file cannot be shown."""
    name = f' name="{html.escape(file.name)}"' if file.name else ""
    if is_text(file.media_type):
        try:
            text = base64.b64decode(file.data, validate=True).decode("utf-8", "replace")
        except binascii.Error:
            text = ""
        if text.strip():
            return f'<file{name} type="{html.escape(file.media_type)}">\n{fenced(text)}\n</file>'
    return f"[A file{name} of type {file.media_type} stands here; this model cannot read it.]"


def data_url(file: PromptFile) -> str:
    """Return a file as a data URL."""
    return f"data:{file.media_type};base64,{file.data}"
