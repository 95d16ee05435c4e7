"""Scenarios of faults: services that fail in each way, answers that are withheld, workers and runners that die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Final

from chatfold import tool
from chatfold.hooks import HookAnswer, HookCall, PythonHook
from chatfold.testing import ClassifiedError, Cut, Fail, ModelRequest, Think, Turn, UseTool, Wait, turn
from events.values import Limits as Sizes
from generation.providers.contract import Finish, StreamPart, TextDelta, TextEnd
from store.failpoints import FailpointReached, armed
from tests.corpus.features import held
from tests.corpus.kit import TOOLS, USAGE, Scenario, Scene, assistant, talk

_ERRORS: Final = (
    ClassifiedError(kind="generic", message="It broke.", detail="E1", provider="scripted", status_code=500),
    ClassifiedError(kind="usage_limit", message="The quota is used up.", status_code=402),
    ClassifiedError(kind="missing_key", message="There is no key."),
    ClassifiedError(kind="provider_disabled", message="It is switched off."),
    ClassifiedError(kind="config", message="There is no such model.", status_code=404),
)
_LATER: Final = ClassifiedError(
    kind="rate_limit", message="Slow down.", retryable=True, status_code=429, retry_after_us=7_500_000
)
_TIMEOUT: Final = ClassifiedError(kind="timeout", message="It took too long.", retryable=True)


async def failures(scene: Scene) -> str:
    """The service fails in one way after the other, some of them after it has begun to answer."""
    fails = [turn("So ", Fail(error)) for error in _ERRORS]
    said: list[str | Turn] = [*fails, turn(Fail(_LATER)), turn(Fail(_TIMEOUT)), "Now it works."]
    engine = await scene.engine(said)
    chat = (await engine.create_chat("assistant", "Hello.")).chat
    for _ in _ERRORS:
        await engine.settled(chat)
        await engine.send_message(chat, "And now?")
    await engine.settled(chat)
    return chat


async def withheld(scene: Scene) -> str:
    """A model refuses, with words of its own after some that are not kept; a service filters; both say nothing else."""
    said: list[str | Turn] = [
        Turn(steps=turn("I will ").steps, finish="refusal", explanation="I must not say that.", usage=USAGE),
        turn("Here is ", finish="content_filter", usage=USAGE),
        Turn(steps=turn(UseTool("add", {"a": 1, "b": 2})).steps, finish="refusal", usage=USAGE),
        "Something else.",
    ]
    engine = await scene.engine(said)
    return await talk(engine, "Tell me.", *["And now?"] * 3)


async def no_output(scene: Scene) -> str:
    """A model thinks, gives no answer and no reason, and is asked again; then it has nothing to say, and says so."""
    said = [turn(Think("Hm."), finish="unknown"), turn(Think("Hm."), " ", finish="stop"), turn(finish="stop")]
    engine = await scene.engine(said)
    return await talk(engine, "Well?", "Well?")


async def silent(scene: Scene) -> str:
    """A model says nothing for too long, once before it begins and once in the middle; then it answers."""
    never = Wait(asyncio.Event())
    engine = await scene.engine(
        [turn(never), turn("Half", never), "Whole."], first_part_timeout=5.0, silence_timeout=9.0
    )
    return await talk(engine, "Hello.")


class Untold:
    """A provider that never says what its answers took, and breaks off the first of them."""

    name = "untold"

    def __init__(self) -> None:
        self._asked = 0

    async def stream(self, _: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Give a text."""
        self._asked += 1
        yield TextDelta(block=0, text="Well.")
        if self._asked > 1:
            yield TextEnd(block=0)
            yield Finish(reason="stop", usage=None)

    async def close(self) -> None:
        """Close nothing."""


async def unmetered(scene: Scene) -> str:
    """A service breaks off an answer, gives another one whole, and never says what they took."""
    engine = await scene.engine([], providers={"scripted": Untold()})
    return await talk(engine, "Hello.")


class Broken(Untold):
    """A provider with a fault, which shows in the middle of its first answer."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Give a text, and fail as no provider may."""
        async for part in super().stream(request):
            yield part
        if self._asked == 1:
            raise LookupError("it broke")


async def internal_error(scene: Scene) -> str:
    """A provider fails as none may, which ends the turn; its user resumes."""
    engine = await scene.engine([], providers={"scripted": Broken()})
    chat = await talk(engine, "Hello.")
    await engine.resume(chat)
    await engine.settled(chat)
    return chat


async def runner_died(scene: Scene) -> str:
    """What runs the chat dies once, with half of an answer said; the chat is let go and taken again."""
    engine = await scene.engine([held(scene, "Half "), "Whole."])
    chat = (await engine.create_chat("assistant", "Hello.")).chat
    await scene.holds()
    await asyncio.sleep(3)
    with armed("outcome.asked=raise"):
        scene.opened.set()
        await asyncio.sleep(5)
    await engine.settled(chat)
    return chat


async def runners_died(scene: Scene) -> str:
    """What runs the chat dies again and again, until the turn is given up; its user resumes, and it dies no more."""
    engine = await scene.engine(["One."] * 9)
    with armed("outcome.asked=raise@*"):
        chat = await talk(engine, "Hello.")
    await engine.resume(chat)
    await engine.settled(chat)
    return chat


async def lost_thrice(scene: Scene) -> str:
    """Three workers are killed one after the other, while they answer; what the last one said is kept."""
    user = await scene.engine([], worker=False)
    chat = (await user.create_chat("assistant", "Hello.")).chat
    for _ in range(3):
        scene.shut()
        process = await scene.doomed([held(scene, "Half ")])
        await scene.holds()
        await asyncio.sleep(3)
        await scene.killed(process)
    last = await scene.engine(["Whole."])
    await last.settled(chat)
    await user.resume(chat)
    await last.settled(chat)
    return chat


async def lost_running_thrice(scene: Scene) -> str:
    """Three workers are killed one after the other, while a tool runs that may be run again; then it is resumed."""
    user = await scene.engine([], worker=False)
    chat = (await user.create_chat("assistant", "Go.")).chat
    script: Sequence[Turn] = [turn(UseTool("stubborn", {"seconds": 5}))]
    for _ in range(3):
        process = await scene.doomed(script)
        script = []
        await asyncio.sleep(4)
        await scene.killed(process)
    last = await scene.engine(["Done."])
    await last.settled(chat)
    await user.resume(chat)
    await last.settled(chat)
    return chat


async def drained(scene: Scene) -> str:
    """A worker is to take up nothing more while its model speaks, and another one goes on."""
    first = await scene.engine([held(scene, "Half ")])
    chat = (await first.create_chat("assistant", "Hello.")).chat
    await scene.holds()
    await asyncio.sleep(3)
    assert first.worker is not None
    await first.worker.stop("drain")
    second = await scene.engine(["Whole."])
    await second.settled(chat)
    return chat


async def caller_gone(scene: Scene) -> str:
    """Who sent a message is gone before the chat that was taken with it is run; it is let go, and taken again."""
    engine = await scene.engine(["One.", "Two."])
    chat = await talk(engine, "Hello.")
    with armed("append.answered=raise"), suppress(FailpointReached):  # whoever asked is gone
        await engine.send_message(chat, "And?")
    await asyncio.sleep(5)
    await engine.settled(chat)
    return chat


async def agent_elsewhere(scene: Scene) -> str:
    """The chat gets another agent while it is answered, which this worker does not have; another one has it."""
    agents = [assistant(), assistant("other")]
    user = await scene.engine([], agents=agents, worker=False)
    first = await scene.engine([turn(UseTool("slow", {"seconds": 5}), usage=USAGE)], agents=agents[:1])
    chat = (await user.create_chat("assistant", "Hello.")).chat
    await asyncio.sleep(3)
    await user.set_agent(chat, "other")
    await asyncio.sleep(9)
    second = await scene.engine(["Hello."], agents=agents[1:])
    await second.settled(chat)
    await first.settled(chat)
    return chat


async def stopped_unbegun(scene: Scene) -> str:
    """A worker ends, and then a user interrupts, while hooks are asked whether calls may run: none of them began."""
    asked = asyncio.Event()

    async def ask(call: HookCall) -> HookAnswer:
        asked.set()
        await asyncio.sleep(3600)
        return HookAnswer()

    slow = PythonHook(ask, ("pre_tool_use",), timeout=7200)
    calls = turn(UseTool("add", {"a": 1, "b": 1}), UseTool("stubborn", {"seconds": 1}))
    first = await scene.engine([calls], hooks=[slow])
    chat = (await first.create_chat("assistant", "Go.")).chat
    await asked.wait()
    await first.__aexit__(None, None, None)
    second = await scene.engine([calls, "I see."], hooks=[])
    await second.settled(chat)
    await second.__aexit__(None, None, None)
    asked.clear()
    third = await scene.engine([turn(UseTool("add", {"a": 2, "b": 2}))], hooks=[slow])
    await third.send_message(chat, "Again.")
    await asked.wait()
    await third.interrupt(chat)
    await third.settled(chat)
    return chat


@tool(crash="rerun")
async def heavy() -> str:
    """Give more than can be stored."""
    return "x" * 20_000


async def unstorable(scene: Scene) -> str:
    """Tools give more than can be stored, while another one runs, and last: their places say so."""
    agents = [assistant(tools=[*TOOLS, heavy])]
    beside = turn(UseTool("heavy", {}), UseTool("slow", {"seconds": 5}))
    engine = await scene.engine([beside, turn(UseTool("heavy", {})), "I see."], agents=agents)
    engine.runtime.journal._limits = Sizes(message_bytes=15_000)
    return await talk(engine, "Go.")


async def cut_again(scene: Scene) -> str:
    """A stream breaks after words of an answer, then after a call that was half said, and then it is whole."""
    half = turn("Let me ", UseTool("add", '{"a": 1'), Cut())
    engine = await scene.engine(
        [turn("Let me ", Cut()), half, turn("Let me see. ", UseTool("add", {"a": 1, "b": 2})), "3."]
    )
    return await talk(engine, "What is 1 + 2?")


FAULTS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        failures, withheld, no_output, silent, unmetered, internal_error,
        runner_died, runners_died, lost_thrice, lost_running_thrice,
        drained, unstorable, caller_gone, agent_elsewhere, stopped_unbegun, cut_again,
    )
}  # fmt: skip
"""All of them by name."""
