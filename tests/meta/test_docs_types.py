"""The code in the documentation is right to a strict type checker too, without any plug-in, as its readers run it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.meta.pages import Page, read
from tests.meta.source import ROOT

PAGES: Final = (
    "README.md",
    *(f"docs/{name}.md" for name in ("quickstart", "testing", "replay", "embedding", "models", "web")),
)


def program(page: Page) -> str:
    """The `python` blocks of a page as one file, each on the lines where it stands in the page."""
    lines: list[str] = []
    for block in page.blocks:
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.text.splitlines()
    return "\n".join(lines) + "\n"


@pytest.mark.timeout(300)  # without a cache the checker reads everything that chatfold imports
def test_documented_code_type_checks(tmp_path: Path) -> None:
    files = []
    for name in PAGES:
        file = tmp_path / f"{Path(name).stem.lower()}_page.py"
        file.write_text(program(read(ROOT / name)), encoding="utf-8")
        files.append(str(file))
    options = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={ROOT / '.mypy_cache' / 'docs'}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *files],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
