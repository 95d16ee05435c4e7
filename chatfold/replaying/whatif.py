"""What would have happened with another policy, or with a decide function of one's own: how both are named and loaded.

Owns the form of a policy file, and the words for what is wrong with it. Importing a function runs its module, which is
the only code of an application that decision replay runs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from chatfold.references import ReferenceProblem, find_object
from chatfold.replaying.decisions import WhatIf, WhatIfProblem
from chatfold.replaying.policy_reads import MODELS, all_paths, changed, read_by_rules
from events.errors import InvalidValue
from events.records import Budget, ModelPolicy, Policy
from generation.agents import Limits
from generation.errors import AgentDeclarationError
from generation.models import ModelConfig, Prices
from generation.nearest import meant

_READERS: Final[Mapping[str, Callable[[str], Any]]] = {".toml": tomllib.loads, ".json": json.loads}
_SAMPLE: Final = Policy(agent="agent", revision="1", model=ModelPolicy(provider="provider", name="model"))


_MICRO: Final = 1_000_000


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
    return PolicyFunction(name, _function(name, "a function from a policy to a policy"), by_rules=by_rules)


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
    read, known = read_by_rules(), frozenset(all_paths())
    tables = [(field, fields[field]) for field in MODELS if isinstance(fields.get(field), Mapping)]
    given = [*fields, *(f"{field}.{each}" for field, table in tables for each in table)]
    unread = [path for path in given if path in known and path not in read]
    if unread:
        raise WhatIfProblem(_unread(name, unread))


def _unread(name: str, paths: Iterable[str]) -> str:
    return (
        f"{name}: no decision reads {', '.join(paths)}, so decisions that are taken again cannot tell what "
        f"comes of it; `chatfold rerun --agents` can. They read {', '.join(_told())}"
    )


def _told() -> list[str]:
    """Return what decisions read, as it is named to somebody who may change it."""
    return [path for path in read_by_rules() if path not in MODELS]


def _check_known(name: str, fields: Mapping[str, Any]) -> None:
    """Check that a policy has fields, and its tables theirs.

    Raises:
        WhatIfProblem: It has not one of them; the text says which may be meant.
    """
    for table, kind in _TABLES.items():
        prefix, given = (f"{table}.", fields.get(table)) if table else ("", fields)
        strange = [each for each in given if each not in kind.__struct_fields__] if isinstance(given, Mapping) else []
        if strange:
            path = f"{prefix}{strange[0]}"
            hint = meant(path, [*_told(), *(f"budget.{limit}" for limit in Budget.__struct_fields__)])
            raise WhatIfProblem(
                f"{name}: a policy has no field {path}{hint or '.'} Decisions read {', '.join(_told())}"
            )


def _check_values(name: str, paths: Collection[str], policy: Policy) -> None:
    """Check values of a policy as they are checked where agents and models are declared.

    Args:
        name: What gave them, for errors.
        paths: The fields that are checked.
        policy: What has the values.

    Raises:
        WhatIfProblem: One of them could not be declared; the text says which, and why.
    """
    where = f"{name}: "
    try:
        Limits(**{field: getattr(policy, field) for field in _OF_LIMITS if field in paths})
        for field in MODELS:
            model, where = getattr(policy, field), f"{name}: {field}."
            given: dict[str, Any] = {
                each: getattr(model, each, None) for each in _OF_MODELS if {field, f"{field}.{each}"} & {*paths}
            }
            ModelConfig(provider="provider", name="model", **given)
            for category in _PRICED:
                where = f"{name}: {field}.price_{category} "
                price = getattr(model, f"price_{category}", None)
                if price is not None and {field, f"{field}.price_{category}"} & {*paths}:
                    Prices(**{category: Decimal(price) / _MICRO})
    except AgentDeclarationError as error:
        raise WhatIfProblem(f"{where}{error.why}") from error


_TABLES: Final[Mapping[str, type[Struct]]] = {"": Policy, **dict.fromkeys(MODELS, ModelPolicy), "budget": Budget}
"""What has fields by names, by the field of a policy that it is; the policy itself first."""
_OF_LIMITS: Final = ("max_steps", "max_model_attempts", "budget")
_OF_MODELS: Final = ("context_limit", "max_output", "compaction_threshold")
_PRICED: Final = ("input", "output", "cache_read", "cache_write")


class PolicyFunction:
    """A function from a policy to another one, whose results are checked as fields of a file are.

    Args:
        name: What it is called, for errors.
        function: It.
        by_rules: Whether the rules decide, so that what none of them reads changes nothing.
    """

    def __init__(self, name: str, function: Callable[[Policy], Policy], *, by_rules: bool) -> None:
        self._name: Final = name
        self._function: Final = function
        self._by_rules: Final = by_rules

    def __call__(self, policy: Policy) -> Policy:
        """Return what the function makes of a policy.

        Raises:
            WhatIfProblem: A value is none that could be declared, or nothing differs that a decision reads.
        """
        made = self._function(policy)
        if isinstance(made, Policy):  # else it is told who asks
            paths = tuple(changed(policy, made))
            _check_values(self._name, paths, made)
            if self._by_rules and paths and not {*paths} & {*read_by_rules()}:
                raise WhatIfProblem(_unread(self._name, paths))
        return made


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
        _check_known(self._name, self._fields)
        try:
            made = msgspec.convert(_merged(msgspec.to_builtins(policy), self._fields), Policy)
        except msgspec.ValidationError as error:
            raise WhatIfProblem(f"{self._name}: {error}") from error
        except InvalidValue as error:  # a budget refuses itself what is no limit
            raise WhatIfProblem(f"{self._name}: budget.{error.path.removeprefix('$.')} {error.why}") from error
        _check_values(self._name, tuple(changed(policy, made)), made)
        self._made[id(policy)] = (policy, made)
        return made


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        merged[name] = _merged(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return merged
