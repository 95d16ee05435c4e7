"""The commands as users type them: names, arguments, options, help. What they do is done by a module for each.

Import-light on purpose: `chatfold --help` loads typer and this module, and what a command needs is loaded when it runs.
"""

from enum import Enum
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from chatfold import __version__
from chatfold.cli.guard import USAGE, guarded
from chatfold.cli.output import Out

app: Final = typer.Typer(
    name="chatfold",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="The store: sqlite:///chats.db, postgresql://user@host/database. Also CHATFOLD_DB or the setting db; "
        "else a file in your data folder.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, one object a line.")]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="Log to stderr: debug, info, warning or error."),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agents",
        metavar="MODULE:NAME",
        help="Load agents of an application: an Agent, several, or a function that returns them. May be repeated.",
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE|CHAT",
        help="A log file (it has a path separator, ends in .jsonl, exists, or is - for stdin), or a chat's id.",
    ),
]
ChatId = Annotated[str, typer.Argument(metavar="CHAT", help="The chat's id.")]


class _Status(Enum):
    """The five statuses; typer takes no list of literals."""

    PENDING = "pending"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    WAITING = "waiting"
    ERROR = "error"


def _version(wanted: bool) -> None:  # noqa: FBT001 -- typer calls it with the option's value
    if wanted:
        typer.echo(f"chatfold {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def chatfold(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the release and exit.")
    ] = False,
) -> None:
    """Chats as state machines over an event log: run them, look into them, move them.

    \b
    Begin here:
      chatfold demo                      watch a chat, then its timeline
      chatfold chat "Hello"              talk to the scripted model, without any key
      chatfold list                      which chats there are
      chatfold replay CHAT               what happened, event by event, and why
      chatfold doctor CHAT               why it does not move, and what comes next
      chatfold verify --all              prove that nothing was altered

    Data goes to stdout, talk to stderr. Exit code: 0 fine, 1 a check failed or something could not be done, 2 the
    command line is wrong.
    """
    if context.invoked_subcommand is None:
        # The help is what is shown, so it goes where it can be paged; nothing was done, so it is no success.
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


@app.command()
@guarded
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


@app.command()
@guarded
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


@app.command()
@guarded
def worker(
    agents: Agents = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Where the models' service is, if not at home.")
    ] = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Run chats until SIGTERM or Ctrl-C, then let go of them and end.

    Without --agents it runs the chats that `chatfold chat` begins. What runs when it is told to stop has its grace
    (setting grace); other workers go on with the chats. A second signal ends it at once.

    \b
    Examples:
      chatfold worker --agents myservice.agents:AGENTS --db postgresql://me@db/chats
      chatfold worker --log-level info
    """
    from chatfold.cli.worker import run_worker

    run_worker(Out(), tuple(agents or ()), json=json, db=db, log_level=log_level, base_url=base_url)


@app.command("list")
@guarded
def list_chats(
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only chats of this owner.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only chats of this agent.")] = None,
    status: Annotated[
        list[_Status] | None,
        typer.Option("--status", metavar="STATUS", help="Only chats in this status. May be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="COUNT", min=1, help="At most so many.")] = 50,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """List chats, the newest change first.

    \b
    Examples:
      chatfold list --status error --status requires_action
      chatfold list --json | jq -r .chat
    """
    from chatfold.cli.looking import run_list

    run_list(
        Out(),
        owner=owner,
        agent=agent,
        statuses=tuple(each.value for each in status or ()),
        limit=limit,
        json=json,
        db=db,
        log_level=log_level,
    )


@app.command()
@guarded
def show(source: Source, db: Db = None, json: Json = False, log_level: LogLevel = None) -> None:
    """Show a chat as it is now: its state and its messages.

    A log that was altered is shown under a warning that names the version. Exit code 1: it was.

    \b
    Examples:
      chatfold show CHAT
      chatfold show saved.jsonl --json
    """
    from chatfold.cli.looking import run_state

    run_state(Out(), source, at=None, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def replay(
    source: Source,
    at: Annotated[
        int | None, typer.Option("--at", metavar="VERSION", min=0, help="Show the state after this event instead.")
    ] = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Show what happened: version, time, event, from -> to, decision rule and action.

    Statuses come with the execution state (P0 P1 R0 R1 I0 I1 A0 A1 W E0 E1 X...). Times are UTC. A log that was
    altered is shown under a warning that names the version. Exit code 1: it was.

    \b
    Examples:
      chatfold replay CHAT
      chatfold replay CHAT --at 12
      chatfold replay saved.jsonl --json | jq 'select(.rule != null)'
      chatfold export CHAT | chatfold replay -
    """
    from chatfold.cli.looking import run_replay, run_state

    if at is None:
        run_replay(Out(), source, json=json, db=db, log_level=log_level)
    else:
        run_state(Out(), source, at=at, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def doctor(chat: ChatId, db: Db = None, json: Json = False, log_level: LogLevel = None) -> None:
    """Answer in one screen: why is this chat not moving, what will happen next, and when?

    Its state, who holds it and until when, the attempt under way, the next retry, the deadline, open calls, the queue,
    the last command that was refused, and which workers live that could run it. Exit code 1: it will not move without
    somebody who runs the service.

    \b
    Examples:
      chatfold doctor CHAT
      chatfold doctor CHAT --json | jq .next
    """
    from chatfold.cli.doctor import run_doctor

    run_doctor(Out(), chat, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def verify(
    source: Annotated[str | None, typer.Argument(metavar="FILE|CHAT", help="A log file or a chat's id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats of the store.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Check that a log is as it was written and says nothing that was not allowed.

    Digests, the fold, invariants, the audit of every step; of a stored chat also that its header is what its log
    folds to, and that its segments, its uses of large contents and its places in the feed fit it. Exit code 1:
    something was found.

    \b
    Examples:
      chatfold verify CHAT
      chatfold verify saved.jsonl
      chatfold verify --all --json
    """
    from chatfold.cli.verify import run_verify

    run_verify(Out(), source, everything=everything, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def repair(
    chat: Annotated[str | None, typer.Argument(metavar="CHAT", help="A chat's id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats of the store.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Make anew what a chat's log says otherwise: its header, its segments, its notes of large contents in use.

    The log itself is never changed: one that was altered is refused, and the version is named. Exit code 1: something
    could not be mended.

    \b
    Examples:
      chatfold repair CHAT
      chatfold repair --all
    """
    from chatfold.cli.repair import run_repair

    run_repair(Out(), chat, everything=everything, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def export(
    source: ChatId,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
    blobs: Annotated[
        bool, typer.Option("--blobs", help="Pack large contents too, so that the file is complete by itself.")
    ] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Write a chat's log as JSON Lines: a header, then one event a line, byte for byte as it is stored.

    The lines are JSON with or without --json, which only makes the talk about --output JSON too.

    \b
    Examples:
      chatfold export CHAT > chat.jsonl
      chatfold export CHAT --blobs --output chat.jsonl
    """
    from chatfold.cli.moving import run_export

    run_export(Out(), source, output, blobs=blobs, json=json, db=db, log_level=log_level)


@app.command("import")
@guarded
def import_chat(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A log file; - for stdin.")],
    as_id: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="The id it shall have here, instead of its own.")
    ] = None,
    adopt: Annotated[bool, typer.Option("--adopt", help="Take it over: from now on it runs here.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Bring a log file into the store. An id that is in use is refused.

    The chat is foreign: it can be read, replayed, forked and exported, and nobody runs it, unless you --adopt it now
    or `chatfold adopt` it later.

    \b
    Examples:
      chatfold import chat.jsonl
      chatfold import chat.jsonl --as copy-1 --adopt
    """
    from chatfold.cli.moving import run_import

    run_import(Out(), file, as_id=as_id, adopt=adopt, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def adopt(chat: ChatId, db: Db = None, json: Json = False, log_level: LogLevel = None) -> None:
    """Take over a chat that was imported: from now on it runs here.

    Nobody else may run it any more; the store that it came from does not know.

    \b
    Examples:
      chatfold adopt CHAT
    """
    from chatfold.cli.moving import run_adopt

    run_adopt(Out(), chat, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def graph(
    source: Annotated[str | None, typer.Argument(metavar="FILE|CHAT", help="Draw the way that this chat took.")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Graphviz instead of Mermaid.")] = False,
    states: Annotated[
        bool, typer.Option("--states", help="Draw execution states (P0, R1, ...) instead of the five statuses.")
    ] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Draw the state machine, or the way that one chat took through it.

    A log that was altered is drawn under a warning that names the version. Exit code 1: it was.

    \b
    Examples:
      chatfold graph
      chatfold graph CHAT --dot | dot -Tsvg > chat.svg
    """
    from chatfold.cli.graph import run_graph

    over: Literal["status", "execution"] = "execution" if states else "status"
    run_graph(Out(), source, as_dot=dot, over=over, json=json, db=db, log_level=log_level)


@app.command()
@guarded
def migrate(
    finish: Annotated[
        bool,
        typer.Option(
            "--finish", help="All workers run this release now: let it write what the one before cannot read."
        ),
    ] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Bring the database to the schema of this release. A new SQLite file is set up by itself.

    To upgrade a service without a pause: migrate, replace its processes one by one, then --finish. Until then workers
    of both releases share the database. --finish is refused while a worker of an older release lives.

    \b
    Examples:
      chatfold migrate --db postgresql://me@db/chats
      chatfold migrate --finish
    """
    from chatfold.cli.moving import run_migrate

    run_migrate(Out(), finish=finish, json=json, db=db, log_level=log_level)
