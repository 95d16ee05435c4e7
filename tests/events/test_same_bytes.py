"""The same events give the same bytes everywhere: hash seeds, time zones, locales, and every interpreter found.

Each case encodes all golden samples, reads, folds and writes them again in a process of its own, and prints one digest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

from tests.golden.fingerprint import fingerprint

MORE = "CHATFOLD_TEST_PYTHONS"
"""Environment variable with more interpreters, separated as in PATH."""

ROOT = Path(__file__).parents[2]
SITE = Path(msgspec.__file__).parents[1]
PROBE = "import sys, msgspec; print(sys.executable, sys.implementation.name, *sys.version_info[:3])"
SCRIPT = "from tests.golden.fingerprint import fingerprint; print(fingerprint())"


def interpreters() -> list[str]:
    """Return the interpreters from Python 3.11 on, each once: this one, those on PATH, pyenv's, and those of MORE."""
    found = [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    for python in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")):
        if int(python.parts[-3].split(".")[1]) >= 11:
            found.append(str(python))
    return list(dict.fromkeys([sys.executable, *found, *filter(None, os.environ.get(MORE, "").split(os.pathsep))]))


def run(python: str, code: str, *more: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_", "LANG"))}
    return subprocess.run(
        [python, "-B", "-c", code],
        cwd=ROOT,
        env=clean | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *more)))} | env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHASHSEED": "0"},
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "4294967295"},
        {"TZ": "Asia/Kathmandu"},
        {"TZ": "America/St_Johns", "PYTHONHASHSEED": "7"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Pacific/Chatham", "PYTHONHASHSEED": "42"},
    ],
    ids=lambda env: " ".join(f"{name}={value}" for name, value in env.items()),
)
def test_other_surroundings_give_the_same_bytes(env: dict[str, str]) -> None:
    done = run(sys.executable, SCRIPT, **env)
    assert (done.stdout.strip(), done.stderr) == (fingerprint(), "")


def test_the_surroundings_are_what_they_are_meant_to_be() -> None:
    code = "import sys, locale; print(sys.flags.utf8_mode, locale.getpreferredencoding(False))"
    done = run(sys.executable, code, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.stdout.split() == ["0", "ANSI_X3.4-1968"]


@pytest.mark.parametrize("python", interpreters())
def test_other_interpreters_give_the_same_bytes(python: str, tmp_path: Path) -> None:
    """With a msgspec of its own, with this environment's where that fits, or with one fetched for it."""
    reasons = []
    for more in ((), (SITE,), (tmp_path / "fetched",)):
        if more == (tmp_path / "fetched",):
            reasons.append(fetch(python, *more))
        probe = run(python, PROBE, *more)
        if probe.returncode == 0:
            done = run(python, SCRIPT, *more)
            print(f"same bytes under {probe.stdout.strip()}")
            assert (done.stdout.strip(), done.stderr) == (fingerprint(), "")
            return
        reasons.append((probe.stderr.strip() or "no output").splitlines()[-1].strip())
    pytest.skip(f"{python} cannot import msgspec: {'; '.join(reasons)}")


def fetch(python: str, folder: Path) -> str:
    """Install this environment's version of msgspec into a folder, for another interpreter; say how that went."""
    wanted = f"msgspec=={version('msgspec')}"
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", folder, wanted],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return f"pip exited with {done.returncode}"
