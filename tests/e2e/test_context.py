"""What the model reads: compaction asked for and by itself, clear, a context source, another model."""

from chatfold.testing.servers import Answer, Reasoning, Text, ToolCall, Usage
from generation.context import ContextFile, StaticContext
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, Place, stage, texts
from tests.e2e.tools import add


async def test_compaction_on_demand(place: Place) -> None:
    script = [Answer("Paris."), Answer("They asked for the capital of France."), Answer("Lyon.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Capital of France?")
        await scene.settled(chat)
        await scene.engine.compact(chat, hint="places")
        state = await scene.settled(chat)
        assert state.control.indexes.boundary_kind == "chat_summarized"
        assert "places" in scene.server.requests[1].raw.decode()
        await scene.engine.send_message(chat, "The second city?")
        state = await scene.settled(chat)
        assert texts(state) == ["Paris.", "Lyon."]
        prompt = scene.server.requests[2].raw.decode()
        assert "They asked for the capital of France." in prompt
        assert "Capital of France?" not in prompt
        await check(scene, chat)


async def test_compaction_over_the_threshold(place: Place) -> None:
    script = [
        Answer("A first answer.", usage=Usage(input=900)),
        Answer("A summary of it all."),
        Answer("A second answer."),
    ]
    model = place.model(context_limit=1000, compaction_threshold=50)
    async with stage(place, script, model=model) as scene:
        chat = await scene.start("First?")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Second?")
        state = await scene.settled(chat)
        assert texts(state) == ["A first answer.", "A second answer."]
        prompt = scene.server.requests[2].raw.decode()
        assert "A summary of it all." in prompt
        assert "Second?" in prompt
        assert "First?" not in prompt
        await check(scene, chat)


async def test_compaction_in_the_middle_of_a_turn(place: Place) -> None:
    script = [
        Answer([ToolCall("add", {"a": 1, "b": 2})], usage=Usage(input=900)),
        Answer("One and two is three."),
        Answer("Three."),
    ]
    model = place.model(context_limit=1000, compaction_threshold=50)
    async with stage(place, script, model=model, tools=[add]) as scene:
        chat = await scene.start("Sum?")
        state = await scene.settled(chat)
        assert texts(state) == ["Three."]
        await check(scene, chat)


async def test_clear(place: Place) -> None:
    script = [Answer("Blue."), Answer("Which colour?")]
    async with stage(place, script) as scene:
        chat = await scene.start("My colour is blue")
        await scene.settled(chat)
        await scene.engine.clear(chat)
        await scene.engine.send_message(chat, "What is my colour?")
        state = await scene.settled(chat)
        assert texts(state) == ["Blue.", "Which colour?"]
        assert "My colour is blue" not in scene.server.requests[1].raw.decode()
        await check(scene, chat)


async def test_context_source(place: Place) -> None:
    source = StaticContext([ContextFile(path="AGENTS.md", text="Always answer in Latin.")])
    script = [Answer("Salve."), Answer("Vale.")]
    async with stage(place, script, context=source, system="You are terse.") as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Bye")
        state = await scene.settled(chat)
        assert texts(state) == ["Salve.", "Vale."]
        for request in scene.server.requests:
            assert request.raw.decode().count("Always answer in Latin.") == 1
            assert "You are terse." in request.raw.decode()
        types = [each.event.type for each in await scene.engine.events(chat)]
        assert types.count("context_persisted") == 1
        await check(scene, chat)


async def test_model_of_another_provider(place: Place) -> None:
    other = "openai" if place.provider != "openai" else "anthropic"
    script = [
        Answer([Reasoning("A sum.", signature="c2ln"), Text("I add."), ToolCall("add", {"a": 1, "b": 2})]),
        Answer([Reasoning("Easy."), Text("Three.")]),
        Answer("Back again."),
    ]
    theirs = [Answer([ToolCall("add", {"a": 3, "b": 3})]), Answer([Reasoning("Hm."), Text("Six.")])]
    async with stage(place, script, tools=[add], others={other: theirs}) as scene:
        chat = await scene.start("Sum")
        await scene.settled(chat)
        await scene.engine.set_model(chat, f"{other}/{MODEL}")
        await scene.engine.send_message(chat, "Double")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "And?", model=f"{place.provider}/{MODEL}")
        state = await scene.settled(chat)
        assert texts(state) == ["I add.", "Three.", "Six.", "Back again."]
        assert len(scene.others[0].requests) == 2
        await check(scene, chat)
