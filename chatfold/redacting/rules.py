"""Rules for redacting: which names of facts stay, which get a name that is given here, which JSON fields stay.

Owns the form of the rules file (TOML) and what holds without one. Rules say what is left in clear; all content is
replaced whatever they say.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct, field

from chatfold.redacting.errors import RedactionRulesError
from chatfold.redacting.facts import OWN, Kind
from events.given import checked_kind

Fate: TypeAlias = Literal["keep", "map"]
"""Whether names of a kind stay as they are."""

KINDS: Final[tuple[Kind, ...]] = tuple(kind for kind in get_args(Kind) if kind != OWN)
"""The kinds that rules may speak of."""

KEPT: Final[frozenset[Kind]] = frozenset({"tools", "agents", "models", "digests"})
"""Kinds that stay where the rules do not say otherwise: what an application's code names, and digests."""


class RedactionRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of the texts of a log.

    Attributes:
        names: Kind -> ``keep`` or ``map``. Of a kind that is not here the defaults hold (``KEPT``).
        rename: Kind -> name -> the name that stands for it; before all else.
        keep_keys: Names of JSON fields in contents that stay, such as those of a tool's arguments.
        never: Texts that must not be in the result in any form of letters: it is refused where one is.
    """

    names: Mapping[str, Fate] = field(default_factory=dict)
    rename: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    keep_keys: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def keeps(self, kind: Kind) -> bool:
        """Whether names of a kind stay."""
        fate = self.names.get(kind)
        return kind in KEPT if fate is None else fate == "keep"


def read_redaction_rules(text: str) -> RedactionRules:
    """Read a rules file.

    Args:
        text: The file, in TOML.

    Raises:
        RedactionRulesError: It is no TOML, has a field or a kind that there is not, or gives two names the same
            new one.
        InvalidValue: It is no text.
    """
    checked_kind(text, str, "$.text", "the text of a rules file")
    try:
        given = tomllib.loads(text)
        _check_names(given)
        rules = msgspec.convert(given, RedactionRules)
    except tomllib.TOMLDecodeError as error:
        raise RedactionRulesError(f"not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise RedactionRulesError(str(error)) from None
    for kind, names in rules.rename.items():
        twice = [name for name, uses in Counter(names.values()).items() if uses > 1]
        if twice or "" in names or "" in names.values():
            why = f"{twice[0]!r} would stand for two names" if twice else "a name is empty"
            raise RedactionRulesError(f"rename.{kind}: {why}")
    if "" in rules.never:
        raise RedactionRulesError("never: a text is empty, and so in every log")
    return rules


def _check_names(given: Mapping[str, Any]) -> None:
    """Check the tables of kinds, and say of which name something is wrong."""
    for table, wanted in (("names", " or ".join(map(repr, get_args(Fate)))), ("rename", "a table of names")):
        kinds = given.get(table, {})
        if not isinstance(kinds, dict):
            raise RedactionRulesError(f"{table}: must be a table, not {kinds!r}")
        for kind, said in kinds.items():
            if kind not in KINDS:
                raise RedactionRulesError(f"{table}.{kind}: there are {', '.join(KINDS)}")
            if not (isinstance(said, dict) if table == "rename" else said in get_args(Fate)):
                raise RedactionRulesError(f"{table}.{kind}: must be {wanted}, not {said!r}")
    for kind, names in given.get("rename", {}).items():
        for name, new in names.items():
            if not isinstance(new, str):
                raise RedactionRulesError(f"rename.{kind}.{name}: must be a text, not {new!r}")
