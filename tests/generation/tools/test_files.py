"""Files that tools give with a result: what is kept, what is left out, and how the model hears of that."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from events.content import Content
from events.parts import FilePart
from generation.media import disagreement
from generation.tools.contract import ToolOutput
from generation.tools.files import MOST_BYTES, MOST_FILES, ToolFile
from generation.tools.output import Answer, answer_of

PNG = b"\x89PNG\r\n\x1a\n"
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF"
PDF = b"%PDF-1.7\n"
BUDGET = 16 * 1024


def part(media_type: str, data: bytes, name: str | None = None) -> FilePart:
    text = Content(base64.b64encode(data).decode())
    return FilePart(media_type=media_type, data=text, name=Content(name) if name is not None else None)


def read(file: FilePart) -> bytes:
    return base64.b64decode(file.data.text)


@pytest.mark.parametrize(
    "data",
    [PNG, bytearray(PNG), memoryview(PNG), base64.b64encode(PNG).decode(), "iVBO\n Rw0K Ggo="],
    ids=["bytes", "bytearray", "memoryview", "base64", "base64 in lines"],
)
def test_data_are_bytes_or_base64(data: Any) -> None:
    answer = answer_of(ToolOutput("a screen", media=[ToolFile(data, " Image/PNG", "screen.png")]), BUDGET)
    assert answer == Answer("a screen", media=(part("image/png", PNG, "screen.png"),))


def test_a_file_alone_is_an_answer_too() -> None:
    assert answer_of(ToolFile(PNG, "image/png"), BUDGET) == Answer("", media=(part("image/png", PNG),))
    alone = ToolOutput(media=ToolFile(PNG, "image/png"))  # type: ignore[arg-type]  # as a tool without types may give it
    assert answer_of(alone, BUDGET) == Answer("", media=(part("image/png", PNG),))


def test_attachments_are_kept_apart_and_take_nothing_of_the_budget() -> None:
    table = b"a,b\n" * BUDGET
    answer = answer_of(ToolOutput({"rows": 1}, attachments=[ToolFile(table, "text/csv", "t.csv")]), BUDGET)
    assert answer == Answer({"rows": 1}, attachments=(part("text/csv", table, "t.csv"),))


def test_nested_answers_keep_all_files() -> None:
    inner = ToolOutput("x", media=[ToolFile(PNG, "image/png")], attachments=[ToolFile(b"GIF89a", "image/gif")])
    answer = answer_of(ToolOutput(inner, is_error=True, media=[ToolFile(WEBP, "image/webp")]), BUDGET)
    assert answer.is_error
    assert [read(file) for file in answer.media] == [PNG, WEBP]
    assert [read(file) for file in answer.attachments] == [b"GIF89a"]


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (ToolFile("no base64!", "image/png", "a.png"), "the file 'a.png' (image/png) is left out: its data are a text"),
        (ToolFile(PNG, "png"), "its media type is not one, such as image/png, but 'png'"),
        (ToolFile(PNG, "image/png; x=1"), "its media type is not one"),
        (ToolFile(PNG, None), "its media type is not one"),  # type: ignore[arg-type]  # what types do not check
        (ToolFile(7, "image/png"), "its data are int, not bytes"),  # type: ignore[arg-type]
        ("a.png", "it is a str, not a ToolFile"),
        (ToolFile(PNG + b"x" * MOST_BYTES, "image/png"), "a result takes at most 100 files, 10485760 bytes"),
    ],
    ids=["no base64", "no type", "a parameter", "no text", "a number", "no file", "too large"],
)
def test_what_cannot_be_kept_is_left_out_and_said_to_be(file: Any, says: str) -> None:
    answer = answer_of(ToolOutput({"a": 1}, media=[file, ToolFile(PNG, "image/png")]), BUDGET)
    assert answer.media == (part("image/png", PNG),)
    assert isinstance(answer.output, str)
    assert answer.output.startswith('{"a":1}\n[')
    assert says in answer.output
    assert not answer.is_error


@pytest.mark.parametrize(
    ("media_type", "data"),
    [
        ("image/png", PNG),
        ("image/jpeg", JPEG),
        ("image/gif", b"GIF87a"),
        ("image/gif", b"GIF89a"),
        ("image/webp", WEBP),
        ("application/pdf", PDF),
        ("application/pdf", b"\n" * 1019 + PDF),
        ("image/avif", b"whatever"),
        ("text/plain", b""),
    ],
)
def test_files_that_are_what_they_say(media_type: str, data: bytes) -> None:
    assert disagreement(media_type, data) is None


@pytest.mark.parametrize(
    ("media_type", "data", "said"),
    [
        ("image/png", JPEG, "its bytes are image/jpeg, not image/png"),
        ("image/jpeg", PNG, "its bytes are image/png, not image/jpeg"),
        ("image/gif", b"GIF88a", "its bytes are no image/gif"),
        ("image/webp", b"RIFF\x1a\0\0\0WAVEfmt ", "its bytes are no image/webp"),
        ("application/pdf", b"\n" * 1020 + PDF, "its bytes are no application/pdf"),
        ("application/pdf", b"<html>", "its bytes are no application/pdf"),
        ("image/png", b"", "it is empty, which no image/png is"),
    ],
)
def test_files_that_are_not_what_they_say(media_type: str, data: bytes, said: str) -> None:
    assert disagreement(media_type, data) == said
    answer = answer_of(ToolOutput("A page.", media=[ToolFile(data, media_type, "page")]), BUDGET)
    assert answer.media == ()
    assert answer.output == f"A page.\n[the file 'page' ({media_type}) is left out: {said}]"


def test_files_together_have_a_limit() -> None:
    half = ToolFile(b"x" * (MOST_BYTES // 2), "image/avif")
    answer = answer_of(ToolOutput(media=[half, half], attachments=[half]), BUDGET)
    assert (len(answer.media), len(answer.attachments)) == (2, 0)
    many = answer_of(ToolOutput(media=[ToolFile(b"", "image/avif")] * (MOST_FILES + 1)), BUDGET)
    assert len(many.media) == MOST_FILES


def test_texts_count_in_the_budget_and_images_do_not() -> None:
    text, image = ToolFile(b"t" * 2000, "text/plain", "t.txt"), ToolFile(PNG * 2000, "image/png")
    answer = answer_of(ToolOutput("o" * 400, media=[image, text, text]), 1400)
    assert [file.media_type for file in answer.media] == ["image/png", "text/plain"]
    assert len(read(answer.media[1])) <= 1000
    assert b"bytes of this result were left out here" in read(answer.media[1])
    assert isinstance(answer.output, str)
    assert len(answer.output.encode()) + len(read(answer.media[1])) <= 1400
