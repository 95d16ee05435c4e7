"""Commands that look at chats and change nothing: ``list``, ``show``, ``replay``, ``doctor``, ``graph``, ``report``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer

from chatfold.cli.guard import UsageProblem
from chatfold.cli.options import ChatId, Db, Json, LogLevel, Source
from chatfold.cli.output import Out


class _Status(Enum):
    """The five statuses; typer takes no list of literals."""

    PENDING = "pending"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    WAITING = "waiting"
    ERROR = "error"


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


def graph(
    source: Annotated[str | None, typer.Argument(metavar="FILE|CHAT", help="Draw the way that this chat took.")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Graphviz instead of Mermaid.")] = False,
    states: Annotated[
        bool, typer.Option("--states", help="Draw execution states (P0, R1, ...) instead of the five statuses.")
    ] = False,
    svg: Annotated[bool, typer.Option("--svg", help="A picture: SVG, drawn here, without Graphviz.")] = False,
    times: Annotated[
        bool, typer.Option("--times", help="The picture says how long the chat was in each state.")
    ] = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="A picture of where the time went: model, tools, queue, client, retry.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the picture to this file.")
    ] = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Draw the state machine, or the way that one chat took through it.

    Text for Mermaid or Graphviz, or a picture (--svg; --times, --timeline and --output make one too). A log that was
    altered is drawn under a warning that names the version. Exit code 1: it was.

    \b
    Examples:
      chatfold graph
      chatfold graph CHAT --dot | dot -Tsvg > chat.svg
      chatfold graph CHAT --times -o chat.svg
      chatfold graph saved.jsonl --timeline -o time.svg
    """
    from chatfold.cli.graph import run_graph

    over: Literal["status", "execution"] = "execution" if states else "status"
    if svg or times or timeline or output is not None:
        from chatfold.cli.picturing import run_picture

        if dot:
            raise UsageProblem("--dot prints text for Graphviz; the picture is drawn without it: leave one of them out")
        run_picture(
            Out(), source, output, over=over, times=times, timeline=timeline, json=json, db=db, log_level=log_level
        )
        return
    run_graph(Out(), source, as_dot=dot, over=over, json=json, db=db, log_level=log_level)


def report(
    source: Source,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
    db: Db = None,
    log_level: LogLevel = None,
) -> None:
    """Write a report of a chat as one HTML file, to be read offline or attached to a ticket.

    The machine with its way, counts and times; where the time went; errors, decisions, transcript, events. The file
    refers to nothing outside of itself and has no script. It holds what the chat says: give it to those who may read
    that. A log that was altered is reported under a warning. Exit code 1: it was.

    \b
    Examples:
      chatfold report CHAT -o chat.html
      chatfold report saved.jsonl > report.html
    """
    from chatfold.cli.picturing import run_report

    run_report(Out(), source, output, db=db, log_level=log_level)
