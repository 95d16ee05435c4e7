"""``chat``: one message, or a talk line by line, with the answer as it comes.

Owns the course of a talk. Following turns, printing and asking are done by the modules of these names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import typer
from msgspec import Struct

from chatfold.cli.agents import load_agents
from chatfold.cli.asking import as_json, as_text, ask, hand_in, questions, read_line
from chatfold.cli.guard import FAILED, INTERRUPTED, Failure, UsageProblem
from chatfold.cli.live import JsonPrinter, Printer, TextPrinter
from chatfold.cli.output import Out
from chatfold.cli.places import load_settings, store_url
from chatfold.cli.session import Session, running
from chatfold.cli.shapes import Turned
from chatfold.cli.timeline import text_of
from chatfold.engine import Engine
from chatfold.receipts import Receipt
from chatstate.errors import ActionStale, Refusal
from events.control import decode_control
from events.ids import ChatId
from events.state import ChatState
from generation.agents import Agent
from generation.models import split_reference


class ChatOptions(Struct, frozen=True, kw_only=True):
    """What was typed; see the command."""

    message: str | None
    chat: str | None
    model: str | None
    system: str | None
    agent: str | None
    agents: tuple[str, ...]
    json: bool


def run_chat(out: Out, options: ChatOptions, *, db: str | None, log_level: str | None, base_url: str | None) -> None:
    """Talk; see the command.

    Raises:
        UsageProblem: An agent or a message is missing.
        UnknownModel: There is no such model.
        MissingExtra: Its SDK is not installed.
        typer.Exit: With 1, where the last turn failed; with 130, where Ctrl-C ended the only one.
    """
    settings = load_settings(db, log_level, base_url=base_url)
    given = _message(options.message)
    interactive = given is None
    agents = load_agents(options.agents, interactive=interactive)
    reference = _reference(options, agents)
    engine = Engine(store_url(settings), agents, settings=settings)
    if reference is not None:
        # A missing SDK is said now, and not as a failed turn.
        engine.runtime.provider(reference.partition("/")[0])
    with running(engine) as session:
        talk = _Talk(out, session, options, agents, reference, interactive=interactive)
        talk.run(given)
    if talk.interrupted and not interactive:
        raise typer.Exit(INTERRUPTED)
    if talk.failed:
        raise typer.Exit(FAILED)


def _message(typed: str | None) -> str | None:
    """Return the message: what was typed, or for ``-`` what stdin holds."""
    if typed is None:
        return None
    text = as_text(sys.stdin.buffer.read() if typed == "-" else typed)
    if not text.strip():
        raise UsageProblem("the message is blank")
    return text


def _reference(options: ChatOptions, agents: list[Agent]) -> str | None:
    """Return the model as ``provider/name``: the one asked for, or the scripted one where an agent has none."""
    if options.model is not None:
        return "/".join(split_reference(options.model))
    if options.chat is None and _agent(options, agents).model is None:
        return "/".join(split_reference("scripted"))
    return None


def _agent(options: ChatOptions, agents: list[Agent]) -> Agent:
    if options.agent is None:
        return agents[0]
    found = [agent for agent in agents if agent.name == options.agent]
    if not found:
        raise UsageProblem(f"there is no agent {options.agent}; there are {', '.join(each.name for each in agents)}")
    return found[0]


class _Talk:
    """A talk with one chat."""

    def __init__(
        self,
        out: Out,
        session: Session,
        options: ChatOptions,
        agents: list[Agent],
        reference: str | None,
        *,
        interactive: bool,
    ) -> None:
        self.failed = False
        self.interrupted = False
        self._out = out
        self._session = session
        self._options = options
        self._agents = agents
        self._reference = reference
        self._interactive = interactive
        self._at_terminal = interactive and sys.stdin.isatty() and out.talk.terminal
        self._read = read_line(out.talk)
        self._printer: Printer = JsonPrinter(out.data, out.talk) if options.json else TextPrinter(out.data, out.talk)

    def run(self, given: str | None) -> None:
        """Send the message given, or every line that is typed."""
        try:
            if self._options.chat is not None:
                self._go_on(self._options.chat)
            if given is not None:
                self._send(given)
                return
            if self._at_terminal:
                self._out.note("Type a message. Ctrl-C interrupts an answer, Ctrl-D ends the talk.")
            for line in self._lines():
                self._send(line)
        finally:
            if self._session.chat and not self._options.json:
                self._printer.note(f"chat {self._session.chat}; go on with --chat {self._session.chat}")

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = self._read("> " if self._at_terminal else "")
            except EOFError:
                if self._at_terminal:
                    self._out.talk.line()
                return
            if line.strip():
                yield line

    def _go_on(self, chat: str) -> None:
        """Take up a chat with what it still owes or asks; one that does not exist is begun by its first message."""
        session = self._session
        loaded = session.call(session.engine.store.load_header, ChatId(chat))
        if loaded is None:
            self._reference = self._reference or self._default_model()
            return
        header = loaded.header
        if header.foreign:
            raise Failure(f"chat {chat} was imported and not adopted: `chatfold import --adopt` takes a chat over")
        if header.agent not in {agent.name for agent in self._agents}:
            raise UsageProblem(
                f"chat {chat} belongs to agent {header.agent!r}, which is not here: --agents MODULE:NAME brings it"
            )
        if decode_control(header.control).model == self._reference:
            self._reference = None  # it is the chat's already
        session.open(chat, header.version)
        if header.status in {"pending", "running"}:
            self._watch(header.version + 1)
        elif self._interactive:
            self._answer(session.state())

    def _default_model(self) -> str | None:
        return "/".join(split_reference("scripted")) if _agent(self._options, self._agents).model is None else None

    def _send(self, text: str) -> None:
        session, options = self._session, self._options
        try:
            if session.chat:
                receipt: Receipt = session.call(session.engine.send_message, session.chat, text, model=self._reference)
            else:
                receipt = session.call(
                    session.engine.create_chat,
                    _agent(options, self._agents).name,
                    text,
                    chat_id=options.chat,
                    system=options.system,
                    model=self._reference,
                )
                session.open(receipt.chat, 0)
        except Refusal as refusal:
            if not self._interactive:
                raise
            self._printer.note(str(refusal))
            return
        self._reference = None  # from here on it is the chat's
        self._watch(receipt.version)

    def _watch(self, version: int) -> None:
        """Show what happens until nothing is owed after ``version``, and answer what the chat asks."""
        with self._session.interruptible():
            for item in self._session.follow(version, self._interrupting):
                self._printer.show(item)
        self._printer.pause()
        state = self._session.state()
        self.failed = state.control.status == "error"
        if self._options.json:
            self._out.data.json(_turned(self._session.chat, state))
        self._answer(state)

    def _answer(self, state: ChatState) -> None:
        found = questions(state)
        if not found:
            return
        if not self._interactive:
            self._printer.note(
                "the chat asks its client: " + ", ".join(f"{each.name}({each.arguments})" for each in found)
            )
            return
        version = None
        while version is None:
            try:
                version = hand_in(self._session, state, ask(found, self._out.talk, self._read))
            except EOFError:
                self._printer.note("left unanswered")
                return
            except ActionStale as stale:
                self._printer.note(str(stale))
                version = state.control.version + 1
            except Refusal as refusal:
                self._printer.note(str(refusal))
        self._watch(version)

    def _interrupting(self) -> None:
        self.interrupted = True
        self._printer.note("interrupting; Ctrl-C once more leaves")


def _turned(chat: str, state: ChatState) -> Turned:
    control = state.control
    error = control.last_error
    return Turned(
        chat=chat,
        version=control.version,
        status=control.status,
        error=f"{error.kind}: {text_of(error.message)}" if error is not None else None,
        asks=as_json(questions(state)),
    )
