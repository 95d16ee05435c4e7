"""Which reasoning efforts models of OpenAI take. Pure.

What a model does not take, the service refuses, and it offers no way to ask. Models that are not named here get an
effort as it is.
"""

from __future__ import annotations

import re
from typing import Final

from generation.efforts import EFFORTS, rank

_LOW_TO_HIGH: Final = ("low", "medium", "high")
_TAKEN: Final[tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]] = tuple(
    (re.compile(rf"(?:ft:)?(?:{pattern})(?![\w.]|-[a-z])"), taken)
    for pattern, taken in (
        (r"gpt-6(?:\.\d+)?-astra(?:-\w+)?", EFFORTS[2:]),
        (r"gpt-5\.2", ("none", *_LOW_TO_HIGH, "xhigh")),
        (r"gpt-5\.1-codex-max", (*_LOW_TO_HIGH, "xhigh")),
        (r"gpt-5(?:\.1)?-codex(?:-mini)?", _LOW_TO_HIGH),
        (r"gpt-5\.1", ("none", *_LOW_TO_HIGH)),
        (r"gpt-5-pro", ("high",)),
        (r"gpt-5(?:-mini|-nano)?", ("minimal", *_LOW_TO_HIGH)),
        (r"o[134](?:-mini|-pro)?", _LOW_TO_HIGH),
    )
)
"""What models take, from least to most; a model is the first that fits."""


def effort_of(model: str, effort: str) -> str:
    """Return the effort that a model takes: the next higher one, or its highest, where it does not take this one."""
    for pattern, taken in _TAKEN:
        if pattern.match(model):
            return next((each for each in taken if rank(each) >= rank(effort)), taken[-1])
    return effort
