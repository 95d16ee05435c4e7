"""``chat``: one message, or a talk line by line, with the answer as it comes.

Owns the course of a talk. Following turns, printing and asking are done by the modules of these names.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence

import typer
from msgspec import Struct

from chatfold.cli.agents import load_agents
from chatfold.cli.asking import Question, as_json, as_text, ask, hand_in, questions, read_line
from chatfold.cli.guard import FAILED, INTERRUPTED, Failure, UsageProblem
from chatfold.cli.live import JsonPrinter, Printer, TextPrinter
from chatfold.cli.looking import print_state, state_line
from chatfold.cli.moving import adopting
from chatfold.cli.output import Out
from chatfold.cli.places import load_settings, store_url
from chatfold.cli.session import Session, running
from chatfold.cli.shapes import Turned
from chatfold.cli.slash import HELP, WORDS, message_of, word_of
from chatfold.cli.timeline import said_of
from chatfold.cli.typed import told_as
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
    db: str | None
    json: bool


def run_chat(out: Out, options: ChatOptions, *, log_level: str | None, base_url: str | None) -> None:
    """Talk; see the command.

    Raises:
        UsageProblem: An agent or a message is missing.
        UnknownModel: There is no such model.
        MissingExtra: Its SDK is not installed.
        typer.Exit: With 1, where the last turn failed; with 130, where Ctrl-C ended the only one.
    """
    settings = load_settings(options.db, log_level, base_url=base_url)
    given = _message(options.message)
    interactive = given is None
    agents = load_agents(options.agents, interactive=interactive)
    reference = _reference(options, agents)
    engine = Engine(store_url(settings), agents, settings=settings)
    if reference is not None:
        # A missing SDK is said now, and not as a failed turn.
        engine.runtime.provider(reference)
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


class _InterruptTyped(Exception):
    """The user wants no answer to be given, and the turn to end."""


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
        self._left = False
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
                self._out.note("Type a message, or /help. Ctrl-C interrupts an answer, Ctrl-D ends the talk.")
            for line in self._lines():
                word = word_of(line)
                if word is None:
                    self._send(message_of(line))
                else:
                    self._do(word)
        finally:
            if self._session.chat and not self._options.json:
                chat = self._session.chat
                self._printer.note(f"chat {chat}; go on with {shlex.join(['--chat', chat])}")

    def _lines(self) -> Iterator[str]:
        while not self._left:
            try:
                line = self._read("> " if self._at_terminal else "")
            except EOFError:
                if self._at_terminal:
                    self._out.talk.line()
                return
            if line.strip():
                yield line

    def _do(self, word: str) -> None:
        """Do what a word with a slash says."""
        engine = self._session.engine
        if word == "quit":
            self._left = True
        elif word == "help":
            self._printer.note(HELP)
        elif word not in WORDS:
            self._printer.note(f"there is no /{word}; /help shows what there is, and // begins a message with a slash")
        elif not self._session.chat:
            self._printer.note("the chat begins with your first message")
        elif word == "state":
            self._show_state()
        else:
            self._ask_for_turn(engine.interrupt if word == "interrupt" else engine.resume)

    def _show_state(self) -> None:
        chat, state = self._session.chat, self._session.state()
        if self._options.json:
            self._out.data.json(state_line(chat, state))
        else:
            self._printer.pause()
            print_state(self._out.talk, chat, state.control.version, state)

    def _ask_for_turn(self, command: Callable[[str], Awaitable[Receipt]]) -> None:
        try:
            receipt = self._session.call(command, self._session.chat)
        except Refusal as refusal:
            self._printer.note(str(refusal))
        else:
            self._watch(receipt.version)

    def _go_on(self, chat: str) -> None:
        """Take up a chat with what it still owes or asks; one that does not exist is begun by its first message."""
        session = self._session
        loaded = session.call(session.engine.store.load_header, ChatId(chat))
        if loaded is None:
            self._reference = self._reference or self._default_model()
            return
        header = loaded.header
        if header.foreign:
            raise Failure(
                f"chat {chat} was imported and not adopted: `{adopting(chat, self._options.db)}` takes it over"
            )
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
        if not self._interactive and (asked := questions(session.state())):
            # The message would wait in the queue, unseen, until somebody has answered.
            raise Failure(
                f"nothing was sent: the chat asks its client {_listed(asked)}; answer with `{self._answering()}`"
            )

    def _default_model(self) -> str | None:
        return "/".join(split_reference("scripted")) if _agent(self._options, self._agents).model is None else None

    def _send(self, text: str) -> None:
        session, options = self._session, self._options
        try:
            if session.chat:
                receipt: Receipt = session.call(session.engine.send_message, session.chat, text, model=self._reference)
            else:
                with told_as(chat_id="--chat", system="--system"):
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
            if not self._options.json:
                self._printer.note(f"the chat asks its client {_listed(found)}; answer with `{self._answering()}`")
            return
        version = None
        while version is None:
            try:
                version = hand_in(self._session, state, ask(found, self._out.talk, self._read_answer))
            except EOFError:
                self._printer.note("left unanswered")
                return
            except _InterruptTyped:
                self._do("interrupt")
                return
            except ActionStale as stale:
                self._printer.note(str(stale))
                version = state.control.version + 1
            except Refusal as refusal:
                self._printer.note(str(refusal))
        self._watch(version)

    def _read_answer(self, prompt: str) -> str:
        """Read an answer; words with a slash are none.

        Raises:
            EOFError: The talk ends.
            _InterruptTyped: The turn shall end.
        """
        while (word := word_of(line := self._read(prompt))) is not None:
            if word == "interrupt":
                raise _InterruptTyped
            if word == "resume":
                self._printer.note("the chat waits for your answer")
            else:
                self._do(word)
            if self._left:
                raise EOFError
        return message_of(line)

    def _answering(self) -> str:
        """Return the command that asks its user what the chat asks."""
        more = [word for reference in self._options.agents for word in ("--agents", reference)]
        more += ["--db", self._options.db] if self._options.db is not None else []
        return shlex.join(["chatfold", "chat", "--chat", self._session.chat, *more])

    def _interrupting(self) -> None:
        self.interrupted = True
        self._printer.note("interrupting; Ctrl-C once more leaves")


def _listed(asked: Sequence[Question]) -> str:
    return ", ".join(
        f"{each.name}({each.arguments})" if each.call is not None else "about its budget" for each in asked
    )


def _turned(chat: str, state: ChatState) -> Turned:
    control = state.control
    error = control.last_error
    return Turned(
        chat=chat,
        version=control.version,
        status=control.status,
        error=said_of(error) if error is not None else None,
        asks=as_json(questions(state)),
    )
