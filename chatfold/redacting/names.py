"""What stands for the names in facts: the name itself, one that the rules give, or one that follows from a key.

Names are as good as equal in the logs that one key was used for, so that a user or a forked chat is found again. They
have other lengths than what they stand for. What everybody calls the same (``image/png``, ``rate_limit``) stays
whatever the rules say: it tells nothing of anybody. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, final, get_args

from chatfold.redacting.avoiding import avoided
from chatfold.redacting.facts import OWN, Kind
from chatfold.redacting.rules import RedactionRules
from chatfold.redacting.streams import Streams
from events.messages import BoundaryKind
from generation.errors import RECORDED_KINDS
from generation.hooks.contract import HOOK_EVENTS
from generation.providers.native import WEB_SEARCH

_BYTES: Final = 6
"""Bytes of a made-up name: two of a million names are alike by a chance of one in five hundred."""
_ATTEMPTS: Final = 64
"""Attempts to make a name without what must not be there; where its stem has it the check will find it."""

_STEMS: Final[Mapping[Kind, str]] = {
    "tools": "tool",
    "agents": "agent",
    "models": "model",
    "users": "user",
    "chats": "chat",
    "commands": "command",
    "calls": "call",
    "responses": "response",
    "sources": "source",
    "labels": "label",
    "paths": "path",
    "files": "application/x-file",  # of the form that media types have
    "errors": "error",
    "hooks": "hook",
    "contexts": "context",
    "revisions": "revision",
    "digests": "digest",
    "facts": "fact",
}
"""What a made-up name begins with."""

_HEADS: Final = ("$", *(f"$.{name}" for name in ("text", "arguments", "metadata", "output", "rewritten", "context")))
"""JSON paths up to the field of a part, which is ours."""

KNOWN: Final[Mapping[Kind, frozenset[str]]] = {
    "tools": frozenset({WEB_SEARCH, *get_args(BoundaryKind)}),
    "paths": frozenset(_HEADS),
    "calls": frozenset(get_args(BoundaryKind)),
    "errors": frozenset(RECORDED_KINDS),
    "hooks": frozenset(HOOK_EVENTS),
    "files": frozenset(
        {
            "image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml", "application/pdf",
            "application/json", "application/octet-stream", "application/xml", "application/zip", "text/plain",
            "text/csv", "text/html", "text/markdown", "audio/mpeg", "audio/wav", "video/mp4", "linux", "darwin",
            "win32", "windows", "macos",
        }
    ),
}  # fmt: skip
"""Texts that are everybody's, or chatfold's own: the marks of boundaries are calls."""

_PATH: Final = re.compile(f"({'|'.join(map(re.escape, reversed(_HEADS)))})(.*)", re.DOTALL)
"""A JSON path: up to the field of a part, and what is below it."""


@final
class Names:
    """The names of one log, each with what stands for it.

    Args:
        rules: What stays, and given names.
        streams: Where made-up names come from.
        declared: Names of tools that a policy of the log declares. Others were made up, by a model or a user, and do
            not stay where tools do.
    """

    __slots__ = ("_avoid", "_declared", "_known", "_rules", "_streams")

    def __init__(self, rules: RedactionRules, streams: Streams, declared: frozenset[str]) -> None:
        self._rules: Final = rules
        self._streams: Final = streams
        self._avoid: Final = avoided(rules.never)
        self._declared: Final = declared
        self._known: Final[dict[tuple[Kind, str], str]] = {}

    def of(self, kind: Kind, name: str) -> str:
        """Return what stands for a name; the empty one stands for none, and stays."""
        known = self._known.get((kind, name))
        if known is None:
            known = self._known[kind, name] = self._new(kind, name)
        return known

    def _new(self, kind: Kind, name: str) -> str:
        if kind == OWN:
            return name
        given = self._rules.rename.get(kind, {}).get(name)
        if given is not None:
            return given
        if not name or self._stays(kind, name):
            return name
        if kind == "paths" and (match := _PATH.fullmatch(name)) is not None:
            field, below = match.groups()
            return f"{field}.{self._made_up(kind, below)}"
        return self._made_up(kind, name)

    def _stays(self, kind: Kind, name: str) -> bool:
        if name in KNOWN.get(kind, ()):
            return True
        return self._rules.keeps(kind) and (kind != "tools" or name in self._declared)

    def _made_up(self, kind: Kind, name: str) -> str:
        made = ""
        for attempt in range(_ATTEMPTS):
            made = f"{_STEMS[kind]}-{self._streams.take(kind, name, _BYTES, attempt).hex()}"
            if not self._avoid.search(made):
                break
        return made
