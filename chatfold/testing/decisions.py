"""Whether the decisions of a log are those that the rules give: taken again on the state just before each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from events.envelope import Recorded
from events.levels import level_of_all, readable_at
from events.records import Decision
from events.replay import replay
from events.state import ChatState
from generation.decide import decide_again
from generation.due import decision_due


def decision_problems(log: Iterable[Recorded]) -> Iterator[str]:
    """Yield what is wrong with the decisions of a chat's log, given from its first event on."""
    events = list(log)
    level = level_of_all(events)
    for step in replay(events):
        decision = getattr(step.recorded.event, "decision", None)
        if isinstance(decision, Decision):
            for problem in _problems(step.before, decision, level):
                yield f"version {step.recorded.version}: {problem}"


def _problems(before: ChatState, decision: Decision, level: int) -> Iterator[str]:
    control = before.control
    policy = before.need_transcript("decide").policies.get(control.policy)
    if not decision_due(control, ended=True):
        yield f"{decision.rule} was decided where no decision was due"
    if policy is None:
        yield "a decision was taken under a policy that is not recorded"
        return
    # A chat that older releases may run records what they can read.
    wanted = readable_at(decide_again(decision, before, policy).record, level)
    if decision != wanted:
        yield f"it was decided {_told(decision)}, the rules give {_told(wanted)}"


def _told(decision: Decision) -> str:
    return f"{decision.rule} {decision.action} by {decision.facts} and {decision.read}, passing {decision.passed}"
