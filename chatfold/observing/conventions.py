"""Names of OpenTelemetry's conventions for generative AI, at one version. Pure: constants, and no package of theirs.

The conventions are in development and move; names of another version are another release's matter. A test compares
these with those of OpenTelemetry's own package.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

VERSION: Final = "1.41.0"
"""The version of the semantic conventions that all of this is of."""

SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"

AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OPERATION_NAME: Final = "gen_ai.operation.name"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
USAGE_CACHE_CREATION: Final = "gen_ai.usage.cache_creation.input_tokens"
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"
USAGE_REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
ERROR_TYPE: Final = "error.type"

CONTENT: Final = frozenset(
    {
        INPUT_MESSAGES,
        OUTPUT_MESSAGES,
        SYSTEM_INSTRUCTIONS,
        TOOL_CALL_ARGUMENTS,
        TOOL_CALL_RESULT,
        TOOL_DEFINITIONS,
    }
)
"""Attributes that hold content, and are left out unless content is asked for."""

CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
COMPACT: Final = "compact"
"""An operation of our own: a compaction that was asked for invokes no agent."""

PROVIDERS: Final = MappingProxyType({"anthropic": "anthropic", "openai": "openai", "openai-chat": "openai"})
"""The conventions' names of providers by ours; others keep their own."""

TURN_OUTCOME: Final = "chatfold.turn.outcome"
TURN_ID: Final = "chatfold.turn.id"
ATTEMPT: Final = "chatfold.attempt"
HISTORY_VERSION: Final = "chatfold.history_version"
CANCELLED_BY: Final = "chatfold.cancelled_by"
EFFECT: Final = "chatfold.effect"
EPOCH: Final = "chatfold.epoch"
"""Attributes of our own, which the conventions have no name for."""
