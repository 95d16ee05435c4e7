"""What must hold of every chat when a run is over: its log, what was said and done, what users were told."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from chatfold.testing.cuts import OWED, cut_answers
from chatfold.testing.decisions import decision_problems
from chatfold.testing.prompts import prompt_problems
from chatfold.testing.simulation.agents import Spoken
from chatfold.testing.simulation.ledger import Ledger, LedgerStore
from chatfold.testing.simulation.machine import EPOCH_US
from chatfold.transfer import stored_log
from chatfold.verification import verify_chat
from events.codec import decode
from events.effects import Effects
from events.envelope import Recorded, StoredEvent
from events.ids import ChatId
from events.logfile import read_log
from events.messages import Message
from events.parts import TextPart
from events.replay import replay
from events.state import ChatState
from events.vocabulary import MessagesImported, TitleChanged
from generation.naming import said_by
from generation.titles import fallback_title


async def check_chat(
    database: LedgerStore, ledger: Ledger, chat: ChatId, spoken: Sequence[Spoken]
) -> tuple[list[str], list[str]]:
    """Return what is wrong with a chat, and the texts that models committed to it; ``spoken`` is what they said."""
    header = database.header(chat)
    kept = await database.read_events(chat)
    if header is None:
        return [f"{chat} is gone, and nobody deleted it"], []
    found = list(_compare(chat, kept, ledger.logs.get(chat, [])))
    exported = read_log(b"".join((await stored_log(database, chat, blobs=True)).lines()).splitlines(), chat)
    if list(exported.events) != list(kept):
        found.append(f"{chat}: its exported log has other events")
    verdict = await verify_chat(database, chat)
    found += [f"{chat} version {finding.version}: {finding.problem}" for finding in verdict.findings]
    if found:
        return found, []
    log = [decode(event, blobs=exported.blobs) for event in exported.events]
    found += _lost(chat, log, spoken, ledger)
    found += [f"{chat} {problem}" for problem in (*prompt_problems(log), *decision_problems(log))]
    texts: list[str] = []
    for step in replay(log):
        found += [
            f"{chat} version {step.recorded.version}: {problem}" for problem in _named(step.before, step.recorded)
        ]
        texts += _texts(step.recorded)
    return found, texts


def check_commands(ledger: Ledger) -> Iterator[str]:
    """Yield what users were told and is not so."""
    for chat, command in ledger.acknowledged:
        if command not in ledger.commands.get(chat, ()):
            yield f"{chat}: command {command} was acknowledged and is not in the log"
    for chat, command in ledger.refused:
        if chat not in ledger.deleted and command in ledger.commands.get(chat, ()):
            yield f"{chat}: command {command} was refused and is in the log"


def check_texts(texts: Sequence[str], spoken: Sequence[str]) -> Iterator[str]:
    """Yield committed answers that no model gave, or that were committed more than once."""
    calls = Counter[int]()
    for text in texts:
        call = int(text.partition(".")[0].removeprefix("w"))
        calls[call] += 1
        if not spoken[call].startswith(text):
            yield f"{text!r} was committed, the model said {spoken[call]!r}"
    yield from (f"the answer of model call {call} was committed {n} times" for call, n in calls.items() if n > 1)


def _compare(chat: ChatId, kept: Sequence[StoredEvent], committed: Sequence[StoredEvent]) -> Iterator[str]:
    if len(kept) != len(committed):
        yield f"{chat}: {len(committed)} events were committed, {len(kept)} are kept"
    for now, then in zip(kept, committed, strict=False):
        if (now.envelope, now.facts, now.digest) != (then.envelope, then.facts, then.digest):
            yield f"{chat}: the event at version {then.envelope.version} was changed"


def _lost(chat: ChatId, log: Sequence[Recorded], spoken: Sequence[Spoken], ledger: Ledger) -> Iterator[str]:
    """Yield answers of which text is lost that was said a while before they were cut."""
    said = {each.episode[1:]: each for each in spoken if each.episode is not None and each.episode.chat == chat}
    if not any(each.owed(math.inf, OWED) for each in said.values()):
        return
    for cut in cut_answers(log):
        ended = (ledger.committed[chat, cut.ending.version] - EPOCH_US) / 1e6
        owed = said[cut.attempt].owed(ended, OWED) if cut.attempt in said else ""
        if not cut.keeps(owed):
            yield f"{chat} version {cut.ending.version}: {cut.kept!r} is kept of an answer that had said {owed!r}"


def _named(before: ChatState, recorded: Recorded) -> Iterator[str]:
    """Yield that a worker named a chat which had a title other than the first words of its user."""
    if not isinstance(recorded.event, TitleChanged) or recorded.envelope.actor.kind != "worker":
        return
    transcript = before.need_transcript("look at its title")
    known = transcript.title.text if transcript.title is not None and transcript.title.available else ""
    if known and known not in {fallback_title(said_by(item.message)) for item in transcript.messages}:
        yield f"its title was {known!r}, and it was named again"


def _texts(recorded: Recorded) -> list[str]:
    event = recorded.event
    if not isinstance(event, Effects) or isinstance(event, MessagesImported):
        return []
    return [text for message in event.added if message.role == "assistant" and (text := _text(message))]


def _text(message: Message) -> str:
    return "".join(part.text.text for part in message.parts if isinstance(part, TextPart) and part.text.available)
