"""What can be covered by kind, and what the tables have that no engine writes, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from chatstate.classify import X
from events.reasons import Reason

Kind: TypeAlias = Literal["transition", "rule", "event", "end", "error", "part", "reason", "value", "field"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

SAID: Final[Mapping[Kind, str]] = {
    "transition": "transitions of the machine",
    "rule": "decision rules",
    "event": "event types",
    "end": "ends of attempts: what was under way, and what ended it",
    "error": "kinds of errors",
    "part": "kinds of parts of messages",
    "reason": "reasons of results without a tool",
    "value": "values of fields that take some few",
    "field": "fields that leave their default",
}
"""What each kind of coverage is, in words."""

_LATE: Final = "a turn is labelled while it is the last one, and has ended or waits for its user"
_NO_FLAGS: Final = "no behaviour has a flag yet"

UNWRITTEN: Final[Mapping[Kind, Mapping[str, str]]] = MappingProxyType(
    {
        "transition": {f"{x} set_turn_label {x}": _LATE for x in (X.P0, X.P1, X.R0, X.R1, X.I0, X.I1)},
        "event": {"reconciled": "it repairs what must not be"},
        "error": {
            "hook_denied": "what a hook denies is not done, so nothing of it is in a log",
            "reconciled": "it comes with the event reconciled",
        },
        "reason": {
            Reason.REPAIRED: "it comes with the event reconciled",
            Reason.EDIT: "no call is open before a user's message, which is all that an edit leaves",
        },
        "value": {"ToolPolicy.runner=provider": "what a service runs itself is no tool that an agent declares"},
        "field": {
            "Acquired.report": "what a dead holder's attempt took is told by the one that follows it",
            "ChatCreated.flags": _NO_FLAGS,
            "ChatForked.flags": _NO_FLAGS,
            "Control.flags": _NO_FLAGS,
        },
    }
)
"""What the tables have and no engine writes, and why: it is not asked of a corpus."""
