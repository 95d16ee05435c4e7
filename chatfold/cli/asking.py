"""What a chat asks of its client: found in the state, asked at a prompt, handed in.

Owns the questions and how answers are read. Which calls are open is said by the machine's open action.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, get_args

import msgspec
from msgspec import Struct

from chatfold.cli.guard import UsageProblem
from chatfold.cli.output import Channel, printable
from chatfold.cli.session import Session
from chatfold.cli.timeline import text_of
from chatfold.inputs import result
from chatstate.commands import SubmittedResult
from events.content import Json
from events.ids import CallKey, message_of, part_of
from events.parts import ToolCallPart
from events.records import NO_LIMIT, ActionKind, ApprovalAnswer, Budget, BudgetAnswer, LimitName, Spending
from events.spending import standing
from events.state import ChatState


class Question(Struct, frozen=True, kw_only=True):
    """One thing that the client owes.

    ``name`` and ``arguments`` (JSON text) are of the call; empty for a budget. ``spending`` is what that is about.
    """

    kind: ActionKind
    call: CallKey | None = None
    name: str = ""
    arguments: str = ""
    spending: Spending | None = None


class Answers(Struct, kw_only=True):
    """What the client answers."""

    results: list[SubmittedResult] = []
    approvals: list[ApprovalAnswer] = []
    budget: BudgetAnswer | None = None


def questions(state: ChatState) -> tuple[Question, ...]:
    """Return what the chat asks now, in order; nothing where no action is open."""
    action = state.control.action
    if action is None:
        return ()
    found: list[Question] = []
    for item in action.items:
        call = _call(state, item.call) if item.call is not None else None
        name, arguments = (call.name, text_of(call.arguments)) if call is not None else ("", "")
        found.append(Question(kind=item.kind, call=item.call, name=name, arguments=arguments, spending=item.spending))
    return tuple(found)


def _call(state: ChatState, key: CallKey) -> ToolCallPart | None:
    messages = state.need_transcript("ask").messages
    place = messages.find(message_of(key))
    part = messages[place].message.parts[part_of(key)] if place is not None else None
    return part if isinstance(part, ToolCallPart) else None


def ask(found: tuple[Question, ...], talk: Channel, read: Callable[[str], str]) -> Answers:
    """Ask the user each question.

    Args:
        found: The questions.
        talk: Where they are put.
        read: Shows a prompt and reads a line.

    Raises:
        EOFError: There is no more input.
        KeyboardInterrupt: The user leaves.
    """
    answers = Answers(results=[], approvals=[])
    for question in found:
        what = printable(f"{question.name}({question.arguments})")
        if question.kind == "budget":
            seen = question.spending
            reached = seen.reached if seen is not None else get_args(LimitName)
            said = f" ({'; '.join(f'{name}: {standing(seen, name)}' for name in reached)})" if seen is not None else ""
            talk.line(f"The chat's budget is spent{said}.")
            goes_on = _yes(read("Go on without this limit? [y/N] "))
            lifted = Budget(**dict.fromkeys(reached, NO_LIMIT)) if goes_on else None
            answers.budget = BudgetAnswer(end_turn=not goes_on, raised=lifted)
        elif question.kind == "approval" and question.call is not None:
            talk.line(f"The model wants to call {what}.")
            approved = _yes(read("Allow it? [y/N] "))
            answers.approvals.append(ApprovalAnswer(call=question.call, approved=approved))
        elif question.call is not None:
            talk.line(f"The model asks you to run {what}.")
            answers.results.append(typed_result(question.call, read("Its result (JSON, or any text): ")))
    return answers


def _yes(answer: str) -> bool:
    return answer.strip().lower() in {"y", "yes"}


def typed_result(call: CallKey, typed: str) -> SubmittedResult:
    """Return what was typed as the result of a call: JSON where it is JSON, else the text."""
    try:
        output: Json = msgspec.json.decode(typed)
    except (msgspec.MsgspecError, RecursionError):
        output = typed
    return result(call, output)


def hand_in(session: Session, state: ChatState, answers: Answers) -> int:
    """Submit answers to the open action; return the version after.

    Raises:
        Refusal: The action expired meanwhile, or the answers do not fit.
    """
    action = state.control.action
    receipt = session.call(
        session.engine.submit_tool_results,
        session.chat,
        action.id if action is not None else 0,
        answers.results,
        approvals=answers.approvals,
        budget=answers.budget,
    )
    return receipt.version


def as_json(found: tuple[Question, ...]) -> tuple[Any, ...]:
    """Return questions as JSON output shows them."""
    return tuple(msgspec.to_builtins(question) for question in found)


def read_line(talk: Channel) -> Callable[[str], str]:
    """Return how a line is read: with line editing on a terminal, as it is else.

    The prompt goes where talk goes: stdout is for data.
    """
    if sys.stdin.isatty() and talk.terminal and sys.stdout.isatty():
        _edit_lines()

        def edited(prompt: str) -> str:
            return as_text(input(prompt))

        return edited

    def plain(prompt: str) -> str:
        if sys.stdin.isatty():
            talk.put(prompt)
        line = sys.stdin.buffer.readline()
        if not line:
            raise EOFError
        return as_text(line).rstrip("\r\n")

    return plain


def as_text(given: str | bytes) -> str:
    """Return what was typed as text, also where the locale took its UTF-8 for something else.

    Raises:
        UsageProblem: It is not UTF-8.
    """
    try:
        return (given.encode("utf-8", "surrogateescape") if isinstance(given, str) else given).decode()
    except UnicodeError:
        raise UsageProblem("the input is not UTF-8") from None


def _edit_lines() -> None:
    try:
        import readline  # noqa: F401 -- importing it gives input() its line editing
    except ImportError:  # pragma: no cover -- not everywhere
        return
