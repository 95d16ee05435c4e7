"""Checks of the single values that callers give: ids, texts, numbers, labels, models.

Each returns the value in the form that commands carry, or raises an ``InvalidValue`` whose path begins with the
argument's name. Messages and results are ``chatfold.inputs``'s.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

from events.content import Content
from events.errors import InvalidValue
from events.given import called, checked_kind
from events.ids import ChatId, CommandId, MessageId
from events.values import check_value
from generation.efforts import EFFORTS
from generation.errors import UnknownModel
from generation.models import parse_model
from generation.providers.contract import Provider
from generation.titles import control_in, is_unseen
from store import Store, open_store

LONGEST_ID: Final = 200
"""Characters of an id. Databases index ids, and PostgreSQL takes no long ones into an index."""

LONGEST_TEXT: Final = 1000
"""Characters of the name of a tool and of a model's reference."""

LONGEST_TITLE: Final = 200
"""Characters of a title that is given now; logs may hold longer ones."""

MOST_LABELS: Final = 50
LONGEST_LABEL: Final = 256
"""Characters of a label's value."""

_LABEL_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._/-]{0,63}", re.ASCII)

_LONGEST_TIME: Final = 9e12
"""Seconds that fit into 64 bits as microseconds."""

_UNPRINTED: Final = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)))
"""Control characters, and the two that Unicode has for the ends of lines and paragraphs."""


def checked_id(value: object, path: str) -> str:
    """Return an id that a caller made: of a chat, a command, an owner, an author or an agent.

    Raises:
        InvalidValue: It is not a text of 1 to 200 characters without control characters, lone surrogates, and blanks at
            its ends.
    """
    text = _text(value, path)
    if not text:
        raise InvalidValue(path, "is empty")
    if len(text) > LONGEST_ID:
        raise InvalidValue(path, f"an id has at most {LONGEST_ID} characters, this one has {len(text)}")
    if not _UNPRINTED.isdisjoint(text):
        raise InvalidValue(path, f"an id has no control characters: {text!r}")
    if text != text.strip():
        raise InvalidValue(path, f"an id has no blanks at its ends: {text!r}")
    return text


def checked_chat(value: object) -> ChatId:
    """Return the id of a chat that a command is for.

    Raises:
        InvalidValue: It is no id.
    """
    return ChatId(checked_id(value, "$.chat"))


def checked_new_chat(value: object, path: str) -> ChatId:
    """Return the id of a chat that is to be made, which must not look like a log file to the command line.

    Raises:
        InvalidValue: It is no id, has a slash or a backslash, ends in ``.jsonl``, or is ``-``.
    """
    text = checked_id(value, path)
    if "/" in text or "\\" in text or text == "-" or text.lower().endswith(".jsonl"):
        why = "the id of a chat has no slash and no backslash, does not end in .jsonl and is not -, since the "
        raise InvalidValue(path, f"{why}command line takes those for files: {text!r}")
    return ChatId(text)


def checked_command_id(value: object) -> CommandId | None:
    """Return a command id, or None where none was given.

    Raises:
        InvalidValue: It is no id.
    """
    return None if value is None else CommandId(checked_id(value, "$.command_id"))


def checked_person(value: object, path: str) -> str:
    """Return an owner or author; the empty text stands for nobody.

    Raises:
        InvalidValue: It is no id.
    """
    return "" if value == "" else checked_id(value, path)


def checked_message_id(value: object, path: str = "$.message_id") -> MessageId:
    """Return the id of a message as a caller gives it; whether there is such a message is the machine's to say.

    Raises:
        InvalidValue: It is not a text, or cannot be stored.
    """
    return MessageId(_text(value, path))


def checked_message_ids(values: object, path: str) -> tuple[MessageId, ...]:
    """Return ids of messages.

    Raises:
        InvalidValue: It is not a sequence of texts.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidValue(path, f"must be a list of message ids, not {type(values).__name__}")
    return tuple(checked_message_id(value, f"{path}[{place}]") for place, value in enumerate(values))


def checked_title(value: object) -> Content | None:
    """Return a title.

    Raises:
        InvalidValue: It is blank, longer than 200 characters or not a text, has a control, or cannot be stored exactly.
    """
    if value is None:
        return None
    title = _text(value, "$.title")
    if is_unseen(title):
        raise InvalidValue("$.title", "is blank; None takes the title away")
    if (control := control_in(title)) is not None:
        why = "a title is one line, without controls of terminals and of the direction of writing"
        raise InvalidValue("$.title", f"has the character U+{ord(control):04X}; {why}")
    if len(title) > LONGEST_TITLE:
        raise InvalidValue("$.title", f"has {len(title)} characters, the limit is {LONGEST_TITLE}")
    return Content(title)


def checked_hint(value: object) -> Content | None:
    """Return a hint to who writes a summary.

    Raises:
        InvalidValue: It is not a text, or cannot be stored exactly.
    """
    return None if value is None else Content(_text(value, "$.hint"))


def checked_flag(value: object, path: str) -> bool:
    """Return a truth value.

    Raises:
        InvalidValue: It is neither True nor False.
    """
    if not isinstance(value, bool):
        raise InvalidValue(path, f"must be True or False, not {type(value).__name__}")
    return value


def checked_store(value: object, path: str = "$.store") -> Store:
    """Return the store that is given, such as an engine's: opened by its URL, or as it is.

    Raises:
        InvalidValue: It is neither.
        InvalidStoreUrl: The URL has none of the known forms.
        MissingExtra: The driver of its database is not installed.
    """
    if isinstance(value, str):
        return open_store(value)
    # A store may be wrapped, so it is known by what it can do.
    if isinstance(value, type) or not all(callable(getattr(value, name, None)) for name in _STORES):
        raise InvalidValue(path, f"must be a store or its URL, not {called(value)}")
    return cast("Store", value)


def checked_providers(value: object) -> Mapping[str, Provider]:
    """Return the providers that an engine is given, by name.

    Raises:
        InvalidValue: It is no mapping, a name is no text, or something in it is no provider.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidValue("$.providers", f"must be a mapping from names to providers, not {called(value)}")
    for name, provider in value.items():
        checked_kind(name, str, "$.providers", "a mapping from names, texts, to providers")
        if isinstance(provider, type) or not all(callable(getattr(provider, each, None)) for each in _PROVIDERS):
            raise InvalidValue(f"$.providers[{name!r}]", f"must be a provider, not {called(provider)}")
    return value


_STORES: Final = ("__aenter__", "load_header", "append")
_PROVIDERS: Final = ("stream", "close")


def checked_model(reference: object) -> str | None:
    """Return a model reference in its whole form; whether its provider is here is not looked at.

    Raises:
        InvalidValue: It is no text, too long, or cannot be stored.
        UnknownModel: It has not the form ``provider/name``.
    """
    if reference is None:
        return None
    text = _short(reference, "$.model")
    if not _UNPRINTED.isdisjoint(text):
        raise UnknownModel(text, "a model's name has no control characters")
    return parse_model(text).reference


def checked_effort(effort: object) -> str | None:
    """Return a reasoning effort.

    Raises:
        InvalidValue: There is no such effort.
    """
    if effort is None:
        return None
    if not isinstance(effort, str) or effort not in EFFORTS:
        raise InvalidValue("$.effort", f"must be one of {', '.join(EFFORTS)}, not {effort!r}")
    return effort


def checked_labels(labels: object) -> dict[str, str]:
    """Return labels. Logs may hold more of them, and others.

    Raises:
        InvalidValue: There are more than 50; a name is not 1 to 64 letters, digits, ``.``, ``_``, ``/`` or ``-``, the
            first a letter or digit; a value is not a text of at most 256 characters, or cannot be stored exactly.
    """
    if not isinstance(labels, Mapping):
        raise InvalidValue("$.labels", f"must be a mapping of texts, not {type(labels).__name__}")
    if len(labels) > MOST_LABELS:
        raise InvalidValue("$.labels", f"at most {MOST_LABELS} labels, not {len(labels)}")
    for name, value in labels.items():
        shown = f"$.labels[{name!r:.80}]"
        if not _LABEL_NAME.fullmatch(_text(name, shown)):
            why = "a name is 1 to 64 letters, digits, ., _, / or -, the first a letter or digit"
            raise InvalidValue(shown, why)
        if len(text := _text(value, shown)) > LONGEST_LABEL:
            raise InvalidValue(shown, f"has {len(text)} characters, the limit is {LONGEST_LABEL}")
    return dict(labels)


def checked_tool_names(names: object) -> tuple[str, ...] | None:
    """Return names of tools, each once; None for the agent's choice.

    Raises:
        InvalidValue: It is no list of texts, or one is too long or cannot be stored exactly.
    """
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidValue("$.tools", f"must be a list of names of tools, not {type(names).__name__}")
    for place, name in enumerate(names):
        _short(name, f"$.tools[{place}]")
    return tuple(dict.fromkeys(names))


def check_known_tools(names: Sequence[str], agent: str, known: Collection[str]) -> None:
    """Check that an agent has all tools of these names.

    Raises:
        InvalidValue: It has not; names those that it does not have.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        none, has = ", ".join(map(repr, unknown)), ", ".join(sorted(known)) or "none"
        raise InvalidValue(f"$.tools[{names.index(unknown[0])}]", f"agent {agent!r} has no tool {none}; it has: {has}")


def checked_retention(seconds: object) -> int | None:
    """Return a time to keep a chat in microseconds.

    Raises:
        InvalidValue: It is negative, not a number, or endless.
    """
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidValue("$.seconds", f"must be a number of seconds or None, not {type(seconds).__name__}")
    if not 0 <= seconds <= _LONGEST_TIME:
        raise InvalidValue(
            "$.seconds", f"must be between 0 and {_LONGEST_TIME:g}, not {seconds}; None is without limit"
        )
    return round(seconds * 1_000_000)


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(path, f"must be a text, not {type(value).__name__}")
    check_value(value, path)
    return value


def _short(value: object, path: str) -> str:
    text = _text(value, path)
    if len(text) > LONGEST_TEXT:
        raise InvalidValue(path, f"has {len(text)} characters, the limit is {LONGEST_TEXT}")
    return text
