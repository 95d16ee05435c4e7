"""What chats cost: the ledger of one, and of the family that it belongs to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct

from chatfold.checks import checked_chat
from chatfold.commanding import Commanding
from events.ids import ChatId
from events.ledger import Ledger, ledger_of
from store.contract import Header
from store.loading import read_recorded
from store.query import ChatQuery

_PAGE: Final = 200


class FamilyLedger(Struct, frozen=True, kw_only=True):
    """What a family of chats cost.

    Attributes:
        root: The chat that all others descend from.
        total: All of them together.
        chats: Each by itself, the root first.
    """

    root: str
    total: Ledger
    chats: dict[str, Ledger]


class ChatCosts(Commanding):
    """Questions about what chats cost. ``Engine`` has them."""

    async def costs(self, chat: str) -> Ledger:
        """Return what the model calls of a chat took and cost: of all that is in its log, edited away or not.

        It is read from the log's facts, so it is exact, and what was erased counts. Copied messages of a fork cost
        nothing again.

        Raises:
            ChatNotFound: There is no such chat.
        """
        source = checked_chat(chat)
        await self._header_of("costs", source)
        return ledger_of(await read_recorded(self.runtime.journal.store, source, content=False))

    async def family_costs(self, chat: str) -> FamilyLedger:
        """Return what the family of a chat cost: the chat above all, and all that were created under it (``parent``).

        Each member of a family gives the same answer. A chat whose parent was deleted is the root of its own family;
        a fork is no member of its origin's. The log of each member is read.

        Raises:
            ChatNotFound: There is no such chat.
        """
        root = await self._root((await self._header_of("costs", checked_chat(chat))).header)
        ledgers: dict[str, Ledger] = {}
        async for member in self._family(root):
            ledgers[member] = ledger_of(await read_recorded(self.runtime.journal.store, member, content=False))
        return FamilyLedger(root=root, total=sum(ledgers.values(), Ledger()), chats=ledgers)

    async def _root(self, header: Header) -> ChatId:
        seen = {header.chat}
        while header.parent is not None and header.parent not in seen:
            seen.add(header.parent)
            above = await self.runtime.journal.store.load_header(header.parent)
            if above is None:
                break
            header = above.header
        return header.chat

    async def _family(self, root: ChatId) -> AsyncIterator[ChatId]:
        """Yield a chat and all that descend from it, each once."""
        seen, waiting = {root}, [root]
        while waiting:
            member = waiting.pop(0)
            yield member
            query = ChatQuery(parent=member, limit=_PAGE)
            while page := await self.runtime.journal.store.list_chats(query):
                new = [header.chat for header in page if header.chat not in seen]
                seen.update(new)
                waiting += new
                query = ChatQuery(parent=member, limit=_PAGE, before=(page[-1].listed_at, page[-1].chat))
