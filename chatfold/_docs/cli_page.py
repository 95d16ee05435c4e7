"""Makes ``docs/cli.md`` from the command line itself: its commands with their help, and the shapes of ``--json``.

What the words mean is said by the help and by the docstrings of ``chatfold.cli.shapes``; this module lays them out.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final, get_type_hints

import docstring_parser
import typer.main

from chatfold.cli.app import app
from chatfold.cli.shapes import SHAPES, Shape

_KEPT: Final = "\b\n"
"""What stands in a help text before lines that are kept as they are."""

_FIRST: Final = """\
A talk with the scripted model, which needs no key; then what happened in it, and the proof that it is so:

```sh
chatfold chat "What time is it?" --chat first
chatfold replay first
chatfold export first > first.jsonl
chatfold verify first.jsonl
chatfold verify --all
```

The last three lines that this prints say that the log is as it was written, in the file as in the store:

```text
first.jsonl: ok, 11 events, …
first: ok, 11 events, …
1 chat verified, 0 with problems
```

Data goes to stdout, talk to stderr. `--json` prints one object a line, in the [shapes](#json-shapes) below. A `FILE` is
an argument that has a path separator, ends in `.jsonl`, is the name of a file that exists, or is `-` (stdin); anything
else is a chat's id. Text that others wrote is shown without characters that steer a terminal. Colours are for terminals
only, and never where `NO_COLOR` is set.

| exit code | meaning |
| --- | --- |
| 0 | fine |
| 1 | a check failed, a turn failed, or what was asked could not be done: a database that is away, locked, of another \
schema or no database; a file that cannot be written; a chat that does not allow it now |
| 2 | the command line is wrong: an option, setting, model, agent or store URL that does not exist or is malformed; a \
log file, SQLite file or chat to read that is not there, or a file that is no log |
| 130, 141 | ended by Ctrl-C; nobody reads the output any more |
"""


def render() -> str:
    """Return the page."""
    lines = ["# Command line", "", _FIRST]
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        members = getattr(command, "commands", None)
        for each, member in {name: command}.items() if members is None else members.items():
            lines += _command(each if members is None else f"{name} {each}", member)
    lines += ["## JSON shapes", "", f"{_prose(inspect.getdoc(inspect.getmodule(Shape)) or '')}", ""]
    for shape in SHAPES:
        lines += _shape(shape)
    return "\n".join(lines).rstrip() + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    yield f"## chatfold {name}"
    yield ""
    usage = " ".join(["chatfold", name, "[OPTIONS]", *map(_argument, arguments)])
    yield from _block(usage)
    text, _, examples = inspect.cleandoc(command.help or "").partition(_KEPT)
    yield from (text.strip(), "")
    yield "| argument, option | meaning |"
    yield "| --- | --- |"
    for each in (*arguments, *options):
        yield f"| {_names(each)} | {_cell(each.help or '')}{_default(each)} |"
    yield ""
    if examples:
        yield from _block(inspect.cleandoc(examples.partition("\n")[2]))


def _block(text: str) -> Iterator[str]:
    yield from ("```text", text, "```", "")


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_cell(_argument(parameter))}`"
    names = ", ".join(f"`{name}`" for name in sorted(parameter.opts, key=len, reverse=True))
    if parameter.is_flag:
        return names
    return f"{names} {_cell(parameter.metavar or parameter.name.upper())}"


def _argument(parameter: Any) -> str:
    name: str = parameter.metavar
    return name if parameter.required else f"[{name}]"


def _default(parameter: Any) -> str:
    shown = parameter.default is not None and parameter.default is not False and not callable(parameter.default)
    return f" Default: {parameter.default}." if shown else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _prose(text: str) -> str:
    return text.replace("``", "`")


def _shape(shape: type[Shape]) -> Iterator[str]:
    parsed = docstring_parser.parse(inspect.getdoc(shape) or "", style=docstring_parser.DocstringStyle.GOOGLE)
    meanings = {each.arg_name: each.description or "" for each in parsed.params}
    hints = get_type_hints(shape)
    yield f"### {shape.__struct_config__.tag}"
    yield ""
    yield _prose(parsed.short_description or "")
    yield ""
    yield "| field | type | meaning |"
    yield "| --- | --- | --- |"
    yield f'| `kind` | str | Always `"{shape.__struct_config__.tag}"`. |'
    for field in shape.__struct_fields__:
        yield f"| `{field}` | {_type(hints[field])} | {_cell(_prose(meanings[field]))} |"
    yield ""


def _type(hint: Any) -> str:
    name = hint.__name__ if isinstance(hint, type) and not hasattr(hint, "__args__") else str(hint)
    plain = name.replace("typing.", "").replace("NoneType", "null").replace("None", "null").replace(", ...", "")
    return _cell(plain)
