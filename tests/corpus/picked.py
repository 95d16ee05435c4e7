"""Chats of simulated worlds and random conversations, picked for what no other log of the corpus has.

Which chat a seed writes changes with the code, so these are what was picked once: a log that is there stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Final

from chatfold import __version__
from chatfold.testing.conversations import converse
from chatfold.testing.conversations.agents import AGENTS as CONVERSING
from chatfold.testing.simulation import simulate
from chatfold.testing.simulation.agents import AGENTS as SIMULATED
from events.digest import GENESIS
from events.encoding import encode_each
from events.envelope import Recorded, StoredEvent
from events.ids import ChatId
from events.logfile import header_of, write_log
from events.vocabulary import ChatCreated, ChatForked
from tests.checked_logs import watched

WORLDS: Final = {"simulated": simulate, "conversed": converse}

AGENTS: Final = (*CONVERSING, *SIMULATED.values())
"""The agents of both worlds."""

PICKED: Final = (
    ("conversed", 233, "chat0"),
    ("simulated", 129, "chat0"),
    ("conversed", 214, "chat0"),
    ("simulated", 258, "chat0"),
    ("conversed", 100, "chat0"),
    ("simulated", 192, "chat0"),
    ("simulated", 139, "chat0"),
    ("conversed", 177, "fork10"),
    ("simulated", 116, "chat0"),
    ("conversed", 232, "chat0"),
    ("simulated", 29, "chat1"),
    ("simulated", 247, "chat0"),
    ("conversed", 206, "chat0"),
    ("simulated", 17, "chat0"),
    ("simulated", 249, "chat0"),
    ("conversed", 216, "chat0"),
)
"""World, seed, and chat."""


def _picked(world: str, seed: int, chat: str) -> bytes:
    """Run a world, and return the log of one of its chats as a file."""
    with watched() as written:
        WORLDS[world](seed)
    log = next(log for log in written.logs() if _began(log) == chat)
    events: list[StoredEvent] = []
    blobs: dict[str, bytes] = {}
    salts = (hashlib.sha256(f"{world} {seed} {chat} {number}".encode()).digest()[:16] for number in range(len(log)))
    for made in encode_each(log, partial(next, salts), GENESIS):
        events.append(made.stored)
        blobs |= made.blobs
    first = log[0].event
    flags = first.flags if isinstance(first, ChatCreated | ChatForked) else ()
    header = header_of(ChatId(chat), events, release=__version__, flags=flags, blobs=blobs)
    return b"".join(write_log(header, events, blobs))


def _began(log: list[Recorded]) -> str:
    first = log[0].event
    assert isinstance(first, ChatCreated | ChatForked)
    return first.chat


LOGS: Final[dict[str, Callable[[], bytes]]] = {
    f"{world}_{seed}_{chat}": partial(_picked, world, seed, chat) for world, seed, chat in PICKED
}
"""What makes each log, by name."""
