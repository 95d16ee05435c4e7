"""Requests as the conventions for generative AI write them: nothing that a service is sent is left out."""

from __future__ import annotations

import json

from chatfold import WebSearch
from chatfold.observing.contents import input_messages, tool_definitions
from generation.prompt_types import ModelRequest, PromptFile, PromptMessage, PromptResult, ToolSpec

PICTURE = PromptFile(media_type="image/png", data="QUJD")
REQUEST = ModelRequest(
    model="m",
    system=(),
    messages=(PromptMessage(role="tool", parts=(PromptResult(id="c1", name="look", text="Seen.", media=(PICTURE,)),)),),
    tools=(ToolSpec(name="look", description="Look.", schema={"type": "object"}),),
    native=(WebSearch(),),
)


def test_files_stand_behind_the_result_that_they_came_with() -> None:
    assert json.loads(input_messages(REQUEST)) == [
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "c1", "response": "Seen."},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "QUJD"},
            ],
        }
    ]


def test_what_the_service_runs_itself_is_among_the_tools() -> None:
    assert json.loads(tool_definitions(REQUEST)) == [
        {"type": "function", "name": "look", "description": "Look.", "parameters": {"type": "object"}},
        {"type": "web_search", "name": "web_search"},
    ]
