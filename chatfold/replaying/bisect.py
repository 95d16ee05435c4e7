"""The first version of a log at which a condition holds; where there is none, which of its words the log never has.

Every version is looked at, from the first on: most conditions hold, cease to hold and hold again, so that halving would
find one of several places, and not the first. A version takes a few microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatfold.replaying.condition_names import Moment
from chatfold.replaying.conditions import Condition, OpenWord
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


def never_said(log: Iterable[Recorded], condition: Condition) -> Iterator[tuple[OpenWord, tuple[str, ...]]]:
    """Yield the words of a condition that a log never has, each with all that its name is in the log.

    Args:
        log: The whole log.
        condition: See ``parse_condition``.

    Raises:
        EventsError: An event cannot be read or applied.
        InvalidValue: It is no log, or no condition.
    """
    checked_kind(condition, Condition, "$.condition", "what parse_condition(text) gives")
    found: list[dict[str, None]] = [{} for _ in condition.open]
    for step in replay(log):
        moment = Moment(step.before, step.recorded, step.after)
        for asked, words in zip(condition.open, found, strict=True):
            value = asked.read(moment)
            words.update(dict.fromkeys(value if isinstance(value, tuple) else () if value is None else (str(value),)))
    for asked, words in zip(condition.open, found, strict=True):
        if asked.word not in words:
            yield asked, tuple(sorted(words))
