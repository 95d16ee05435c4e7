"""Events with a secret in every text and every content that their types have, each told by where it was planted.

Made from the types of the fields, and knows nothing of what redacting knows.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from enum import Enum
from itertools import count
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from events.content import Content
from events.ids import CallKey, MessageId
from events.vocabulary import Event

_CHOICES = 12
"""More than there are kinds of parts; the forms of contents go round within them."""


class Planter:
    """Fills structs, and knows what it planted where."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}
        self._numbers = count(1)

    def secret(self, place: str) -> str:
        """Return a text that stands nowhere else."""
        text = f"secret-{next(self._numbers)}-xyzzy"
        self.planted[text] = place
        return text

    def events(self, cls: type[Event]) -> Iterator[Event]:
        """Yield events of a type, which together have each member of each union and each form of contents."""
        for choice in range(_CHOICES):
            yield self._struct(cls, choice)

    def _struct(self, cls: type[Any], choice: int) -> Any:
        hints = get_type_hints(cls)
        return cls(
            **{name: self._value(hints[name], f"{cls.__name__}.{name}", choice) for name in cls.__struct_fields__}
        )

    def _value(self, hint: Any, place: str, choice: int) -> Any:
        if hint is Content:
            return Content(self._content(place))
        if hint in (MessageId, CallKey):
            return hint("1.0") if hint is MessageId else hint("1.0.0")
        if hasattr(hint, "__supertype__"):
            return self._value(hint.__supertype__, place, choice)
        if hint is str:
            return self.secret(place)
        if hint in (int, bool):
            return hint(1)
        origin, args = get_origin(hint), [each for each in get_args(hint) if each is not types.NoneType]
        if origin in (Union, types.UnionType):
            return self._value(str if str in args else args[choice % len(args)], place, choice)
        if origin is Literal:
            return args[0]
        if origin is tuple:
            return (self._value(args[0], place, choice),)
        if origin is dict:
            return {self.secret(f"{place} (name)"): self._value(args[1], place, choice)}
        if issubclass(hint, Enum):
            return next(iter(hint))
        assert issubclass(hint, Struct)
        return self._struct(hint, choice)

    def _content(self, place: str) -> Any:
        secret = self.secret(place)
        forms: tuple[Any, ...] = (
            f"the password is {secret}, said Ada",
            {"headers": {"Authorization": f"Bearer {secret}"}, secret: [1, None]},
            f'{{"x-api-key": "{secret}", "{secret}": {{"deep": ["a {secret} in it"]}}}}',
            secret,
        )
        return forms[len(self.planted) % len(forms)]
