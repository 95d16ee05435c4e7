"""The documentation is true: its code runs, its links lead somewhere, its generated pages are fresh.

Of every page in README.md and docs/: the `python` blocks run in one process, in order, and a `text` block right
after one shows lines that it prints; the `sh` and `console` blocks run in one shell with this environment's programs
first. A `text` block right after a `sh` block shows lines that it prints, on stdout or stderr. A `console` block
shows commands after `$`, and all that each of them prints; one that ends with another exit code than 0 or 1 makes
the page wrong. `toml` blocks parse, and those under a heading that speaks of settings are taken by chatfold's settings.
Left out are blocks marked `console not-run` and lines that install or fetch, and of `make` lines only the target is
checked: a test cannot run the test, so what is shown after such a line is not compared.

In what is shown, a line `...` stands for lines that are left out, and `…` within a line for what is another each time,
such as a time or a digest. Readers see both as what they are.
"""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.meta.consoles import ALLOWED, LEFT_OUT, Step, commands, line_pattern, ran, same, script_of
from tests.meta.pages import Block, Page, page_files, parse, read
from tests.meta.source import ROOT, shown

PAGES: Final = [read(file) for file in page_files()]
LANGUAGES: Final = {"python", "sh", "console", "toml"}
SAME_THING_OTHER_WORD: Final = {"py", "python3", "pycon", "bash", "shell", "shell-session", "zsh"}

INSTALL: Final = re.compile(r"^\s*(python3? -m pip|pip|pipx|uv|git clone|cd|apt|apt-get|brew)\b")
MAKE: Final = re.compile(r"^\s*make\s+(?P<target>[a-z-]+)\s*(#.*)?$")

RUN_PYTHON: Final = """
import json, sys
sys.path[:0] = [sys.argv[1]]
names = {"__name__": "__main__"}
for page, line, text in json.load(sys.stdin):
    exec(compile("\\n" * (line - 1) + text, page, "exec", dont_inherit=True), names)
"""


def blocks(page: Page, language: str) -> list[Block]:
    return [block for block in page.blocks if block.language == language and block.runs]


def pages_with(*languages: str) -> list[Page]:
    return [page for page in PAGES if any(blocks(page, language) for language in languages)]


def page_id(page: Page) -> str:
    return shown(page.file)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a reader's shell has: this environment's programs first, a home of its own, no settings."""
    # A reader is no CI: there, pytest says more.
    foreign = ("CHATFOLD_", "PYTEST_", "XDG_", "CI", "BUILD_NUMBER", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    programs = [str(Path(sys.executable).parent)]
    if not Path(programs[0], "chatfold").exists():  # the tree is not installed: the tests run from its root
        command = tmp_path / "bin" / "chatfold"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from chatfold.cli.main import main; main()" "$@"\n')
        command.chmod(0o755)
        programs.append(str(command.parent))
        kept["PYTEST_PLUGINS"] = "chatfold.pytest_plugin"  # there is no entry point either
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "here").mkdir()
    return kept | {
        "HOME": str(home),
        "PATH": os.pathsep.join([*programs, kept.get("PATH", os.defpath)]),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",  # stdout and stderr in the order in which a terminal shows them
        "PYTHONWARNINGS": "error",
    }


def run(command: list[str], said: str, environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, input=said, capture_output=True, text=True, check=False, cwd=folder, env=environment, timeout=100
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", pages_with("python"), ids=page_id)
def test_python_blocks_run(page: Page, environment: dict[str, str], tmp_path: Path) -> None:
    code = [(shown(page.file), block.line, block.text) for block in blocks(page, "python")]
    printed = run([sys.executable, "-c", RUN_PYTHON, str(ROOT)], json.dumps(code), environment, tmp_path / "here")
    lines = printed.splitlines()
    for output in outputs(page):
        missing = not_printed(output, lines)
        assert not missing, f"{page_id(page)}:{output.line}: not printed: {missing}\nbut\n{printed}"


def outputs(page: Page, language: str = "python") -> dict[Block, Block]:
    """The blocks that show what the block right before them, under the same heading, prints; with that one."""
    pairs = ((one, other) for one, other in pairwise(page.blocks) if one.heading == other.heading)
    return {after: before for before, after in pairs if (before.language, after.language) == (language, "text")}


def not_printed(shown: Block, printed: list[str]) -> list[str] | None:
    """The first piece of what is shown that was not printed, behind what is shown before it; None where all was."""
    behind = 0
    for piece in pieces(shown.text.splitlines()):
        places = (at for at in range(behind, len(printed) - len(piece) + 1) if holds(printed[at:], piece))
        if (place := next(places, None)) is None:
            return piece
        behind = place + len(piece)
    return None


def pieces(shown: list[str]) -> Iterator[list[str]]:
    """Cut what is shown at lines that say that something is left out."""
    for left_out, lines in groupby(shown, lambda line: line.strip() == LEFT_OUT):
        if not left_out:
            yield list(lines)


def holds(printed: list[str], piece: list[str]) -> bool:
    """Whether what was printed begins with some lines; blanks at the ends of lines do not count."""
    return all(line_pattern(line).fullmatch(other.strip()) for line, other in zip(piece, printed, strict=False))


@pytest.mark.parametrize("page", pages_with("sh", "console"), ids=page_id)
def test_sh_and_console_blocks_run(page: Page, environment: dict[str, str], tmp_path: Path) -> None:
    targets = {target for block in blocks(page, "sh") for target in runnable(block.text)[1]}
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets <= known, f"no such targets in the Makefile: {sorted(targets - known)}"
    steps = list(shell_steps(page))
    printed = run(["sh", "-eu", "-s"], script_of(steps), environment, tmp_path / "here")
    came = list(zip(steps, ran(steps, printed), strict=True))
    for step, done in came:
        if step.shown is not None:
            where = f"{page_id(page)}:{step.block.line}: $ {step.script}"
            assert done.code in ALLOWED, f"{where}exit {done.code}\n{done.printed}"
            assert same(step.shown, done.printed), f"{where}prints\n{done.printed}"
    said = {step.block: done.printed for step, done in came}
    for output, block in outputs(page, "sh").items():
        if runnable(block.text)[0] == block.text:
            missing = not_printed(output, said[block].splitlines())
            assert not missing, f"{page_id(page)}:{output.line}: not printed: {missing}\nbut\n{said[block]}"


def shell_steps(page: Page) -> Iterator[Step]:
    """What of a page runs in its shell, in order."""
    for block in page.blocks:
        if block.language == "sh":
            yield Step(block, runnable(block.text)[0])
        elif block.language == "console" and block.runs:
            yield from commands(block)


def runnable(script: str) -> tuple[str, set[str]]:
    """Split a shell text into what a test can run, and the targets of make that it names."""
    lines, targets = [], set()
    for line in script.splitlines():
        if made := MAKE.match(line):
            targets.add(made["target"])
        elif not INSTALL.match(line):
            lines.append(line)
    return "\n".join(lines) + "\n", targets


@pytest.mark.parametrize("page", pages_with("toml"), ids=page_id)
def test_toml_blocks_are_what_they_seem(page: Page) -> None:
    for block in blocks(page, "toml"):
        data = tomllib.loads(block.text)
        if "setting" in block.heading.lower() and importlib.util.find_spec("chatfold.settings"):
            importlib.import_module("chatfold.settings").Settings.model_validate(data)


def test_blocks_use_the_words_that_are_tested() -> None:
    strange = [
        f"{page_id(page)}:{block.line}: {block.language}"
        for page in PAGES
        for block in page.blocks
        if block.language in SAME_THING_OTHER_WORD
    ]
    assert not strange, f"say {sorted(LANGUAGES)}, so that the block is run:\n" + "\n".join(strange)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Page) -> None:
    dead = [f"{page_id(page)}:{line}: {target}" for line, target in page.links if not leads_somewhere(page, target)]
    assert not dead, "\n".join(dead)


def leads_somewhere(page: Page, target: str) -> bool:
    if re.match(r"[a-z]+:", target):  # another place: no test asks the network
        return True
    path, _, anchor = target.partition("#")
    file = (page.file.parent / path).resolve() if path else page.file
    if not file.exists() or not file.is_relative_to(ROOT):
        return False
    return not anchor or (file.suffix == ".md" and anchor in read(file).anchors)


def test_every_page_is_reached_from_the_index() -> None:
    ahead = [ROOT / "docs" / "index.md"]
    seen: set[Path] = set()
    while ahead:
        file = ahead.pop()
        if file in seen:
            continue
        seen.add(file)
        targets = [target.partition("#")[0] for _, target in read(file).links if not re.match(r"[a-z]+:", target)]
        linked = [(file.parent / target).resolve() for target in targets if target.endswith(".md")]
        ahead += [other for other in linked if other.is_relative_to(ROOT / "docs") and other.exists()]
    unreached = [shown(file) for file in page_files() if file.is_relative_to(ROOT / "docs") and file not in seen]
    assert not unreached, f"no link leads from docs/index.md to {unreached}"


def test_generated_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_page_is_read() -> None:
    page = parse(
        ROOT / "README.md",
        '# A `b` c!\n[x](y.md "t") `[no](no.md)` ![i](a_(b).png)\n'
        "## A b c\n1. then\n   ```python title\n   x = 1\n\n   y = 2\n   ```\n[z](#a-b-c-1)\n"
        "````text not-run\n```\n````\n",
    )
    assert page.blocks == (
        Block("python", 6, "x = 1\n\ny = 2\n", "A b c"),
        Block("text", 12, "```\n", "A b c", runs=False),
    )
    assert page.links == ((2, "y.md"), (2, "a_(b).png"), (10, "#a-b-c-1"))
    assert page.anchors == {"a-b-c", "a-b-c-1"}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_what_is_installed_is_a_clone(page: Page) -> None:
    """No index has chatfold: only the README says what works where it is installed already."""
    text = page.file.read_text(encoding="utf-8").replace("`pip install 'chatfold[anthropic]'` adds", "")
    assert re.findall(r"pip install (?!\S*\./)\S*chatfold\S*", text) == []


def test_what_is_shown_belongs_to_the_block_before_it_under_its_heading() -> None:
    text = "# A\n```sh\n:\n```\nprints\n```text\nx\n```\n```text\ny\n```\n```sh\n:\n```\n## B\n```text\nz\n```\n"
    page = parse(ROOT / "README.md", text)
    assert [(after.text, before.line) for after, before in outputs(page, "sh").items()] == [("x\n", 3)]


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("one\ntwo\n", None),
        ("two\n", None),
        ("one\n...\nthree at 9:00\n", None),
        ("three at …\n", None),
        ("… at …:00\n", None),
        ("one\nthree at …\n", ["one", "three at …"]),
        ("two\n...\none\n", ["one"]),
        ("three at 9:00…\n", ["three at 9:00…"]),
        ("on\n", ["on"]),
        ("…\n…\n…\n…\n", ["…", "…", "…", "…"]),
    ],
)
def test_what_is_shown_is_compared_with_what_is_printed(shown: str, missing: list[str] | None) -> None:
    printed = ["one", "two ", "three at 9:00"]
    assert not_printed(Block("text", 1, shown, ""), printed) == missing


def test_what_of_a_shell_block_runs() -> None:
    script, targets = runnable("git clone x\ncd x\nmake demo   # look\nchatfold --version\npip install y\n")
    assert script == "chatfold --version\n"
    assert targets == {"demo"}


def test_a_console_block_runs_command_by_command() -> None:
    text = "$ false\n$ echo $?\n1\n$ printf 'a\\nb\\n'\n...\nb\n"
    steps = list(commands(Block("console", 1, text, "")))
    assert [(step.script, step.shown) for step in steps] == [
        ("false\n", ()),
        ("echo $?\n", ("1",)),
        ("printf 'a\\nb\\n'\n", ("...", "b")),
    ]
    done = subprocess.run(["sh", "-eu", "-s"], input=script_of(steps), capture_output=True, text=True, check=True)
    came = ran(steps, done.stdout)
    assert [each.code for each in came] == [1, 0, 0]
    assert all(same(step.shown or (), each.printed) for step, each in zip(steps, came, strict=True))
    with pytest.raises(ValueError, match="2 of 3 steps came to an end"):
        ran(steps, done.stdout.partition("a\n")[0])


def test_a_console_block_begins_with_a_command() -> None:
    with pytest.raises(ValueError, match="line 7: a console block begins with a command"):
        list(commands(Block("console", 7, "one\n$ two\n", "")))


@pytest.mark.parametrize(
    ("shown", "equal"),
    [
        ("one\n\ntwo\nthree at 9:00\n", True),
        ("one\n\ntwo\nthree at …\n\n", True),
        ("one\n...\n", True),
        ("...\nthree at 9:00\n", True),
        ("...\ntwo\n...\n", True),
        ("one\n...\none\n", False),
        ("one\n\ntwo\n", False),
        ("two\nthree at 9:00\n", False),
        ("one\ntwo\nthree at 9:00\n", False),
        ("one\n\ntwo\nthree at 9:0…0\n", False),
        ("", False),
    ],
)
def test_all_that_a_console_block_shows_is_compared(shown: str, equal: bool) -> None:
    assert same(tuple(shown.splitlines()), "one\n\ntwo  \nthree at 9:00\n") is equal
