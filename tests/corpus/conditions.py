"""Scenarios of conditions: in each, all that a rule asks for holds but one thing, or just holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from chatfold import NO_LIMIT, Agent, Budget, BudgetAnswer, Engine, Limits, ModelConfig
from chatfold.testing import ClassifiedError, Fail, ModelRequest, ScriptedProvider, Think, Turn, UseTool, turn
from events.messages import Usage
from generation.providers.contract import (
    CallEnd,
    ReasoningDelta,
    ReasoningEnd,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from generation.providers.metadata import tag
from tests.corpus.features import SUM, held
from tests.corpus.kit import USAGE, Scenario, Scene, assistant, hook, talk

_HALF: Final = "half \ud83d"
_OVER: Final = Usage(input=2801, output=9)
"""Just as much as is too much for a context of 4001 tokens."""
_GONE: Final = ClassifiedError(kind="generic", message="It is gone.", retryable=True, chain_broken=True)


def _model(name: str, limit: int | None = None, threshold: int | None = None) -> ModelConfig:
    return ModelConfig(provider="scripted", name=name, context_limit=limit, compaction_threshold=threshold)


async def _raise(engine: Engine, chat: str, budget: Budget) -> None:
    """Answer the question for a budget, which must be open."""
    action = (await engine.settled(chat)).control.action
    assert action is not None
    await engine.submit_tool_results(chat, action.id, budget=BudgetAnswer(end_turn=False, raised=budget))
    await engine.settled(chat)


async def when_full_again(scene: Scene) -> str:
    """The context is full twice in a turn, with a smaller answer between; at last the first answer is the large one."""
    models = [_model("m", 4001), _model("large", 100_000)]
    said = [turn(UseTool("add", {"a": 1, "b": 2}), usage=usage) for usage in (_OVER, USAGE, _OVER)]
    summary = turn("They added.", usage=USAGE)
    answers: list[str | Turn] = [turn("Four.", usage=_OVER), turn("Five.", usage=USAGE), "Six."]
    engine = await scene.engine(
        [said[0], summary, *said[1:], summary, *answers], agents=[assistant(model=models[0], models=models)]
    )
    chat = await talk(engine, "Add.")
    await engine.set_model(chat, "scripted/large")
    await talk(engine, "And one?", chat=chat)
    await engine.set_model(chat, "scripted/m")
    return await talk(engine, "And one?", chat=chat)


async def when_limits_differ(scene: Scene) -> str:
    """Models of a large context, of an unknown one, and one that is never compacted, each of which asks the client."""
    models = [_model("large", 30_000), _model("open"), _model("never", 4000, 100)]
    asks = turn(UseTool("ask", {"q": "Which?"}), usage=Usage(input=4000, output=9))
    engine = await scene.engine([asks, "One."] * 3, agents=[assistant(model=models[0], models=models)])
    chat = (await engine.create_chat("assistant")).chat
    for model in models:
        await engine.set_model(chat, model.reference)
        await talk(engine, "Choose.", chat=chat)
        action = (await engine.state(chat)).control.action
        assert action is not None
        await engine.submit_tool_results(chat, action.id, {action.client_calls[0]: "This one."})
        await engine.settled(chat)
    return chat


async def when_just_spent(scene: Scene) -> str:
    """Budgets are spent to the last token and turn; then only what was raised is a limit, and no longer the agent's."""
    agents = [assistant(limits=Limits(budget=Budget(tokens=160, turns=1))), assistant("free")]
    engine = await scene.engine([SUM, turn("Five.", usage=USAGE), "Six.", "Seven."], agents=agents)
    chat = await talk(engine, "Count.")
    await _raise(engine, chat, Budget(tokens=320))
    await engine.send_message(chat, "Go on.")
    await _raise(engine, chat, Budget(tokens=NO_LIMIT, turns=2))
    await engine.set_agent(chat, "free")
    await engine.send_message(chat, "Go on.")
    await _raise(engine, chat, Budget(turns=9))
    return chat


async def when_nudged_at_the_last_step(scene: Scene) -> str:
    """A hook lets a turn go on whose steps are used up: one more is granted."""
    agents = [assistant(limits=Limits(max_steps=1))]
    engine = await scene.engine(["Four.", SUM, "Five."], agents=agents, hooks=[hook("stop", context="Are you sure?")])
    return await talk(engine, "What is 2 + 2?")


class Keeping(ScriptedProvider):
    """A service that keeps its responses, and goes on from them."""

    goes_on = True


def _keeps(agent: str, *, provider: str = "keeping", name: str = "m", more: int = 0) -> Agent:
    options = {"store": True, "more": more}
    model = ModelConfig(provider=provider, name=name, options=options)
    return assistant(agent, model=model, limits=Limits(max_model_attempts=1))


async def when_not_gone_on_from(scene: Scene) -> str:
    """A response is gone on from, then lost; others are copied, of another model, or end with a call or a thought."""
    agents = [
        _keeps("assistant"),
        _keeps("named", name="other"),
        _keeps("elsewhere", provider="hoarding", name="other"),
        _keeps("optioned", provider="hoarding", name="other", more=1),
    ]
    thinks = turn("Well.", Think("Is it?", metadata={"signature": "a"}), usage=USAGE)
    said: list[str | Turn] = ["One.", "Two.", "Three.", turn(Fail(_GONE)), "Four.", "Five.", thinks, "Six."]
    reports = turn(UseTool("file_report", {}), "I file it.", usage=USAGE)
    providers = {
        "keeping": Keeping([*said, reports, "Seven."], name="keeping"),
        "hoarding": Keeping(["Eight.", "Nine."], name="hoarding"),
    }
    engine = await scene.engine(agents=agents, providers=providers)
    chat = (await engine.fork(await talk(engine, "Hello."))).chat
    await talk(engine, "It is a copy.", "It is my own.", "It is gone.", chat=chat)
    await engine.resume(chat)
    await engine.settled(chat)
    for agent in ("named", "elsewhere", "optioned", "assistant"):
        await engine.set_agent(chat, agent)
        await talk(engine, "And you?", chat=chat)
    return await talk(engine, "Are you sure?", "File it.", "And now?", chat=chat)


class Searching(ScriptedProvider):
    """A service that searches first, and stops at the scene's gate before it has found anything.

    Args:
        scene: Whose gate.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(["Nothing.", turn("Nothing at all.")])
        self._scene: Final = scene

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Search once; then say what the script has."""
        if self._scene.holding.is_set():
            async for part in super().stream(request):
                yield part
            return
        yield TextDelta(block=0, text="I look.")
        yield TextEnd(block=0)
        yield CallEnd(block=1, id="s1", name="web_search", arguments='{"query": "x"}', provider_executed=True)
        yield ReasoningDelta(block=2, text="Hm.")
        yield ReasoningEnd(block=2, metadata=tag("scripted", request.model, {"signature": "a"}))
        self._scene.holding.set()
        await self._scene.opened.wait()


async def when_search_is_cut(scene: Scene) -> str:
    """An answer is interrupted while its service searches: what led to no result is not shown again."""
    engine = await scene.engine(providers={"scripted": Searching(scene)})
    chat = (await engine.create_chat("assistant", "Look it up.")).chat
    await scene.holds()
    await engine.interrupt(chat)
    await engine.settled(chat)
    return await talk(engine, "And?", chat=chat)


async def when_repaired_before_thinking(scene: Scene) -> str:
    """What a model thought behind a text that was repaired is not shown again, as its signature holds no more."""
    thinks = turn(_HALF, Think("Hm.", metadata={"signature": "a"}), UseTool("add", {"a": 1, "b": 2}), usage=USAGE)
    engine = await scene.engine([thinks, "Three."])
    return await talk(engine, "Add.")


async def when_summary_is_cut(scene: Scene) -> str:
    """A summary has no room and is not tried again; the next one is of an answer that was interrupted."""
    cut = Turn(steps=turn(Think("I sum up.")).steps, finish="length", usage=USAGE)
    said: list[str | Turn] = ["One.", cut, held(scene, "Two "), turn("They talked.", usage=USAGE), "Three."]
    engine = await scene.engine(said)
    chat = await talk(engine, "Hello.")
    await engine.compact(chat)
    await engine.settled(chat)
    await engine.send_message(chat, "Go on.")
    await scene.holds()
    await engine.interrupt(chat)
    await engine.settled(chat)
    await engine.compact(chat, hint="  Keep the names.\n")
    await engine.settled(chat)
    return await talk(engine, "Go on.", chat=chat)


CONDITIONS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        when_full_again, when_limits_differ, when_just_spent, when_nudged_at_the_last_step, when_not_gone_on_from,
        when_search_is_cut, when_repaired_before_thinking, when_summary_is_cut,
    )
}  # fmt: skip
"""All of them by name."""
