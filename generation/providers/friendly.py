"""The default script: a small friendly model that echoes, and calls the tools that a user names. Pure.

It guesses arguments from a tool's schema and the user's words, so that a demo needs no model: "weather in Paris" calls
``get_weather`` with the city Paris.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from events.content import Json
from generation.prompt_types import ModelRequest, PromptResult, PromptText, ToolSpec
from generation.providers.script import Say, Step, Think, Turn, UseTool

_COMMON: Final = frozenset(
    {"a", "an", "and", "by", "do", "for", "from", "get", "in", "is", "my", "of", "on", "run", "set"}
)
"""Words of tools' names that do not tell one tool from another."""

_PLACE: Final = re.compile(r"\b(?:in|for|at|to|of|from|about|named|called)\s+(.+)", re.IGNORECASE)
_QUOTED: Final = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_STOP: Final = re.compile(r"[?!.,;\n]|\s+(?:and|please|then|now|today|tomorrow)\b", re.IGNORECASE)


def friendly(request: ModelRequest) -> Turn:
    """Return what the friendly model answers.

    After results it tells them; else it calls each tool that the newest user message names; else it echoes.
    """
    if request.tool_choice_none:
        return Turn(steps=(Say(_summary(request)),))
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "tool":
        return Turn(steps=(Say(_tell(part for part in last.parts if isinstance(part, PromptResult))),))
    said = user_texts(request)
    text = said[-1] if said else ""
    named = [tool for tool in request.tools if names(text, tool)]
    thought: tuple[Step, ...] = ()
    if request.effort not in {None, "none"}:
        thought = (Think("The user wants a tool to run." if named else "The user wants to talk."),)
    if not named:
        return Turn(steps=(*thought, Say(_echo(text, request.tools))))
    opening = Say(f"Let me use {_listed(tool.name for tool in named)}.")
    calls = [UseTool(tool.name, arguments_for(tool, text)) for tool in named]
    return Turn(steps=(*thought, opening, *calls))


def user_texts(request: ModelRequest) -> list[str]:
    """Return what the user said, one text for each message of the prompt that has one."""
    texts = [
        "\n".join(part.text for part in message.parts if isinstance(part, PromptText))
        for message in request.messages
        if message.role == "user"
    ]
    return [text for text in texts if text.strip()]


def names(text: str, tool: ToolSpec) -> bool:
    """Whether ``text`` names ``tool``: by its whole name, or by a word of it that tells something."""
    words = set(re.findall(r"[a-z0-9]+", text.lower()))
    telling = [word for word in re.split(r"[^a-z0-9]+", tool.name.lower()) if len(word) > 1 and word not in _COMMON]
    return tool.name.lower() in text.lower() or any(word in words for word in telling)


def arguments_for(tool: ToolSpec, text: str) -> dict[str, Json]:
    """Guess the arguments of a call of ``tool`` from the user's text: the required ones, or the first where none is."""
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return {}
    required = tool.schema.get("required")
    wanted = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    numbers = iter(_NUMBER.findall(text))
    result: dict[str, Json] = {}
    for name in wanted or list(properties)[:1]:
        schema = properties.get(name)
        result[name] = _guess(name, schema if isinstance(schema, dict) else {}, text, numbers)
    return result


def _guess(name: str, schema: dict[str, Json], text: str, numbers: Iterable[str]) -> Json:
    given = re.search(rf"\b{re.escape(name)}\s*[=:]\s*(\"[^\"]*\"|\S+)", text, re.IGNORECASE)
    word = given.group(1).strip('"').rstrip(",;") if given else None
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return next((choice for choice in choices if str(choice).lower() in text.lower()), choices[0])
    match schema.get("type"):
        case "integer":
            return int(float(_number(word, numbers)))
        case "number":
            return float(_number(word, numbers))
        case "boolean":
            return (word or "true").lower() not in {"false", "no", "0"}
        case "array":
            return [word or _phrase(text)]
        case "object":
            return {}
        case _:
            return word or _phrase(text)


def _number(word: str | None, numbers: Iterable[str]) -> str:
    if word is not None and _NUMBER.fullmatch(word):
        return word
    return next(iter(numbers), "1")


def _phrase(text: str) -> str:
    """Return the words that an argument most likely means: quoted ones, those after a preposition, or all."""
    quoted = _QUOTED.search(text)
    if quoted:
        return quoted.group(1)
    place = _PLACE.search(text)
    phrase = _STOP.split(place.group(1) if place else text)[0].strip()
    return phrase or text.strip() or "something"


def _listed(items: Iterable[str]) -> str:
    *rest, last = items
    return f"{', '.join(rest)} and {last}" if rest else last


def _tell(results: Iterable[PromptResult]) -> str:
    lines = [
        f"{result.name} did not work: {result.text}" if result.is_error else f"{result.name} says: {result.text}"
        for result in results
    ]
    return "\n".join(lines)


def _echo(text: str, tools: tuple[ToolSpec, ...]) -> str:
    said = f"You said: {text}" if text.strip() else "Hello!"
    offer = f" I can also use {_listed(tool.name for tool in tools)}." if tools else ""
    return f"{said}{' That is all I know, but I like to listen.' if text.strip() else ''}{offer}"


def _summary(request: ModelRequest) -> str:
    said = user_texts(request)[:-1]
    lines = [f"- {' '.join(text.split())[:200]}" for text in said]
    return "\n".join(["What the user said so far:", *(lines or ["- nothing yet"])])
