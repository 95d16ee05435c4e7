"""``list``, ``show`` and ``replay``: looking at chats without changing anything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from chatfold.cli.output import Channel, Out, one_line, printable
from chatfold.cli.places import existing_store, load_settings
from chatfold.cli.shapes import ChatLine, StateLine
from chatfold.cli.sources import must_have, opened
from chatfold.cli.timeline import print_timeline, said_of, text_of, time_of, timeline
from chatstate.classify import classify
from events.content import Content
from events.control import encode_control
from events.counting import counted
from events.envelope import Status
from events.messages import Message
from events.parts import Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.replay import state_at
from events.state import ChatState
from store import open_store
from store.contract import Header
from store.query import ChatQuery

PAGE = 200


def run_list(
    out: Out,
    *,
    owner: str | None,
    agent: str | None,
    statuses: tuple[Status, ...],
    limit: int,
    json: bool,
    db: str | None,
    log_level: str | None,
) -> None:
    """List chats; see the command."""
    settings = load_settings(db, log_level)
    url = existing_store(settings)
    query = ChatQuery(owner=owner, agent=agent, statuses=statuses or None)
    headers = asyncio.run(_headers(url, query, limit))
    if headers and not json:
        # To the side, so that a pipe gets the chats alone.
        out.note(_columns("chat", "last changed", "status", "events", "agent, title"))
    for header in headers:
        if json:
            out.data.json(_chat_line(header))
        else:
            out.data.line(_listed(header))
    if not headers and not json:
        out.note("no chats; `chatfold chat` begins one")


async def _headers(url: str, query: ChatQuery, limit: int) -> list[Header]:
    found: list[Header] = []
    async with open_store(url) as store:
        while len(found) < limit:
            before = (found[-1].listed_at, found[-1].chat) if found else None
            wanted = min(PAGE, limit - len(found))
            page = await store.list_chats(msgspec.structs.replace(query, before=before, limit=wanted))
            found += page
            if len(page) < wanted:
                break
    return found


def _chat_line(header: Header) -> ChatLine:
    return ChatLine(
        chat=header.chat,
        owner=header.owner,
        agent=header.agent,
        status=header.status,
        title=header.title,
        version=header.version,
        queued=header.queued,
        archived=header.archived,
        foreign=header.foreign,
        created_at=header.created_at,
        updated_at=header.updated_at,
    )


def _listed(header: Header) -> str:
    marks = [name for name in ("archived", "foreign", "pinned") if getattr(header, name)]
    return _columns(
        printable(header.chat),
        time_of(header.updated_at)[:19],
        header.status,
        str(header.version),
        printable(header.agent),
        f"({', '.join(marks)})" if marks else "",
        one_line(header.title or "", 60),
    )


def _columns(chat: str, changed: str, status: str, events: str, *more: str) -> str:
    fields = [f"{chat:<32}", f"{changed:<19}", f"{status:<15}", f"{events:>6}", *more]
    return "  ".join(field for field in fields if field)


def run_replay(out: Out, source: str, *, json: bool, db: str | None, log_level: str | None) -> None:
    """Print a timeline; see the command.

    Raises:
        typer.Exit: With 1, where the log is not as it was written.
    """
    with opened(out, source, db, log_level) as log:
        lines = timeline(log.recorded())
        if json:
            for line in lines:
                out.data.json(line)
        else:
            print_timeline(out.data, lines)


def run_state(out: Out, source: str, *, at: int | None, json: bool, db: str | None, log_level: str | None) -> None:
    """Print a state; see the commands ``show`` and ``replay --at``.

    Raises:
        UsageProblem: The log has no such version.
        typer.Exit: With 1, where the log is not as it was written.
    """
    with opened(out, source, db, log_level) as log:
        must_have(log.name, at, len(log.events))
        version = len(log.events) if at is None else at
        state = state_at(log.recorded(), version)
        if json:
            out.data.json(state_line(log.chat, state))
        else:
            print_state(out.data, log.chat, len(log.events), state)


def state_line(chat: str, state: ChatState) -> StateLine:
    """Return a chat's state in its shape."""
    control, transcript = state.control, state.need_transcript("show")
    return StateLine(
        chat=chat,
        version=control.version,
        status=control.status if control.exists else "none",
        state=str(classify(control)),
        control=msgspec.Raw(encode_control(control)),
        messages=tuple(
            {"id": item.id, "version": item.version, **_built(item.message)} for item in transcript.messages
        ),
        queued=tuple({"id": item.id, **_built(transcript.queued[item.id].message)} for item in control.queue),
    )


def _built(message: Message) -> Mapping[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(message, enc_hook=_value)
    return built


def _value(content: object) -> object:
    if not isinstance(content, Content):
        raise TypeError(type(content).__name__)
    if content.available:
        return content.value
    return {"absent": "erased" if content.erased else "not loaded", "bytes": content.size}


def print_state(channel: Channel, chat: str, last: int, state: ChatState) -> None:
    """Print a chat's state.

    Args:
        channel: Where to.
        chat: Its id.
        last: Its last version.
        state: It, with its transcript.
    """
    control, transcript = state.control, state.need_transcript("show")
    _field(channel, "chat", printable(chat))
    _field(channel, "version", f"{control.version} of {last}")
    if not control.exists:
        _field(channel, "status", "none N")
        return
    title = transcript.title
    _field(channel, "title", one_line(text_of(title), 200) if title is not None else "")
    _field(channel, "status", f"{control.status} {classify(control)}")
    _field(channel, "agent", control.agent + (f", model {control.model}" if control.model is not None else ""))
    _field(channel, "recorded", time_of(control.recorded_at))
    _field(channel, "history", f"version {control.history_version}, {counted(control.indexes.messages, 'message')}")
    holder = f", held by {control.holder}" if control.holder is not None else ""
    _field(channel, "epoch", f"{control.epoch}{holder}")
    if control.running is not None:
        _field(channel, "attempt", f"{control.running.attempt}, {control.running.kind}")
    if control.not_before is not None:
        _field(channel, "next try", time_of(control.not_before))
    if control.action is not None:
        asks = ", ".join(f"{item.kind} {item.call or ''}".strip() for item in control.action.items)
        _field(channel, "asks", f"{asks}, until {time_of(control.action.deadline)} (action {control.action.id})")
    if control.last_error is not None:
        _field(channel, "error", one_line(said_of(control.last_error), 600))
    usage = control.usage
    if usage.context or usage.output:
        _field(channel, "tokens", f"{usage.context} in, {usage.output} out")
    for item in transcript.messages:
        _message(channel, item.id, item.message)
    for queued in control.queue:
        _message(channel, f"{queued.id}, queued", transcript.queued[queued.id].message)


def _field(channel: Channel, name: str, value: str) -> None:
    if value:
        channel.put(f"{name:<10}", style="dim")
        channel.line(value)


def _message(channel: Channel, name: str, message: Message) -> None:
    marks = [message.visibility + " only"] if message.visibility != "both" else []
    marks += ["interrupted"] if message.interrupted else []
    marks += [message.boundary] if message.boundary is not None else []
    channel.line()
    channel.put(f"{message.role} ", style="bold")
    channel.put(f"[{', '.join([name, *marks])}]", style="dim", end="\n")
    for part in message.parts:
        channel.line(f"  {_part(part)}")


def _part(part: Part) -> str:
    match part:
        case TextPart(text=text):
            said = text_of(text)
        case ReasoningPart(text=text):
            said = f"(reasoning) {text_of(text)}"
        case ToolCallPart(name=name, arguments=arguments, runner=runner):
            said = f"calls {name}({text_of(arguments)}), {runner}"
        case ToolResultPart(call=call, is_error=is_error, output=output, reason=reason):
            what = text_of(output) if output is not None else f"no result: {reason}"
            said = f"{call} {'failed: ' if is_error and output is not None else '= '}{what}{_beside(part)}"
        case _:
            said = msgspec.json.encode(msgspec.to_builtins(part, enc_hook=_value)).decode()
    return printable(said).replace("\n", "\n  ")


def _beside(result: ToolResultPart) -> str:
    """Return what came with a result, in lines of its own: changed arguments, and files without their bytes."""
    lines = [] if result.rewritten is None else [f"arguments changed to {text_of(result.rewritten)}"]
    for files, what in ((result.media, "file"), (result.attachments, "attachment")):
        for file in files:
            name = f" {text_of(file.name)}" if file.name is not None else ""
            lines.append(f"{what}{name}, {file.media_type}, {file.data.size} B of base64")
    return "".join(f"\n{line}" for line in lines)
