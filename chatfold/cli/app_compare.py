"""Commands that compare logs, and try a chat otherwise: ``diff``, ``bisect``, ``fork``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from typing import Annotated

import typer

from chatfold.cli.guard import UsageProblem
from chatfold.cli.options import Agents, ChatId, Db, Json, LogLevel, Source
from chatfold.cli.output import Out


def diff(
    source: Source,
    other: Annotated[str | None, typer.Argument(metavar="[FILE|CHAT]", help="The log to compare it with.")] = None,
    at: Annotated[
        int | None, typer.Option("--at", metavar="VERSION", min=0, help="Compare two versions of one log: the first.")
    ] = None,
    to: Annotated[
        int | None, typer.Option("--to", metavar="VERSION", min=0, help="The second one; the last without it.")
    ] = None,
    context: Annotated[
        int, typer.Option("--context", metavar="COUNT", min=1, help="Show so many moves of either where they part.")
    ] = 5,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Compare two logs by what they did, or two versions of one.

    Two logs are the same as long as both took the same transitions by the same decisions and called the same tools;
    texts, times and ids do not count, nor who ran them. A fork did until it was forked what its origin did. Where they
    part, what either did next is shown: the execution state before it, the transition, the state after it, the decision
    (docs/state-machine.md, docs/decision-rules.md). With --at, what differs between the states at two versions is
    shown, contents by their size.

    Exit code 1: they part, or something differs.

    \b
    Examples:
      chatfold diff yesterday.jsonl today.jsonl
      chatfold diff CHAT FORK --context 10
      chatfold diff CHAT --at 12 --to 20
    """
    from chatfold.cli.comparing import run_logs_diff, run_versions_diff

    if other is not None and at is None and to is None:
        run_logs_diff(Out(), (source, other), context=context, json=json, db=db, log_level=log_level)
    elif other is None and at is not None:
        run_versions_diff(Out(), source, at, to, json=json, db=db, log_level=log_level)
    else:
        raise UsageProblem("name two logs, or one log and --at VERSION (and --to VERSION)")


def bisect(
    source: Source,
    when: Annotated[str, typer.Option("--when", metavar="CONDITION", help="What shall hold, as 'status == error'.")],
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Find the first version of a log at which a condition holds.

    A condition compares names with values: status, rule, event, error, tokens, steps, text and others, with == != < <=
    > >= contains, joined by and, or, not and parentheses. docs/comparing.md has the table of all names; a name that
    there is not is answered with it. Exit code 1: it holds nowhere.

    \b
    Examples:
      chatfold bisect CHAT --when 'status == error'
      chatfold bisect saved.jsonl --when 'rule == D10 and tokens > 100000'
      chatfold bisect saved.jsonl --when 'text contains "sorry" or tool == send_mail'
    """
    from chatfold.cli.comparing import run_bisect

    run_bisect(Out(), source, when, json=json, db=db, log_level=log_level)


def fork(
    chat: ChatId,
    at: Annotated[
        int | None, typer.Option("--at", metavar="VERSION", min=1, help="From this version on, instead of the last.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="Say this in the new chat.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER/NAME", help="Another model than the origin's.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Another agent.")] = None,
    agents: Agents = None,
    resume: Annotated[bool, typer.Option("--resume", help="Run the turn that the copied history owes.")] = False,
    as_id: Annotated[str | None, typer.Option("--as", metavar="ID", help="The new chat's id.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Fork although tools did something since.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Copy a chat as it was at a version into a new one, to go on otherwise; the origin stays as it is.

    What tools did after that version stays done, and the fork may do it again. So these calls are listed first, and
    nothing is made without --yes where there are any (exit code 1). The new chat's id is printed. It waits, unless
    --message or --resume (one of them) gives it a turn, which a worker runs. --agents is needed only to check what
    is sent against what an application's agents take. What is refused leaves no fork behind.

    \b
    Examples:
      chatfold fork CHAT --at 12 --message "Try it without the tool" --as CHAT-2
      chatfold fork CHAT --at 12 --model anthropic/claude-sonnet-4-5 --resume --yes
    """
    from chatfold.cli.forking import Fork, run_fork

    wanted = Fork(chat=chat, at=at, chat_id=as_id, agent=agent, model=model, message=message, resume=resume)
    run_fork(Out(), wanted, agents=agents or [], yes=yes, json=json, db=db, log_level=log_level)
