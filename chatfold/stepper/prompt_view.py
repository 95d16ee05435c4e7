"""What the pane of the prompt says: what today's agent declares, where it is given, and the conversation. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct
from rich.text import Text

from chatfold.cli.output import one_line, printable
from chatfold.stepper.styled import DIM, MOST_LINES, NAME, TEXT_WIDTH, head
from generation.prompt import BuiltPrompt
from generation.prompt_types import (
    PromptCall,
    PromptFile,
    PromptMessage,
    PromptReasoning,
    PromptResult,
    ToolSpec,
)

MOST_MESSAGES: Final = MOST_LINES // 4


class PromptHead(Struct, frozen=True, kw_only=True):
    """What an agent says in each request, before the conversation.

    Attributes:
        agent: The agent's name.
        system: Its system texts; None where no agent of that name is given.
        tools: Its tools that are active in the chat.
        given: The agents that are given in its place, by their names.
    """

    agent: str
    given: tuple[str, ...] = ()
    system: tuple[str, ...] | None = None
    tools: tuple[ToolSpec, ...] = ()


def prompt(built: BuiltPrompt, declared: PromptHead) -> Text:
    """Return the prompt as a provider would get it: system texts, tools, and messages, the newest last."""
    text = Text()
    count = len(built.messages)
    text.append("1 message" if count == 1 else f"{count} messages", NAME)
    text.append(f", {_behind(declared)}\n", DIM)
    for system in (*(declared.system or ()), *built.system):
        head(text, "system")
        text.append(f"{_cut(system)}\n")
    if declared.tools:
        head(text, "tools")
        for line in map(_tool, declared.tools):
            text.append(f"{line}\n")
    first = max(0, count - MOST_MESSAGES)
    if first:
        text.append(f"\n... {first} messages before\n", DIM)
    for message in islice(built.messages, first, None):
        head(text, message.role)
        for said in _parts(message):
            text.append(f"{_cut(said)}\n")
    return text


def _behind(declared: PromptHead) -> str:
    if declared.system is not None:
        return f"behind what {printable(declared.agent)} declares today"
    if declared.given:
        return printable(f"{declared.agent} is not among the agents given ({', '.join(declared.given)})")
    name = f"of {printable(declared.agent)}" if declared.agent else "of the agent"
    return f"behind the system text and the tools {name}, which no log has: --agents MODULE:NAME shows today's"


def _tool(tool: ToolSpec) -> str:
    required = tool.schema.get("required")
    needed = required if isinstance(required, list) else []
    properties = tool.schema.get("properties")
    names = properties if isinstance(properties, dict) else {}
    arguments = ", ".join(name if name in needed else f"{name}?" for name in names)
    return one_line(f"{tool.name}({arguments}): {tool.description}", TEXT_WIDTH)


def _parts(message: PromptMessage) -> Iterator[str]:
    for part in message.parts:
        match part:
            case PromptCall(name=name, arguments=arguments, id=call):
                yield f"calls {name}({arguments})  [{call}]"
            case PromptResult(id=call, name=name, text=output, is_error=is_error):
                yield f"{name} {'failed' if is_error else 'gave'} [{call}]: {output}"
            case PromptReasoning(text=reasoning):
                yield f"(reasoning) {reasoning}"
            case PromptFile(media_type=media, data=data):
                yield f"(file, {media}, {len(data)} B of base64)"
            case _:
                yield part.text


def _cut(said: str) -> str:
    lines = said[: TEXT_WIDTH * MOST_LINES].splitlines()
    return "\n".join(printable(line[:TEXT_WIDTH]) for line in lines[:MOST_LINES])
