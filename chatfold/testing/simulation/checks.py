"""What must hold of every chat when a run is over: its log, its header, what was said and done, what users were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from chatfold.testing.simulation.ledger import Ledger, LedgerStore
from chatfold.transfer import stored_log
from chatstate.audit import step_problems
from chatstate.invariants import violations
from events.codec import decode
from events.digest import verify_chain
from events.envelope import Recorded, StoredEvent
from events.errors import DigestMismatch
from events.ids import ChatId
from events.logfile import read_log
from events.messages import Message
from events.parts import TextPart
from events.replay import replay
from events.state import ChatState
from events.vocabulary import InterruptionFinished, StepCommitted
from generation.decide import decide_generation_action
from store.append import header_of
from store.contract import Header

RESTING: Final = ("waiting", "error")
"""Statuses in which nobody owes a chat anything but its user."""


async def check_chat(database: LedgerStore, ledger: Ledger, chat: ChatId) -> tuple[list[str], list[str]]:
    """Return what is wrong with a chat, and the texts that models committed to it."""
    header = database.header(chat)
    kept = await database.read_events(chat)
    if header is None:
        return [f"{chat} is gone, and nobody deleted it"], []
    found = list(_compare(chat, kept, ledger.logs.get(chat, [])))
    exported = read_log(b"".join((await stored_log(database, chat, blobs=True)).lines()).splitlines(), chat)
    if list(exported.events) != list(kept):
        found.append(f"{chat}: its exported log has other events")
    try:
        digest = verify_chain(exported.events, exported.blobs)
    except DigestMismatch as error:
        return [*found, f"{chat}: {error}"], []
    recorded = [decode(event, blobs=exported.blobs) for event in exported.events]
    texts: list[str] = []
    state: ChatState | None = None
    for step in replay(recorded):
        state = step.after
        found += [f"{chat} version {step.recorded.version}: {problem}" for problem in step_problems(step)]
        found += [
            f"{chat} version {step.recorded.version}: {problem}" for problem in _decided(step.before, step.recorded)
        ]
        texts += _texts(step.recorded)
    if state is not None:
        found += [f"{chat} version {len(kept)}: {problem}" for problem in violations(state)]
        found += _header(chat, header, state, digest)
    return found, texts


def check_commands(ledger: Ledger) -> Iterator[str]:
    """Yield what users were told and is not so."""
    for chat, command in ledger.acknowledged:
        if command not in ledger.commands.get(chat, ()):
            yield f"{chat}: command {command} was acknowledged and is not in the log"
    for chat, command in ledger.refused:
        if chat not in ledger.deleted and command in ledger.commands.get(chat, ()):
            yield f"{chat}: command {command} was refused and is in the log"


def check_texts(texts: Sequence[str], spoken: Mapping[int, str]) -> Iterator[str]:
    """Yield committed answers that no model gave, or that were committed more than once."""
    calls = Counter[int]()
    for text in texts:
        call = int(text.partition(".")[0].removeprefix("w"))
        calls[call] += 1
        if not spoken.get(call, "").startswith(text):
            yield f"{text!r} was committed, the model said {spoken.get(call)!r}"
    yield from (f"the answer of model call {call} was committed {n} times" for call, n in calls.items() if n > 1)


def _compare(chat: ChatId, kept: Sequence[StoredEvent], committed: Sequence[StoredEvent]) -> Iterator[str]:
    if len(kept) != len(committed):
        yield f"{chat}: {len(committed)} events were committed, {len(kept)} are kept"
    for now, then in zip(kept, committed, strict=False):
        if (now.envelope, now.facts, now.digest) != (then.envelope, then.facts, then.digest):
            yield f"{chat}: the event at version {then.envelope.version} was changed"


def _decided(before: ChatState, recorded: Recorded) -> Iterator[str]:
    """Check that a recorded decision is the one that the rules give on the state just before its event."""
    decision = getattr(recorded.event, "decision", None)
    if decision is None:
        return
    policy = before.need_transcript("check").policies.get(before.control.policy)
    if policy is None:
        yield "a decision was taken under a policy that is not recorded"
    elif decision != (wanted := decide_generation_action(before, policy).record) and not decision.facts.get(
        "empty_answer"
    ):
        yield f"decided {decision.rule} {decision.action}, the rules give {wanted.rule} {wanted.action}"


def _texts(recorded: Recorded) -> list[str]:
    event = recorded.event
    if not isinstance(event, StepCommitted | InterruptionFinished):
        return []
    return [text for message in event.added if message.role == "assistant" and (text := _text(message))]


def _text(message: Message) -> str:
    return "".join(part.text.text for part in message.parts if isinstance(part, TextPart) and part.text.available)


def _header(chat: ChatId, header: Header, state: ChatState, digest: bytes) -> Iterator[str]:
    title = state.need_transcript("check").title
    wanted = header_of(
        state,
        digest,
        chat=chat,
        title=title.text if title is not None and title.available else None,
        foreign=header.foreign,
        reader_level=header.reader_level,
        listed_at=header.listed_at,
    )
    if header != wanted:
        kept, derived = msgspec.structs.asdict(header), msgspec.structs.asdict(wanted)
        yield f"{chat}: the header's {sorted(name for name in kept if kept[name] != derived[name])} are not the log's"
