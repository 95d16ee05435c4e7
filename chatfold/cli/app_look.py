"""Commands that look and change nothing: ``list``, ``show``, ``replay``, ``why``, ``doctor``, ``graph``, ``report``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer

from chatfold.cli.guard import UsageProblem
from chatfold.cli.options import Agents, Db, Jobs, Json, LogLevel, Source, Sources
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

    A log that was altered, or has events of another chat in it, is shown under a warning that names the version. Exit
    code 1: it was.

    \b
    Examples:
      chatfold show CHAT
      chatfold show saved.jsonl --json
    """
    from chatfold.cli.looking import run_state

    run_state(Out(), source, at=None, json=json, db=db, log_level=log_level)


def replay(
    sources: Sources,
    at: Annotated[
        int | None, typer.Option("--at", metavar="VERSION", min=0, help="Show the state after this event instead.")
    ] = None,
    decide: Annotated[
        bool, typer.Option("--decide", help="Take every decision again, and tell where it is another one.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All drifts of a log, not the first alone.")] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE|MODULE:NAME",
            help="Decide under another policy: a .toml or .json file with the fields that differ, or a function from "
            "the recorded policy to another one.",
        ),
    ] = None,
    decider: Annotated[
        str | None,
        typer.Option(
            "--decider", metavar="MODULE:NAME", help="Decide by a function of your own, of a state and a policy."
        ),
    ] = None,
    jobs: Jobs = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Show what happened: version, time, event, from -> to, decision rule and action.

    Statuses come with the execution state (P0 P1 R0 R1 I0 I1 A0 A1 W E0 E1 X...). Times are UTC. A log that was
    altered is shown under a warning that names the version. Exit code 1: it was.

    With --decide, of one log or of many: every decision is taken again by today's rules, on the state before it and
    under the recorded policy, and compared with the recorded one. A drift is told with both rules and all that differs.
    No model is asked and no tool runs. With --policy or --decider, only what would have been done otherwise is told;
    docs/decision-replay.md says what a policy may change.
    Exit code 1: something drifted, a log was altered or cannot be read, or what was given to decide with failed.

    \b
    Examples:
      chatfold replay CHAT
      chatfold replay CHAT --at 12
      chatfold replay saved.jsonl --json | jq 'select(.rule != null)'
      chatfold export CHAT | chatfold replay -
      chatfold replay --decide logs/
      chatfold replay --decide saved.jsonl --all --policy stricter.toml
    """
    only = {"--all": everything, "--policy": policy, "--decider": decider, "--jobs": jobs}
    if decide:
        from chatfold.cli.decided import Asked, run_decide
        from chatfold.replaying.whatif import WhatIfNames

        if at is not None:
            raise UsageProblem("--at and --decide are two questions; ask one")
        names = WhatIfNames(policy=policy, decider=decider)
        run_decide(Out(), Asked(sources, everything, names, jobs, json), db=db, log_level=log_level)
        return
    from chatfold.cli.looking import run_replay, run_state

    for option, given in only.items():
        if given:
            raise UsageProblem(f"{option} is about decisions: say --decide too")
    if len(sources) > 1:
        raise UsageProblem("one log at a time is shown; several are for --decide")
    if at is None:
        run_replay(Out(), sources[0], json=json, db=db, log_level=log_level)
    else:
        run_state(Out(), sources[0], at=at, json=json, db=db, log_level=log_level)


def why(
    source: Source,
    version: Annotated[
        int | None,
        typer.Argument(metavar="VERSION", min=1, help="The event to explain. Without: how the chat came to its state."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All events, not those of the newest turn alone.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Tell in words why a chat did something: from what was recorded with each decision.

    Of a decision: its rule and why it held, what was read, and why each rule before it was passed by. Of another event:
    where it came from, and which decision is behind it. Without a version: the events of the newest turn with a reason
    each, where the chat stands, and its newest decision. The rules are explained in docs/decision-rules.md, each under
    its id. Exit code 1: the log was altered.

    \b
    Examples:
      chatfold why CHAT
      chatfold why saved.jsonl 17
      chatfold why CHAT --all --json | jq 'select(.decision.rule == "D7")'
    """
    from chatfold.cli.why import run_why

    run_why(Out(), source, version, everything=everything, json=json, db=db, log_level=log_level)


def step(
    source: Source,
    at: Annotated[
        int | None, typer.Option("--at", metavar="VERSION", min=0, help="Begin there, not at the end.")
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option(
            "--break", metavar="CONDITION", help="Where `c` stops, such as 'status == error and tokens > 1000'."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show what a chat in a store does from now on; nothing is written.")
    ] = False,
    agents: Agents = None,
    db: Db = None,
    log_level: LogLevel = None,
) -> None:
    """Step through a chat in the terminal: its events, the machine, the state, what changed and why, and the prompt.

    Keys: arrows step, Home and End, g goes to a version; d e o jump to the next decision, error or tool, t to a
    transition, / finds text, n again (capitals: backwards); b sets a breakpoint, c goes on to it; m marks a version to
    compare with; 1 to 4 change the pane; y copies the moment as a test; q ends. docs/step.md names what conditions ask.
    With the agents of an application, the prompt has their system texts and tools, which no log has. It needs Textual,
    which the extra `step` brings.

    \b
    Examples:
      chatfold step saved.jsonl --at 17
      chatfold step CHAT --follow --agents myservice.agents:AGENTS
      chatfold step saved.jsonl --break 'rule == D7 or tool == look_up'
    """
    from chatfold.cli.step import run_step

    run_step(source, at=at, stop=stop, follow=follow, agents=agents or [], db=db, log_level=log_level)


def doctor(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|CHAT...", help="Log files, folders, patterns, or chats' ids."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats of the store.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 for whatever is told of the newest turn, no fault included.")
    ] = False,
    jobs: Jobs = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Answer in one screen: what went wrong in this chat, why is it not moving, what will happen next, and when?

    First the cause: what happened in its newest turn, such as a lost result, a storm of retries, a client that never
    answered, and what to do about it. Then its state, who holds it and until when, the attempt under way, the next
    retry, the deadline, open calls, the queue, the last command that was refused, and which workers live that could run
    it. A file knows no workers, and its now is the moment of its last event.

    Of several logs, of a folder, and with --all: a line for each, with the worst that happened in its newest turn, and
    how many logs have each kind of incident. Whether a chat moves is told of one alone.

    Exit code 1: something went wrong in the newest turn, the chat will not move without somebody who runs the service,
    or the log was altered. What was declared or done so, such as a tool that stops the turn, is told and is no fault;
    with --strict it is exit code 1 too. docs/incidents.md has all kinds.

    \b
    Examples:
      chatfold doctor CHAT
      chatfold doctor saved.jsonl --strict
      chatfold doctor logs/ "more/*.jsonl"
      chatfold doctor --all --json | jq -r 'select(.fault).log'
      chatfold doctor CHAT --json | jq .next
      chatfold doctor CHAT --json | jq '.incidents[] | select(.fault)'
    """
    from chatfold.cli.doctor import Asked, run_doctor

    asked = Asked(sources=sources or [], everything=everything, strict=strict, jobs=jobs, json=json)
    run_doctor(Out(), asked, db=db, log_level=log_level)


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

    What went wrong, as doctor tells it; the machine with its way, counts and times; where the time went; errors,
    decisions, transcript, events. The file refers to nothing outside of itself and has no script. It holds what the
    chat says: give it to those who may read that. A log that was altered is reported under a warning. Exit code 1: it
    was.

    \b
    Examples:
      chatfold report CHAT -o chat.html
      chatfold report saved.jsonl > report.html
    """
    from chatfold.cli.picturing import run_report

    run_report(Out(), source, output, db=db, log_level=log_level)
