"""Commands of users by way of a worker process, as a service takes them: one connection and one line for each.

Owns the line's form and both of its ends. A user may not learn what became of a command: its worker may die before,
while or after it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from chatfold.engine import Engine
from chatstate.errors import Refusal
from events.errors import InvalidValue
from events.ids import CallKey
from events.records import ApprovalAnswer
from store.errors import OutcomeUnknown, StoreUnavailable


class Command(Struct, frozen=True, kw_only=True):
    """A command: a method of the engine, what it is given, and the id under which it is repeated until it is known.

    ``approve`` are calls that ``submit_tool_results`` approves.
    """

    id: str
    chat: str
    method: Literal[
        "create_chat",
        "send_message",
        "edit_message",
        "interrupt",
        "resume",
        "submit_tool_results",
        "delete_queued",
        "promote_queued",
        "compact",
        "clear",
    ]
    arguments: dict[str, Any] = {}
    approve: tuple[str, ...] = ()


class Reply(Struct, frozen=True, kw_only=True):
    """What became of a command.

    ``done`` with the receipt's ``version``, state and ids of messages in history; ``refused`` with the refusal's code;
    ``unknown``: ask again; ``broken``: an error that no caller can expect, and its text.
    """

    what: Literal["done", "refused", "unknown", "broken"]
    version: int = 0
    state: str = ""
    messages: tuple[str, ...] = ()
    repeated: bool = False
    said: str = ""


_LIMIT: Final = 1 << 20
_COMMANDS: Final = msgspec.json.Decoder(Command)
_REPLIES: Final = msgspec.json.Decoder(Reply)


async def carry_out(engine: Engine, command: Command) -> Reply:
    """Give a command to an engine."""
    given: dict[str, Any] = dict(command.arguments)
    if command.approve:
        given["approvals"] = [ApprovalAnswer(call=CallKey(call), approved=True) for call in command.approve]
    if command.method == "create_chat":
        given["chat_id"] = command.chat
    else:
        given["chat"] = command.chat
    method: Callable[..., Awaitable[Any]] = getattr(engine, command.method)
    try:
        receipt = await method(**given, command_id=command.id)
    except Refusal as refusal:
        return Reply(what="refused", said=refusal.code)
    except (StoreUnavailable, OutcomeUnknown) as error:
        return Reply(what="unknown", said=str(error))
    except InvalidValue as error:
        return Reply(what="broken", said=str(error))
    except Exception as error:  # noqa: BLE001 - it is told to whoever asks, and is a finding there
        return Reply(what="broken", said=f"{type(error).__name__}: {error}")
    return Reply(
        what="done",
        version=receipt.version,
        state=str(receipt.state),
        messages=tuple(receipt.messages),
        repeated=receipt.repeated,
    )


async def serve(engine: Engine, path: Path) -> asyncio.Server:
    """Take commands for an engine at a socket, until the server is closed."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            if line:
                reply = await carry_out(engine, _COMMANDS.decode(line))
                writer.write(msgspec.json.encode(reply) + b"\n")
                await writer.drain()
        except OSError:
            pass  # whoever asked is gone
        finally:
            writer.close()

    path.unlink(missing_ok=True)  # noqa: ASYNC240 - the one before may have been killed; nobody waits yet
    return await asyncio.start_unix_server(take, path, limit=_LIMIT)


async def ask(path: Path, command: Command, patience: float) -> Reply:
    """Give a command to the worker that listens at a socket, and wait for its reply for so many seconds."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_unix_connection(path, limit=_LIMIT)
            writer.write(msgspec.json.encode(command) + b"\n")
            await writer.drain()
            line = await reader.readline()
        return _REPLIES.decode(line)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, msgspec.DecodeError) as error:
        return Reply(what="unknown", said=f"{type(error).__name__}: {error}")
    finally:
        if writer is not None:
            writer.close()
