"""Another policy or decide function by name: fields go over the recorded ones, and what is wrong is named."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from msgspec.structs import replace

from chatfold.replaying.decisions import DecisionCheck, WhatIf, WhatIfProblem
from chatfold.replaying.logs import find_log
from chatfold.replaying.policy_reads import MODELS, read_by_rules
from chatfold.replaying.whatif import PolicyFields, WhatIfNames
from events.records import Budget, ModelPolicy, Policy, ToolPolicy
from generation.decide import decide_generation_action
from tests.corpus.make import FOLDER

POLICY = Policy(
    agent="support",
    revision="1",
    model=ModelPolicy(provider="anthropic", name="large", context_limit=200_000, compaction_threshold=70),
    tools=(ToolPolicy(name="look_up", schema="digest"),),
    context_source="workspace",
)


def over(folder: Path, text: str, name: str = "policy.toml") -> Policy:
    file = folder / name
    file.write_text(text)
    what_if = WhatIfNames(policy=str(file)).load()
    assert what_if is not None
    assert what_if.policy is not None
    return what_if.policy(POLICY)


def test_fields_go_over_those_that_were_recorded_as_deep_as_tables_go(tmp_path: Path) -> None:
    made = over(tmp_path, "max_steps = 3\n[model]\ncontext_limit = 8000\n[budget]\ntokens = 1000\n")
    assert (made.max_steps, made.budget, made.tools) == (3, Budget(tokens=1000), POLICY.tools)
    assert made.model == ModelPolicy(provider="anthropic", name="large", context_limit=8000, compaction_threshold=70)
    assert over(tmp_path, '{"model": null}', "policy.json").model is None


def test_a_policy_is_made_once_for_each_that_was_recorded() -> None:
    fields = PolicyFields("x.toml", {"max_steps": 3})
    other = Policy(agent="other", revision="2", model=None)
    assert fields(POLICY) is fields(POLICY)
    assert (fields(other).agent, fields(other).max_steps) == ("other", 3)


HAS_LIMIT = ModelPolicy(provider="scripted", name="m", context_limit=10**9)


def test_what_rules_read_of_policies_is_what_may_be_asked_about() -> None:
    """The rules are asked one by one; here they decide the logs of the corpus, over policies that leave nothing out."""

    def whole(policy: Policy) -> Policy:
        models = {name: getattr(policy, name) or HAS_LIMIT for name in MODELS}
        return replace(policy, budget=policy.budget or Budget(cost_micros=10**12), **models)

    read: set[str] = set()
    for file in sorted(FOLDER.glob("*.jsonl")):
        check = DecisionCheck(WhatIf(policy=whole))
        for recorded in find_log(str(file)).read().recorded():
            check.take(recorded)
        read |= check.read
    assert set(read_by_rules()) == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_steps = -3", "max_steps must be at least 1, not -3"),
        ("[model]\ncompaction_threshold = 4000", "model.compaction_threshold must be 0 to 100, not 4000"),
        ("[model]\ncompaction_threshold = -5", "model.compaction_threshold must be at least 0, not -5"),
        ("[model]\ncontext_limit = 0", "model.context_limit must be at least 1, not 0"),
        ("[model]\nprice_input = -1", "model.price_input "),
        ("[budget]\ntokens = -1", "budget.tokens must be at least 0, not -1"),
    ],
)
def test_a_value_that_could_not_be_declared_is_refused_with_file_and_field(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(WhatIfProblem) as problem:
        WhatIfNames(policy=str(tmp_path / "p.toml")).load()
    assert str(problem.value).startswith(f"{tmp_path / 'p.toml'}: {said}")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "p.toml",
            "max_step = 3\n",
            "p.toml: a policy has no field max_step; did you mean max_steps? Decisions read model.context_limit, ",
        ),
        ("p.toml", "max_steps = 'many'\n", "p.toml: Expected `int`, got `str` - at `$.max_steps`"),
        (
            "p.toml",
            "[model]\nlimit = 3\n",
            "p.toml: a policy has no field model.limit; did you mean model.context_limit? ",
        ),
        ("p.toml", "[budget]\ntoken = 3\n", "p.toml: a policy has no field budget.token; did you mean budget.tokens? "),
        ("p.toml", "zzz = 3\n", "p.toml: a policy has no field zzz. Decisions read model.context_limit, "),
        ("p.toml", "tool = []\n", "p.toml: a policy has no field tool. Decisions read model.context_limit, "),
        ("p.toml", "max_steps =\n", "p.toml is not TOML: "),
        ("p.json", "{", "p.json is not JSON: "),
        ("p.json", "[]", "p.json changes nothing: give fields of a policy, such as max_steps = 3"),
        ("p.toml", "", "p.toml changes nothing: give fields of a policy"),
        ("p.yaml", "max_steps: 3", "p.yaml is no policy: name a file that ends in .toml or .json, or MODULE:NAME"),
    ],
)
def test_what_is_no_policy_is_said_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    with pytest.raises(WhatIfProblem) as problem:
        WhatIfNames(policy=name).load()
    assert str(problem.value).startswith(said)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (WhatIfNames(policy="none.toml"), "none.toml: No such file or directory"),
        (WhatIfNames(decider="rules"), "rules: give MODULE:NAME of a function of a state and a policy, such as "),
        (WhatIfNames(decider="no_module:x"), "no_module:x cannot be loaded: ModuleNotFoundError: "),
        (WhatIfNames(decider="json:nothing"), "json:nothing cannot be loaded: AttributeError: "),
        (
            WhatIfNames(policy="json:__name__"),
            "json:__name__ is of type str; name a function from a policy",
        ),
    ],
)
def test_what_is_not_there_is_said(names: WhatIfNames, said: str) -> None:
    with pytest.raises(WhatIfProblem) as problem:
        names.load()
    assert str(problem.value).startswith(said)


def test_functions_are_found_by_name_and_names_go_to_other_processes() -> None:
    names = WhatIfNames(policy="copy:copy", decider="generation.decide:decide_generation_action")
    again: WhatIfNames = pickle.loads(pickle.dumps(names))  # noqa: S301 -- made in this line
    what_if = again.load()
    assert what_if is not None
    assert what_if.decide is decide_generation_action
    assert what_if.policy is not None
    assert what_if.policy(POLICY) == POLICY


def test_nothing_named_is_nothing() -> None:
    assert WhatIfNames().load() is None
