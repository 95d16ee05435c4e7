"""What is installed and how: packages, pins, the Makefile and the script that continuous integration runs."""

import os
import re
import subprocess
import sys
import tomllib
from typing import Any, Final

import pytest
from packaging.utils import canonicalize_name

import chatfold
from tests.meta.installed import needed
from tests.meta.source import LAYERS, ROOT, files_of_tests, shown

PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOLS_OF_THE_BUILD: Final = {"hatchling", "editables"}


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line.partition("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in pinned}


def test_all_packages_are_installed_and_typed() -> None:
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == set(LAYERS)
    assert [layer for layer in LAYERS if not (ROOT / layer / "py.typed").is_file()] == []


def test_the_version_is_said_once() -> None:
    assert "version" not in PROJECT["project"]
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", chatfold.__version__)


def test_constraints_are_exact_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    strange = [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)]
    assert not strange, "neither a comment nor NAME==VERSION:\n" + "\n".join(strange)


def test_everything_that_is_installed_for_the_tests_is_pinned() -> None:
    project = PROJECT["project"]
    asked = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        asked += extra
    unpinned = sorted((needed(asked) | TOOLS_OF_THE_BUILD) - set(pins()))
    assert not unpinned, f"`make constraints` pins them: {unpinned}"


def test_every_target_of_make_says_what_it_does() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony
    targets = dict(re.findall(r"^([a-z][a-z-]*):[^=\n]*?(##.*)?$", text, re.MULTILINE))
    assert set(targets) == set(phony[1].split())
    unsaid = {name for name, said in targets.items() if not said}
    assert unsaid == {"venv", "demo-venv"}


@pytest.mark.parametrize("script", [".ci/run", "scripts/venv.sh"])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    shell = (ROOT / script).read_text(encoding="utf-8").splitlines()[0].rpartition("/")[2].split()[-1]
    checked = subprocess.run([shell, "-n", str(ROOT / script)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_folders_of_tests_are_packages() -> None:
    # tests/events without an __init__ would hide the package events.
    bare = sorted({shown(file.parent) for file in files_of_tests() if not (file.parent / "__init__.py").is_file()})
    assert not bare, f"without an __init__.py: {bare}"


def test_measurements_and_long_tests_do_not_run_by_default() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/benchmarks", "tests/crash"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout
    assert "deselected" in listed
    assert "test_import_time" not in listed
