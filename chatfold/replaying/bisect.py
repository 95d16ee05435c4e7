"""The first version of a log at which a condition holds.

Every version is looked at, from the first on: most conditions hold, cease to hold and hold again, so that halving would
find one of several places, and not the first. A version takes a few microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from chatfold.replaying.condition_names import Moment
from chatfold.replaying.conditions import Condition
from events.envelope import Recorded
from events.given import checked_kind
from events.replay import ReplayStep, replay


def first_where(log: Iterable[Recorded], condition: Condition) -> ReplayStep | None:
    """Return the first step of a log at which a condition holds; None where it never does.

    Args:
        log: The whole log. With contents, where the condition asks for texts.
        condition: See ``parse_condition``.

    Raises:
        EventsError: An event before that step cannot be read or applied.
        InvalidValue: It is no log, or no condition.
    """
    checked_kind(condition, Condition, "$.condition", "what parse_condition(text) gives")
    return next((step for step in replay(log) if condition(Moment(step.before, step.recorded, step.after))), None)
