"""From exceptions to one clear sentence and an exit code: no user of the command line ever sees a traceback.

0: fine. 1: a check failed, or what was asked could not be done. 2: the command line is wrong. 130 and 141: ended by
Ctrl-C, or because nobody reads the output any more, as shells have it.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, ParamSpec, cast

import typer

from chatfold.cli.output import printable

P = ParamSpec("P")

FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

_PYDANTIC: Final = "pydantic_core._pydantic_core.ValidationError"
_PARSING: Final = re.compile(r", unable to parse [^;]*")


class UsageProblem(Exception):
    """What was typed cannot be meant so; the text says what to do instead."""


class Failure(Exception):
    """What was asked could not be done; the text says why, and what to do."""


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run the application.

    Args:
        app: It.
        arguments: The command line without the program's name.

    Returns:
        The exit code.
    """
    try:
        code = app(list(arguments), prog_name="chatfold", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Abort:
        return INTERRUPTED
    except typer.TyperException as error:
        sentence = plain_words(error.format_message()).rstrip(".?")
        _complain(f"{sentence}; `{_command(error, arguments)} --help` shows what there is")
        return USAGE


def _command(error: Exception, arguments: Sequence[str]) -> str:
    """Return the command whose help says more."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    # An option without its value is noticed before its command has a context.
    return " ".join(["chatfold", *arguments[:1]]) if arguments and arguments[0].isalpha() else "chatfold"


def help_without_command(context: typer.Context) -> None:
    """Show the help of a group of commands where none of them is named."""
    if context.invoked_subcommand is None:
        # The help is what is shown, so it goes where it can be paged; nothing was done, so it is no success.
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


def guarded(work: Callable[P, None]) -> Callable[P, None]:
    """Let a command end with a sentence and an exit code where it raises."""

    @functools.wraps(work)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            work(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.TyperException):
            raise
        except BrokenPipeError:
            _close_pipe()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BaseExceptionGroup as group:
            _end(_innermost(group))
        except Exception as error:  # noqa: BLE001 -- the last place where one can be said in words
            _end(error)

    return wrapper


def _end(error: BaseException) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        _close_pipe()
    if isinstance(error, KeyboardInterrupt):
        raise typer.Exit(INTERRUPTED)
    sentence, code = explain(error)
    _complain(sentence)
    raise typer.Exit(code)


def _innermost(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _innermost(first) if isinstance(first, BaseExceptionGroup) else first


def _complain(sentence: str) -> None:
    sys.stdout.flush()
    line = printable(" ".join(f"chatfold: {sentence}".split())) + "\n"
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()


def _close_pipe() -> NoReturn:
    # Python flushes stdout once more at its end; the pipe is closed, so let that go nowhere.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    raise typer.Exit(PIPE_CLOSED)


def explain(error: BaseException) -> tuple[str, int]:
    """Return what to tell the user about an error, and the exit code."""
    if isinstance(error, UsageProblem):
        return str(error), USAGE
    if isinstance(error, Failure):
        return str(error), FAILED
    # Each name is compared by where it would come from, so that no layer is imported to say that a file is missing.
    for kind in type(error).__mro__:
        found = _KNOWN.get(f"{kind.__module__}.{kind.__qualname__}")
        if found is not None:
            return found(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}", FAILED
    logging.getLogger("chatfold.cli").debug("internal error", exc_info=error)
    what = f"{type(error).__name__}: {error}"
    return f"this should not have happened ({what}); --log-level debug shows where it comes from", FAILED


def _plain(code: int, advice: str = "") -> Callable[[BaseException], tuple[str, int]]:
    return lambda error: (f"{error}{advice}", code)


def _not_found(error: BaseException) -> tuple[str, int]:
    from chatfold.replaying.logs import problem_of  # who has such an error has its layers too

    return problem_of("", cast("Exception", error)), USAGE


def _setting(error: BaseException) -> tuple[str, int]:
    problems: list[dict[str, Any]] = getattr(error, "errors", list)()
    title = str(getattr(error, "title", ""))
    of_file = title != "Settings"
    said = "; ".join(_problem(each, of_file=of_file) for each in problems)
    return f"{title}: {said}" if of_file else said, USAGE


def _value(error: BaseException) -> tuple[str, int]:
    """Settings are told as they were given: as an option, a variable, or in the file."""
    cause = error.__cause__
    settings = cause is not None and f"{type(cause).__module__}.{type(cause).__qualname__}" == _PYDANTIC
    return _setting(cause) if cause is not None and settings else (str(error), USAGE)


def _problem(problem: Mapping[str, Any], *, of_file: bool) -> str:
    """Say what is wrong with a setting: how it was given, what was given, and what may be."""
    name = ".".join(map(str, problem["loc"]))
    if not name:
        return plain_words(problem["msg"])
    variable = f"CHATFOLD_{name.upper()}"
    shown = name if of_file else variable if variable in os.environ else f"--{name.replace('_', '-')}"
    if problem["type"] == "extra_forbidden":
        return f"{shown}: {problem['msg']}"
    return f"{shown}={problem['input']}: {plain_words(problem['msg'])}"


def plain_words(message: str) -> str:
    """Return what pydantic says of a value as a user of no library would say it."""
    text = message.replace("Value error, ", "").replace("Input should be", "must be")
    return _PARSING.sub("", text)


_KNOWN: Final[dict[str, Callable[[BaseException], tuple[str, int]]]] = {
    "chatfold.replaying.conditions.ConditionError": _plain(USAGE),
    "chatfold.replaying.logs.SourceNotFound": _plain(USAGE),
    "chatfold.replaying.many.WorkFailed": _plain(FAILED),
    "chatstate.errors.ChatNotFound": _not_found,
    "chatstate.errors.Refusal": _plain(FAILED),
    "store.errors.InvalidStoreUrl": _plain(USAGE),
    "store.errors.StoreUnavailable": _plain(FAILED, "; --db or CHATFOLD_DB says which database is meant"),
    "store.errors.ChatExists": _plain(FAILED, ": --as ID"),
    "store.errors.StoreError": _plain(FAILED),
    "events.errors.LogFileError": _plain(USAGE),
    "events.errors.InvalidValue": _value,
    "events.errors.EventsError": _plain(FAILED),
    "generation.errors.UnknownModel": _plain(USAGE),
    "generation.errors.UnknownAgent": _plain(USAGE),
    "generation.errors.GenerationError": _plain(FAILED),
    _PYDANTIC: _setting,
}
