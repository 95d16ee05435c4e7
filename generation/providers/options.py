"""Options of models: which there are, which transport takes each, and where it stands in a request. Pure.

A transport is the protocol that a provider speaks, named like the built-in provider that speaks it. One table,
``OPTIONS``, says all; what it does not name can be sent as ``extra``, but for what ``RESERVED`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from events.content import Json
from generation.errors import OptionRefused
from generation.nearest import nearest

Transport: TypeAlias = Literal["anthropic", "openai", "openai-chat"]
"""A protocol: Messages, Responses, Chat Completions."""

Body: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Any], bool]
Write: TypeAlias = Callable[[Body, Any], None]

LOGPROBS: Final = "message.output_text.logprobs"
"""What Responses must be asked to include so that it tells log probabilities."""


class Kind(NamedTuple):
    """What values an option takes, in words and as a check."""

    words: str
    fits: Check


def _number(low: float, high: float) -> Kind:
    return Kind(
        f"a number from {low:g} to {high:g}",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high,
    )


def _count(low: int, high: int = 2**31) -> Kind:
    words = f"a whole number of at least {low}" if high == 2**31 else f"a whole number from {low} to {high}"
    return Kind(words, lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high)


def _one_of(*words: str) -> Kind:
    return Kind(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def _mapping(words: str, each: Check) -> Kind:
    def fits(value: object) -> bool:
        return isinstance(value, Mapping) and all(isinstance(key, str) and each(held) for key, held in value.items())

    return Kind(words, fits)


_FLAG: Final = Kind("True or False", lambda value: isinstance(value, bool))
_TEXT: Final = Kind("a text that is not blank", lambda value: isinstance(value, str) and bool(value.strip()))
_TEXTS: Final = Kind(
    "a list of texts", lambda value: isinstance(value, list | tuple) and bool(value) and all(map(_TEXT.fits, value))
)
_LABELS: Final = _mapping("a mapping of texts", lambda value: isinstance(value, str))
_BIASES: Final = _mapping("a mapping of token ids to numbers from -100 to 100", _number(-100, 100).fits)
_OBJECT: Final = _mapping("a mapping", lambda _: True)


def _at(*path: str) -> Write:
    """Return what writes a value at a path."""

    def write(body: Body, value: Any) -> None:
        for name in path[:-1]:
            body = body.setdefault(name, {})
        body[path[-1]] = value

    return write


def _include(body: Body, value: Any) -> None:
    """Ask for more than what is asked for already."""
    body["include"] = list(dict.fromkeys([*body.get("include", ()), *value]))


def _instructions(body: Body, value: Any) -> None:
    """Put a text behind the system texts."""
    body["instructions"] = "\n\n".join([*([body["instructions"]] if "instructions" in body else []), value])


def _summary(body: Body, value: Any) -> None:
    reasoning = body.setdefault("reasoning", {})
    reasoning.pop("summary", None)
    if value != "none":
        reasoning["summary"] = value
    elif not reasoning:
        del body["reasoning"]


def _included_logprobs(body: Body, value: Any) -> None:
    if value:
        _include(body, [LOGPROBS])


def _top_responses(body: Body, value: Any) -> None:
    _include(body, [LOGPROBS])
    body["top_logprobs"] = value


def _top_chat(body: Body, value: Any) -> None:
    body["logprobs"], body["top_logprobs"] = True, value


def _with_tools(write: Write) -> Write:
    """Return what writes only where tools are declared: without any, the services refuse such options."""
    return lambda body, value: write(body, value) if body.get("tools") else None


def _one_call(body: Body, value: Any) -> None:
    if not value and "tool_choice" not in body:
        body["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}


def _strict_responses(body: Body, value: Any) -> None:
    for tool in body["tools"]:
        if tool["type"] == "function":
            _make_strict(tool, value)


def _strict_chat(body: Body, value: Any) -> None:
    for tool in body["tools"]:
        _make_strict(tool["function"], value)


def _make_strict(function: Body, value: Any) -> None:
    function["strict"] = value
    if value:
        function["parameters"] = _closed(function["parameters"])


def _closed(schema: Any) -> Any:
    """Return a schema whose objects take no properties but those they name, as strict schemas must say."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {name: _closed(held) for name, held in schema.items()}
    return {**closed, "additionalProperties": False} if schema.get("type") == "object" else closed


def _limit(body: Body, value: Any) -> None:
    """Bound the answer under the newer of the two names; servers take one of them."""
    given = [body.pop(name) for name in ("max_tokens", "max_completion_tokens") if name in body]
    body["max_completion_tokens"] = min([value, *given])


class Option(NamedTuple):
    """An option: its values, and how each transport that takes it writes it."""

    kind: Kind
    anthropic: Write | None = None
    responses: Write | None = None
    chat: Write | None = None

    def writer(self, transport: str) -> Write | None:
        """Return how a transport writes it; None where it does not take it."""
        return {"anthropic": self.anthropic, "openai": self.responses, "openai-chat": self.chat}[transport]


def _same(kind: Kind, name: str) -> Option:
    """Return an option that both protocols of OpenAI take under one name."""
    return Option(kind, responses=_at(name), chat=_at(name))


OPTIONS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        # One protocol of OpenAI alone.
        "include": Option(_TEXTS, responses=_include),
        "instructions": Option(_TEXT, responses=_instructions),
        "max_tool_calls": Option(_count(1), responses=_at("max_tool_calls")),
        "reasoning_summary": Option(_one_of("none", "auto", "concise", "detailed"), responses=_summary),
        "strict_json_schema": Option(_FLAG, responses=_with_tools(_strict_responses)),
        "truncation": Option(_one_of("auto", "disabled"), responses=_at("truncation")),
        "logit_bias": Option(_BIASES, chat=_at("logit_bias")),
        "max_completion_tokens": Option(_count(1), chat=_limit),
        "prediction": Option(_OBJECT, chat=_at("prediction")),
        "structured_outputs": Option(_FLAG, chat=_with_tools(_strict_chat)),
        "frequency_penalty": Option(_number(-2, 2), chat=_at("frequency_penalty")),
        "presence_penalty": Option(_number(-2, 2), chat=_at("presence_penalty")),
        "seed": Option(_count(-(2**31)), chat=_at("seed")),
        # Both. The second one of the log probabilities is written last and so wins.
        "log_probs": Option(_FLAG, responses=_included_logprobs, chat=_at("logprobs")),
        "top_log_probs": Option(_count(0, 20), responses=_top_responses, chat=_top_chat),
        "text_verbosity": Option(
            _one_of("low", "medium", "high"), responses=_at("text", "verbosity"), chat=_at("verbosity")
        ),
        "temperature": _same(_number(0, 2), "temperature"),
        "top_p": _same(_number(0, 1), "top_p"),
        "store": _same(_FLAG, "store"),
        "metadata": _same(_LABELS, "metadata"),
        "prompt_cache_key": _same(_TEXT, "prompt_cache_key"),
        "prompt_cache_retention": _same(_TEXT, "prompt_cache_retention"),
        "safety_identifier": _same(_TEXT, "safety_identifier"),
        # Anthropic alone.
        "speed": Option(_one_of("standard", "fast"), anthropic=_at("speed")),
        "inference_geo": Option(_TEXT, anthropic=_at("inference_geo")),
        # All, or what two kinds of protocol share.
        "stop_sequences": Option(_TEXTS, anthropic=_at("stop_sequences"), chat=_at("stop")),
        "service_tier": Option(_TEXT, *[_at("service_tier")] * 3),
        "user": Option(_TEXT, _at("metadata", "user_id"), _at("user"), _at("user")),
        "parallel_tool_calls": Option(_FLAG, _with_tools(_one_call), *[_with_tools(_at("parallel_tool_calls"))] * 2),
    }
)
"""Every option, in the order in which they are written."""

_HISTORY: Final = "the conversation is the chat's own"
_LIMIT: Final = "use max_output"
_OURS: Final = "the engine sets it itself"

RESERVED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "anthropic": {
            "model": "use name",
            "messages": _HISTORY,
            "system": "use the agent's system",
            "tools": "use the agent's tools",
            "tool_choice": _OURS,
            "max_tokens": _LIMIT,
            "stream": _OURS,
        },
        "openai": {
            "model": "use name",
            "input": _HISTORY,
            "previous_response_id": _HISTORY,
            "conversation": _HISTORY,
            "tools": "use the agent's tools",
            "tool_choice": _OURS,
            "max_output_tokens": _LIMIT,
            "stream": _OURS,
            "stream_options": _OURS,
            "background": _OURS,
        },
        "openai-chat": {
            "model": "use name",
            "messages": _HISTORY,
            "tools": "use the agent's tools",
            "functions": "use the agent's tools",
            "function_call": _OURS,
            "tool_choice": _OURS,
            "max_tokens": _LIMIT,
            "n": _OURS,
            "stream": _OURS,
            "stream_options": _OURS,
        },
    }
)
"""By transport, what ``extra`` must not hold, and what to do instead; of names that are options, the option."""


def check_options(transport: str, options: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    """Check what a model is configured with against the transport that it is called over.

    Args:
        transport: The protocol; of one that is not known here, such as an application's own provider's, all is well.
        options: Options by name.
        extra: What is sent as it is.

    Raises:
        OptionRefused: The transport takes no such option, it takes no such value, or ``extra`` names what is reserved
            or has an option.
    """
    if transport not in RESERVED:
        return
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None or option.writer(transport) is None:
            raise OptionRefused(f"options.{name}", _no_such(name, transport))
        if not option.kind.fits(value):
            raise OptionRefused(f"options.{name}", f"must be {option.kind.words}, not {value!r:.80}")
    for name in extra:
        if (instead := RESERVED[transport].get(name)) is not None:
            raise OptionRefused(f"extra.{name}", f"is not for extra: {instead}")
        if (known := OPTIONS.get(name)) is not None and known.writer(transport) is not None:
            raise OptionRefused(f"extra.{name}", f"is an option: write options={{{name!r}: ...}}")


def with_options(transport: Transport, body: Body, options: Mapping[str, Json], extra: Mapping[str, Json]) -> Body:
    """Return a request's body with the options and what is extra; neither is changed, nor is what they hold.

    Where ``extra`` and the body have mappings under one name, they become one, in which ``extra`` wins.

    Raises:
        OptionRefused: As in ``check_options``: a provider under another name was not known when these were declared.
    """
    if not options and not extra:
        return body
    check_options(transport, options, extra)
    for name, option in OPTIONS.items():
        if name in options and (write := option.writer(transport)) is not None:
            write(body, options[name])
    return _merged(body, extra)


def _merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> Body:
    result = dict(body)
    for name, value in extra.items():
        held = result.get(name)
        result[name] = _merged(held, value) if isinstance(held, Mapping) and isinstance(value, Mapping) else value
    return result


def _no_such(name: str, transport: str) -> str:
    option = OPTIONS.get(name)
    if option is not None:
        takers = [other for other in RESERVED if option.writer(other) is not None]
        return f"{transport} takes no such option; {' and '.join(takers)} {'does' if len(takers) == 1 else 'do'}"
    instead = next((held[name] for held in RESERVED.values() if name in held), None)
    if instead is not None:
        return f"is not for options: {instead}"
    taken = [other for other, known in OPTIONS.items() if known.writer(transport) is not None]
    close = nearest(name, taken)
    meant = "" if close is None else f"did you mean {close!r}? "
    return f"there is no such option; {meant}{'W' if meant else 'w'}hat has no option can be sent as extra={{...}}"
