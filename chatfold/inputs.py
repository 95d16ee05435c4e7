"""From what callers give to what commands carry: messages, results, answers, fingerprints.

Refuses what cannot be stored exactly. Single values are checked by ``chatfold.checks``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from chatfold.checks import checked_effort, checked_flag, checked_model, checked_person
from chatstate.commands import SubmittedResult, Unfit
from events.content import Content
from events.control import Control
from events.errors import InvalidValue
from events.given import checked_kind
from events.ids import CallKey, ChatId
from events.messages import Message, QueuedMessage, Role
from events.parts import PARTS, ContextFilePart, FilePart, FileReferencePart, Part, SourcePart, TextPart
from events.records import ApprovalAnswer, Budget, BudgetAnswer
from events.values import check_value, parse_json_strict
from generation.budget import UNKNOWN_LIMIT_BUDGET
from generation.media import disagreement, is_media_type
from generation.tools.arguments import arguments_problem
from generation.tools.contract import Tool
from generation.tools.files import ToolFile, files_of

MessageInput: TypeAlias = str | Sequence[Part | str] | Message
"""A text, content parts (a text among them stands for a ``TextPart``), or a whole message."""

ResultsInput: TypeAlias = Mapping[str, Any] | Mapping[CallKey, Any] | Sequence[SubmittedResult]
"""Output (JSON data) by call, or results that say whether they are errors.

The outputs are ``Any`` to type checkers: a ``dict[str, str]`` is JSON, and yet no ``dict[str, Json]`` to them.
"""


_TEXTS: Final[Mapping[type, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    TextPart: (("text",), ()),
    FilePart: (("data",), ("name",)),
    FileReferencePart: (("name", "text"), ()),
    SourcePart: (("url",), ("title",)),
    ContextFilePart: (("path", "text"), ("directory",)),
}
"""Which contents of a part hold texts: those that it must have, and those that it may have."""

_WANTED: Final[Mapping[tuple[type, str], str]] = {
    (FilePart, "data"): "a Content that holds base64 text (FilePart.of(data, media_type) takes bytes)",
    (TextPart, "text"): "a Content that holds a text (a text among the parts may stand for a TextPart)",
}
"""What to say of contents that are often given otherwise."""

_IN_PLACE_OF: Final[Mapping[type, str]] = {
    ToolFile: ": a file of a message is FilePart.of(data, media_type, name)",
    bytes: ": a file is FilePart.of(data, media_type, name)",
}
"""What to say to those who give something else as a part."""


def message_of(given: MessageInput, role: Role = "user", author: str | None = None) -> Message:
    """Return a message.

    Raises:
        InvalidValue: The text is blank or cannot be stored exactly; says the path.
    """
    if isinstance(given, Message):
        _checked_parts(given.parts)
        return given
    if isinstance(given, str):
        check_value(given, "$.message")
        if not given.strip():
            raise InvalidValue("$.message", "the text is blank")
        return Message(role=role, parts=(TextPart(text=Content(given)),), author=author)
    if not isinstance(given, Sequence):
        raise InvalidValue("$.message", f"a message is a text or parts, not {type(given).__name__}")
    return Message(role=role, parts=_checked_parts(_without_texts(given)), author=author)


def _without_texts(given: Sequence[object]) -> list[object]:
    """Return parts, with a ``TextPart`` for each text among them."""
    for place, part in enumerate(given):
        if isinstance(part, str):
            check_value(part, f"$.message[{place}]")
    return [TextPart(text=Content(part)) if isinstance(part, str) else part for part in given]


def _checked_parts(given: Sequence[object]) -> tuple[Part, ...]:
    if not given:
        raise InvalidValue("$.message", "there are no parts")
    for place, part in enumerate(given):
        path = f"$.message[{place}]"
        if not isinstance(part, PARTS):
            hint = _IN_PLACE_OF.get(type(part), "")
            raise InvalidValue(path, f"a part is one of chatfold's parts, not {type(part).__name__}{hint}")
        _check_texts(part, path)
        if isinstance(part, FilePart):
            _check_file(part, path)
        if isinstance(part, TextPart) and part.text.available and not part.text.text.strip():
            raise InvalidValue(f"{path}.text", "the text is blank")
    return cast("tuple[Part, ...]", tuple(given))


def _check_texts(part: object, path: str) -> None:
    """Refuse a part in which something else stands where a text belongs."""
    always, perhaps = _TEXTS.get(type(part), ((), ()))
    for name in (*always, *perhaps):
        value = getattr(part, name)
        if value is None and name in perhaps:
            continue
        wanted = _WANTED.get((type(part), name), "a Content that holds a text")
        content = checked_kind(value, Content, f"{path}.{name}", wanted)
        if content.available and not isinstance(content.value, str):
            raise InvalidValue(f"{path}.{name}", f"must be {wanted}, not {type(content.value).__name__}")


def _check_file(part: FilePart, path: str) -> None:
    """Refuse a file that services would refuse in each turn from then on."""
    if not is_media_type(checked_kind(part.media_type, str, f"{path}.media_type", "a text")):
        raise InvalidValue(f"{path}.media_type", f"{part.media_type!r:.100} is no media type such as image/png")
    if not part.data.available:
        return
    try:
        data = part.read()
    except ValueError:
        raise InvalidValue(f"{path}.data", "the text is no base64; FilePart.of(data, media_type) takes bytes") from None
    wrong = disagreement(part.media_type, data)
    if wrong is not None:
        raise InvalidValue(f"{path}.data", f"the file is not what it says: {wrong}")


def queued(given: MessageInput, model: str | None, effort: str | None, author: str | None = None) -> QueuedMessage:
    """Return a message with the model and effort of its turn.

    Raises:
        InvalidValue: The message, the effort or the author is none.
        UnknownModel: The model has not the form ``provider/name``.
    """
    who = checked_person(author, "$.author") if author is not None else None
    return QueuedMessage(
        message=message_of(given, author=who or None), model=checked_model(model), effort=checked_effort(effort)
    )


def submitted(results: ResultsInput) -> tuple[SubmittedResult, ...]:
    """Return submitted results; of a mapping from call to output none is an error.

    What is not JSON that can be stored is marked, not refused here: the order of checks is the machine's.

    Raises:
        InvalidValue: It is no mapping and no sequence of results, or a call is no text.
    """
    if isinstance(results, Mapping):
        return tuple(_result(_call(call, "$.results"), output) for call, output in results.items())
    wanted = "a mapping from call to output, or a list of chatfold.result(...)"
    given: object = results
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidValue("$.results", f"must be {wanted}, not {type(given).__name__}")
    return tuple(
        checked_kind(each, SubmittedResult, f"$.results[{place}]", "a chatfold.result(...)")
        for place, each in enumerate(given)
    )


def checked_approvals(given: Sequence[ApprovalAnswer]) -> tuple[tuple[ApprovalAnswer, ...], tuple[Unfit, ...]]:
    """Return answers to approvals, and the calls whose new arguments are not the JSON text of an object.

    Raises:
        InvalidValue: Something is no answer to an approval.
    """
    if not isinstance(given, Sequence):
        raise InvalidValue("$.approvals", f"must be a list of ApprovalAnswer, not {type(given).__name__}")
    for place, each in enumerate(given):
        path = f"$.approvals[{place}]"
        checked_kind(each, ApprovalAnswer, path, "an ApprovalAnswer")
        _call(each.call, f"{path}.call")
        checked_flag(each.approved, f"{path}.approved")
        if each.arguments is not None:
            checked_kind(each.arguments, Content, f"{path}.arguments", "a Content that holds JSON text")
    problems = ((each.call, _no_object(each.arguments)) for each in given if each.arguments is not None)
    return tuple(given), tuple(Unfit(call=call, why=why) for call, why in problems if why is not None)


def checked_budget_answer(given: BudgetAnswer | None) -> BudgetAnswer | None:
    """Return the answer to a budget question.

    Raises:
        InvalidValue: It is none, says two things at once, or a number in it is negative.
    """
    if given is None:
        return None
    checked_kind(given, BudgetAnswer, "$.budget", "a BudgetAnswer")
    checked_flag(given.end_turn, "$.budget.end_turn")
    if given.end_turn and given.raised is not None:
        raise InvalidValue("$.budget", "ends the turn and raises a limit: it must be one of both")
    if given.raised is not None:
        checked_kind(given.raised, Budget, "$.budget.raised", "a Budget")
    return given


def _no_object(arguments: Content) -> str | None:
    """Return why a content is not the JSON text of an object; None where it is."""
    value = arguments.value if arguments.available else None
    if not isinstance(value, str):
        return f"must be the JSON text of an object, not {type(value).__name__}"
    try:
        read = parse_json_strict(value)
    except InvalidValue as error:
        return str(error)
    return None if isinstance(read, dict) else "must be the JSON text of an object"


def unfit_arguments(approvals: Iterable[ApprovalAnswer], control: Control, tools: Iterable[Tool]) -> tuple[Unfit, ...]:
    """Return the calls that are approved with arguments that their tool does not take, and why.

    Args:
        approvals: The answers.
        control: The chat's control, which says what is open.
        tools: The tools of its agent; arguments of another tool are looked at when it runs.
    """
    names = {call.key: call.name for call in control.indexes.open_calls}
    known = {tool.name: tool for tool in tools}
    edited = ((each.call, each.arguments) for each in approvals if each.approved and each.arguments is not None)
    found = ((call, known.get(names.get(call, "")), text) for call, text in edited)
    problems = ((call, arguments_problem(tool, text.text)) for call, tool, text in found if tool is not None)
    return tuple(Unfit(call=call, why=why) for call, why in problems if why is not None)


def _call(call: object, path: str) -> CallKey:
    text = checked_kind(call, str, path, "a call's id")
    check_value(text, path)
    return CallKey(text)


def result(
    call: str,
    output: Any,
    *,
    is_error: bool = False,
    media: Sequence[ToolFile] = (),
    attachments: Sequence[ToolFile] = (),
) -> SubmittedResult:
    """Return the result of one client-run call.

    Args:
        call: The call.
        output: A text or other JSON data. One that is longer than the chat's model can read is cut.
        is_error: Whether the call failed.
        media: Files that the model is shown with it.
        attachments: Files for people alone.

    Raises:
        InvalidValue: The call is no text, or a file is none, or cannot be kept.
    """
    made = _result(_call(call, "$.call"), output, is_error=checked_flag(is_error, "$.is_error"))
    for name, given in (("media", media), ("attachments", attachments)):
        _check_files(given, f"$.{name}")
    if not media and not attachments:
        return made
    files = files_of(media, attachments, UNKNOWN_LIMIT_BUDGET)
    if files.notes:
        raise InvalidValue("$.media" if media else "$.attachments", "; ".join(files.notes))
    return replace(made, media=files.media, attachments=files.attachments)


def _check_files(given: object, path: str) -> None:
    if given is not None and (not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping)):
        raise InvalidValue(path, f"must be a list of ToolFile, not {type(given).__name__}")


def _result(call: CallKey, output: Any, *, is_error: bool = False) -> SubmittedResult:
    try:
        check_value(output, "$.output")
    except InvalidValue as error:
        return SubmittedResult(call=call, output=Content(""), is_error=is_error, problem=str(error))
    return SubmittedResult(call=call, output=Content(output), is_error=is_error)


def fingerprint(*given: object) -> bytes:
    """Return what identifies the content of a command."""
    return hashlib.sha256(msgspec.json.encode(given, enc_hook=_plain, order="deterministic")).digest()


def derived_chat_id(owner: str, command_id: str) -> ChatId:
    """Return the chat id that a repeated create finds again."""
    return ChatId(hashlib.sha256(f"{owner}\0{command_id}".encode()).hexdigest()[:32])


def _plain(value: object) -> object:
    if isinstance(value, Content):
        return value.value
    raise TypeError(type(value).__name__)
