"""Rules: what stays, what gets which name, and what a file of them must not say."""

from __future__ import annotations

from typing import Final

import pytest

from chatfold.redacting.errors import RedactionRulesError
from chatfold.redacting.facts import Kind
from chatfold.redacting.names import Names
from chatfold.redacting.rules import KEPT, KINDS, RedactionRules, read_redaction_rules
from chatfold.redacting.streams import Streams

STREAMS: Final = Streams(b"a key that nobody would guess")


def names(rules: RedactionRules = RedactionRules()) -> Names:  # noqa: B008 -- frozen
    return Names(rules, STREAMS, frozenset({"look_up"}))


def test_a_file_says_what_stays() -> None:
    rules = read_redaction_rules(
        """
        keep_keys = ["path", "query"]
        never = ["Acme"]

        [names]
        agents = "map"
        users = "keep"

        [rename.tools]
        crm_of_acme = "crm"
        """
    )
    assert rules.keep_keys == ("path", "query")
    assert rules.never == ("Acme",)
    assert [kind for kind in KINDS if rules.keeps(kind)] == ["tools", "models", "users", "digests"]
    assert names(rules).of("tools", "crm_of_acme") == "crm"
    assert read_redaction_rules("") == RedactionRules()
    assert {kind for kind in KINDS if RedactionRules().keeps(kind)} == KEPT


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("names = [", "not TOML: "),
        ("keep = ['path']", "unknown field `keep`"),
        ("names.users = 'drop'", "names.users: must be 'keep' or 'map', not 'drop'"),
        ("names = 'map'", "names: must be a table, not 'map'"),
        ("rename.users = 'x'", "rename.users: must be a table of names, not 'x'"),
        ("rename.users.ada = 3", "rename.users.ada: must be a text, not 3"),
        ("names.people = 'map'", "names.people: there are tools, agents, "),
        ("names.own = 'map'", "names.own: there are tools, "),
        ("rename.people.ada = 'x'", "rename.people: there are tools, "),
        ("rename.users = {ada = 'x', bob = 'x'}", "rename.users: 'x' would stand for two names"),
        ("rename.users = {ada = ''}", "rename.users: a name is empty"),
        ("never = ['']", "never: a text is empty"),
    ],
)
def test_a_file_that_cannot_be_meant_so_is_refused(text: str, says: str) -> None:
    with pytest.raises(RedactionRulesError) as refused:
        read_redaction_rules(text)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "name", "stays"),
    [
        ("tools", "look_up", True),
        ("tools", "web_search", True),  # of a provider, which no policy declares
        ("tools", "a tool that a model made up", False),
        ("tools", "chat_cleared", True),  # the mark of a boundary
        ("calls", "chat_summarized", True),
        ("calls", "toolu_01", False),
        ("agents", "support", True),
        ("users", "", True),  # nobody
        ("users", "ada", False),
        ("errors", "rate_limit", True),
        ("errors", "ours", False),
        ("files", "image/png", True),
        ("files", "application/x-of-acme", False),
        ("hooks", "stop", True),
        ("paths", "$.arguments", True),
        ("paths", "$", True),
        ("own", "D11", True),
    ],
)
def test_what_stays_without_rules(kind: Kind, name: str, stays: bool) -> None:
    assert (names().of(kind, name) == name) is stays


def test_a_path_keeps_the_field_that_it_begins_at() -> None:
    made = names().of("paths", "$.arguments['ada']")
    assert made.startswith("$.arguments.path-")
    assert "ada" not in made


def test_every_kind_has_names_of_its_own() -> None:
    mapped = names(RedactionRules(names=dict.fromkeys(KINDS, "map")))
    made = [mapped.of(kind, "a name") for kind in KINDS]
    assert len(set(made)) == len(KINDS)
    assert all(name != "a name" for name in made)
