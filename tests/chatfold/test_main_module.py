"""``python -m chatfold`` is the command line, for environments whose scripts are not on the path."""

from __future__ import annotations

import subprocess
import sys


def test_the_package_runs_as_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "chatfold", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "replay" in done.stdout
