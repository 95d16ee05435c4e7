"""Shell blocks of a page as one script, and what each of their commands printed.

Owns how `sh` and `console` blocks run together in one shell, and how what the latter show is compared: whole, where a
line `...` stands for lines that are left out, and `…` within a line for what is another each time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tests.meta.pages import Block

END: Final = "--- that is all that this prints, exit code"
PROMPT: Final = "$ "
LEFT_OUT: Final = "..."
ALLOWED: Final = (0, 1)
"""Exit codes of commands in `console` blocks: those that find something end with 1, which is no failure of the page."""

_ENDED: Final = re.compile(rf"\n{re.escape(END)} (\d+)\n")


@dataclass(frozen=True)
class Step:
    """What is run before what is printed is looked at: a whole `sh` block, or a command of a `console` block.

    Attributes:
        block: Where it stands.
        script: What runs.
        shown: Lines that the page shows under a command; None for a `sh` block.
    """

    block: Block
    script: str
    shown: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Ran:
    """What came of a step: its exit code, and what it printed on stdout and stderr."""

    code: int
    printed: str


def commands(block: Block) -> Iterator[Step]:
    """Yield the commands of a `console` block.

    Raises:
        ValueError: Something stands before the first command.
    """
    command, shown = None, list[str]()
    for line in block.text.splitlines():
        if line.startswith(PROMPT):
            if command is not None:
                yield Step(block, command, tuple(shown))
            command, shown = line.removeprefix(PROMPT) + "\n", []
        elif command is None:
            raise ValueError(f"line {block.line}: a console block begins with a command, {PROMPT}...")
        else:
            shown.append(line)
    if command is not None:
        yield Step(block, command, tuple(shown))


def script_of(steps: list[Step]) -> str:
    """Return what one shell runs: a `sh` block's command that fails ends it, a `console` block's leaves its code."""
    return "exec 2>&1\ncode=0\n" + "".join(map(_part, steps))


def _part(step: Step) -> str:
    told = f"printf '\\n%s %s\\n' '{END}'"
    if step.shown is None:
        return f"{step.script}{told} 0\n"
    return f"set +e\n(exit $code)\n{step.script}code=$?\n{told} $code\nset -e\n"


def ran(steps: list[Step], printed: str) -> list[Ran]:
    """Return what came of each step.

    Raises:
        ValueError: Fewer ran than there are.
    """
    *pieces, rest = _ENDED.split(printed)
    found = [Ran(int(code), text) for text, code in zip(pieces[::2], pieces[1::2], strict=True)]
    if len(found) != len(steps) or rest:
        raise ValueError(f"{len(found)} of {len(steps)} steps came to an end; then: {rest}")
    return found


def same(shown: tuple[str, ...], printed: str) -> bool:
    """Tell whether what is shown is what was printed; blanks around lines and blank lines around it do not count."""
    lines = "\n".join(shown).strip("\n").splitlines()
    pattern = "".join(r"(?:.*\n)*" if line.strip() == LEFT_OUT else f"{line_pattern(line).pattern}\n" for line in lines)
    said = "".join(f"{line.strip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, said) is not None


@cache
def line_pattern(line: str) -> re.Pattern[str]:
    """What a line that is shown may stand for."""
    return re.compile(".+".join(map(re.escape, line.strip().split("…"))))
