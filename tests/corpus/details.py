"""Scenarios of details: what must be so, and would go unseen where nothing but the usual happens."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from typing import Final

from chatfold import (
    ApprovalAnswer,
    Budget,
    BudgetAnswer,
    Content,
    FilePart,
    FileReferencePart,
    Limits,
    StaticContext,
    TextPart,
    client_tool,
)
from chatfold.testing import ModelRequest, Think, Turn, UseTool, turn
from events.ids import ChatId
from events.messages import Usage
from events.parts import ContextFault, Part
from generation.context import Context, ContextFile, ContextProblem, ContextSkill
from generation.errors import ProviderError
from generation.providers.contract import CallEnd, Finish, ProviderResult, StreamPart, TextDelta, TextEnd
from tests.corpus.features import SUM, held
from tests.corpus.kit import DENIED, TOOLS, USAGE, Scenario, Scene, assistant, hook, talk

_FULL: Final = Usage(input=2800, output=9)
_FAULTS: Final[tuple[ContextFault, ...]] = ("oversize", "unreadable", "invalid", "excluded")


class Shelf:
    """A context source with skills, and with problems of each kind."""

    name = "shelf"
    revision = "1"

    async def collect(self, chat: ChatId) -> Context:
        """Return what stands on it."""
        skills = (
            ContextSkill(name="report", description="How reports are written.", directory="/skills/report"),
            ContextSkill(name="bill", description=" Bills & receipts. ", directory="/skills/bill"),
        )
        problems = tuple(ContextProblem(path=f"{fault}.md", fault=fault, detail="So it is.") for fault in _FAULTS)
        file = ContextFile(path="A<B>.md", text="```\nBe brief.\n```", truncated=True, os="linux", directory="/work")
        other = ContextFile(path="C.md", text="Be kind.")
        return Context(files=(file, other), skills=skills, problems=problems, revision="1")


class Single:
    """A context source of one file, which does not know whether it has changed.

    Args:
        name: The source's name.
    """

    revision = None

    def __init__(self, name: str) -> None:
        self.name = name

    async def collect(self, chat: ChatId) -> Context:
        """Return the file."""
        return Context(files=(ContextFile(path=f"{self.name}.md", text="Be kind."),))


async def skills(scene: Scene) -> str:
    """A context has files, skills and problems, beside a system text of the chat's own."""
    engine = await scene.engine(["One.", "Two."], agents=[assistant(context=Shelf())])
    return await talk(engine, "Hello.", "Go on.", system="Speak of bills alone.")


async def other_source(scene: Scene) -> str:
    """The chat goes on with an agent whose context comes from another source."""
    agents = [assistant(context=Single("notes")), assistant("other", context=Single("books"))]
    engine = await scene.engine(["One.", "Two."], agents=agents)
    chat = await talk(engine, "Hello.")
    await engine.set_agent(chat, "other")
    return await talk(engine, "Go on.", chat=chat)


async def files(scene: Scene) -> str:
    """A user gives files with and without a name, and quotes one line of a file and several."""
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    parts: list[Part] = [
        TextPart(text=Content("Look.")),
        FilePart(media_type="image/png", data=Content(image), name=Content("a.png")),
        FilePart(media_type="image/png", data=Content(image)),
        FileReferencePart(name=Content("a.py"), start_line=3, end_line=3, text=Content("x = 1")),
        FileReferencePart(name=Content("a.py"), start_line=5, end_line=9, text=Content("y = 2\nz = 3")),
    ]
    engine = await scene.engine(["I see."])
    return await talk(engine, parts)


async def signed(scene: Scene) -> str:
    """Reasoning is signed, redacted, or signed and repaired; blank texts stand between calls with the same id."""
    torn = Think("half \ud83d", metadata={"signature": "b"})
    thought = Think("Hm.", metadata={"signature": "a"})
    calls = (UseTool("add", {"a": 1, "b": 1}, id="same"), " ", UseTool("add", {"a": 2, "b": 2}, id="same"))
    again = turn(torn, UseTool("add", {"a": 3, "b": 3}, id="same"))
    engine = await scene.engine([turn(thought, *calls), again, turn(Think("", metadata={}, redacted=True), "6.")])
    chat = await talk(engine, "Add.")
    await engine.send_message(chat, "Sure?")
    return chat


async def authors(scene: Scene) -> str:
    """Several people speak in a chat, and one message is edited."""
    engine = await scene.engine(["One.", "Two.", "Three."])
    chat = await talk(engine, "Hello.", owner="ann")
    sent = await engine.send_message(chat, "And me?", author="bob")
    await engine.settled(chat)
    await engine.edit_message(chat, sent.messages[-1], "And I?")
    await engine.settled(chat)
    return chat


async def asks_long(scene: Scene) -> str:
    """A tool lets the model go on where its agent would end the turn, and a long answer of the client's is cut."""
    ask = client_tool("wait_for", "Wait for it.", {"type": "object", "properties": {}}, on_expiry="go_on")
    agents = [assistant(tools=[*TOOLS, ask], limits=Limits(on_expiry="end_turn", action_timeout=30.0))]
    engine = await scene.engine([turn(UseTool("wait_for", {}))] * 2 + ["Long."], agents=agents)
    chat = await talk(engine, "Wait.")
    await asyncio.sleep(60)
    state = await engine.settled(chat)
    assert state.control.action is not None
    action = state.control.action
    await engine.submit_tool_results(chat, action.id, {action.client_calls[0]: "long " * 4000})
    await engine.settled(chat)
    return chat


async def budget_raised_twice(scene: Scene) -> str:
    """One limit of a budget is raised, then another one, and the first stays raised."""
    agents = [assistant(limits=Limits(budget=Budget(tokens=100, cost_micros=1_000)))]
    engine = await scene.engine([SUM, SUM, SUM, "Five."], agents=agents)
    chat = (await engine.create_chat("assistant", "Count.")).chat
    for raised in (Budget(tokens=100_000), Budget(cost_micros=900_000)):
        state = await engine.settled(chat)
        assert state.control.action is not None
        await engine.submit_tool_results(
            chat, state.control.action.id, budget=BudgetAnswer(end_turn=False, raised=raised)
        )
    await engine.settled(chat)
    return chat


async def approved_and_edited(scene: Scene) -> str:
    """A call is allowed with other arguments while no worker is there, and the message is edited before it runs."""
    user = await scene.engine([], worker=False)
    first = await scene.engine([turn(UseTool("delete", {"path": "/a"}))])
    chat = (await user.create_chat("assistant", "Clean up.")).chat
    state = await user.settled(chat)
    await first.__aexit__(None, None, None)
    assert state.control.action is not None
    other = Content('{"path": "/b"}')
    allowed = ApprovalAnswer(call=state.control.action.to_approve[0], approved=True, arguments=other)
    await user.submit_tool_results(chat, state.control.action.id, approvals=[allowed])
    await user.edit_message(chat, state.messages[0].id, "Leave it.")
    second = await scene.engine(["I leave it."])
    await second.settled(chat)
    return chat


async def erased_summarising(scene: Scene) -> str:
    """A message is erased while a summary of it is written; that one is dropped, and another one made."""
    said: list[str | Turn] = ["One.", held(scene, "They "), turn("They talked.", usage=USAGE), "Two."]
    engine = await scene.engine(said)
    chat = await talk(engine, "My name is Ann.")
    await engine.compact(chat, hint="Keep the names.")
    await scene.holds()
    await engine.erase(chat, ["1.0"])
    scene.opened.set()
    await engine.settled(chat)
    return chat


async def summarised_late(scene: Scene) -> str:
    """A message comes, the context is collected anew behind it, and the history before both is summarised."""
    source = StaticContext([ContextFile(path="AGENTS.md", text="Be brief.")], name="workspace")
    engine = await scene.engine(
        [turn("One.", usage=_FULL), turn("They talked.", usage=USAGE), "Two."], agents=[assistant(context=source)]
    )
    chat = await talk(engine, "Hello.")
    await engine.refresh_context(chat)
    return await talk(engine, "Go on.", chat=chat)


async def uncompacted_resumed(scene: Scene) -> str:
    """A turn that was resumed is summarised and taken back: its steps count from its resume on, as they did."""
    agents = [assistant(limits=Limits(max_steps=2))]
    engine = await scene.engine([SUM, SUM, SUM, SUM, turn("They count.", usage=USAGE)], agents=agents)
    chat = await talk(engine, "Count.")
    await engine.resume(chat)
    await engine.settled(chat)
    await engine.compact(chat)
    await engine.settled(chat)
    await engine.uncompact(chat)
    await engine.resume(chat)
    return chat


async def nudged_again(scene: Scene) -> str:
    """A hook lets a turn go on, which is resumed and summarised; what the hook said stands behind the summary again."""
    said: list[str | Turn] = ["Fifty.", held(scene, "Let me "), turn("They counted.", usage=USAGE), "Still fifty."]
    engine = await scene.engine(said, hooks=[hook("stop", context="Check it once more.")])
    chat = (await engine.create_chat("assistant", "How many?")).chat
    await scene.holds()
    await engine.__aexit__(None, None, None)
    user = await scene.engine([], worker=False)
    await user.interrupt(chat)
    await user.resume(chat)
    await user.interrupt(chat)
    await user.compact(chat)
    second = await scene.engine([turn("They counted.", usage=USAGE), "Still fifty."])
    await second.settled(chat)
    await user.resume(chat)
    await second.settled(chat)
    return chat


class Searching:
    """A provider that searches before it speaks, stops at the scene's gate the first time, and fails the second time.

    Args:
        scene: Whose gate.
    """

    name = "searching"

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._asked = 0

    async def stream(self, _: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Search, and say what was found."""
        self._asked += 1
        yield TextDelta(block=0, text="I look. ")
        yield TextEnd(block=0)
        yield CallEnd(block=1, id="s1", name="web_search", arguments='{"query": "x"}', provider_executed=True)
        yield ProviderResult(block=2, call_id="s1", name="web_search", output=[{"url": "https://example.org"}])
        yield TextDelta(block=3, text="Found.")
        if self._asked == 1:
            self._scene.holding.set()
            await self._scene.opened.wait()
        if self._asked == 2:
            raise ProviderError(DENIED)
        yield TextEnd(block=3)
        yield Finish(reason="stop", usage=USAGE, response_id=f"r{self._asked}")

    async def close(self) -> None:
        """Close nothing."""


async def searched_interrupted(scene: Scene) -> str:
    """An answer is interrupted behind a search of its service, another fails there; the results are kept with them."""
    engine = await scene.engine([], providers={"scripted": Searching(scene)})
    chat = (await engine.create_chat("assistant", "Look it up.")).chat
    await scene.holds()
    await engine.interrupt(chat)
    await engine.settled(chat)
    for _ in range(2):
        await engine.resume(chat)
        await engine.settled(chat)
    return chat


async def effort_kept(scene: Scene) -> str:
    """The model is changed and the effort stays; then messages wait with a choice of their own."""
    engine = await scene.engine(["One.", held(scene, "Two "), "Three.", "Four."])
    chat = await talk(engine, "Hello.", effort="low")
    await engine.set_model(chat, "scripted/other")
    await engine.send_message(chat, "Go on.")
    await scene.holds()
    await engine.send_message(chat, "And?", model="scripted/third", effort="high")
    await engine.send_message(chat, "And then?", effort="medium")
    scene.opened.set()
    await engine.settled(chat)
    return chat


DETAILS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        skills, other_source, files, signed, authors, asks_long, budget_raised_twice, approved_and_edited,
        erased_summarising, summarised_late, uncompacted_resumed, nudged_again, searched_interrupted, effort_kept,
    )
}  # fmt: skip
"""All of them by name."""
