"""The quickstart's program does on PostgreSQL and with a real provider's wire what its page says.

On SQLite with the scripted model it is run with the other pages, by `tests.meta.test_docs`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from chatfold.testing.servers import Answer, AnthropicServer, RecordedRequest, Text, ToolCall
from tests.meta.pages import read
from tests.meta.source import ROOT

PROGRAM = "".join(block.text for block in read(ROOT / "docs" / "quickstart.md").blocks if block.language == "python")


def model(request: RecordedRequest) -> Answer:
    """Answer as a model would that does what the quickstart's messages ask."""
    if "tool_result" in json.dumps(request.body["messages"][-1]):
        return Answer(f"I was told: {request.tool_results[-1][1]}")
    said = request.user_texts[-1]
    if "weather" in said:
        return Answer([Text("Let me look."), ToolCall("get_weather", {"city": "Paris"})])
    if "pick_file" in said:
        return Answer([ToolCall("pick_file", {})])
    if "story" in said:
        return Answer("Once upon a time there was a fox.", stall_after=2)
    return Answer("And so it ended.")


def run(tmp_path: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHATFOLD_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=kept | {"PYTHONPATH": str(ROOT)} | environment,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_on_postgres_with_a_real_providers_wire(postgres_database: Callable[[], str], tmp_path: Path) -> None:
    with AnthropicServer(model) as server:
        said = run(
            tmp_path,
            STORE=postgres_database(),
            MODEL="anthropic/claude-test",
            ANTHROPIC_API_KEY="any",
            CHATFOLD_BASE_URL=server.base_url,
        )
    assert server.refused == []
    assert "I was told: sunny in Paris" in said
    assert "I was told: notes.txt" in said
    assert "waiting, owed: True, interrupted: True" in said
    assert "And so it ended." in said
    assert "by D2: require_action" in said
