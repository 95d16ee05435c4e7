"""Words with a slash, which a user types at the prompt in place of a message.

Owns which there are and how they are told from messages; what they do is done by the talk.
"""

from __future__ import annotations

import re
from typing import Final

HELP: Final = """\
Type a message; the answer comes below it. Besides:
  /help       this
  /state      the chat as it is now
  /interrupt  end the turn that waits for you; what was said is kept
  /resume     let the model go on with the turn that was interrupted or failed
  /quit       end the talk, as Ctrl-D does
Ctrl-C interrupts an answer, a second one leaves at once. A message that begins with a slash: begin it with two."""

WORDS: Final = frozenset({"help", "state", "interrupt", "resume", "quit"})

_WORD: Final = re.compile(r"/([a-z?]*)", re.IGNORECASE)
_SAME: Final = {"exit": "quit", "?": "help"}


def word_of(line: str) -> str | None:
    """Return the word that a line is, in lower case and without its slash; None where the line is a message.

    A path or a sentence that begins with a slash is a message. The word may be one that does not exist.
    """
    found = _WORD.fullmatch(line.strip())
    if found is None:
        return None
    word = found[1].lower()
    return _SAME.get(word, word)


def message_of(line: str) -> str:
    """Return the message that a line is: where it begins with two slashes, without the first."""
    return line[1:] if line.startswith("//") else line
