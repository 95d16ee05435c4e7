"""What each decision rule means for those who wonder why a chat did something: the sections of its page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Explained(NamedTuple):
    """A rule for people: what it is there for, and the names of what it reads beside what the rules before it read."""

    text: str
    reads: tuple[str, ...] = ()


EXPLAINED: Final[Mapping[str, Explained]] = MappingProxyType(
    {
        "D0": Explained(
            "Nothing can be done under such a policy, so the turn fails and says so, rather than wait for ever. A "
            "chat whose user chose a model that the agent does not have ends here too: correct the agent, or choose "
            "another model, and resume.",
            ("max_steps", "model"),
        ),
        "D1": Explained(
            "The newest answer called tools that run here. Those that have no result are started together; calls "
            "whose results are all recorded are only committed. A call that must be alone and is not draws all others "
            "in, and each gets a refusal that tells the model so.",
            ("local", "recorded", "refused", "client", "approvals", "exclusive"),
        ),
        "D2": Explained(
            "What is left of the open calls is the client's: to run, or to approve. It is asked for all of it at "
            "once, and the chat waits until the answers come or the deadline passes.",
            ("client", "approvals"),
        ),
        "D2b": Explained(
            "The client was asked whether to raise a budget, and chose to end the turn. What the turn owes is kept: "
            "resume asks again.",
            ("budget_ended", "answer"),
        ),
        "D3": Explained(
            "The user asked for a compaction, and there is something to compact. It comes before the model is asked "
            "anything else.",
            ("compaction", "assistants_after_boundary"),
        ),
        "D4": Explained(
            "The agent declared a tool after which the turn is over, and one of its calls succeeded. One that failed "
            "does not end the turn: the model is told of it. Only results since the last resume count.",
            ("stop_after_tool",),
        ),
        "D5": Explained(
            "A compaction that a user asked for while the chat waited is a turn of its own, and it is done. What the "
            "history owed before, it owes still."
        ),
        "D6": Explained(
            "The model has answered and called nothing more. An answer that was interrupted is not finished, and does "
            "not end a turn that was resumed. A model that answers with nothing at all ends the turn too: that "
            "decision has the fact `empty_answer`, and no rule was asked.",
            ("last", "interrupted"),
        ),
        "D7": Explained(
            "A turn that goes on and on is ended, and may be resumed, with the count at zero. A turn that a hook let "
            "go on may have one step more.",
            ("steps", "max_steps", "nudged"),
        ),
        "D7b": Explained(
            "Before more is spent, the client is asked. Limits are read from the budget in force, what the user "
            "raised over the policy's; what is spent is counted over the life of the chat. A limit of cost without a "
            "price cannot be kept, so it is asked about as well.",
            ("tokens", "tokens_limit", "cost_micros", "cost_micros_limit", "turns", "turns_limit", "limit", "priced"),
        ),
        "D8": Explained(
            "The model is to read the context of the agent's source before it answers: it is collected where history "
            "has none of that source, has another revision, or somebody asked for it anew.",
            ("source", "recorded_source", "recorded", "wanted", "refresh"),
        ),
        "D9": Explained(
            "History was compacted, and the first prompt after it was over the threshold all the same: to compact "
            "again would not help. The turn fails and says what would: a larger limit, another model, a new chat.",
            ("context_tokens", "threshold", "boundary", "first_context_tokens", "visible_after"),
        ),
        "D10": Explained(
            "The newest prompt came near the model's limit, so what happened so far is summarised before the model is "
            "asked again."
        ),
        "D11": Explained("Nothing else is to be done first: the model is asked.", ("attempt",)),
    }
)
"""Rule id -> its explanation."""
