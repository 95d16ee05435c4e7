"""The work that is measured, the same for the engine, for the limit and for peers, and how figures are taken.

A turn is four messages of about 1 kB: a user's, a call of a tool, its result, the answer. A *step* is one of the four
made durable before the next begins, so a turn is four steps. What is compared is measured in turn, round by round, in
one run: the machine's mood then falls on all alike. Figures are medians of rounds.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from chatfold.collector import tune_collector

STEPS: Final = 4
ROUNDS: Final = 5

_WORDS: Final = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split()


def _text(chance: random.Random, size: int) -> str:
    words, length = list[str](), 0
    while length < size:
        words.append(chance.choice(_WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)[:size]


_CHANCE: Final = random.Random(20261127)
TEXTS: Final = [_text(_CHANCE, 1000) for _ in range(4096)]


class Texts:
    """Texts of 1,000 characters, 4,096 different ones in a fixed order."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self) -> str:
        self._next += 1
        return TEXTS[self._next % len(TEXTS)]


class Measured(Protocol):
    """Something that is measured; ``open`` makes it ready on an empty database."""

    name: str

    async def open(self) -> None: ...
    async def close(self) -> None: ...


@runtime_checkable
class Contender(Measured, Protocol):
    """A way of keeping chats durable: the engine, the limit, or a peer; ``new_chat`` gives what ``turn`` takes."""

    async def new_chat(self) -> Any: ...
    async def turn(self, chat: Any) -> None: ...


@runtime_checkable
class ManyAtOnce(Measured, Protocol):
    """A contender that runs its chats in other processes, and takes the time of that itself."""

    async def steps_per_second(self, chats: int, turns: int) -> float: ...


AnyContender: TypeAlias = Contender | ManyAtOnce


@dataclass
class Figures:
    """Values of one measure, round by round, and what they are compared with."""

    name: str
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def line(self, unit: str, limit: float | None = None) -> str:
        share = f"{self.median / limit:8.0%}" if limit else " " * 8
        spread = f"[{min(self.values):,.0f} .. {max(self.values):,.0f}]"
        return f"  {self.name:<44}{self.median:>12,.0f} {unit} {share}  {spread}"


async def steps_per_second(contender: AnyContender, chats: int, turns: int) -> float:
    """Run ``turns`` turns in each of ``chats`` new chats at once; return steps per second of all together."""
    if isinstance(contender, ManyAtOnce):
        return await contender.steps_per_second(chats, turns)
    made = [await contender.new_chat() for _ in range(chats)]

    async def talk(chat: Any) -> None:
        for _ in range(turns):
            await contender.turn(chat)

    tune_collector()  # as a worker's process does: for all that is measured alike
    start = time.perf_counter()
    await asyncio.gather(*(talk(chat) for chat in made))
    return chats * turns * STEPS / (time.perf_counter() - start)


async def in_rounds(
    contenders: Sequence[AnyContender], chats: int, turns: dict[str, int], *, rounds: int = ROUNDS
) -> dict[str, Figures]:
    """Measure all contenders round by round, after one that does not count; ``turns`` by name, "" for the rest."""
    found = {each.name: Figures(each.name) for each in contenders}
    for each in contenders:
        await each.open()
    try:
        for number in range(rounds + 1):
            for each in contenders:
                rate = await steps_per_second(each, chats, turns.get(each.name, turns[""]))
                if number:
                    found[each.name].values.append(rate)
    finally:
        for each in contenders:
            await each.close()
    return found


def show(title: str, figures: Iterable[Figures], unit: str, limit: Figures | None = None) -> None:
    """Print one block of the table; shares are of the limit's median."""
    print(f"\n{title}")
    for each in figures:
        print(each.line(unit, limit.median if limit is not None else None))


async def milliseconds(run: Callable[[], Awaitable[object]], times: int) -> Figures:
    """Time an awaitable again and again."""
    figures = Figures("")
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        await run()
        figures.values.append((time.perf_counter() - start) * 1000)
    return figures
