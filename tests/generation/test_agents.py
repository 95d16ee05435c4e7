"""Agents and models as declared, and the policy that is recorded of them."""

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.messages import Step, Usage
from events.records import Budget, ModelPolicy, Policy, ToolPolicy
from generation.agents import Agent, Limits
from generation.context import ContextFile, StaticContext
from generation.errors import AgentDeclarationError, ToolDeclarationError, UnknownModel
from generation.models import ModelConfig, Prices, parse_model
from generation.policy import cost_micros, policy_digest, policy_of, priced
from generation.tools.contract import Tool, client_tool, tool


@tool(timeout=2.5, crash="rerun")
def look(city: str) -> str:
    """Look."""
    return city


PICK = client_tool("pick", "Pick.", {"type": "object"}, exclusive=True)
PRICED = ModelConfig(
    provider="anthropic",
    name="large",
    context_limit=200_000,
    max_output=8000,
    effort="low",
    max_effort="high",
    prices=Prices(input="3", output=Decimal("15.5"), cache_read="0.3"),
)


def agent(**changes: Any) -> Agent:
    settings: dict[str, Any] = {"name": "helper", "model": PRICED, "system": "Be kind.", "tools": [PICK, look]}
    return Agent(**{**settings, **changes})


def test_policy_of_a_whole_agent() -> None:
    source = StaticContext([ContextFile(path="a", text="b")], revision="r1")
    made = agent(
        compaction_model="openai/small",
        context=source,
        limits=Limits(max_steps=5, action_timeout=1.5, on_expiry="end_turn", budget=Budget(tokens=9)),
    )
    policy = policy_of(made)
    assert policy == Policy(
        agent="helper",
        revision=made.revision,
        model=ModelPolicy(
            provider="anthropic",
            name="large",
            context_limit=200_000,
            max_output=8000,
            effort="low",
            effort_max="high",
            compaction_threshold=70,
            price_input=3_000_000,
            price_output=15_500_000,
            price_cache_read=300_000,
        ),
        compaction_model=ModelPolicy(provider="openai", name="small"),
        max_steps=5,
        max_model_attempts=26,
        tools=(
            ToolPolicy(name="look", crash="rerun", timeout_us=2_500_000, schema=look.digest),
            ToolPolicy(name="pick", runner="client", exclusive=True, schema=PICK.digest),
        ),
        system=policy.system,
        context_source="static",
        context_revision="r1",
        action_timeout_us=1_500_000,
        action_on_expiry="end_turn",
        budget=Budget(tokens=9),
    )
    assert len(policy.system) == 22
    assert "kind" not in msgspec.json.encode(policy).decode()  # no content among the facts


def test_defaults() -> None:
    policy = policy_of(Agent(name="a", model="scripted/demo"))
    assert policy.model == ModelPolicy(provider="scripted", name="demo")
    assert (policy.max_steps, policy.max_model_attempts, policy.action_timeout_us) == (1200, 26, 300_000_000)
    assert (policy.system, policy.tools, policy.context_source, policy.budget) == ("", (), None, None)
    assert policy_of(Agent(name="a")).model is None


def test_a_chat_may_choose_model_and_effort() -> None:
    big = ModelConfig(provider="openai", name="big", context_limit=9, effort="none", max_effort="high")
    made = agent(models=[big, "openai-chat/meta/llama"])
    known = policy_of(made, model="openai/big", effort="high").model
    assert known == ModelPolicy(provider="openai", name="big", context_limit=9, effort="high", effort_max="high")
    assert policy_of(made, model="openai/unlisted").model == ModelPolicy(provider="openai", name="unlisted")
    assert policy_of(made, model="openai-chat/meta/llama").model == ModelPolicy(
        provider="openai-chat", name="meta/llama"
    )
    assert policy_of(made, model="anthropic/large").model == PRICED.policy()
    with pytest.raises(UnknownModel, match="provider/name"):
        policy_of(made, model="large")


def test_tools_come_in_the_order_of_their_names() -> None:
    assert [tool.name for tool in agent().offered()] == ["look", "pick"]
    assert agent().offered() == agent(tools=[look, PICK]).offered()
    assert agent().revision == agent(tools=(look, PICK)).revision


@pytest.mark.parametrize(
    ("own", "chosen", "offered"),
    [
        ([], None, ["look", "pick"]),
        (["pick"], None, ["pick"]),
        (["pick"], [], ["look", "pick"]),
        (["pick"], ["look"], ["look"]),
        ([], ["pick", "gone"], ["pick"]),
        ([], ["gone"], []),
    ],
)
def test_the_chats_choice_of_tools_counts_before_the_agents(
    own: list[str], chosen: list[str] | None, offered: list[str]
) -> None:
    made = agent(active_tools=own)
    assert [each.name for each in made.offered(chosen)] == offered
    assert [each.name for each in policy_of(made, active_tools=chosen).tools] == offered


@pytest.mark.parametrize(("given", "says"), [("look", "must be a list of names"), (["gone"], "names 'gone', which is")])
def test_active_tools_are_tools_of_the_agent(given: Any, says: str) -> None:
    with pytest.raises(AgentDeclarationError, match=says):
        agent(active_tools=given)


CHANGES: list[dict[str, Any]] = [
    {"active_tools": ["look"]},
    {"name": "other"},
    {"model": "anthropic/large"},
    {"model": None},
    {"system": "Be brief."},
    {"system": ["Be", "kind."]},
    {"tools": [look]},
    {"tools": [PICK, Tool.from_function(look.function or len, name="look", crash="rerun", timeout=3)]},
    {"limits": Limits(max_steps=5)},
    {"limits": Limits(budget=Budget(turns=5))},
    {"models": ["openai/small"]},
    {"compaction_model": "openai/small"},
    {"context": StaticContext([])},
    {"limits": Limits(fallback_context_limit=5)},
    {"model": ModelConfig(provider="openai", name="large", options={"temperature": 1})},
    {"model": ModelConfig(provider="openai", name="large", options={"temperature": 1.0})},
    {"model": ModelConfig(provider="anthropic", name="large", extra={"temperatures": 1})},
    {"compaction_model": ModelConfig(provider="openai", name="small", options={"user": "me"})},
    {"models": [ModelConfig(provider="openai", name="small", effort="low", max_effort="low")]},
]


def test_all_that_matters_changes_the_revision_and_the_digest() -> None:
    made = [agent(), *(agent(**change) for change in CHANGES)]
    assert len({each.revision for each in made}) == len(made)
    assert len({policy_digest(policy_of(each)) for each in made}) == len(made)
    assert agent().revision == agent().revision


def test_a_context_revision_changes_the_digest_and_not_the_agents_revision() -> None:
    one, two = (agent(context=StaticContext([], revision=revision)) for revision in "12")
    assert one.revision == two.revision
    assert policy_digest(policy_of(one)) != policy_digest(policy_of(two))


def test_digests_are_the_same_in_every_process() -> None:
    code = (
        "from generation.agents import Agent, Limits; from generation.policy import *;"
        "from generation.tools.contract import tool\n"
        "@tool\ndef f(a: int, b: str = 'x') -> str:\n  'Do.'\n  return b\n"
        "print(policy_digest(policy_of(Agent(name='a', model='scripted/demo', tools=[f], system='s'))))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 22


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: agent(name=""), "1 to 100"),
        (lambda: agent(name="a b"), "1 to 100"),
        (lambda: agent(name="a\n"), "1 to 100"),
        (lambda: agent(model="large"), "provider/name"),
        (lambda: agent(model="/large"), "name of a provider"),
        (lambda: agent(compaction_model="x/"), "name of a model"),
        (lambda: agent(models=["x"]), "provider/name"),
        (lambda: agent(system="\ud83d"), r"system\[0\]"),
        (lambda: Limits(max_steps=0), "max_steps"),
        (lambda: Limits(max_model_attempts=0), "max_model_attempts"),
        (lambda: Limits(action_timeout=0), "action_timeout"),
        (lambda: Limits(action_timeout=float("inf")), "action_timeout"),
        (lambda: Limits(on_expiry="never"), "on_expiry"),  # type: ignore[arg-type]  # what is tested
        (lambda: ModelConfig(provider="x", name="y", context_limit=0), "context_limit"),
        (lambda: ModelConfig(provider="x", name="y", max_output=0), "max_output"),
        (lambda: ModelConfig(provider="x", name="y", compaction_threshold=101), "compaction_threshold"),
        (lambda: Limits(fallback_context_limit=0), "fallback_context_limit"),
        (lambda: Prices(input="cheap"), "price of input"),
        (lambda: Prices(output="-1"), "price of output"),
        (lambda: Prices(output="NaN"), "price of output"),
        (lambda: Prices(cache_read="0.0000001"), "finer"),
        (lambda: Prices(cache_write=0.1), "not float"),  # type: ignore[arg-type]  # what is tested
        (lambda: Prices(input=True), "not bool"),
    ],
    ids=range(23),
)
def test_refused_declarations(make: Callable[[], object], why: str) -> None:
    with pytest.raises(AgentDeclarationError, match=why):
        make()


def test_two_tools_of_one_name() -> None:
    with pytest.raises(ToolDeclarationError, match="two tools"):
        agent(tools=[look, look])


@pytest.mark.parametrize(
    ("limit", "given_threshold", "threshold"),
    [(None, None, 70), (499_999, None, 70), (500_000, None, 30), (500_000, 70, 70), (9, 0, 0), (9, 100, 100)],
)
def test_threshold(limit: int | None, given_threshold: int | None, threshold: int) -> None:
    config = ModelConfig(provider="x", name="y", context_limit=limit, compaction_threshold=given_threshold)
    assert config.policy().compaction_threshold == threshold


@pytest.mark.parametrize(
    ("configured", "fallback", "limit", "threshold"),
    [(None, None, None, 70), (9, None, 9, 70), (9, 600_000, 9, 70), (None, 5, 5, 70), (None, 600_000, 600_000, 30)],
)
def test_a_context_limit_is_the_configured_one_or_else_the_fallback(
    configured: int | None, fallback: int | None, limit: int | None, threshold: int
) -> None:
    config = ModelConfig(provider="x", name="y", context_limit=configured)
    made = agent(model=config, compaction_model=config, limits=Limits(fallback_context_limit=fallback))
    policy = policy_of(made)
    assert policy.model is not None
    assert (policy.model.context_limit, policy.model.compaction_threshold) == (limit, threshold)
    assert policy.compaction_model == policy.model


def test_parse_model() -> None:
    assert parse_model("openai-chat/meta/llama").reference == "openai-chat/meta/llama"


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(), 0),
        (Usage(input=1_000_000), 3_000_000),
        (Usage(input=1), 3),
        (Usage(output=1), 16),  # 15.5, up
        (Usage(input=1, output=1), 19),  # 18.5, up once
        (Usage(output=2, reasoning=2), 31),
        (Usage(cache_read=1), 1),
        (Usage(cache_write=1_000_000), 0),
    ],
)
def test_cost(usage: Usage, cost: int) -> None:
    assert cost_micros(usage, PRICED.policy()) == cost


def test_cost_without_prices() -> None:
    assert cost_micros(Usage(input=5), ModelPolicy(provider="x", name="y")) is None
    assert cost_micros(Usage(input=5), ModelPolicy(provider="x", name="y", price_output=0)) == 0


@pytest.mark.parametrize(("told", "unmetered", "cost"), [(5, False, 15), (0, False, 0), (0, True, None), (5, True, 15)])
def test_a_call_costs_what_was_told_of_it(told: int, unmetered: bool, cost: int | None) -> None:
    model = ModelPolicy(provider="x", name="y", price_input=3_000_000)
    step = Step(provider="x", model="y", usage=Usage(input=told), unmetered=unmetered)
    assert priced(step, model).cost_micros == cost


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.decimals(0, 1000, places=6), st.decimals(0, 1000, places=6))
def test_cost_is_the_exact_sum_rounded_up(inputs: int, outputs: int, price_in: Decimal, price_out: Decimal) -> None:
    model = ModelConfig(provider="x", name="y", prices=Prices(input=price_in, output=price_out)).policy()
    cost = cost_micros(Usage(input=inputs, output=outputs), model)
    exact = inputs * int(price_in * 10**6) + outputs * int(price_out * 10**6)
    assert cost is not None
    assert 0 <= cost * 10**6 - exact < 10**6


@pytest.mark.parametrize("context", ["/tmp", 5, object()])
def test_a_context_that_is_no_source_is_refused_where_it_is_declared(context: Any) -> None:
    with pytest.raises(AgentDeclarationError, match="context takes a context source"):
        Agent(name="a", model="scripted/m", context=context)
