"""Files that go with results, as each service is given them: through the real SDKs, to servers that check requests."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chatfold.testing.servers import Answer, ToolCall
from events.content import Absent, Content
from events.messages import Message
from events.parts import FilePart, ToolResultPart
from generation.prompt_kept import COPIED
from generation.prompt_types import PromptResult
from tests.generation.kit import assistant, call, file, prompt_of, result, tool, user
from tests.generation.providers.kit import NAMES, Conversation, serving

IMAGE, PDF = file("image/png", "iVBORw0KGgo=", "screen.png"), file("application/pdf", "JVBERi0xLjQK", "paper.pdf")
TEXT, OTHER = file("text/plain", "aGVsbG8gd29ybGQ=", "notes.txt"), file("audio/wav", "UklGRg==")


async def asked(name: str, *results: ToolResultPart) -> dict[str, Any]:
    """Have a service called tools, answer with these results, and return the request that says so."""
    calls = [ToolCall("get_weather", {"city": "Paris"}) for _ in results]
    async with serving(name, [Answer(calls), Answer("I see."), Answer("Yes.")]) as (server, provider):
        chat = Conversation(provider)
        chat.say("Look")
        await chat.answer()
        identity = chat.items[-1].id
        chat.add(
            Message(role="tool", parts=tuple(replace(one, call=f"{identity}.{at}") for at, one in enumerate(results)))
        )
        await chat.answer()
        chat.say("Sure?")
        await chat.answer()
    assert [(one.status, one.message) for one in server.refused] == []
    first, second = (request.body for request in server.requests[1:])
    key = "input" if name == "openai" else "messages"
    assert without_marks(second[key][: len(first[key])]) == without_marks(first[key]), "the prefix stays as it was"
    return first


def without_marks(value: Any) -> Any:
    """Leave cache breakpoints out, which move with each request, as does the message that the next one joins."""
    if isinstance(value, dict):
        return {name: without_marks(item) for name, item in value.items() if name != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


async def test_anthropic_has_them_in_the_result() -> None:
    body = await asked("anthropic", result("0.0.0", "Two files.", media=[IMAGE, PDF, TEXT, OTHER]))
    (block,) = without_marks(body["messages"][-1]["content"])
    assert block["type"] == "tool_result"
    said, image, paper, text, other = block["content"]
    assert said == {"type": "text", "text": "Two files."}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert (paper["type"], paper["title"]) == ("document", "paper.pdf")
    assert "hello world" in text["text"]
    assert "audio/wav" in other["text"]


async def test_anthropic_takes_text_alone_in_an_error_so_the_text_says_that_it_is_one() -> None:
    failed = replace(result("0.0.0", "No such page.", media=[IMAGE]), is_error=True)
    body = await asked("anthropic", failed, replace(failed, media=()))
    with_image, without = without_marks(body["messages"][-1]["content"])
    assert "is_error" not in with_image
    assert with_image["content"][0]["text"] == '{"error": "No such page."}'
    assert with_image["content"][1]["type"] == "image"
    assert (without["is_error"], without["content"]) == (True, "No such page.")


async def test_responses_has_them_in_the_output() -> None:
    failed = replace(result("0.0.0", "No.", media=[IMAGE]), is_error=True)
    body = await asked("openai", result("0.0.0", "Two files.", media=[IMAGE, PDF, TEXT, OTHER]), failed)
    whole, error = (item["output"] for item in body["input"] if item["type"] == "function_call_output")
    assert [part["type"] for part in whole] == ["input_text", "input_image", "input_file", "input_text", "input_text"]
    assert whole[1]["image_url"] == "data:image/png;base64,iVBORw0KGgo="
    assert whole[2]["filename"] == "paper.pdf"
    assert "hello world" in whole[3]["text"]
    assert error[0]["text"] == '{"error": "No."}'


async def test_chat_completions_has_them_in_a_message_after_all_results() -> None:
    body = await asked("openai-chat", result("0.0.0", "A file.", media=[IMAGE, TEXT, OTHER]), result("0.0.0", "b"))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    first, second, shown = body["messages"][2:]
    assert first["content"].startswith("A file.\n\n")
    assert "hello world" in first["content"]
    assert "audio/wav" in first["content"]
    assert second["content"] == "b"
    label, image = shown["content"]
    assert first["tool_call_id"] in label["text"]
    assert image["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize("name", NAMES)
async def test_a_long_file_is_sent_whole(name: str) -> None:
    long = file("text/plain", "aGVsbG8g" * COPIED, "notes.txt")
    body = await asked(name, result("0.0.0", "Long.", media=[long, IMAGE]))
    assert "hello hello hello" in str(body)
    assert "iVBORw0KGgo=" in str(body)


def shown(one: ToolResultPart) -> PromptResult:
    messages = prompt_of(user("hi"), assistant(call()), tool(one))
    (part,) = messages[2].parts
    assert isinstance(part, PromptResult)
    return part


def test_what_a_result_says_is_never_blank() -> None:
    assert shown(result("2.0.0", "")).text == "(no output)"
    assert shown(result("2.0.0", " ", media=[IMAGE])).text == "(The result is the files that go with it.)"


def test_a_file_that_was_erased_is_said_to_be_gone() -> None:
    gone = FilePart(media_type="image/png", data=Content(Absent.ERASED, 12))
    part = shown(result("2.0.0", "A screen.", media=[gone, TEXT]))
    assert part.text.startswith("A screen.\n\n[A file of type image/png stood here")
    assert [one.media_type for one in part.media] == ["text/plain"]


def test_attachments_are_in_no_prompt() -> None:
    assert shown(replace(result("2.0.0", "Made."), attachments=(IMAGE,))).media == ()


def test_the_model_is_told_of_other_arguments() -> None:
    part = shown(replace(result("2.0.0", "paid"), rewritten=Content('{"cents": 5}')))
    assert part.text == '[The arguments of this call were changed to: {"cents": 5}]\n\npaid'
