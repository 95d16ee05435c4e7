"""Commands that run chats: ``demo``, ``chat``, ``worker``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from typing import Annotated

import typer

from chatfold.cli.options import Agents, Db, Json, LogLevel
from chatfold.cli.output import Out


def demo(
    delay: Annotated[
        float,
        typer.Option("--delay", metavar="SECONDS", min=0.0, max=1.0, help="Seconds between two pieces of an answer."),
    ] = 0.05,
    json: Json = False,
) -> None:
    """Watch a chat go through the machine, then its timeline from the log.

    A real engine and worker on a fresh SQLite file, with a scripted model: no key, no network. You see a tool that
    runs here, a tool that the client runs, a queued message, an interrupt and a resume. The file is kept.

    \b
    Examples:
      chatfold demo
      chatfold demo --json | head
    """
    from chatfold.cli.demo import run_demo

    run_demo(Out(), json=json, delay=delay)


def chat(
    message: Annotated[
        str | None,
        typer.Argument(metavar="MESSAGE", help="The message; - reads it from stdin. Without one: interactive."),
    ] = None,
    continued: Annotated[
        str | None, typer.Option("--chat", "-c", metavar="CHAT", help="Go on with this chat, or begin it.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="scripted, anthropic/NAME, openai/NAME or openai-chat/NAME. Default: scripted.",
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Where the model's service is, if not at home.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="TEXT", help="System text of a new chat.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", metavar="NAME", help="Which of the agents loaded begins a new chat. Default: the first."
        ),
    ] = None,
    agents: Agents = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Talk to a model: one message, or line by line. The answer streams to stdout.

    Ctrl-C interrupts the answer (what was said is kept), a second one leaves at once; Ctrl-D ends the talk, /help
    shows what else can be typed. Tools that the client runs are asked at the prompt. A chat that was left can be
    continued with --chat. Exit code 1: the turn failed, or nothing was sent because the chat already waits for
    answers. A turn that ends with a question to the client exits with 0; its status is in the last line of --json.

    \b
    Examples:
      chatfold chat "What can you do?"
      chatfold chat --model anthropic/claude-sonnet-4-5 "Say hello"
      chatfold chat --model openai-chat/llama3 --base-url http://localhost:11434/v1
      git diff | chatfold chat - --model openai/gpt-5 --system "Review this."
      chatfold chat --chat CHAT
    """
    from chatfold.cli.chat import ChatOptions, run_chat

    options = ChatOptions(
        message=message,
        chat=continued,
        model=model,
        system=system,
        agent=agent,
        agents=tuple(agents or ()),
        db=db,
        json=json,
    )
    run_chat(Out(), options, log_level=log_level, base_url=base_url)


def worker(
    agents: Agents = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="MODULE:NAME",
            help="Run an application's own engine, with its hooks, observers and providers: an Engine that is not "
            "entered yet, or a function that returns one. In place of --agents, --db and --base-url.",
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Where the models' service is, if not at home.")
    ] = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Run chats until SIGTERM or Ctrl-C, then let go of them and end.

    Without --agents it runs the chats that `chatfold chat` begins. Hooks, observers and providers belong to an engine:
    an application that has such gives its engine (--engine), for with --agents there are none of them.

    What runs when it is told to stop has its grace (setting grace); other workers go on with the chats. A second signal
    ends it at once.

    \b
    Examples:
      chatfold worker --agents myservice.agents:AGENTS --db postgresql://me@db/chats
      chatfold worker --engine myservice.engine:make_engine
      chatfold worker --log-level info
    """
    from chatfold.cli.worker import made_engine, run_worker

    made, store = made_engine(tuple(agents or ()), engine, db=db, log_level=log_level, base_url=base_url)
    run_worker(Out(), made, store, json=json)
