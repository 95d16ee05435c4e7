"""What tests of applications use: the scripted model here, model services on loopback in ``chatfold.testing.servers``.

Owns the list of the scripted model's names; they are imported when they are first used.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.testing.asserts import assert_replays, assert_reruns, assert_valid_prompts
    from chatfold.testing.canonical import canonical_text
    from chatfold.testing.explained import explain_change
    from chatfold.testing.scenario import Scenario, fence_of, given
    from chatfold.testing.virtual import VirtualTime, VirtualTimeStopped
    from generation.errors import ClassifiedError
    from generation.prompt_types import ModelRequest
    from generation.providers.script import Cut, Fail, Say, Script, Think, Turn, UseTool, Wait, turn
    from generation.providers.scripted import ScriptedProvider, ScriptExhausted

__all__ = [
    "ClassifiedError",
    "Cut",
    "Fail",
    "ModelRequest",
    "Say",
    "Scenario",
    "Script",
    "ScriptExhausted",
    "ScriptedProvider",
    "Think",
    "Turn",
    "UseTool",
    "VirtualTime",
    "VirtualTimeStopped",
    "Wait",
    "assert_replays",
    "assert_reruns",
    "assert_valid_prompts",
    "canonical_text",
    "explain_change",
    "fence_of",
    "given",
    "turn",
]

_SCRIPT: Final = "generation.providers.script"
_HOMES: Final = {
    "ClassifiedError": "generation.errors",
    "Cut": _SCRIPT,
    "Fail": _SCRIPT,
    "ModelRequest": "generation.prompt_types",
    "Say": _SCRIPT,
    "Scenario": "chatfold.testing.scenario",
    "Script": _SCRIPT,
    "ScriptExhausted": "generation.providers.scripted",
    "ScriptedProvider": "generation.providers.scripted",
    "Think": _SCRIPT,
    "Turn": _SCRIPT,
    "UseTool": _SCRIPT,
    "VirtualTime": "chatfold.testing.virtual",
    "VirtualTimeStopped": "chatfold.testing.virtual",
    "Wait": _SCRIPT,
    "assert_replays": "chatfold.testing.asserts",
    "assert_reruns": "chatfold.testing.asserts",
    "assert_valid_prompts": "chatfold.testing.asserts",
    "canonical_text": "chatfold.testing.canonical",
    "explain_change": "chatfold.testing.explained",
    "fence_of": "chatfold.testing.scenario",
    "given": "chatfold.testing.scenario",
    "turn": _SCRIPT,
}

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
