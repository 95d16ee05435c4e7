"""Scenarios of features: each one chat, in which one thing happens that a release can get wrong."""

from __future__ import annotations

import asyncio
from typing import Final

from chatfold import ApprovalAnswer, Budget, BudgetAnswer, Content, Limits, ModelConfig, result
from chatfold.testing import Cut, Fail, Think, Turn, UseTool, Wait, turn
from events.messages import Usage
from generation.naming import Titles
from tests.corpus.kit import (
    BUSY,
    CONTEXT,
    DENIED,
    USAGE,
    Scenario,
    Scene,
    assistant,
    hook,
    talk,
)

SUM: Final = turn(UseTool("add", {"a": 2, "b": 3}), usage=USAGE)


def held(scene: Scene, *said: str) -> Turn:
    """Return a turn that stops at the scene's gate after some words."""
    return turn(*said, Wait(scene.opened, scene.holding.set), "The end.", usage=USAGE)


async def answer(scene: Scene) -> str:
    """One question, one answer, with reasoning."""
    engine = await scene.engine([turn(Think("Easy."), "Four.", usage=USAGE)])
    return await talk(engine, "What is 2 + 2?", owner="ann", title="Sums", labels={"k": "v"})


async def tools(scene: Scene) -> str:
    """Tools one after the other and together; one of them breaks, one there is not, one takes other arguments."""
    calls = turn(UseTool("add", {"a": 1, "b": 2}), UseTool("breaks", {}), UseTool("nowhere", {}), UseTool("add", {}))
    engine = await scene.engine([SUM, calls, turn(UseTool("slow", {"seconds": 3})), "Done."])
    return await talk(engine, "Go.")


async def exclusive(scene: Scene) -> str:
    """A call that must be alone is made beside another, and then by itself."""
    beside = turn(UseTool("alone", {}), UseTool("add", {"a": 1, "b": 2}))
    engine = await scene.engine([beside, turn(UseTool("alone", {})), "Done."])
    return await talk(engine, "Go.")


async def stop_after(scene: Scene) -> str:
    """A tool whose result ends the turn; then the turn is resumed, and another one comes."""
    engine = await scene.engine([turn(UseTool("file_report", {})), "More.", "Bye."])
    return await talk(engine, "Report.", "And now?")


async def max_steps(scene: Scene) -> str:
    """The step limit ends a turn, and a resume goes on from there."""
    agents = [assistant(limits=Limits(max_steps=2))]
    engine = await scene.engine([SUM, SUM, SUM, "Five."], agents=agents)
    chat = await talk(engine, "Count.")
    await engine.resume(chat)
    await engine.settled(chat)
    return chat


async def client_tool(scene: Scene) -> str:
    """The client answers a call of its own."""
    engine = await scene.engine([turn(UseTool("ask", {"q": "Which?"})), "That one."])
    chat = (await engine.create_chat("assistant", "Choose.")).chat
    state = await engine.settled(chat)
    assert state.control.action is not None
    action = state.control.action
    await engine.submit_tool_results(chat, action.id, [result(action.client_calls[0], "the red one")])
    await engine.settled(chat)
    return chat


async def client_silent(scene: Scene) -> str:
    """The client never answers, and the model goes on without."""
    engine = await scene.engine([turn(UseTool("ask", {"q": "Which?"})), "Never mind."])
    chat = await talk(engine, "Choose.")
    await asyncio.sleep(120)
    await engine.settled(chat)
    return chat


async def client_both(scene: Scene) -> str:
    """Two calls of the client's with different deadlines: the earlier one counts, and one of them ends the turn."""
    calls = turn(UseTool("ask", {"q": "Which?"}), UseTool("sign", {}))
    engine = await scene.engine([calls, "Well."])
    chat = await talk(engine, "Choose and sign.")
    await asyncio.sleep(120)
    await engine.settled(chat)
    return chat


async def client_gone(scene: Scene) -> str:
    """The client never answers, which ends the turn; what had come meanwhile goes on."""
    engine = await scene.engine([turn(UseTool("sign", {})), "Well.", turn(UseTool("sign", {}))])
    chat = await talk(engine, "Sign.")
    await engine.send_message(chat, "Hello?")
    await asyncio.sleep(400)
    await engine.settled(chat)
    await engine.send_message(chat, "Sign again.")
    await asyncio.sleep(400)
    await engine.settled(chat)
    return chat


async def approval(scene: Scene) -> str:
    """A person allows a call, allows one with other arguments, and refuses one."""
    calls = turn(*(UseTool("delete", {"path": path}) for path in ("/a", "/b", "/c")))
    engine = await scene.engine([calls, "Done."])
    chat = (await engine.create_chat("assistant", "Clean up.")).chat
    state = await engine.settled(chat)
    assert state.control.action is not None
    first, second, third = state.control.action.to_approve
    answers = [
        ApprovalAnswer(call=first, approved=True),
        ApprovalAnswer(call=second, approved=True, arguments=Content('{"path": "/other"}')),
        ApprovalAnswer(call=third, approved=False),
    ]
    await engine.submit_tool_results(chat, state.control.action.id, approvals=answers)
    await engine.settled(chat)
    return chat


async def retries(scene: Scene) -> str:
    """The service is busy three times, cuts its stream once, and answers then."""
    engine = await scene.engine([turn(Fail(BUSY))] * 3 + [turn("Hal", Cut()), turn("Half.", usage=USAGE)])
    return await talk(engine, "Hello.")


async def given_up(scene: Scene) -> str:
    """The service stays busy until there is no attempt left; later the user resumes."""
    agents = [assistant(limits=Limits(max_model_attempts=3))]
    engine = await scene.engine([turn(Fail(BUSY))] * 3 + ["At last."], agents=agents)
    chat = await talk(engine, "Hello.")
    await engine.resume(chat)
    await engine.settled(chat)
    return chat


async def refused(scene: Scene) -> str:
    """The key is wrong, which no retry mends; a message sent then is answered."""
    engine = await scene.engine([turn(Fail(DENIED)), "Now it works."])
    return await talk(engine, "Hello.", "Again.")


async def interrupt_answer(scene: Scene) -> str:
    """An answer is interrupted in its middle, kept, and gone on with."""
    engine = await scene.engine([held(scene, "Once upon a time "), "there was."])
    chat = (await engine.create_chat("assistant", "Tell me a story.")).chat
    await scene.holds()
    await engine.interrupt(chat)
    await engine.settled(chat)
    await engine.resume(chat)
    await engine.settled(chat)
    return chat


async def interrupt_tools(scene: Scene) -> str:
    """Tools are interrupted: one is done, one runs on, of which nobody knows what it did."""
    calls = turn(UseTool("add", {"a": 1, "b": 1}), UseTool("stubborn", {"seconds": 60}))
    engine = await scene.engine([calls, "I see."])
    chat = (await engine.create_chat("assistant", "Go.")).chat
    await asyncio.sleep(5)
    await engine.interrupt(chat)
    await engine.settled(chat)
    return await talk(engine, "What now?", chat=chat)


async def interrupting_message(scene: Scene) -> str:
    """A message that does not wait its turn."""
    engine = await scene.engine([held(scene, "Long "), "Short."])
    chat = (await engine.create_chat("assistant", "Tell me everything.")).chat
    await scene.holds()
    await engine.send_message(chat, "Be short.", busy="interrupt", effort="low")
    await engine.settled(chat)
    return chat


async def queue(scene: Scene) -> str:
    """Messages wait: one is edited, one deleted, all are put in another order, one is promoted."""
    engine = await scene.engine([held(scene, "One "), "Two.", "Three.", "Four."])
    chat = (await engine.create_chat("assistant", "Count.", owner="ann")).chat
    await scene.holds()
    ids = [(await engine.send_message(chat, f"Say {number}.")).queued[-1] for number in range(4)]
    await engine.edit_queued(chat, ids[0], "Say zero.")
    await engine.delete_queued(chat, ids[1])
    await engine.reorder_queue(chat, [ids[3], ids[0], ids[2]])
    await engine.promote_queued(chat, ids[2])
    scene.opened.set()
    await engine.settled(chat)
    return chat


async def edits(scene: Scene) -> str:
    """The user's message is edited while it is answered, and again after the answer."""
    engine = await scene.engine([held(scene, "Wrong "), "Right.", "Better."])
    chat = (await engine.create_chat("assistant", "Helo.", owner="ann")).chat
    await scene.holds()
    await engine.edit_message(chat, "1.0", "Hello.")
    state = await engine.settled(chat)
    await engine.edit_message(chat, state.messages[0].id, "Hello!")
    await engine.settled(chat)
    return chat


async def compact_asked(scene: Scene) -> str:
    """A compaction that the user asked for, with a hint, and one taken back."""
    engine = await scene.engine(["One.", turn("They talked.", usage=USAGE), "Two.", turn("Again.", usage=USAGE)])
    chat = await talk(engine, "Hello.")
    await engine.compact(chat, hint="Keep the names.")
    await engine.settled(chat)
    await talk(engine, "Go on.", chat=chat)
    await engine.compact(chat)
    await engine.settled(chat)
    await engine.uncompact(chat)
    return chat


async def compact_full(scene: Scene) -> str:
    """The context is full, so history is compacted in the middle of a turn."""
    full = Usage(input=2800, output=9)  # 70 of a hundred of what there is: just as much as is too much
    large = turn(UseTool("add", {"a": 1, "b": 2}), usage=full)
    engine = await scene.engine([large, turn("They added.", usage=USAGE), turn("Three.", usage=USAGE)])
    return await talk(engine, "Add.")


async def compact_in_vain(scene: Scene) -> str:
    """The context is still full after a compaction, which ends the turn."""
    full = Usage(input=4000, output=9)
    large = turn(UseTool("add", {"a": 1, "b": 2}), usage=full)
    engine = await scene.engine([large, turn("They added.", usage=USAGE), large])
    return await talk(engine, "Add.")


async def compact_elsewhere(scene: Scene) -> str:
    """Another model writes the summary."""
    other = ModelConfig(provider="scripted", name="small", context_limit=3000)
    agents = [assistant(compaction_model=other)]
    engine = await scene.engine(["One.", turn("They talked.", usage=USAGE), "Two."], agents=agents)
    chat = await talk(engine, "Hello.")
    await engine.compact(chat)
    await engine.settled(chat)
    return await talk(engine, "Go on.", chat=chat)


async def clear(scene: Scene) -> str:
    """The model begins anew, also while a call waits for its client."""
    engine = await scene.engine(["One.", "Two."])
    chat = await talk(engine, "Hello.")
    await engine.clear(chat)
    return await talk(engine, "Who are you?", chat=chat)


async def fork(scene: Scene) -> str:
    """A chat is copied in its middle, and goes on otherwise."""
    engine = await scene.engine([SUM, "Five.", "Six."])
    chat = await talk(engine, "What is 2 + 3?", owner="ann", labels={"k": "v"})
    copied = (await engine.fork(chat, at=6, title="Another way", resume=True)).chat
    await engine.settled(copied)
    return copied


async def budget_raised(scene: Scene) -> str:
    """A budget is spent; the user raises it, and at the next question ends the turn."""
    agents = [assistant(limits=Limits(budget=Budget(tokens=100, cost_micros=10_000, turns=9)))]
    engine = await scene.engine([SUM, SUM, "Five."], agents=agents)
    chat = (await engine.create_chat("assistant", "Count.")).chat
    state = await engine.settled(chat)
    assert state.control.action is not None
    raised = BudgetAnswer(end_turn=False, raised=Budget(tokens=300))
    await engine.submit_tool_results(chat, state.control.action.id, budget=raised)
    state = await engine.settled(chat)
    assert state.control.action is not None
    await engine.submit_tool_results(chat, state.control.action.id, budget=BudgetAnswer(end_turn=True))
    await engine.settled(chat)
    return chat


async def hooks(scene: Scene) -> str:
    """Hooks add context, rewrite what is asked, and let the turn go on once."""
    given = [
        hook("user_prompt_submit", context="It is Monday."),
        hook("pre_tool_use", input={"a": 20, "b": 30}, context="Twenty."),
        hook("stop", context="Check it once more."),
    ]
    engine = await scene.engine([SUM, "Fifty.", "Still fifty.", turn("Sums.", usage=USAGE)], hooks=given)
    chat = await talk(engine, "What is 2 + 3?")
    await engine.compact(chat)
    await engine.settled(chat)
    return chat


async def hooks_fail(scene: Scene) -> str:
    """A hook denies a tool, and one that fails at the end ends the turn."""
    engine = await scene.engine([SUM, "I may not."], hooks=[hook("pre_tool_use", deny="Not today.")])
    return await talk(engine, "Add.")


async def context(scene: Scene) -> str:
    """The workspace's context is collected, and anew once it is marked for that."""
    engine = await scene.engine(["One.", "Two."], agents=[assistant(context=CONTEXT)])
    chat = await talk(engine, "Hello.")
    await engine.refresh_context(chat)
    return await talk(engine, "Go on.", chat=chat)


async def models(scene: Scene) -> str:
    """A chat goes on with another model, effort, agent and choice of tools."""
    agents = [assistant(), assistant("other", models=[ModelConfig(provider="scripted", name="other")])]
    engine = await scene.engine(["One.", "Two.", "Three.", "Four."], agents=agents)
    chat = await talk(engine, "Hello.", model="scripted/first", effort="low")
    await engine.set_model(chat, "scripted/other")
    await talk(engine, "Go on.", chat=chat)
    await engine.set_active_tools(chat, ["add"])
    await engine.set_agent(chat, "other")
    await engine.send_message(chat, "Go on.", model="scripted/third")
    await engine.settled(chat)
    return chat


async def unusable(scene: Scene) -> str:
    """An agent without a model: the turn fails before anything is asked."""
    engine = await scene.engine([], agents=[assistant(model=None)])
    return await talk(engine, "Hello.")


async def erased(scene: Scene) -> str:
    """Messages are erased, those with calls too; the log keeps what they were, not what they said."""
    engine = await scene.engine([SUM, "Five.", "Go on."])
    chat = (await engine.create_chat("assistant", "My name is Ann.")).chat
    state = await engine.settled(chat)
    await engine.erase(chat, [item.id for item in state.messages[:2]])
    return await talk(engine, "And now?", chat=chat)


async def handed_over(scene: Scene) -> str:
    """A worker ends while its model speaks, and another one goes on."""
    first = await scene.engine([held(scene, "Half ")])
    chat = (await first.create_chat("assistant", "Hello.")).chat
    await scene.holds()
    closing = asyncio.ensure_future(first.__aexit__(None, None, None))
    second = await scene.engine(["Whole."])
    await closing
    await second.settled(chat)
    return chat


async def titled(scene: Scene) -> str:
    """The chat gets a title and its turns labels, beside what they are about."""
    agents = [assistant(titles=Titles())]
    engine = await scene.engine(["Hello.", "Greetings", "Greeted", "Bye.", "Left"], agents=agents)
    chat = await talk(engine, "Hello.")
    await asyncio.sleep(60)
    return chat


FEATURES: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        answer, tools, exclusive, stop_after, max_steps, client_tool, client_silent, client_both, client_gone,
        approval, retries,
        given_up, refused, interrupt_answer, interrupt_tools, interrupting_message, queue, edits, compact_asked,
        compact_full, compact_in_vain, compact_elsewhere, clear, fork, budget_raised, hooks, hooks_fail, context,
        models, unusable, erased, handed_over, titled,
    )
}  # fmt: skip
"""All of them by name."""
