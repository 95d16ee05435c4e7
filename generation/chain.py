"""Chain mode: when a request goes on from a response that its service keeps, in place of what came before it. Pure.

A service that keeps a response has the prompt that it answered, and the answer. Where history is that prompt, that
answer and new messages of the user, only these need to be sent. All of ``CONDITIONS`` must hold; else the whole history
is sent, which is always right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, structs

from events.content import Content
from events.messages import KeptResponse, Message, Step
from events.parts import SourcePart, TextPart, ToolCallPart
from events.records import ModelPolicy
from generation.prompt import BuiltPrompt
from generation.prompt_types import PromptMessage


class Continuation(Struct, frozen=True, kw_only=True, gc=False):
    """What a request goes on from, and the messages that come after it."""

    response: str
    messages: tuple[PromptMessage, ...]


class _Case(NamedTuple):
    """What the conditions read: of the model, of the newest answer, and of what stands around that in the prompt."""

    model: ModelPolicy
    lost: str | None
    answer: Message
    step: Step
    kept: KeptResponse
    before: str
    trailing: Sequence[PromptMessage]
    added: bool


class Condition(NamedTuple):
    """A condition: its id, what it asks in words, and the function that tests it."""

    id: str
    asks: str
    holds: Callable[[_Case], bool]


def continuation(
    prompt: BuiltPrompt, model: ModelPolicy, *, stores: bool, lost: str | None = None
) -> Continuation | None:
    """Return what a request for a prompt goes on from; None where it must hold the whole history.

    Args:
        prompt: The whole prompt.
        model: The model that is asked.
        stores: Whether it is configured to have its responses kept, over a provider that can go on from them.
        lost: A response that the service is known to have no more.
    """
    found = _examined(prompt, model, stores=stores, lost=lost)
    return found if isinstance(found, Continuation) else None


def missing(prompt: BuiltPrompt, model: ModelPolicy, *, stores: bool, lost: str | None = None) -> str | None:
    """Return the id of the first condition that does not hold; None where all do. See ``continuation``."""
    found = _examined(prompt, model, stores=stores, lost=lost)
    return found if isinstance(found, str) else None


def _examined(prompt: BuiltPrompt, model: ModelPolicy, *, stores: bool, lost: str | None) -> Continuation | str:
    if not stores:
        return STORES
    if prompt.kept is None:
        return KEPT
    answer = prompt.messages.history[prompt.kept.place].message
    step = answer.step
    if step is None or step.kept is None or step.response_id is None:
        return KEPT
    trailing = prompt.messages[prompt.kept.end :]
    case = _Case(model, lost, answer, step, step.kept, prompt.kept.before, trailing, prompt.added)
    failed = next((condition.id for condition in CONDITIONS if not condition.holds(case)), None)
    return failed or Continuation(response=step.response_id, messages=tuple(trailing))


def _same_model(case: _Case) -> bool:
    then, now = case.step, case.model
    return (then.provider, then.model, case.kept.options) == (now.provider, now.name, now.options)


def _whole(case: _Case) -> bool:
    return not case.answer.interrupted and all(map(_available, case.answer.parts))


def _available(value: object) -> bool:
    """Whether all content of a part is at hand."""
    if isinstance(value, Content):
        return value.available
    if isinstance(value, Struct):
        return all(map(_available, structs.astuple(value)))
    return not isinstance(value, tuple) or all(map(_available, value))


def _no_calls(case: _Case) -> bool:
    calls = [part for part in case.answer.parts if isinstance(part, ToolCallPart)]
    return all(call.runner == "provider" for call in calls)


def _ends(case: _Case) -> bool:
    """Whether the answer ends with a text. No service takes reasoning that led to nothing, its own neither."""
    said = [part for part in case.answer.parts if not isinstance(part, SourcePart)]
    return bool(said) and isinstance(said[-1], TextPart)


def _users(case: _Case) -> bool:
    return not case.added and bool(case.trailing) and all(message.role == "user" for message in case.trailing)


STORES: Final = "stores"
KEPT: Final = "kept"
CONDITIONS: Final = (
    Condition(STORES, "the model is configured to have its responses kept, by a provider that can", lambda _: True),
    Condition(KEPT, "the service keeps the response of the newest answer", lambda case: bool(case.step.response_id)),
    Condition("known", "the service did not say that it is gone", lambda case: case.step.response_id != case.lost),
    Condition("model", "that answer is of the same model with the same options", _same_model),
    Condition("own", "it was given in this chat and was not copied", lambda case: case.answer.origin is None),
    Condition("whole", "it was not cut, and nothing of it was erased", _whole),
    Condition("no_calls", "it has no calls whose results the service has not seen", _no_calls),
    Condition("ends", "it ends with a text, and not with reasoning or a search that led to none", _ends),
    Condition(
        "same_history", "what stands before it is what the service had", lambda case: case.kept.before == case.before
    ),
    Condition("users", "after it come messages of the user, and nothing else", _users),
)
"""The conditions, in the order in which they are asked. The first two hold where there is a case at all."""
