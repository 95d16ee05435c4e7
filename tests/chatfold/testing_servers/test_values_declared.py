"""What a script for a server says is looked at where it is written: each field has what it can have."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import pytest

from chatfold.testing.servers import (
    Answer,
    AnthropicServer,
    Drop,
    Fail,
    Found,
    Gate,
    IssuedItems,
    IssuedThinking,
    OpenAIChatServer,
    OpenAIResponsesServer,
    Reasoning,
    Refusal,
    ScriptByUserText,
    Search,
    Text,
    ToolCall,
    Usage,
)

NAN: Final = float("nan")
GIVEN: Final[Sequence[tuple[Callable[..., object], str, Sequence[object]]]] = [
    (lambda **fields: Found(**{"url": "http://a", **fields}), "url", (None, 5)),
    (Text, "text", (None, 5, b"x", ["x"])),
    (lambda **fields: Text("x", **fields), "cites", (None, "http://a", [5], Found("http://a"))),
    (Reasoning, "signature", (5, b"x")),
    (Reasoning, "redacted", (None, 1, "yes")),
    (ToolCall, "name", (None, 5)),
    (lambda **fields: ToolCall("add", **fields), "arguments", (None, 5, [1])),
    (Refusal, "text", (None, 5)),
    (Search, "results", ("x", [5])),
    (Usage, "input", (None, "1", 1.5, True)),
    (lambda **fields: Fail(500, **fields), "headers", (None, 5, [("a", "b")])),
    (lambda **fields: Fail(500, **fields), "form", (None, "other")),
    (lambda **fields: Fail(500, **fields), "delay", (None, "1", True)),
    (Drop, "cut", (None, "end", "slam")),
    (Drop, "gate", (5, "gate", Gate)),
    (Answer, "parts", (None, 5, {"text": "x"}, Text("x"))),
    (Answer, "usage", (5, {"input": 1})),
    (Answer, "stop", ("done", 5, ["end"])),
    (Answer, "model", (5, b"x")),
    (Answer, "chunk_size", (None, "1", 1.5, True)),
    (Answer, "delay", (None, "1", True)),
    (Answer, "stall_after", ("1", 1.5, True)),
    (Answer, "stall", (None, 5)),
    (Answer, "fail", (500, Answer("x"))),
    (Answer, "cut", (None, "slam")),
]

SERVED: Final[Sequence[tuple[Callable[..., object], str, Sequence[object]]]] = [
    (partial(AnthropicServer, []), "repeat_call_ids", (None, 1, "yes")),
    (partial(AnthropicServer, []), "allow_prefill", (None, 1)),
    (partial(AnthropicServer, []), "issued", (5, IssuedItems())),
    (partial(AnthropicServer, []), "body_limit", (None, "1", 1.5, True)),
    (partial(OpenAIResponsesServer, []), "issued", (5, IssuedThinking())),
    (partial(OpenAIChatServer, []), "repeat_call_ids", (None, 1)),
    (IssuedThinking, "covers", (None, "all")),
    (ScriptByUserText, "conversations", (None, "x", [Answer("x")], {5: Answer("x")})),
    (partial(ScriptByUserText, {}), "which", (None, "middle")),
    (Gate, "name", (None, 5)),
]


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        pytest.param(make, name, value, id=f"{at} {name} {place}")
        for at, (make, name, values) in enumerate([*GIVEN, *SERVED])
        for place, value in enumerate(values)
    ],
)
def test_a_field_that_has_what_it_cannot_have_is_named(make: Callable[..., object], name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^(\w+\.)?{name}(\[\d\]|, a text)? must be .+, not "):
        make(**{name: value})


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [(Usage, "output", -1), (Drop, "delay", -0.5), (Answer, "delay", NAN), (Answer, "cut_after", -1)],
)
def test_a_number_is_not_negative(make: Callable[..., object], name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^\w+\.{name} must not be negative: {value}"):
        make(**{name: value})


def test_what_a_field_can_have_is_said() -> None:
    with pytest.raises(TypeError, match=r"^Answer.stop must be one of end, .*, pause or None, not 'done'$"):
        Answer("x", stop="done")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^Text.cites must be a list of Found, not "):
        Text("x", cites=[5])  # type: ignore[list-item]
