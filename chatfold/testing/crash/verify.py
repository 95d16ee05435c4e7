"""After a crash test: reads all chats back, verifies and exports them, and makes the checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence

from msgspec.structs import replace

from chatfold.cli.timeline import time_of, timeline
from chatfold.engine import Engine
from chatfold.logcheck import verify_log
from chatfold.testing.crash.checks import CHECKS, Case, owing
from chatfold.testing.crash.ledger import Entry, Said
from chatfold.testing.crash.report import Violation
from chatfold.testing.crash.users import Book
from chatfold.testing.prompts import prompt_problems
from chatfold.transfer import decode_log, load_log
from chatfold.verification import verify_chat
from events.control import decode_control, encode_control
from events.envelope import Recorded
from events.errors import EventsError
from events.ids import ChatId
from events.reducer import fold
from store.loading import read_recorded


async def violations(
    engine: Engine, book: Book, ledger: Sequence[Entry], frozen: frozenset[int], said: Sequence[Said] = ()
) -> AsyncIterator[Violation]:
    """Yield what is wrong with any chat that users were told of or that the store has; counts in the book as well."""
    by_chat: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in ledger:
        by_chat[entry.chat].append(entry)
    said_in: defaultdict[str, list[Said]] = defaultdict(list)
    for each in said:
        said_in[each.chat].append(each)
    there = await _all_chats(engine)
    for chat in sorted({*there, *book.told, *by_chat}):
        if chat not in there:
            problem = "users were told of it or tools ran for it, and it does not exist"
            if any(told.reply.what == "done" for told in book.told.get(chat, ())) or by_chat[chat]:
                yield Violation(check="exists", chat=chat, problem=problem)
            continue
        case = replace(await case_of(engine, chat, book, by_chat[chat], frozen), said=said_in.get(chat, ()))
        for cut in owing(case):
            book.counts[f"answers cut late, by {'another' if cut.answer.lost else 'their'} worker: {cut.how}"] += 1
        found = [(name, problem) for name, check in CHECKS.items() for problem in check(case)]
        found += [("prompts", problem) for problem in prompt_problems(case.log)]
        found += [("verify", problem) async for problem in _verified(engine, case)]
        shown = tuple(_shown(case.log)) if found else ()
        for place, (check, problem) in enumerate(found):
            # The log is shown once for a chat, under the last thing that is wrong with it.
            lines = shown if place == len(found) - 1 else ()
            yield Violation(check=check, chat=chat, problem=problem, timeline=lines)


async def _all_chats(engine: Engine) -> set[str]:
    chats: set[str] = set()
    last: ChatId | None = None
    while page := await engine.store.list_ids(after=last):
        chats.update(page)
        last = page[-1]
    return chats


async def case_of(engine: Engine, chat: str, book: Book, ledger: Sequence[Entry], frozen: frozenset[int]) -> Case:
    """Read all that is known of a chat; ``ledger`` is the part that is about it."""
    loaded = await engine.store.load_header(ChatId(chat))
    if loaded is None:
        raise RuntimeError(f"chat {chat} vanished while it was checked")
    stored = await engine.store.read_events(ChatId(chat))
    return Case(
        chat=chat,
        log=await read_recorded(engine.store, ChatId(chat)),
        digests=[event.digest for event in stored],
        control=decode_control(loaded.header.control),
        now=loaded.now,
        told=book.told.get(chat, ()),
        seen=book.seen.get(chat, ()),
        given=frozenset(book.given),
        ledger=ledger,
        frozen=frozen,
    )


async def _verified(engine: Engine, case: Case) -> AsyncIterator[str]:
    """Verify the chat where it lies, and its export by itself; replaying that gives the same state."""
    for finding in (await verify_chat(engine.store, case.chat)).findings:
        yield f"{finding.check} at version {finding.version}: {finding.problem}"
    try:
        file = load_log(await engine.export_log(case.chat))
        for finding in verify_log(case.chat, file.events, file.blobs).findings:
            yield f"its export: {finding.check} at version {finding.version}: {finding.problem}"
        state, own = fold(decode_log(file)), fold(case.log)
    except EventsError as error:
        yield f"its export cannot be read: {error}"
        return
    if encode_control(state.control) != encode_control(case.control):
        yield "its export replays to another state"
    if list(state.messages) != list(own.messages):
        yield "its export replays to other messages"


def _shown(log: Sequence[Recorded]) -> Iterator[str]:
    for line, recorded in zip(timeline(log), log, strict=True):
        decision = f" {line.rule} {line.action}" if line.rule is not None else ""
        yield (
            f"{line.version:>6}  {time_of(line.recorded_at)[11:]}  {line.state_before} -> {line.state_after}  "
            f"{line.event}{decision}  {line.actor}  [{recorded.envelope.command}]  {line.note}"
        )
