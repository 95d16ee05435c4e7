"""What is installed on this machine: the distributions that requirements come to, and environments of these alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.meta.source import ROOT

_PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
_OF_THIS_PROCESS: Final = ("PYTHON", "PYTEST", "VIRTUAL", "CHATFOLD")


def needed(requirements: list[str]) -> set[str]:
    """Return the names of the distributions asked for and of all that these need on this machine."""
    found: set[tuple[str, str]] = set()
    ahead = [Requirement(text) for text in requirements]
    while ahead:
        requirement = ahead.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if name == "chatfold" or (name, extra) in found:
                continue
            found.add((name, extra))
            for text in distribution(name).requires or []:
                inner = Requirement(text)
                if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                    ahead.append(inner)
    return {name for name, _ in found}


class Environment:
    """A virtual environment with nothing in it but the interpreter, made without any network.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.python: Final = folder / "bin" / "python"
        self._packages: Final = next(folder.glob("lib/python*/site-packages"))
        self._wheels: Final = folder / "wheels"

    def add(self, requirements: Iterable[str]) -> None:
        """Add what requirements come to, as it is installed on this machine."""
        for name in needed(list(requirements)):
            for file in distribution(name).files or ():
                source, target = Path(str(file.locate())), self._packages / file
                if ".." in file.parts or not source.is_file():
                    continue  # a program, beside the packages
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def add_ours(self) -> None:
        """Build the wheel of this tree, and install it without any of its requirements."""
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(self._wheels)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = self._wheels.glob("*.whl")
        install = [*_PIP, "--python", str(self.python), "install", "--no-deps", "--no-index", "-q", str(wheel)]
        subprocess.run(install, check=True, capture_output=True)

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run its interpreter with arguments, and nothing of this process's environment that tells it of packages."""
        told = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THIS_PROCESS)}
        return subprocess.run(
            [str(self.python), *arguments], cwd=cwd, env=told, capture_output=True, text=True, check=False, timeout=240
        )
