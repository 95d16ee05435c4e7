"""Model services on loopback: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions.

They speak the wire protocols over real sockets, answer from a script, record what they get, and refuse what the
services refuse. A first test:

    async with AnthropicServer([Answer("Hello.")]) as server:
        client = anthropic.AsyncAnthropic(base_url=server.base_url, api_key="any", max_retries=0)
        ...
    assert server.refused == []

`Gate`, `Answer.stall` and `Answer.cut_after` stop an answer at a chosen chunk, and `Answer.cut` says how a connection
breaks off. This module owns the public names only.
"""

from chatfold.testing.servers.anthropic_history import IssuedThinking
from chatfold.testing.servers.anthropic_server import AnthropicServer
from chatfold.testing.servers.chat_server import OpenAIChatServer
from chatfold.testing.servers.matching import Script, ScriptByUserText, ScriptError, ScriptFunction
from chatfold.testing.servers.recording import RecordedRequest, RefusedRequest, Seen
from chatfold.testing.servers.responses_history import IssuedItems
from chatfold.testing.servers.responses_server import OpenAIResponsesServer
from chatfold.testing.servers.script import (
    Answer,
    Cut,
    Drop,
    Fail,
    Found,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Search,
    Stop,
    Text,
    ToolCall,
    Usage,
)
from chatfold.testing.servers.server import LoopbackServer
from chatfold.testing.servers.signals import Gate, Signal

__all__ = [
    "Answer",
    "AnthropicServer",
    "Cut",
    "Drop",
    "Fail",
    "Found",
    "Gate",
    "IssuedItems",
    "IssuedThinking",
    "LoopbackServer",
    "OpenAIChatServer",
    "OpenAIResponsesServer",
    "Part",
    "Reasoning",
    "RecordedRequest",
    "RefusedRequest",
    "Refusal",
    "Reply",
    "Script",
    "ScriptByUserText",
    "ScriptError",
    "ScriptFunction",
    "Search",
    "Seen",
    "Signal",
    "Stop",
    "Text",
    "ToolCall",
    "Usage",
]
