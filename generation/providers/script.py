"""What a scripted model answers: the vocabulary of scripts. No I/O.

How a turn is played is the business of ``scripted``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Final, Protocol, TypeAlias, cast, get_args, runtime_checkable

from msgspec import Struct

from events.content import Json
from events.errors import InvalidValue
from events.given import called, checked_among, checked_kind
from events.messages import FinishReason, Usage
from generation.errors import ClassifiedError
from generation.prompt_types import ModelRequest

CHUNK: Final = 12
"""Characters of a delta where a step does not say."""


@runtime_checkable
class Waitable(Protocol):
    """Something to wait for: an ``asyncio.Event``, an ``anyio.Event``, or a gate of one's own."""

    async def wait(self) -> object:
        """Return once it has happened."""
        ...


class _Step(Struct, frozen=True):
    """A step whose fields are looked at when it is made: a script that is wrong fails where it stands.

    Raises:
        InvalidValue: A field has what it cannot have; the path says which.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            kinds, wanted = _FIELDS.get(name, (object, ""))
            value: object = getattr(self, name)
            counts = name == "chunk" and (isinstance(value, bool) or (isinstance(value, int) and value < 1))
            if not isinstance(value, kinds) or counts:
                given = called(value, shown=True)
                raise InvalidValue(f"$.{name}", f"{type(self).__name__} takes {wanted} here, not {given:.80}")


class Say(_Step, frozen=True):
    """Text, in deltas of ``chunk`` characters."""

    text: str
    chunk: int = CHUNK


class Think(_Step, frozen=True):
    """Reasoning, in deltas of ``chunk`` characters; ``metadata`` is wanted back with it."""

    text: str
    chunk: int = CHUNK
    metadata: dict[str, Json] | None = None
    redacted: bool = False


class UseTool(_Step, frozen=True):
    """A tool call. ``arguments`` as a text are sent as they are, so that broken JSON can be scripted.

    Without an ``id`` the call gets one that no call of the conversation has.
    """

    name: str
    arguments: dict[str, Json] | str = {}
    id: str | None = None
    chunk: int = CHUNK


class Wait(_Step, frozen=True):
    """Stop here until ``until`` has happened; ``reached`` is called first, so that a test knows when."""

    until: Waitable
    reached: Callable[[], object] | None = None


class Fail(_Step, frozen=True):
    """Fail here."""

    error: ClassifiedError


class Cut(Struct, frozen=True):
    """End the stream here without its last part, as a connection that breaks does."""


_FIELDS: Final[dict[str, tuple[type | tuple[type, ...], str]]] = {
    "text": (str, "a text"),
    "chunk": (int, "characters, at least 1,"),
    "name": (str, "a tool's name"),
    "arguments": ((dict, str), "a dict or a text"),
    "error": (ClassifiedError, "a ClassifiedError"),
    "until": (Waitable, "something with wait()"),
    "reached": ((cast("type", Callable), NoneType), "a function or None"),
    "metadata": ((dict, NoneType), "a dict or None"),
    "redacted": (bool, "true or false"),
    "id": ((str, NoneType), "an id or None"),
}
"""What fields of steps must be, and how that is called."""

Step: TypeAlias = Say | Think | UseTool | Wait | Fail | Cut


class Turn(Struct, frozen=True, kw_only=True):
    """One answer.

    Attributes:
        steps: What happens, in order.
        finish: Why the model stops; None: ``tool_calls`` where there are calls, else ``stop``.
        usage: Tokens; None: counted from the request's and the answer's lengths.
        explanation: What a model that refuses says about it.
    """

    steps: tuple[Step, ...]
    finish: FinishReason | None = None
    usage: Usage | None = None
    explanation: str | None = None

    def __post_init__(self) -> None:
        """Look at what is beside the steps, as they look at theirs.

        Raises:
            InvalidValue: Something has what it cannot have; the path says which.
        """
        if self.finish is not None:
            checked_among(self.finish, get_args(FinishReason), "$.finish")
        for name, kind, wanted in (("usage", Usage, "a Usage or None"), ("explanation", str, "a text or None")):
            if (value := getattr(self, name)) is not None:
                checked_kind(value, kind, f"$.{name}", wanted)


def turn(*steps: Step | str, finish: FinishReason | None = None, usage: Usage | None = None) -> Turn:
    """Return a turn of ``steps``; a string stands for a :class:`Say`.

    Raises:
        InvalidValue: Something is no step, or has what it cannot have; the path says which.
    """
    for place, step in enumerate(steps):
        given: object = step
        if not isinstance(given, Step | str):
            raise InvalidValue(f"$.steps[{place}]", f"must be a step or a text, not {called(given)}")
    return Turn(steps=tuple(Say(step) if isinstance(step, str) else step for step in steps), finish=finish, usage=usage)


ScriptFunction: TypeAlias = Callable[[ModelRequest], Turn | str]
Script: TypeAlias = Sequence[Turn | str] | ScriptFunction
"""Turns that are used up in order, or a function of the request; a string stands for a turn that says it."""
