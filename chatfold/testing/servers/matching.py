"""Which reply answers which request.

Owns the forms that a script can have. A script runs in the server's thread, one request after the other.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from chatfold.testing.servers.fields import checked
from chatfold.testing.servers.recording import RecordedRequest
from chatfold.testing.servers.script import Answer, Drop, Fail, Reply

__all__ = ["Script", "ScriptByUserText", "ScriptError", "ScriptFunction", "as_function", "check_reply"]

ScriptFunction = Callable[[RecordedRequest], Reply | Awaitable[Reply]]
Script = Sequence[Reply] | ScriptFunction


class ScriptError(Exception):
    """The script has no reply for a request, or none that the protocol can express."""


def as_function(script: Script) -> ScriptFunction:
    """Turn a list of replies, consumed in order of arrival, into a function; a function stays what it is.

    Raises:
        TypeError: It is no list, or something in it is no reply.
    """
    given: object = script
    return _Turns(given) if isinstance(given, type) or not callable(script) else script


def check_reply(reply: object, where: str) -> Reply:
    """Return a reply.

    Args:
        reply: What a script gave.
        where: Where it stands, for the message.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(reply, Answer | Fail | Drop):
        raise TypeError(f"{where} must be an Answer, a Fail or a Drop, not {reply!r}")
    return reply


class _Turns:
    def __init__(self, turns: object) -> None:
        if not isinstance(turns, list | tuple):
            raise TypeError(f"a script is a list of replies, or a function from request to reply, not {turns!r}")
        self._turns = [check_reply(turn, f"script[{place}]") for place, turn in enumerate(turns)]
        self._next = 0

    def __call__(self, request: RecordedRequest) -> Reply:
        if self._next >= len(self._turns):
            message = f"the script has {len(self._turns)} replies; none is left for request {request.index}"
            raise ScriptError(message)
        self._next += 1
        return self._turns[self._next - 1]


class ScriptByUserText:
    """Several conversations at one server: the user's words choose the list of replies, which is consumed in order."""

    def __init__(
        self,
        conversations: Mapping[str, Script | Reply],
        *,
        which: Literal["first", "last"] = "last",
        default: Script | Reply | None = None,
    ) -> None:
        """Set up the conversations.

        Args:
            conversations: Replies by text. The text must be equal to the user's, or else part of it (the longest wins).
                A single reply is given again and again.
            which: Whether the first or the last text of the user decides.
            default: The script for all other texts; None refuses them.

        Raises:
            TypeError: One is none of these.
        """
        self._which = checked(which, Literal["first", "last"], "which")
        by_text = checked(conversations, Mapping, "conversations")
        self._scripts = {checked(text, str, "conversations, a text"): _repeated(by_text[text]) for text in by_text}
        self._default = None if default is None else _repeated(default)

    def __call__(self, request: RecordedRequest) -> Reply | Awaitable[Reply]:
        """Choose the reply.

        Raises:
            ScriptError: No text matches, or the chosen list has come to its end.
        """
        texts = request.user_texts or ("",)
        text = texts[0] if self._which == "first" else texts[-1]
        script = self._scripts.get(text)
        if script is None:
            parts = [key for key in self._scripts if key in text]
            script = self._scripts[max(parts, key=len)] if parts else self._default
        if script is None:
            message = f"no conversation of the script matches the user's text {text!r}"
            raise ScriptError(message)
        return script(request)


def _repeated(script: Script | Reply) -> ScriptFunction:
    if isinstance(script, Answer | Fail | Drop):
        reply: Reply = script
        return lambda _request: reply
    return as_function(script)
