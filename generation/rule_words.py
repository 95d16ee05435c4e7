"""What a decision's evidence says in words, rule by rule: why the rule held, and why it was passed by. Pure.

The words come from what a decision recorded (``Decision.evidence``), never from folding the log again, so they tell
what was read then. What a release before level 3 recorded tells less, and then the words say no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from events.counting import counted
from events.records import Fact

Evidence: TypeAlias = Mapping[str, Fact]
Say: TypeAlias = Callable[[Evidence], str]
"""Evidence to a clause, without a capital and a full stop."""

NOT_RECORDED: Final = "it did not hold; what it read was not recorded"
_MICRO: Final = 1_000_000


class Words(NamedTuple):
    """What a rule says where it held, and where it was passed by."""

    why: Say
    why_not: Say


def _say(text: str) -> Say:
    return lambda _: text


def _number(read: Evidence, name: str) -> str:
    """Return a number that was recorded; what is absent is neutral: none."""
    number = read.get(name)
    return f"{number:,}" if isinstance(number, int) else "0"


def _count(read: Evidence, name: str, one: str) -> str:
    number = read.get(name)
    return counted(number if isinstance(number, int) else 0, one)


def _unusable(read: Evidence) -> str:
    return "the policy has no model" if read.get("model") is None else f"max steps is {read.get('max_steps')}"


def _local(read: Evidence) -> str:
    if read.get("refused"):
        are = "is" if read["refused"] == 1 else "are"
        return f"{_count(read, 'refused', 'call')} {are} open and one of them must be alone, so all are refused as one"
    recorded = f", {_number(read, 'recorded')} of them with a result" if read.get("recorded") else ""
    return f"{_count(read, 'local', 'local call')} may run{recorded}"


def _owed(read: Evidence) -> str:
    owed = [_count(read, "client", "call")] if read.get("client") else []
    owed += [_count(read, "approvals", "approval")] if read.get("approvals") else []
    return f"the client owes {' and '.join(owed)}"


def _not_compacting(read: Evidence) -> str:
    if read.get("compaction") == "requested":
        return "a compaction was asked for, and there is no answer to compact"
    return "no compaction that was asked for is to be done"


def _to_compact(read: Evidence) -> str:
    answers = _count(read, "assistants_after_boundary", "answer")
    return f"a compaction was asked for, and {answers} can be compacted"


def _not_answered(read: Evidence) -> str:
    if read.get("interrupted"):
        return "the newest message that counts is an answer that was interrupted"
    last = read.get("last")
    if last is None:
        return "no finished answer is the newest message that counts"
    return f"the newest message that counts is of role {last}"


def _steps(read: Evidence) -> str:
    nudged = ", with one more for the hook that let the turn go on" if read.get("nudged") else ""
    allowed = f"{_number(read, 'max_steps')} {'is' if read.get('max_steps') == 1 else 'are'} allowed"
    return f"the turn has {_count(read, 'steps', 'step')}, and at most {allowed}{nudged}"


def amount(name: str, number: Fact) -> str:
    """Return how much of a budget, as people read it."""
    if not isinstance(number, int):
        return str(number)
    return f"{number / _MICRO:,.6f}".rstrip("0").rstrip(".") if name == "cost_micros" else f"{number:,}"


BUDGETS: Final = MappingProxyType({"tokens": "tokens", "cost_micros": "of cost", "turns": "turns"})
"""What a budget may limit, and how so much of it is called."""


def _spent(read: Evidence) -> str:
    if read.get("priced") is False and "limit" in read:
        return f"cost is limited to {amount('cost_micros', read['limit'])} and the model has no price"
    for name, called in BUDGETS.items():
        limit = read.get("limit")
        if name in read and limit is not None and read.get(f"{name}_limit", limit) == limit:
            spent = f"{called.removesuffix('s')} is" if read[name] == 1 and name != "cost_micros" else f"{called} are"
            return f"{amount(name, read[name])} {spent} spent, of {amount(name, limit)}"
    return "a budget is spent"


def _not_spent(read: Evidence) -> str:
    left = [
        f"{amount(name, read.get(name))} of {amount(name, read[f'{name}_limit'])} {called}"
        for name, called in BUDGETS.items()
        if f"{name}_limit" in read
    ]
    return f"only {', '.join(left)} are spent" if left else "no budget is set"


def _context(read: Evidence) -> str:
    source = read.get("source")
    if read.get("refresh"):
        return f"the context of {source} is to be collected anew"
    if "recorded_source" in read:
        has = read["recorded_source"]
        return f"history has no context of {source}" + ("" if has is None else f", but that of {has}")
    if read.get("recorded") is None:
        return f"the context of {source} is not in history at revision {read.get('wanted')}"
    return f"history has the context of {source} at revision {read['recorded']}, and {read.get('wanted')} is wanted"


def _no_context(read: Evidence) -> str:
    source = read.get("source")
    return "the agent has no context source" if source is None else f"the context of {source} is in history"


def _tokens(read: Evidence) -> str:
    tokens, threshold = _number(read, "context_tokens"), _number(read, "threshold")
    return f"the newest prompt had {tokens} tokens, with a threshold of {threshold}"


def _first_too(read: Evidence) -> str:
    return f"{_tokens(read)}, and the first one after the boundary had {_number(read, 'first_context_tokens')}"


def _not_over(read: Evidence) -> str:
    if "threshold" not in read:
        return "no model has a context limit that counts"
    return _tokens(read)


def _not_still_over(read: Evidence) -> str:
    if not read.get("boundary"):
        return "history has no boundary"
    return _first_too(read) if "threshold" in read else _not_over(read)


def _nothing_over(read: Evidence) -> str:
    if read.get("visible_after") == 0:
        return f"{_tokens(read)}, and nothing follows the boundary"
    return _not_over(read)


def _recorded(say: Say) -> Say:
    """Say it where the decision recorded what its rules read: from D7 on that has the step limit at least."""
    return lambda read: say(read) if "max_steps" in read else NOT_RECORDED


def _answered(read: Evidence) -> str:
    if read.get("empty_answer"):
        return "the model answered with nothing, which ends the turn"
    return "the newest message that counts is a finished answer"


def _nothing_else(read: Evidence) -> str:
    last = read.get("last")
    to_what = "" if last is None else f" to the {last} message"
    return f"nothing else is to be done: the model answers{to_what}, in attempt {read.get('attempt')}"


WORDS: Final[Mapping[str, Words]] = MappingProxyType(
    {
        "D0": Words(_unusable, _say("the policy has a model, and max steps is 1 or more")),
        "D1": Words(_local, _say("no open call may run here")),
        "D2": Words(_owed, _say("the client owes nothing")),
        "D2b": Words(
            _say("the user answered a budget question with the end of the turn"),
            _say("no budget question was answered with the end of the turn"),
        ),
        "D3": Words(_to_compact, _not_compacting),
        "D4": Words(
            _say("the turn has a result of a stop-after tool that is no error"),
            _say("the turn has no result of a stop-after tool that is no error"),
        ),
        "D5": Words(
            _say("the turn was opened by a compaction, and that is committed"),
            _say("the turn was not opened by a compaction that is committed"),
        ),
        "D6": Words(_answered, _not_answered),
        "D7": Words(_steps, _recorded(_steps)),
        "D7b": Words(_spent, _recorded(_not_spent)),
        "D8": Words(_context, _recorded(_no_context)),
        "D9": Words(_first_too, _recorded(_not_still_over)),
        "D10": Words(_tokens, _recorded(_nothing_over)),
        "D11": Words(_nothing_else, _say("another rule held first")),
    }
)
"""The words of each rule by its id."""
