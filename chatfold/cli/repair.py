"""``repair``: what was made anew from the log, chat by chat."""

from __future__ import annotations

import asyncio

import msgspec
import typer

from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import existing_store, load_settings
from chatfold.cli.progress import progress
from chatfold.cli.shapes import RepairedLine
from chatfold.repair import LogDamaged, Repaired, RepairRefused, repair_all, repair_chat
from chatfold.sweep import count_chats
from events.counting import counted
from store import open_store
from store.contract import Store


def run_repair(
    out: Out, chat: str | None, *, everything: bool, json: bool, db: str | None, log_level: str | None
) -> None:
    """Repair; see the command.

    Raises:
        UsageProblem: Neither or both of a chat and ``--all`` were given.
        typer.Exit: With 1, where something could not be mended.
    """
    if (chat is None) is not everything:
        raise UsageProblem("name a chat, or say --all, and only one of them")
    if not asyncio.run(_run(out, chat, json=json, url=existing_store(load_settings(db, log_level)))):
        raise typer.Exit(FAILED)


async def _run(out: Out, chat: str | None, *, json: bool, url: str) -> bool:
    async with open_store(url) as store:
        if chat is None:
            return await _run_all(out, store, json=json)
        try:
            done: Repaired | RepairRefused = await repair_chat(store, chat)
        except LogDamaged as error:
            done = RepairRefused(chat, error)
        return _print(out, done, json=json)


async def _run_all(out: Out, store: Store, *, json: bool) -> bool:
    count, bad = 0, 0
    with progress(out, "repairing chats", await count_chats(store)) as advance:
        async for done in repair_all(store):
            bad += not _print(out, done, json=json)
            advance()
            count += 1
    collected = await store.collect_blobs()
    if not json:
        unused = f", {counted(collected, 'large content')} that nobody uses deleted" if collected else ""
        out.note(f"{counted(count, 'chat')} looked at, {bad} with problems that stay{unused}")
    return not bad


def _print(out: Out, done: Repaired | RepairRefused, *, json: bool) -> bool:
    """Say what was done; return whether all is well now."""
    if json:
        out.data.json(_shape(done))
    elif isinstance(done, RepairRefused):
        out.data.put(printable(f"{done.chat}: "), style="bold red")
        out.data.line(printable(f"not repaired: {done.error}"))
    else:
        out.data.line(printable(f"{done.chat}: {_said(done)}"))
        for finding in done.left:
            where = f"version {finding.version}" if finding.version is not None else "header"
            out.data.line(printable(f"  stays: {where}: {finding.problem} ({finding.check})"))
    return isinstance(done, Repaired) and not done.left


def _said(done: Repaired) -> str:
    if not done.changed:
        return "nothing to repair"
    parts = [f"header rewritten ({', '.join(done.header)})"] if done.header else []
    if done.dropped or done.built:
        parts.append(f"segments: {done.dropped} dropped, {done.built} built")
    if done.uses:
        parts.append(f"large contents: {counted(done.uses, 'note')} of their use made right")
    if done.unreadable is not None and done.foreign:
        parts.append("it is foreign now, since its old header could not be read: adopt it if it runs nowhere else")
    return "; ".join(parts)


def _shape(done: Repaired | RepairRefused) -> RepairedLine:
    if isinstance(done, RepairRefused):
        return RepairedLine(chat=done.chat, version=None, refused=str(done.error))
    return RepairedLine(
        chat=done.chat,
        version=done.version,
        header=done.header,
        dropped=done.dropped,
        built=done.built,
        uses=done.uses,
        foreign=done.foreign,
        left=tuple(msgspec.to_builtins(finding) for finding in done.left),
    )
