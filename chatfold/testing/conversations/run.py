"""``converse``: one random conversation from its beginning to its end, in the same way each time."""

from __future__ import annotations

from random import Random
from typing import Final

from chatfold.testing.conversations.talk import Talk
from chatfold.testing.simulation.loop import SimulatedLoop
from chatfold.testing.simulation.run import Outcome, Tell, alone, play

ACTS: Final = 16
"""What users do in a conversation, at most."""

_STEPS: Final = 400_000
_SEGMENT: Final = 256


def converse(seed: int, *, acts: int = ACTS, trace: bool = False) -> Outcome:
    """Hold one conversation.

    The engine's own code runs over the memory store in virtual time, and asks services that check what they are sent
    (``services``). Nothing outside is touched.

    Args:
        seed: Decides everything.
        acts: What users do, at most. The same seed with another number is another conversation.
        trace: Whether to keep the whole trace.

    Returns:
        What became of it. A violation is told there and not raised.

    Raises:
        RuntimeError: It was called from a coroutine: it runs an event loop of its own.
    """
    with alone():
        random = Random(seed)
        loop = SimulatedLoop(Random(random.random()), steps=_STEPS, shuffled=random.random() < 0.5)
        machine = Random(random.random())
        return play(
            seed,
            loop,
            machine,
            lambda tell: Talk(loop, random, tell, acts=acts),
            segment=_SEGMENT,
            profile={"acts": acts},
            trace=trace,
        )
