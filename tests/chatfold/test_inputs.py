"""What a caller gives as a message: a text, parts, or a whole message; anything else is refused with its path."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from chatfold import Content, FilePart, InvalidValue, Message, TextPart, ToolFile, result
from chatfold.inputs import message_of

PART = TextPart(text=Content("Hello"))


def test_a_text_parts_and_a_message_say_the_same() -> None:
    message = Message(role="user", parts=(PART,))
    assert message_of("Hello") == message_of([PART]) == message_of(message) == message


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (7, "$.message"),
        (None, "$.message"),
        ([], "$.message"),
        ([PART, "x"], "$.message[1]"),
        ({"text": "x"}, "$.message"),
    ],
)
def test_anything_else_is_refused_with_its_path(given: Any, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        message_of(given)
    assert caught.value.path == path


PNG = b"\x89PNG\r\n\x1a\n"


def file(media_type: Any, data: bytes | str) -> FilePart:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return FilePart(media_type=media_type, data=Content(text))


def test_a_file_gives_its_bytes_back() -> None:
    (part,) = message_of([file("image/png", PNG)]).parts
    assert isinstance(part, FilePart)
    assert part.read() == PNG


@pytest.mark.parametrize(
    ("part", "path", "said"),
    [
        (file("image/png", b"\xff\xd8\xff"), ".data", "its bytes are image/jpeg, not image/png"),
        (file("application/pdf", b"<html>"), ".data", "its bytes are no application/pdf"),
        (file("image/png", b""), ".data", "it is empty"),
        (file("image/png", "no base64!"), ".data", "the text is no base64"),
        (file("image/png", "iVBORw0K\nGgo="), ".data", "the text is no base64"),
        (file("text/plain", "ä"), ".data", "the text is no base64"),
        (file("png", PNG), ".media_type", "'png' is no media type such as image/png"),
        (file("image/png; q=1", PNG), ".media_type", "is no media type"),
        (file(5, PNG), ".media_type", "must be a text"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_file_that_is_not_what_it_says_is_refused(part: FilePart, path: str, said: str, whole: bool) -> None:
    with pytest.raises(InvalidValue, match=said) as caught:
        message_of(Message(role="user", parts=(PART, part)) if whole else [PART, part])
    assert caught.value.path == f"$.message[1]{path}"


def test_a_file_of_a_client_that_is_not_what_it_says_is_refused() -> None:
    with pytest.raises(InvalidValue, match="its bytes are image/png, not image/webp") as caught:
        result("2.0.0", "Here.", media=[ToolFile(PNG, "image/webp", "page.webp")])
    assert caught.value.path == "$.media"
