"""A project with the plug-in and without any extra, for tests that run pytest in it.

Owns how the plug-in gets there: by the entry point where chatfold is installed, else by name.
"""

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Final

import pytest

from tests.meta.source import ROOT

EXTRAS: Final = ("anthropic", "openai", "httpx2", "psycopg", "textual", "syrupy", "opentelemetry", "prometheus_client")

_WITHOUT_EXTRAS: Final = f"""
import sys

for extra in {EXTRAS!r}:
    assert extra not in sys.modules, extra
    sys.modules[extra] = None
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose tests find chatfold, and none of its extras."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)  # the session that runs the project is none of a worker's
    pytester.makeconftest(_WITHOUT_EXTRAS)
    pytester.makeini("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    return pytester


@pytest.fixture
def run(project: pytest.Pytester) -> Run:
    """Runs pytest in a process of its own, with these arguments."""
    installed = [each.value for each in entry_points(group="pytest11")]
    named = [] if "chatfold.pytest_plugin" in installed else ["-p", "chatfold.pytest_plugin"]

    def runs(*arguments: str, syrupy: bool = False) -> pytest.RunResult:
        without = ["anyio", "hypothesispytest", *([] if syrupy else ["syrupy"])]
        quiet = [word for name in without for word in ("-p", f"no:{name}")]
        return project.runpytest_subprocess(*named, *quiet, *arguments)

    return runs
