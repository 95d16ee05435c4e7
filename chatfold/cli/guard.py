"""From exceptions to one clear sentence and an exit code: no user of the command line ever sees a traceback.

0: fine. 1: a check failed, or what was asked could not be done. 2: the command line is wrong. 130 and 141: ended by
Ctrl-C, or because nobody reads the output any more, as shells have it.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, ParamSpec

import typer

from chatfold.cli.output import printable

P = ParamSpec("P")

FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141


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
        _complain(f"{error.format_message().rstrip('.')}; `chatfold --help` shows what there is")
        return USAGE


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
    return f"{getattr(error, 'reason', error)}; `chatfold list` shows which chats there are", USAGE


def _setting(error: BaseException) -> tuple[str, int]:
    problems: list[dict[str, Any]] = getattr(error, "errors", list)()
    said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems)
    return f"a setting is wrong (CHATFOLD_* or the TOML file): {said}", USAGE


_KNOWN: Final[dict[str, Callable[[BaseException], tuple[str, int]]]] = {
    "chatstate.errors.ChatNotFound": _not_found,
    "chatstate.errors.Refusal": _plain(FAILED),
    "store.errors.InvalidStoreUrl": _plain(USAGE),
    "store.errors.StoreUnavailable": _plain(FAILED, "; --db or CHATFOLD_DB says which database is meant"),
    "store.errors.StoreError": _plain(FAILED),
    "events.errors.LogFileError": _plain(FAILED),
    "events.errors.InvalidValue": _plain(USAGE),
    "events.errors.EventsError": _plain(FAILED),
    "generation.errors.UnknownModel": _plain(USAGE),
    "generation.errors.UnknownAgent": _plain(USAGE),
    "generation.errors.GenerationError": _plain(FAILED),
    "pydantic_core._pydantic_core.ValidationError": _setting,
    "tomllib.TOMLDecodeError": _plain(USAGE, " (in the file of settings)"),
}
