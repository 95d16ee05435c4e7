"""What would have happened with another policy, or with a decide function of one's own: how both are named and loaded.

Owns the form of a policy file, and the words for what is wrong with it. Importing a function runs its module, which is
the only code of an application that decision replay runs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from chatfold.references import ReferenceProblem, find_object
from chatfold.replaying.decisions import WhatIf
from events.records import ModelPolicy, Policy

_READERS: Final[Mapping[str, Callable[[str], Any]]] = {".toml": tomllib.loads, ".json": json.loads}
_SAMPLE: Final = Policy(agent="agent", revision="1", model=ModelPolicy(provider="provider", name="model"))


class WhatIfProblem(Exception):
    """What should be a policy file, or a function, is none; the text says which, and why."""


class WhatIfNames(Struct, frozen=True, kw_only=True):
    """What to ask, by name, so that another process can load it too.

    Attributes:
        policy: A file with fields of a policy, or ``MODULE:NAME`` of a function from a policy to another one.
        decider: ``MODULE:NAME`` of a decide function.
    """

    policy: str | None = None
    decider: str | None = None

    def load(self) -> WhatIf | None:
        """Return it; None where nothing is named.

        Raises:
            WhatIfProblem: What is named is not there, or is not what it has to be.
        """
        if self.policy is None and self.decider is None:
            return None
        decide = None if self.decider is None else _function(self.decider, "a function of a state and a policy")
        policy = None if self.policy is None else _policy(self.policy)
        return WhatIf(decide=decide, policy=policy)


def _policy(name: str) -> Callable[[Policy], Policy]:
    path = Path(name)
    if path.suffix in _READERS or ":" not in name:
        return PolicyFields(name, _fields(path))
    return _function(name, "a function from a policy to a policy")


def _function(reference: str, what: str) -> Callable[..., Any]:
    try:
        found = find_object(reference)
    except ReferenceProblem as error:
        raise WhatIfProblem(f"{error} of {what}, such as myservice.policies:decide") from error
    except (Exception, SystemExit) as error:
        raise WhatIfProblem(f"{reference} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise WhatIfProblem(f"{reference} is of type {type(found).__name__}; name {what}")
    return found


def _fields(path: Path) -> Mapping[str, Any]:
    read = _READERS.get(path.suffix)
    if read is None:
        raise WhatIfProblem(f"{path} is no policy: name a file that ends in .toml or .json, or MODULE:NAME")
    try:
        fields = read(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WhatIfProblem(f"{path}: {error.strerror}") from error
    except ValueError as error:  # what both forms raise, and what is no text
        raise WhatIfProblem(f"{path} is not {path.suffix[1:].upper()}: {error}") from error
    if not isinstance(fields, dict) or not fields:
        raise WhatIfProblem(f"{path} changes nothing: give fields of a policy, such as max_steps = 3")
    return fields


class PolicyFields:
    """Fields that take the place of those of a recorded policy; a table goes field by field, as deep as it goes.

    Args:
        name: What the file is called, for errors.
        fields: The fields by their names.

    Raises:
        WhatIfProblem: A policy has no such field, or cannot hold such a value.
    """

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        self._name: Final = name
        self._fields: Final = fields
        self._made: Final[dict[int, tuple[Policy, Policy]]] = {}  # by identity: few policies have many decisions
        self(_SAMPLE)

    def __call__(self, policy: Policy) -> Policy:
        """Return a policy with the fields in place.

        Raises:
            WhatIfProblem: What comes of both cannot be a policy.
        """
        kept = self._made.get(id(policy))
        if kept is not None:
            return kept[1]
        try:
            made = msgspec.convert(_merged(msgspec.to_builtins(policy), self._fields), Policy)
        except msgspec.ValidationError as error:
            known = ", ".join(Policy.__struct_fields__)
            raise WhatIfProblem(f"{self._name}: {error}; a policy has the fields {known}") from error
        self._made[id(policy)] = (policy, made)
        return made


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        merged[name] = _merged(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return merged
