"""The application that users type: the program itself, and the table of its commands.

Import-light on purpose: `chatfold --help` loads typer and the modules that say how commands are typed (``app_talk`` and
its neighbours), and what a command needs is loaded when it runs.
"""

from collections.abc import Callable
from typing import Annotated, Final

import typer

from chatfold import __version__
from chatfold.cli import app_check, app_compare, app_corpus, app_keep, app_look, app_talk
from chatfold.cli.guard import guarded, help_without_command

app: Final = typer.Typer(
    name="chatfold",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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
      chatfold replay CHAT               what happened, event by event
      chatfold why CHAT                  why it did what it did, in words
      chatfold doctor CHAT               why it does not move, and what comes next
      chatfold verify --all              prove that nothing was altered
      chatfold rerun FILE                what today's code would do otherwise
      chatfold corpus check DIR          the same of all stored logs, as a gate

    Data goes to stdout, talk to stderr. Exit code: 0 fine, 1 a check failed or something could not be done, 2 the
    command line is wrong.
    """
    help_without_command(context)


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "demo": app_talk.demo,
    "chat": app_talk.chat,
    "worker": app_talk.worker,
    "list": app_look.list_chats,
    "show": app_look.show,
    "replay": app_look.replay,
    "why": app_look.why,
    "step": app_look.step,
    "doctor": app_look.doctor,
    "graph": app_look.graph,
    "report": app_look.report,
    "diff": app_compare.diff,
    "bisect": app_compare.bisect,
    "fork": app_compare.fork,
    "verify": app_check.verify,
    "repair": app_check.repair,
    "rerun": app_check.rerun,
    "export": app_keep.export,
    "import": app_keep.import_chat,
    "adopt": app_keep.adopt,
    "record": app_keep.record,
    "migrate": app_keep.migrate,
}
"""The commands by name, in the order of the help."""

for _name, _command in COMMANDS.items():
    app.command(_name)(guarded(_command))

app.add_typer(app_corpus.group)
