"""Text, reasoning, and what becomes of them in the next turn."""

from chatfold.testing.servers import Answer, Reasoning, Text
from tests.e2e.checks import check
from tests.e2e.kit import Place, reasoning, stage, texts


async def test_text(place: Place) -> None:
    answers = [
        Answer("Hello to you, whoever you are."),
        Answer("As I said: hello. \N{WAVING HAND SIGN}", split_surrogates=True),
    ]
    async with stage(place, answers) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Once more")
        state = await scene.settled(chat)
        assert texts(state) == ["Hello to you, whoever you are.", "As I said: hello. \N{WAVING HAND SIGN}"]
        assert scene.server.requests[1].user_texts == ("Hello", "Once more")
        assert state.control.usage.output == 10
        await check(scene, chat)


async def test_reasoning_and_text(place: Place) -> None:
    signature = "c2lnbmF0dXJlIHdpdGggKy8gYW5kID0gaW4gaXQ+Pz8+Lw=="
    answers = [
        Answer([Reasoning("Let me see, step by step.", signature=signature), Text("It is four.")]),
        Answer([Reasoning("They ask again."), Text("Still four.")]),
    ]
    async with stage(place, answers) as scene:
        chat = await scene.start("What is two and two?")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Sure?")
        state = await scene.settled(chat)
        assert texts(state) == ["It is four.", "Still four."]
        assert [part.text.text for part in reasoning(state)] == ["Let me see, step by step.", "They ask again."]
        if place.provider != "openai-chat":
            assert signature in scene.server.requests[1].raw.decode()
        await check(scene, chat)
