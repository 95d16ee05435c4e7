"""What a title and a turn label may be, and what of a conversation a model is shown to write a title. Pure.

Owns the limits of both. Who asks a model, when, and what is recorded stands elsewhere: here is text in, text out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, NamedTuple

TITLE_CHARACTERS: Final = 80
TITLE_WORDS: Final = 8
LABEL_WORDS: Final = range(2, 6)
FALLBACK_WORDS: Final = 6
NO_TITLE: Final = "New Chat"
LABEL_CHARACTERS: Final = 80
USER_CHARACTERS: Final = 1000
"""Characters of the first and of the latest user text that a model is shown."""
SAMPLE_CHARACTERS: Final = 6000
LAST_TURNS: Final = 3
"""Turns at the end of a conversation that the sample has, beside the first."""

FALLBACK_LABELS: Final = {
    "waiting": "Finished latest turn",
    "pending": "Still working on request",
    "requires_action": "Waiting for user input",
    "error": "Hit an error",
}
OTHER_LABEL: Final = "Updated chat status"

_QUOTES: Final = "\"'`\u201c\u201d\u2018\u2019"
_SUBJECT: Final = re.compile(r"(?:agent|i|it|the|we)(?:['\u2019](?:s|ve|re|m|ll|d))?(?!\w)", re.IGNORECASE)
_NARRATED: Final = re.compile(r"agent (?:asked|identified|found|explained)", re.IGNORECASE)


_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that do something to the line they stand in, or to what follows it: terminals' controls, breaks, and those
that turn the direction of writing. Marks of direction and joiners, which scripts and emoji need, are none of them."""

_UNSEEN: Final = frozenset(("Cc", "Cf", "Zl", "Zp", "Zs"))
"""Categories of Unicode of which nothing is to be seen."""


class Turn(NamedTuple):
    """One turn as a title sees it: what the user said, and what was answered (empty where nothing was)."""

    user: str
    answer: str


class Material(NamedTuple):
    """What a model is shown to write a title: ``None`` where a section says nothing that another does not."""

    first: str
    latest: str | None
    sample: str | None


def control_in(text: str) -> str | None:
    """Return the first character of a text that no title and no label of a turn has; None where all are fine."""
    found = _CONTROLS.search(text)
    return None if found is None else found[0]


def is_unseen(text: str) -> bool:
    """Whether nothing of a text is to be seen: it is empty, or blank, or has characters without width alone."""
    return all(unicodedata.category(character) in _UNSEEN for character in text)


def _plain(text: str) -> str:
    """Return a text without controls; those that are blanks as well stay, for they part words."""
    return _CONTROLS.sub(lambda found: found[0] if found[0].isspace() else "", text)


def title_of(text: str) -> str | None:
    """Return the title that a model wrote, without its wrapping; ``None`` where it is none, too long or too wordy."""
    title = " ".join(_plain(text).strip().strip(_QUOTES).split())
    fits = not is_unseen(title) and len(title) <= TITLE_CHARACTERS and len(title.split()) <= TITLE_WORDS
    return title if fits else None


def fallback_title(text: str) -> str:
    """Return the title of a chat that no model named: the first words of what its user said first.

    An ellipsis stands where words were left out, and not where the limit of characters cut.
    """
    words = [word for word in _plain(text).split() if not is_unseen(word)]
    title = " ".join(words[:FALLBACK_WORDS])
    if len(words) > FALLBACK_WORDS:
        return f"{title[: TITLE_CHARACTERS - 1]}\u2026"
    return title[:TITLE_CHARACTERS] or NO_TITLE


def label_of(text: str) -> str | None:
    """Return the turn label that a model wrote, without end marks and quotes; ``None`` where it is no label."""
    label = _plain(text).strip().strip(_QUOTES).rstrip(".!?" + _QUOTES).strip()
    if "\n" in label or "\r" in label or ". " in label:
        return None
    if _SUBJECT.match(label) or _NARRATED.search(label):
        return None
    words = [word for word in label.split() if not is_unseen(word)]
    return " ".join(words) if len(words) in LABEL_WORDS and len(label) <= LABEL_CHARACTERS else None


def fallback_label(status: str) -> str:
    """Return the label of a turn that no model labelled, by the chat's status after it."""
    return FALLBACK_LABELS.get(status, OTHER_LABEL)


def material(turns: Sequence[Turn]) -> Material | None:
    """Return what a model is shown of ``turns`` (oldest first); ``None`` where no turn has a word of the user."""
    useful = [turn for turn in turns if turn.user.strip()]
    if not useful:
        return None
    first, latest = _cut(useful[0].user, USER_CHARACTERS), _cut(useful[-1].user, USER_CHARACTERS)
    sample = _sample(useful) if len(useful) > 1 else None
    return Material(first, latest if latest != first else None, sample)


def _sample(turns: Sequence[Turn]) -> str:
    begin = max(1, len(turns) - LAST_TURNS)
    blocks = [_block(turns[0])]
    if begin > 1:
        blocks.append(f"[turns left out: {begin - 1}]")
    blocks += [_block(turn) for turn in turns[begin:]]
    return _cut("\n\n".join(blocks), SAMPLE_CHARACTERS)


def _block(turn: Turn) -> str:
    user, answer = turn.user.strip(), turn.answer.strip()
    return f"User: {user}\nAssistant: {answer}" if answer else f"User: {user}"


def _cut(text: str, characters: int) -> str:
    return text.strip()[:characters].strip()
