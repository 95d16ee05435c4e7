"""The fixed texts that prompts are made with: placeholders, blocks around files and context, instructions. Pure.

Texts of synthetic results stand in ``events.reasons``; what goes where is the business of ``generation.prompt``.
"""

from __future__ import annotations

import html
import re
from typing import Final

UNAVAILABLE: Final = "[This content is no longer available.]"
NO_OUTPUT: Final = "(no output)"
FILES_ALONE: Final = "(The result is the files that go with it.)"
NO_RESULT: Final = "No result of this call is known."
GO_ON: Final = "Go on."
"""Asks the model to go on where history ends with its own message, which no prompt may."""

_SUMMARY: Final = """\
Stop the work here and write a summary of this conversation. It will replace everything above: whoever goes on has only
the summary and what the user says next. Write plainly, without a preamble, and call no tools.

Cover, in this order and as far as there is anything to say:
- What the user wants, and every constraint and preference the user stated, in the user's own words.
- Decisions taken so far, each with its reason.
- Files, paths, names, commands and identifiers that matter, spelled exactly.
- Errors that occurred, concretely: what was done, what the message was, what followed. Do not turn one failure into a
  general rule against a tool.
- Where the work stands: what is done, what is under way, what remains.
- The very next action.

Point to what can be read or made again rather than copying it."""


def summary_instruction(hint: str | None = None, hooked: str | None = None) -> str:
    """Return the instruction that asks for a summary.

    Args:
        hint: The user's wish on what to keep.
        hooked: What hooks add to it.
    """
    users = "" if hint is None or not hint.strip() else f"\n\nThe user adds: {hint.strip()}"
    return _SUMMARY + users + ("" if hooked is None else f"\n\n{hooked.strip()}")


_SUMMARISED: Final = """\
The conversation before this point was summarised to save room; the summary below stands for it. It was written by a
model, not by the user. Go on from it, and do what the user says after it.

"""


def summarised(summary: str) -> str:
    """Return a summary as prompts have it: after words that say what it is."""
    return _SUMMARISED + summary


def executed(name: str, arguments: str, said: str, *, failed: bool) -> str:
    """Return what stands for a call that another service ran itself, with what came of it."""
    return f"[{name} was run with {arguments}. {'It failed' if failed else 'Its result'}:]\n{said}"


def unavailable_file(media_type: str) -> str:
    """Return what stands for a file whose bytes are gone."""
    return f"[A file of type {media_type} stood here; it is no longer available. Ask for it again if it is needed.]"


def rewritten(arguments: str) -> str:
    """Return what tells the model that a result is not that of its own arguments, whether the call ran or not."""
    return f"[The arguments of this call were changed to: {arguments}]"


def result_files(call: str) -> str:
    """Return what introduces the files of a result where they cannot stand in it."""
    return f"[The files of the result of call {call}:]"


def fenced(text: str) -> str:
    """Return ``text`` in a fence that no run of backticks within it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.removesuffix(chr(10))}\n{fence}"


def file_reference(name: str, start: int, end: int, text: str) -> str:
    """Return lines of a file that a user quotes: a tag with name and lines around the fenced text."""
    lines = str(start) if start == end else f"{start}-{end}"
    return f'<file-reference name="{html.escape(name)}" lines="{lines}">\n{fenced(text)}\n</file-reference>'


def context_file(path: str, text: str, *, truncated: bool) -> str:
    """Return one file of the workspace's context, to stand in a context block."""
    note = ' truncated="true"' if truncated else ""
    return f'<file path="{html.escape(path)}"{note}>\n{fenced(text)}\n</file>'


def skills_block(skills: list[tuple[str, str]]) -> str:
    """Return the index of the skills that can be read: name and description of each."""
    lines = [
        "<available-skills>",
        "Each skill holds instructions for one kind of task. Before you do such a task, read its skill with the tool",
        "read_skill, and what else it has with read_skill_file.",
    ]
    lines += [f'<skill name="{html.escape(name)}">{html.escape(text, quote=False)}</skill>' for name, text in skills]
    return "\n".join([*lines, "</available-skills>"])


def context_block(os: str | None, directory: str | None, files: list[str]) -> str:
    """Return the workspace's context: where it is, and its files."""
    lines = ["<workspace-context>"]
    if os:
        lines.append(f"Operating system: {os}")
    if directory:
        lines.append(f"Working directory: {directory}")
    return "\n".join([*lines, *files, "</workspace-context>"])
