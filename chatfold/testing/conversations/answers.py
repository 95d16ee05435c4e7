"""What a service says in random conversations: thoughts, texts, searches and calls, the odd ones among them."""

from __future__ import annotations

from random import Random
from typing import Final

from chatfold.testing.servers.script import Answer, Found, Part, Reasoning, Search, Stop, Text, ToolCall, Usage
from generation.prompt_types import ModelRequest
from generation.providers import anthropic_wire, openai_wire

LIMIT: Final = 4000
"""Tokens of the context that all models have."""

_OVER: Final = 3500
"""Tokens that an answer reports where the chat is to be compacted."""

_TEXTS: Final = (
    "Yes.",
    "So be it.",
    "Two\n\nparagraphs.",
    "A face: \U0001f600, and \u00e9.",
    "  spaces  ",
    "  \n ",
    "x" * 70,
)
_BROKEN: Final = ('{"a": ', "[1]", "", '{"a": "\\ud83d"}')
"""Arguments that are no JSON object, or hold what no text may."""


class Speaker:
    """Draws the answers of one service.

    Args:
        name: The service.
        random: Decides.
    """

    def __init__(self, name: str, random: Random) -> None:
        self._name = name
        self._random = random
        self._said = 0

    def answer(self, request: ModelRequest, *, resumed: bool, calm: bool) -> Answer:
        """Return the next answer.

        Args:
            request: What is answered.
            resumed: Whether the service goes on with an answer that paused.
            calm: Whether the answer is to be plain, so that turns end.
        """
        self._said += 1
        if request.tool_choice_none or calm:
            return Answer([*self._thought(), Text(f"Plain words, {self._said}.")], chunk_size=200)
        parts: list[Part] = []
        stop: Stop | None = None
        if resumed:
            parts.append(self._search(self._chance(0.5), query=None))
        for _ in range(self._random.choice((1, 1, 2))):
            parts += self._thought()
            if self._chance(0.7):
                parts.append(self._text())
            if request.native and self._chance(0.4):
                parts.append(self._search(self._chance(0.2), query=f"q{self._said}"))
                if self._chance(0.8):
                    parts.append(self._text(cites=self._found()))
        if request.native and not resumed and self._name == anthropic_wire.NAME and self._chance(0.2):
            parts.append(Search(f"q{self._said}", results=None))
            stop = "pause"
        elif request.tools and self._chance(0.45):
            parts += self._calls(request)
        elif self._chance(0.1):
            stop = "max_tokens"
        usage = Usage(input=_OVER if self._chance(0.05) else 10)
        return Answer(
            parts or [Text("Nothing.")],
            usage=usage,
            stop=stop,
            chunk_size=self._random.choice((3, 20, 200)),
            split_surrogates=self._chance(0.2),
        )

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _thought(self) -> list[Part]:
        if not self._chance(0.6):
            return []
        redacted = self._name != openai_wire.CHAT and self._chance(0.2)
        text = (
            self._random.choice(("A thought.", "Hm \U0001f600.", ""))
            if self._name != openai_wire.CHAT
            else "A thought."
        )
        return [Reasoning("" if redacted else text, redacted=redacted)]

    def _text(self, cites: tuple[Found, ...] = ()) -> Text:
        text = self._random.choice(_TEXTS)
        return Text(text, cites=cites if text.strip() else ())

    def _found(self) -> tuple[Found, ...]:
        return tuple(Found(f"https://example.com/{n}", f"Page {n}") for n in range(self._random.randint(0, 2)))

    def _search(self, failed: bool, query: str | None) -> Search:  # noqa: FBT001
        if failed:
            return Search(query, results=None, error="max_uses_exceeded")
        return Search(query, results=self._found())

    def _calls(self, request: ModelRequest) -> list[Part]:
        names = [*(tool.name for tool in request.tools), "unknown"]
        return [self._call(self._random.choice(names)) for _ in range(self._random.choice((1, 1, 2, 3)))]

    def _call(self, name: str) -> ToolCall:
        """Draw a call: broken, or with an id that came before, or with neither: a server knows broken calls by id."""
        if self._chance(0.1):
            return ToolCall(name, self._random.choice(_BROKEN))
        return ToolCall(name, {"a": self._said}, id=f"call_{self._random.randint(1, 3)}" if self._chance(0.1) else None)
