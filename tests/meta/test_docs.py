"""The documentation is true: its code runs, its links lead somewhere, its generated pages are fresh.

Of every page in README.md and docs/: the `python` blocks run in one process, in order, and a `text` block right after
one shows lines that it prints (a line `...` stands for what is left out); the `sh` blocks run in one shell
with this environment's programs first; `toml` blocks parse, and those under a heading that speaks of settings are taken
by chatfold's settings. Left out of the shell are lines that install or fetch, and of `make` lines only the target is
checked: a test cannot run the test.
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
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from tests.meta.pages import Block, Page, page_files, parse, read
from tests.meta.source import ROOT, shown

PAGES: Final = [read(file) for file in page_files()]
LANGUAGES: Final = {"python", "sh", "toml"}
SAME_THING_OTHER_WORD: Final = {"py", "python3", "pycon", "bash", "shell", "zsh"}

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
    return [block for block in page.blocks if block.language == language]


def pages_with(language: str) -> list[Page]:
    return [page for page in PAGES if blocks(page, language)]


def page_id(page: Page) -> str:
    return shown(page.file)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a reader's shell has: this environment's programs first, a home of its own, no settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHATFOLD_", "PYTEST_", "XDG_"))}
    programs = [str(Path(sys.executable).parent)]
    if not Path(programs[0], "chatfold").exists():  # the tree is not installed: the tests run from its root
        command = tmp_path / "bin" / "chatfold"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from chatfold.cli.main import main; main()" "$@"\n')
        command.chmod(0o755)
        programs.append(str(command.parent))
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "here").mkdir()
    return kept | {
        "HOME": str(home),
        "PATH": os.pathsep.join([*programs, kept.get("PATH", os.defpath)]),
        "PYTHONPATH": str(ROOT),
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
        missing = [part for part in pieces(output.text.splitlines()) if not holds(lines, part)]
        assert not missing, f"{page_id(page)}:{output.line}: not printed: {missing}\nbut\n{printed}"


def outputs(page: Page) -> list[Block]:
    """The blocks that show what the `python` block right before them prints."""
    pairs = zip(page.blocks, page.blocks[1:], strict=False)
    return [after for before, after in pairs if (before.language, after.language) == ("python", "text")]


def pieces(shown: list[str]) -> Iterator[list[str]]:
    """Cut what is shown at lines that say that something is left out."""
    for left_out, lines in groupby(shown, lambda line: line.strip() == "..."):
        if not left_out:
            yield list(lines)


def holds(printed: list[str], piece: list[str]) -> bool:
    """Whether some lines were printed one after the other; blanks at the ends of lines do not count."""
    wanted = "\n".join(line.strip() for line in piece)
    return wanted in "\n".join(line.strip() for line in printed)


@pytest.mark.parametrize("page", pages_with("sh"), ids=page_id)
def test_sh_blocks_run(page: Page, environment: dict[str, str], tmp_path: Path) -> None:
    script, targets = runnable("".join(block.text for block in blocks(page, "sh")))
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets <= known, f"no such targets in the Makefile: {sorted(targets - known)}"
    run(["sh", "-eu", "-s"], script, environment, tmp_path / "here")


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
        "## A b c\n1. then\n   ```python title\n   x = 1\n\n   y = 2\n   ```\n[z](#a-b-c-1)\n````text\n```\n````\n",
    )
    assert page.blocks == (
        Block("python", 6, "x = 1\n\ny = 2\n", "A b c"),
        Block("text", 12, "```\n", "A b c"),
    )
    assert page.links == ((2, "y.md"), (2, "a_(b).png"), (10, "#a-b-c-1"))
    assert page.anchors == {"a-b-c", "a-b-c-1"}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_what_is_installed_is_a_clone(page: Page) -> None:
    """No index has chatfold: only the README says what works where it is installed already."""
    text = page.file.read_text(encoding="utf-8").replace("`pip install 'chatfold[anthropic]'` adds", "")
    assert re.findall(r"pip install (?!\S*\./)\S*chatfold\S*", text) == []


def test_what_of_a_shell_block_runs() -> None:
    script, targets = runnable("git clone x\ncd x\nmake demo   # look\nchatfold --version\npip install y\n")
    assert script == "chatfold --version\n"
    assert targets == {"demo"}
