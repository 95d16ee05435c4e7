"""What would have happened with another policy, or with a decide function of one's own: how both are named and loaded.

Owns the form of a policy file, and the words for what is wrong with it. Importing a function runs its module, which is
the only code of an application that decision replay runs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct

from chatfold.references import ReferenceProblem, find_object
from chatfold.replaying.decisions import WhatIf
from events.records import ModelPolicy, Policy

_READERS: Final[Mapping[str, Callable[[str], Any]]] = {".toml": tomllib.loads, ".json": json.loads}
_SAMPLE: Final = Policy(agent="agent", revision="1", model=ModelPolicy(provider="provider", name="model"))


_LIMITS: Final = frozenset({"context_limit", "compaction_threshold"})
_PRICES: Final = frozenset({"price_input", "price_output", "price_cache_read", "price_cache_write"})
DECIDES: Final[Mapping[str, frozenset[str] | None]] = MappingProxyType(
    {
        "max_steps": None,
        "model": _LIMITS | _PRICES,
        "compaction_model": _LIMITS,
        "budget": None,
        "context_source": None,
        "context_revision": None,
    }
)
"""Field of a policy that the rules read -> the fields of it that they read; None for all. Of prices it is read whether
there is one."""


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
        policy = None if self.policy is None else _policy(self.policy, by_rules=decide is None)
        return WhatIf(decide=decide, policy=policy)


def _policy(name: str, *, by_rules: bool) -> Callable[[Policy], Policy]:
    path = Path(name)
    if path.suffix in _READERS or ":" not in name:
        fields = _fields(path)
        if by_rules:
            check_decides(name, fields)
        return PolicyFields(name, fields)
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


def check_decides(name: str, fields: Mapping[str, Any]) -> None:
    """Check that the rules read fields: of others nothing can be told, and that nothing drifts would say nothing.

    Args:
        name: What they are called, for errors.
        fields: The fields by their names.

    Raises:
        WhatIfProblem: They do not read one of them; the text says which.
    """
    unread = [field for field in fields if field in Policy.__struct_fields__ and field not in DECIDES]
    for field, read in DECIDES.items():
        of_it = fields.get(field)
        if read is not None and isinstance(of_it, Mapping):
            unread += [
                f"{field}.{each}" for each in of_it if each in ModelPolicy.__struct_fields__ and each not in read
            ]
    if unread:
        raise WhatIfProblem(
            f"{name}: no decision reads {', '.join(unread)}, so decisions that are taken again cannot tell what "
            f"comes of it; `chatfold rerun --agents` can. They read {', '.join(_read())}"
        )


def _read() -> Iterator[str]:
    for field, of_it in DECIDES.items():
        yield from [field] if of_it is None else [f"{field}.{each}" for each in sorted(of_it)]


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
