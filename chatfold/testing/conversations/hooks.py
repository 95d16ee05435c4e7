"""Hooks of random conversations: they add, rewrite, deny, fail and hang, and see that nothing happens without them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from events.content import Json
from generation.hooks.contract import HOOK_EVENTS, MAY, HookAnswer, HookCall

TIMEOUT: Final = 2.0
"""Seconds that hooks have: one that hangs takes all of them."""

_SAME: Final = ("tool", "call", "agent", "owner")
"""Facts of a call that are the same whenever it comes."""


class Meddler:
    """One hook at all events, the same one in all processes of a conversation.

    Args:
        random: Decides.
        often: How often it does more than to watch.
        complain: Is told of what must not be: an id that stands for two things, a call that ran and was not allowed.

    Attributes:
        calm: It watches alone from now on.
    """

    def __init__(self, random: Random, *, often: float, complain: Callable[[str], None]) -> None:
        self.name: Final = "meddler"
        self.events: Final = HOOK_EVENTS
        self.timeout: Final = TIMEOUT
        self.calm = False
        self._random = random
        self._often = often
        self._complain = complain
        self._about: dict[str, tuple[str, str, tuple[Json, ...]]] = {}
        self._allowed: dict[str, HookAnswer] = {}

    async def ask(self, call: HookCall) -> HookAnswer | None:
        """Draw an answer, a failure, or none in time."""
        about = (call.event, call.chat, tuple(call.facts.get(name) for name in _SAME))
        if self._about.setdefault(call.id, about) != about:
            self._complain(f"{call.id} is {about}, and was {self._about[call.id]}")
        key = f"{call.chat}/{call.facts['call']}" if call.event == "pre_tool_use" else ""
        self._allowed.pop(key, None)
        if not self.calm and self._random.random() < self._often:
            await self._be_odd()
        answer = HookAnswer() if self.calm or self._random.random() > self._often else self._answer(call)
        if answer.deny is None:
            self._allowed[key] = answer
        return answer

    def ran(self, chat: str, call: str, given: Json) -> None:
        """Take note that a tool ran, with an argument, as the newest answer said it may."""
        answer = self._allowed.get(call)
        if answer is None:
            self._complain(f"{chat}: {call} ran, and no hook allowed it")
        elif isinstance(answer.input, Mapping) and answer.input["a"] != given:
            self._complain(f"{chat}: {call} ran with {given!r}, the hook said {answer.input}")

    async def _be_odd(self) -> None:
        """Take a while, fail, or hang."""
        what = self._random.choice(("slow", "slow", "fail", "hang"))
        if what == "fail":
            raise ConnectionError("nobody is there")
        await asyncio.sleep(self._random.random() if what == "slow" else 10 * TIMEOUT)

    def _answer(self, call: HookCall) -> HookAnswer:
        may = MAY[call.event]
        said = self._random.choice(sorted(may))
        if said == "deny":
            return HookAnswer(deny="Not today.")
        context = f"A word at {call.event}." if said == "context" or self._random.random() < 0.3 else None
        if said == "context":
            return HookAnswer(context=context)
        if call.event == "pre_tool_use":
            return HookAnswer(context=context, input={"a": self._random.randrange(1000, 2000)})
        return HookAnswer(context=context, input=f"rather: {call.facts['text']}")
