"""Commands that check what is kept and mend what can be made anew: ``verify``, ``repair``, ``rerun``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from typing import Annotated

import typer

from chatfold.cli.options import Agents, Db, Jobs, Json, LogLevel, Sources
from chatfold.cli.output import Out


def verify(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|CHAT...", help="Log files, folders, patterns, or chats' ids."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats of the store.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Check that logs are as they were written and say nothing that was not allowed.

    Digests, the fold, invariants, the audit of every step; of a stored chat also that its header is what its log
    folds to, and that its segments, its uses of large contents and its places in the feed fit it. Exit code 1:
    something was found.

    \b
    Examples:
      chatfold verify CHAT
      chatfold verify saved.jsonl
      chatfold verify logs/ "exported/*.jsonl"
      chatfold verify --all --json
    """
    from chatfold.cli.verify import run_verify

    run_verify(Out(), sources or [], everything=everything, json=json, db=db, log_level=log_level)


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


def rerun(
    sources: Sources,
    agents: Agents = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show what changed in a section, where its text of then was kept.")
    ] = False,
    sections: Annotated[
        str | None,
        typer.Option(
            "--sections",
            metavar="FILE",
            help="The texts of then. Else what lies beside each log: NAME.sections.json, declarations.json.",
        ),
    ] = None,
    keep_sections: Annotated[
        str | None,
        typer.Option("--keep-sections", metavar="FILE", help="Write what today's requests say, for --show later on."),
    ] = None,
    ignore_sections: Annotated[
        str | None,
        typer.Option("--ignore-sections", metavar="NAMES", help="Sections that may change, as system,tools,policy."),
    ] = None,
    jobs: Jobs = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Run recorded chats through today's engine, and show where they part from their logs.

    What users, models and tools gave, and which worker died when, is taken from the log; every other event must come
    out again. No model is called, no tool is run, no connection is opened. With the agents of an application, their
    system texts, tools, options and limits are compared too with those of then, and a call is named that today's tools
    would not take: a change is a finding although no decision moved. What is compared is cut into sections: system,
    tools, messages, instruction, options, policy, calls (docs/rerun.md). Exit code 1: something came otherwise.

    \b
    Examples:
      chatfold rerun saved.jsonl
      chatfold rerun logs/ --jobs 4 --json
      chatfold rerun logs/ --agents myservice.agents:AGENTS --show
      chatfold rerun logs/ --agents myservice.agents:AGENTS --ignore-sections system,tools,policy
    """
    from chatfold.cli.rerun import run_rerun

    run_rerun(
        Out(),
        sources,
        agents=agents or [],
        show=show,
        sections=sections,
        keep_sections=keep_sections,
        ignored=ignore_sections,
        jobs=jobs,
        json=json,
        db=db,
        log_level=log_level,
    )
