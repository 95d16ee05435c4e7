"""Finding the header that keeps chats from being listed by their labels: what labels hold is looked at in SQL.

Owns the walk; how a back end learns that there is such a header is its own matter.
"""

from typing import Final

import msgspec

from store.contract import Store
from store.query import ChatQuery

_PAGE: Final = 500
"""Headers read at once."""


async def name_damaged(store: Store, query: ChatQuery) -> None:
    """Read the headers among which ``query`` looks for labels, until one cannot be read.

    Raises:
        MalformedRow: That one; names the chat.
    """
    wider = msgspec.structs.replace(query, labels={}, limit=_PAGE)
    while page := await store.list_chats(wider):
        wider = msgspec.structs.replace(wider, before=(page[-1].listed_at, page[-1].chat))
