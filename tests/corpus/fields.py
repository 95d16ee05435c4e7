"""Scenarios of values: each fills fields that are at their default wherever nobody asks for more."""

from __future__ import annotations

import asyncio
from typing import Final

from chatfold import (
    NO_LIMIT,
    ApprovalAnswer,
    Budget,
    BudgetAnswer,
    Content,
    Engine,
    Limits,
    ModelConfig,
    SourcePart,
    StaticContext,
    TextPart,
    ToolContext,
    tool,
)
from chatfold.hooks import HookAnswer, HookCall, PythonHook
from chatfold.testing import Fail, Think, Turn, UseTool, Wait, turn
from events.ids import ChatId
from events.messages import Usage
from generation.context import Context, ContextFile
from generation.tools.reconcile import NOT_HAPPENED, Outcome
from tests.corpus.kit import DENIED, TOOLS, USAGE, Scenario, Scene, assistant, stubborn, talk

_HALF: Final = "half \ud83d"
"""A text that ends with half a character."""
_STUBBORN: Final = turn(UseTool("stubborn", {"seconds": 1000}))


@tool
def torn() -> str:
    """Give a text that cannot be stored."""
    return _HALF


wilful: Final = tool(name="wilful")(stubborn.function)  # type: ignore[arg-type]  # it has one
"""As stubborn, and not to be run twice."""


async def _happened(context: ToolContext | None, arguments: object) -> Outcome:
    return NOT_HAPPENED


@tool(reconcile=_happened)
async def booked(seconds: float) -> str:
    """Book a table, which the restaurant can be asked about."""
    await asyncio.sleep(seconds)
    return "booked"


class Notes:
    """A context source that knows when it has changed."""

    name = "notes"
    revision = None

    def __init__(self) -> None:
        self.text = "Be brief."

    async def collect(self, chat: ChatId) -> Context:
        """Return the notes."""
        return Context(files=(ContextFile(path="NOTES.md", text=self.text),), revision=self.text)

    async def revision_for(self, chat: ChatId) -> str:
        """Return what they say."""
        return self.text


async def child(scene: Scene) -> str:
    """A chat that is a part of another one."""
    engine = await scene.engine(["One.", "Two."])
    parent = await talk(engine, "Do both.")
    return await talk(engine, "Do the first.", parent=parent)


async def fork_chosen(scene: Scene) -> str:
    """A copy has the choice of tools that its origin had."""
    engine = await scene.engine(["One.", "Two."])
    chat = await talk(engine, "Hello.")
    await engine.set_active_tools(chat, ["add"])
    copied = (await engine.fork(chat)).chat
    return await talk(engine, "Go on.", chat=copied)


async def cited(scene: Scene) -> str:
    """A user's message names where it is from, with what its application knows of that."""
    source = SourcePart(source_id="1", url=Content("https://example.org"), metadata=Content({"page": 7}))
    engine = await scene.engine(["I see."])
    return await talk(engine, [TextPart(text=Content("Read this.")), source])


async def workspace(scene: Scene) -> str:
    """A context says which machine it is of, where, and that a file of it is not all there."""
    file = ContextFile(path="AGENTS.md", text="Be", truncated=True, os="linux", directory="/home/ann/work")
    engine = await scene.engine(["One."], agents=[assistant(context=StaticContext([file], name="workspace"))])
    return await talk(engine, "Hello.")


async def context_stale(scene: Scene) -> str:
    """The context has changed, is told to be as it was, and changes again; then it is collected anew."""
    notes = Notes()
    engine = await scene.engine(["One.", "Two."], agents=[assistant(context=notes)])
    chat = await talk(engine, "Hello.")
    for text in ("Be long.", "Be brief.", "Be kind."):
        notes.text = text
        await engine.context(chat, look=True)
    await engine.refresh_context(chat)
    return await talk(engine, "Go on.", chat=chat)


async def sent_choosing(scene: Scene) -> str:
    """A message that would interrupt finds nothing to interrupt, and chooses model and effort."""
    engine = await scene.engine(["One.", "Two."])
    chat = await talk(engine, "Hello.")
    await engine.send_message(chat, "Now!", busy="interrupt", model="scripted/other", effort="high")
    await engine.settled(chat)
    return chat


async def compact_early(scene: Scene) -> str:
    """The agent says when its context is full."""
    early = ModelConfig(provider="scripted", name="m", context_limit=4000, max_output=500, compaction_threshold=30)
    large = turn(UseTool("add", {"a": 1, "b": 2}), usage=Usage(input=1200, output=9))
    engine = await scene.engine([large, turn("They added.", usage=USAGE), "Three."], agents=[assistant(model=early)])
    return await talk(engine, "Add.")


async def repaired(scene: Scene) -> str:
    """Model and tool give texts that cannot be stored as they are."""
    call = turn(Think(_HALF), _HALF, UseTool("torn", {}), usage=USAGE)
    engine = await scene.engine([call, "Done."], agents=[assistant(tools=[*TOOLS, torn])])
    return await talk(engine, "Go.")


async def released_running(scene: Scene) -> str:
    """A worker ends while two tools run on: of one nobody knows what it did, the other one is run again."""
    agents = [assistant(tools=[*TOOLS, wilful])]
    calls = turn(UseTool("wilful", {"seconds": 1000}), UseTool("stubborn", {"seconds": 60}))
    first = await scene.engine([calls], agents=agents)
    chat = (await first.create_chat("assistant", "Go.")).chat
    await asyncio.sleep(3)
    await first.__aexit__(None, None, None)
    second = await scene.engine(["I see."], agents=agents)
    await second.settled(chat)
    return chat


async def taken_over_running(scene: Scene) -> str:
    """A worker is killed while a tool runs that may be run again, and the next one does."""
    user = await scene.engine([], worker=False)
    chat = (await user.create_chat("assistant", "Go.")).chat
    process = await scene.doomed([turn(UseTool("stubborn", {"seconds": 5}))])
    await asyncio.sleep(3)
    await scene.killed(process)
    second = await scene.engine(["Done."])
    await second.settled(chat)
    return chat


async def failed_running(scene: Scene) -> str:
    """A hook fails at a tool's end, which ends the turn while another tool runs on."""

    async def fails(call: HookCall) -> HookAnswer:
        raise RuntimeError(call.event)

    calls = turn(UseTool("add", {"a": 1, "b": 1}), UseTool("stubborn", {"seconds": 1000}))
    engine = await scene.engine([calls, "Done."], hooks=[PythonHook(fails, ("post_tool_use",))])
    return await talk(engine, "Go.")


async def asked_what_happened(scene: Scene) -> str:
    """A worker is killed while it books; the tool is asked, says that nothing happened, and books again."""
    agents = [assistant(tools=[*TOOLS, booked])]
    user = await scene.engine([], agents=agents, worker=False)
    chat = (await user.create_chat("assistant", "Book.")).chat
    process = await scene.doomed([turn(UseTool("booked", {"seconds": 5}))], agents=agents)
    await asyncio.sleep(3)
    await scene.killed(process)
    second = await scene.engine(["Booked."], agents=agents)
    await second.settled(chat)
    return chat


async def budget_unpriced(scene: Scene) -> str:
    """Cost is limited, and the model has no price."""
    free = ModelConfig(provider="scripted", name="free", context_limit=4000)
    agents = [assistant(model=free, limits=Limits(budget=Budget(cost_micros=10)))]
    engine = await scene.engine(["One."], agents=agents)
    chat = (await engine.create_chat("assistant", "Hello.")).chat
    state = await engine.settled(chat)
    assert state.control.action is not None
    lifted = BudgetAnswer(end_turn=False, raised=Budget(cost_micros=NO_LIMIT))
    await engine.submit_tool_results(chat, state.control.action.id, budget=lifted)
    await engine.settled(chat)
    return chat


async def titles_asked(scene: Scene) -> str:
    """A title is proposed while the chat waits to be taken, is interrupted, and asks its client."""

    def said(scene: Scene) -> list[Turn]:
        title = turn("A title", usage=USAGE)
        return [_STUBBORN, title, title, turn(UseTool("sign", {})), title]

    user = await scene.engine([turn("A title", usage=USAGE)], worker=False)
    chat = (await user.create_chat("assistant", "Hello.")).chat
    await user.send_message(chat, "And?")
    await user.propose_title(chat)
    await user.delete_queued(chat, (await user.queue(chat))[0].id)
    engine = await scene.engine(said(scene))
    await asyncio.sleep(3)
    await engine.interrupt(chat)
    await engine.propose_title(chat)
    await engine.send_message(chat, "Well?")
    await engine.propose_title(chat)
    await engine.settled(chat)
    await engine.propose_title(chat)
    return chat


async def queue_given_up(scene: Scene) -> str:
    """A turn fails while a message waits, which is deleted then."""
    engine = await scene.engine([turn(Wait(scene.opened, scene.holding.set), Fail(DENIED))])
    chat = (await engine.create_chat("assistant", "Hello.")).chat
    await scene.holds()
    await engine.send_message(chat, "Later.")
    scene.opened.set()
    await engine.settled(chat)
    await engine.delete_queued(chat, (await engine.queue(chat))[0].id)
    return chat


async def tools_ending(scene: Scene) -> str:
    """Two tools run on for a while after the interruption, one longer than the other."""
    calls = turn(UseTool("stubborn", {"seconds": 4}), UseTool("stubborn", {"seconds": 6}))
    engine = await scene.engine([calls, "I see."])
    chat = (await engine.create_chat("assistant", "Go.")).chat
    await asyncio.sleep(3)
    await engine.interrupt(chat)
    await engine.settled(chat)
    return chat


async def _unanswered(scene: Scene) -> tuple[Engine, str]:
    """Bring a chat to an error while a call of its last answer was allowed and not begun."""
    user = await scene.engine([], worker=False)
    first = await scene.engine([turn(UseTool("delete", {"path": "/a"}))])
    chat = (await user.create_chat("assistant", "Go.")).chat
    state = await user.settled(chat)
    await first.__aexit__(None, None, None)
    assert state.control.action is not None
    allowed = [ApprovalAnswer(call=state.control.action.to_approve[0], approved=True)]
    await user.submit_tool_results(chat, state.control.action.id, approvals=allowed)
    second = await scene.engine([], agents=[assistant(model=None)])
    await user.settled(chat)
    await second.__aexit__(None, None, None)
    return user, chat


async def unanswered_sent(scene: Scene) -> str:
    """A turn fails before its call could be run, and a message comes instead of a result."""
    engine, chat = await _unanswered(scene)
    await engine.send_message(chat, "Never mind.")
    return chat


async def unanswered_cleared(scene: Scene) -> str:
    """A turn fails before its call could be run, and its user begins anew."""
    engine, chat = await _unanswered(scene)
    await engine.clear(chat)
    return chat


FIELDS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        child, cited, fork_chosen, workspace, context_stale, sent_choosing, compact_early, repaired, released_running,
        taken_over_running, failed_running,
        asked_what_happened, budget_unpriced, titles_asked, queue_given_up, tools_ending, unanswered_sent,
        unanswered_cleared,
    )
}  # fmt: skip
"""All of them by name."""
