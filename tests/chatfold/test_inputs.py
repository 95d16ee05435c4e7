"""What a caller gives as a message: a text, parts, or a whole message; anything else is refused with its path."""

from __future__ import annotations

import base64
from typing import Any, cast

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
        ([PART, 5], "$.message[1]"),
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


def test_texts_and_files_made_of_bytes_are_parts() -> None:
    given = message_of(["What is this?", FilePart.of(bytearray(PNG), "image/png", "a.png")])
    assert given.parts == (
        TextPart(text=Content("What is this?")),
        FilePart(media_type="image/png", data=Content("iVBORw0KGgo="), name=Content("a.png")),
    )


@pytest.mark.parametrize(
    ("part", "path", "said"),
    [
        ("\ud800", "", "surrogate"),
        (" ", ".text", "blank"),
        (ToolFile(PNG, "image/png"), "", r"not ToolFile: a file of a message is FilePart\.of"),
        (PNG, "", r"not bytes: a file is FilePart\.of"),
        (
            FilePart(media_type="image/png", data=cast("Content", PNG)),
            ".data",
            r"base64 text \(FilePart\.of.*, not bytes",
        ),
        (TextPart(text=cast("Content", "x")), ".text", r"a text among the parts .*, not str"),
    ],
)
def test_what_is_often_given_for_a_part_is_refused_with_what_to_give(part: Any, path: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as caught:
        message_of(["Look.", part])
    assert caught.value.path == f"$.message[1]{path}"


@pytest.mark.parametrize(
    ("data", "name", "path"), [("text", None, "$.data"), (None, None, "$.data"), (PNG, "\ud800", "$.name")]
)
def test_a_file_is_not_made_of_anything_else(data: Any, name: str | None, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        FilePart.of(data, "image/png", name)
    assert caught.value.path == path


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
