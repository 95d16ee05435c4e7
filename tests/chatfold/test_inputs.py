"""What a caller gives as a message: a text, parts, or a whole message; anything else is refused with its path."""

from __future__ import annotations

from typing import Any

import pytest

from chatfold import Content, InvalidValue, Message, TextPart
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
