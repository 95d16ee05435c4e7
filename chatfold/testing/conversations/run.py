"""``converse``: one random conversation from its beginning to its end, in the same way each time."""

from __future__ import annotations

from random import Random
from typing import Final

from chatfold.testing.conversations.talk import Talk
from chatfold.testing.simulation.profile import Size, checked_size
from chatfold.testing.simulation.run import Outcome, play
from chatfold.virtual.loop import SimulatedLoop
from chatfold.virtual.running import alone
from events.values import checked_whole

_SEGMENT: Final = 256


def converse(seed: int, size: Size | None = None, *, trace: bool = False) -> Outcome:
    """Hold one conversation.

    The engine's own code runs over the memory store in virtual time, and asks services that check what they are sent
    (``services``). Nothing outside is touched.

    Args:
        seed: Decides everything.
        size: Bounds; None for the usual ones. Of them ``commands`` and ``steps`` count.
        trace: Whether to keep the whole trace.

    Returns:
        What became of it. A violation is told there and not raised.

    Raises:
        InvalidValue: The seed is no whole number of at least 0, or the size is none.
        RuntimeError: It was called from a coroutine: it runs an event loop of its own.
    """
    checked_whole(seed, "$.seed")
    size = checked_size(size)
    with alone():
        random = Random(seed)
        loop = SimulatedLoop(Random(random.random()), steps=size.steps, shuffled=random.random() < 0.5)
        machine = Random(random.random())
        return play(
            seed,
            loop,
            machine,
            lambda tell: Talk(loop, random, tell, acts=size.commands),
            segment=_SEGMENT,
            profile=size,
            trace=trace,
        )
