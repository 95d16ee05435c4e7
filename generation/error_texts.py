"""What is said of a failed model call: messages by kind, and details without secrets and addresses. Pure.

Messages name the provider and never a status code; what can be done about it is said only where nothing is tried
again by itself.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal, TypeAlias

from events.content import Json
from events.values import repair_text

MAX_DETAIL: Final = 500
"""Characters of a detail; a longer one is cut and ends with an ellipsis."""
MAX_MESSAGE: Final = 1_000
"""Characters of a message: the most of a detail, which an explanation may be, with what is said around it."""
MAX_READ: Final = 64 * 1024
"""Characters of an error that are looked at."""

_NAMES: Final = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "openai-chat": "The OpenAI-compatible service",
    "scripted": "The scripted model",
}
_KEYS: Final = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
}
"""The environment variables that hold keys."""
_ANYBODY: Final = "The AI provider"

_NOT_YOURS: Final = "This is neither a billing nor a configuration problem."

CHAIN_MESSAGES: Final[dict[str, tuple[str, str | None]]] = {
    "cancelled": ("The request was cancelled.", None),
    "function_call_output_missing": (
        f"The conversation could not be continued: a tool call and its result do not match on our side. {_NOT_YOURS}",
        "match=function_call_output_missing",
    ),
    "web_search_reasoning_missing": (
        f"The conversation could not be continued: a web search lost the reasoning that belongs to it. {_NOT_YOURS}",
        "match=web_search_reasoning_missing",
    ),
    "reasoning_follower_missing": (
        f"The conversation could not be continued: reasoning lost the answer that belongs to it. {_NOT_YOURS}",
        "match=reasoning_follower_missing",
    ),
    "closed": ("{name} closed its stream before the answer was whole.", None),
    "broken": (
        "{name} no longer knows the conversation so far; it is sent again in full.",
        "match=previous_response_missing",
    ),
}
"""Message and fixed detail (which hides ids) of failures that are told apart within their kind."""

_LIMITS: Final = {
    "too_large": "The conversation with its files has {size} MiB, and {name} takes {most} MiB. Remove files.",
    "too_many_pages": "The PDFs of the conversation have {pages} pages, and {name} takes {most}. Remove some.",
    "not_a_pdf": "A file of the conversation ({file}) is no PDF, as its type says. Remove it, or give its type.",
}
"""What is said of a request that is over a limit, by the limit."""

StreamFault: TypeAlias = Literal["not_begun", "silent", "no_output", "no_summary", "summary_truncated"]
"""What is wrong with a stream that reported no failure of its own."""

_STREAM: Final[dict[StreamFault, str]] = {
    "not_begun": "{name} did not begin to answer in time.",
    "silent": "{name} sent no data in time.",
    "no_output": "{name} gave no output.",
    "no_summary": "{name} gave an empty summary.",
    "summary_truncated": "{name} was truncated at the output cap before its summary began. Raise the most tokens of an "
    "answer of the model that writes summaries, or clear the conversation.",
}

_RETRY: Final = {
    "overloaded": "{name} is temporarily overloaded.",
    "rate_limit": "{name} is limiting the rate of requests.",
    "timeout": "{name} is temporarily unavailable.",
    "stream_silence_timeout": _STREAM["silent"],
    "generic": "{name} reported an unexpected error.",
}
_TERMINAL: Final = {
    "timeout": "The request to {name_inside} timed out. Try again later.",
    "usage_limit": "{name} refused the request: a quota is used up. Check the plan and the billing of the account.",
    "auth": "{name} refused the credentials. Check the API key and its permissions.",
    "config": "{name} rejected the model's configuration. Check its name and settings, and the conversation's length.",
    "missing_key": "There is no API key for {name_inside}. Set {key} and send the message again.",
    "provider_disabled": "{name} is switched off here. Ask an administrator.",
    "content_filter": "{name} declined to answer.",
}

_HOOKS: Final = {
    "pre_tool_use": "so a call of a tool did not run. Resume to go on: the model reads that it did not run, and may "
    "call it again",
    "post_tool_use": "and the tool's result is kept. Resume to go on with it",
    "pre_compact": "so nothing was summarised. Resume to try again",
    "pre_compact, on request": "so nothing was summarised. Compact again, or send a message to go on without a summary",
    "post_compact": "and the summary is kept as it was. Resume to go on with it",
    "post_compact, on request": "and the summary is kept as it was. Send a message to go on with it",
    "stop": "and the answer is kept. Resume to end the turn with it, or send a message",
}
"""What a hook that could not be asked within a turn left undone, and what goes on from there.

A compaction that was asked for owes no turn: there is nothing to resume.
"""

_RUN: Final = re.compile(r"(?<![a-z0-9+.-])([a-z0-9+.-]+)://(?=[^\s'\"<>)\]])", re.IGNORECASE)
_SCHEME: Final = re.compile(r"\b[a-z]", re.IGNORECASE)
_REST: Final = re.compile(r"(?:\[(?:redacted|id)\]|[^\s'\"<>)\]])+")
"""The parts of an address: characters that may be its scheme, where in them a word begins, and what follows.

What was taken out of one already belongs to it. In one expression a search would begin again at each word of a long run
of characters, which takes seconds.
"""
_IDS: Final = (
    re.compile(r"(\b(?:request|trace)[-_ ]?id\b['\"]?[\s:=]*['\"]?)(?!req_)[\w-]{8,}", re.IGNORECASE),
    re.compile(r"()\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE),
    re.compile(
        r"()\b(?:rs|msg|req|resp|fc|ctc|ws|call|toolu|srvtoolu|item|ig|ci|cmpl|chatcmpl|gen|org|proj|user|wrkspc|file|sess"
        r"|container|cntr|batch|msgbatch)[-_](?=[\w-]{0,64}\d)[\w-]{4,}"
    ),
)
"""Ids of requests, items, calls and accounts, each after what introduces it: a prefix alone is a word."""
_WRAPPED: Final = re.compile(r"[A-Z]{3,7} \"[^\"]*\":? (\d{3}[^{\[\n]*+)\s*+([{\[].*)?", re.DOTALL)
"""What clients of HTTP put around an answer: method, quoted address, status line, and then its body."""
_BARE: Final = re.compile(r"error code: \d+(?: - .*)?", re.IGNORECASE)
"""What an SDK says of an answer that was looked into already."""
_VALUE: Final = r"""(?:"[^"]*"?|'[^']*'?|(?:(?:basic|bearer|digest|negotiate|token)\s{1,4})?[^\s,}]+)"""
"""What stands after the name of a secret: in quotes all of it, else a word, after the scheme of credentials if one is
named. A quote that is not closed reaches to the end, so that no search begins in vain."""
_IS: Final = r"""['"]?\s{0,8}(?:header\s{0,8}|provided\s{0,8})?[=:]\s{0,8}"""
_SECRETS: Final = (
    (re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----END))*"), "[redacted]"),
    (re.compile(r"//[^\s/?#@]{1,256}@"), "//"),
    (
        re.compile(
            rf"(?:authorization|cookie){_IS}{_VALUE}(?:(?<=;)\s{{1,4}}[^\s,}}]+|[,;]\s{{0,4}}[\w-]{{1,40}}=[^\s,;]+)*",
            re.IGNORECASE,
        ),
        "[redacted]",
    ),
    (
        re.compile(
            r"(?:(?:api|access|private|signing|encryption|session|subscription)[-_ ]?key(?:[-_ ]?id)?"
            r"|passwd|passphrase|pwd|jwt|(?:secret|password|credential)(?:[-_][\w-]{0,24}|key)?)s?"
            rf"{_IS}{_VALUE}",
            re.IGNORECASE,
        ),
        "[redacted]",
    ),
    (
        re.compile(rf"token{_IS}(?!['\"]?\d{{1,40}}(?!\w))(?=['\"]?[\w.~+/=*-]{{4}}){_VALUE}", re.IGNORECASE),
        "[redacted]",
    ),
    (re.compile(r"api[-_ ]?key\s{1,4}(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\")", re.IGNORECASE), "[redacted]"),
    (re.compile(r"\bbearer\s+[^\s'\",]+", re.IGNORECASE), "[redacted]"),
    (re.compile(r"\bbasic\s{1,4}(?=[a-z0-9+/_-]{0,200}[0-9=])[a-z0-9+/=_-]{8,}", re.IGNORECASE), "[redacted]"),
    (
        re.compile(r"\b(?:sk|pk|rk|key|tok|gh[oprsu]|github_pat|glpat|hf|xox[a-z])[-_][^\s'\",.)]{4,}"),
        "[redacted]",
    ),
    (re.compile(r"\bAIza[\w-]{10,}"), "[redacted]"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"), "[redacted]"),
    (re.compile(r"(?<![\w-])eyJ[\w-]{10,}(?:\.[\w-]*)*"), "[redacted]"),
    (
        re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}:[^\s/@:]{1,128}@(?=[a-z\[]|\d{1,3}\.)", re.IGNORECASE),
        "[redacted]@",
    ),
)
"""What looks like a secret, and what takes its place: by its name or its form, and user and password of an address.

A name counts within a longer one (``client_secret``), whose beginning stays. Each search is bounded, or takes what it
has looked at: a text is gone through once, whatever it is.
"""


def display_name(provider: str) -> str:
    """Return how a provider is called at the start of a sentence."""
    return _NAMES.get(provider, _ANYBODY)


def message_for(kind: str, provider: str, *, retryable: bool, status: int | None) -> str:
    """Return the message of an error.

    Args:
        kind: The classified kind.
        provider: The provider's name in model references.
        retryable: Whether another attempt follows by itself.
        status: The HTTP status, if there was one; it is never shown.
    """
    name = display_name(provider)
    inside = name[0].lower() + name[1:] if name.startswith("The ") else name
    template = _RETRY.get(kind) if retryable else _TERMINAL.get(kind)
    if kind == "timeout" and status is not None:
        template = _RETRY[kind]
    if template is None and (retryable or status is not None):
        template = _RETRY.get(kind, _RETRY["generic"])
    if template is None:
        return "The request failed unexpectedly."
    return template.format(name=name, name_inside=inside, key=_KEYS.get(provider, "one"))


def stream_message(fault: StreamFault, provider: str) -> str:
    """Return the message of a stream that ended well by its own account, or did not end."""
    return _STREAM[fault].format(name=display_name(provider))


def chain_message(chain: str, provider: str) -> str:
    """Return the message of a failure that is told apart within its kind."""
    return CHAIN_MESSAGES[chain][0].format(name=display_name(provider))


def limit_message(limit: str, provider: str, **facts: object) -> str:
    """Return the message of a request that is over a limit of its service, with the facts that it tells."""
    return _LIMITS[limit].format(name=display_name(provider), **facts)


def hook_message(event: str, *, on_request: bool = False) -> str:
    """Return the message of a turn that failed because a hook could not be asked.

    Args:
        event: What it was asked at.
        on_request: Whether a compaction was asked for, by a user.
    """
    what = _HOOKS[f"{event}, on request" if on_request else event]
    return f"A hook at {event} could not be asked, {what}; or have its operator look."


def finish_detail(reason: str) -> str:
    """Return the detail of an error that the engine found itself, in a stream that ended well by its own account."""
    return f"finish reason: {reason}"


def given_up(message: str, attempts: int) -> str:
    """Return the message of a turn that ends after ``attempts`` attempts, of which each was worth another one."""
    return f"{message} Given up after {attempts} attempt{'' if attempts == 1 else 's'}; try again later."


def unreachable_message(provider: str, host: str, cause: str) -> str:
    """Return the message of a call that got no connection: it says where to, since a wrong address never mends."""
    name = display_name(provider)
    return f"{name} cannot be reached: {connection_detail(host, cause, connected=False)}."


def connection_detail(host: str, cause: str, *, connected: bool) -> str:
    """Return what the transport says of its failure.

    Args:
        host: The service's host, with its port if one was given; no URL, so that no credentials are in it.
        cause: What happened, in the system's words.
        connected: Whether there was a connection, which then broke.
    """
    where = host or "the service"
    said = redact(cause) or "no connection"
    return cut(f"the connection to {where} broke: {said}" if connected else f"cannot reach {where}: {said}")


def fit_message(text: str) -> str:
    """Return a message as it may be stored and shown: storable, without secrets, and cut to its length.

    It stays otherwise as it was worded, with its lines and addresses.
    """
    return cut(without_secrets(repair_text(text[:MAX_READ])[0]), MAX_MESSAGE)


def fit_detail(text: str) -> str:
    """Return a detail as it may be stored and shown: redacted, and cut to its length."""
    return cut(redact(text))


def redact(text: str) -> str:
    """Return ``text`` on one line, storable, without addresses, ids, and what looks like a secret.

    No more of it than ``MAX_READ`` characters is looked at.
    """
    text = without_secrets(repair_text(text[:MAX_READ])[0])
    for ids in _IDS:
        text = ids.sub(r"\1[id]", text)
    return " ".join(_without_addresses(text).split())


def without_secrets(text: str) -> str:
    """Return ``text`` without what looks like a secret by its form."""
    for secret, instead in _SECRETS:
        text = secret.sub(instead, text)
    return text


def _without_addresses(text: str) -> str:
    kept, done, at = list[str](), 0, 0
    while (run := _RUN.search(text, at)) is not None:
        scheme = _SCHEME.search(text, run.start(), run.end(1))
        rest = _REST.match(text, run.end()) if scheme is not None else None
        at = run.end() if rest is None else rest.end()
        if scheme is not None and rest is not None:
            kept += text[done : scheme.start()], "[address]"
            done = at
    return "".join(kept) + text[done:]


def cut(text: str, most: int = MAX_DETAIL) -> str:
    """Cut ``text`` to ``most`` characters, by default the length of a detail."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def detail_of(body: Json, text: str, *, auth: bool) -> str | None:
    """Return what the service itself says about the error, fit to be shown.

    Args:
        body: What the service answered.
        text: The exception's own text, used where there is no answer.
        auth: Whether credentials were refused: then a text that is no structured answer is not shown. Nor is it ever
            where it has several lines or an address.
    """
    said = body if isinstance(body, str) and body.strip() else text
    wrapped = _WRAPPED.fullmatch(said.strip())
    inner = _loaded(wrapped[2]) if wrapped is not None and wrapped[2] is not None else None
    if structured := _structured(body) or _structured(inner):
        return cut(redact(structured)) or None
    raw = (wrapped[1] if wrapped is not None else said).strip()
    if auth or not raw or "\n" in raw or "://" in raw or raw.startswith("<") or _BARE.fullmatch(raw):
        return None
    return cut(redact(raw)) or None


def _loaded(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _structured(body: Json) -> str | None:
    """Return the message within an answer: of its error, or of the first of its errors, or its own."""
    if isinstance(body, list):
        return _structured(body[0]) if body and isinstance(body[0], dict) else None
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    for source in (inner, body):
        if isinstance(source, dict) and isinstance(message := source.get("message"), str) and message.strip():
            return message
    for text in (inner, body.get("detail")):
        if isinstance(text, str):
            return text
    return _structured(body.get("errors"))
