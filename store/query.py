"""Which chats to list: the query, and the check that it makes sense."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import get_args

from msgspec import Struct

from events.envelope import Status
from events.errors import InvalidValue
from events.ids import ChatId


class ChatQuery(Struct, frozen=True, kw_only=True):
    """Which chats to list, newest ``listed_at`` first, then by id.

    ``parent``: those that were created under this chat. ``before`` is the (listed_at, chat) of the last row seen.
    """

    owner: str | None = None
    agent: str | None = None
    statuses: tuple[Status, ...] | None = None
    archived: bool | None = None
    parent: str | None = None
    labels: Mapping[str, str] = {}
    before: tuple[int, ChatId] | None = None
    limit: int = 50

    def __post_init__(self) -> None:
        """Refuse a query that no chat could match.

        Raises:
            InvalidValue: A status that does not exist, a negative limit, or something of another type.
        """
        for field in ("owner", "agent", "parent"):
            _check_field(field, "a text or None", isinstance(getattr(self, field), str | None))
        _check_field("archived", "True, False or None", isinstance(self.archived, bool | None))
        if self.statuses is not None:
            wanted = f"a tuple of some of {', '.join(get_args(Status))}"
            _check_field("statuses", wanted, _is_list(self.statuses))
            _check_field("statuses", wanted, all(status in get_args(Status) for status in self.statuses))
        _check_field("labels", "a mapping of texts", isinstance(self.labels, Mapping))
        texts = (text for pair in self.labels.items() for text in pair)
        _check_field("labels", "a mapping of texts", all(isinstance(text, str) for text in texts))
        _check_field("limit", "a number from 0 on", type(self.limit) is int and 0 <= self.limit < 2**63)
        if self.before is not None:
            seen = tuple(self.before) if _is_list(self.before) else ()
            fits = len(seen) == 2 and type(seen[0]) is int and 0 <= seen[0] < 2**63 and isinstance(seen[1], str)
            _check_field("before", "(listed_at, chat) of the last row seen", fits)


def _is_list(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _check_field(field: str, wanted: str, fits: bool) -> None:  # noqa: FBT001
    if not fits:
        raise InvalidValue(f"$.{field}", f"must be {wanted}")
