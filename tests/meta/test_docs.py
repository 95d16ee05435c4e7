"""The documentation is true: its code runs, its links lead somewhere, its generated pages are fresh.

Of every page in README.md and docs/: the `python` blocks run in one process, in order, and a `text` block right after
one shows lines that it prints; the `sh` blocks run in one shell with this environment's programs first, and a `text`
block right after one shows lines that it prints, on stdout or stderr; `toml` blocks parse, and those under a heading
that speaks of settings are taken by chatfold's settings. Left out of the shell are lines that install or fetch, and of
`make` lines only the target is checked: a test cannot run the test, so what is shown after such a line is not compared.

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
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.meta.pages import Block, Page, page_files, parse, read
from tests.meta.source import ROOT, shown

PAGES: Final = [read(file) for file in page_files()]
END: Final = "--- that is all that this block prints"
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
        kept["PYTEST_PLUGINS"] = "chatfold.pytest_plugin"  # there is no entry point either
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
    for left_out, lines in groupby(shown, lambda line: line.strip() == "..."):
        if not left_out:
            yield list(lines)


def holds(printed: list[str], piece: list[str]) -> bool:
    """Whether what was printed begins with some lines; blanks at the ends of lines do not count."""
    return all(line_pattern(line).fullmatch(other.strip()) for line, other in zip(piece, printed, strict=False))


@cache
def line_pattern(line: str) -> re.Pattern[str]:
    """What a line that is shown may stand for."""
    return re.compile(".+".join(map(re.escape, line.strip().split("…"))))


@pytest.mark.parametrize("page", pages_with("sh"), ids=page_id)
def test_sh_blocks_run(page: Page, environment: dict[str, str], tmp_path: Path) -> None:
    shells = blocks(page, "sh")
    ran = [runnable(block.text) for block in shells]
    targets = {target for _, named in ran for target in named}
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets <= known, f"no such targets in the Makefile: {sorted(targets - known)}"
    script = "".join(f"{lines}printf '\\n%s\\n' '{END}'\n" for lines, _ in ran)
    printed = run(["sh", "-eu", "-s"], f"exec 2>&1\n{script}", environment, tmp_path / "here").split(f"\n{END}\n")
    assert len(printed) == len(shells) + 1
    said = dict(zip(shells, printed, strict=False))
    for output, block in outputs(page, "sh").items():
        if runnable(block.text)[0] == block.text:
            missing = not_printed(output, said[block].splitlines())
            assert not missing, f"{page_id(page)}:{output.line}: not printed: {missing}\nbut\n{said[block]}"


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
