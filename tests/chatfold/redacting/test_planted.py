"""No secret survives, wherever it was planted: each content and each text of each type of event, and its envelope."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec import Struct
from msgspec.structs import replace

from chatfold.redacting.check import check_redacted
from chatfold.redacting.facts import Unclassed, walk
from chatfold.redacting.rewrite import redact
from chatfold.redacting.rules import KINDS, RedactionRules
from events.digest import verify_chain
from events.ids import CommandId, MessageId
from events.logfile import event_line
from events.messages import Message
from events.records import Actor
from events.values import Limits
from events.vocabulary import EVENT_TYPES, Event, MessageSent, QueueReordered
from tests.chatfold.redacting.planted import Planter
from tests.events.logs import Draft, Log, log_of

KEY: Final = b"a key that nobody would guess"
MAPPED: Final = RedactionRules(names=dict.fromkeys(KINDS, "map"))

OWN: Final = {
    "Acquired.release",
    "Acquired.worker",
    "ChatCreated.release",
    "ChatForked.release",
    "Decision.action",
    "Decision.facts (name)",
    "Decision.passed",
    "Decision.read (name)",
    "Decision.rule",
}
"""Places of texts that are chatfold's own: they stay whatever the rules say."""
KEPT: Final = OWN | {
    "AgentChanged.agent",
    "ChatCreated.agent",
    "ChatCreated.effort",
    "ChatCreated.model",
    "ChatForked.agent",
    "ChatForked.effort",
    "ChatForked.model",
    "Decision.policy",
    "ErrorInfo.provider",
    "KeptResponse.before",
    "KeptResponse.options",
    "MessageSent.effort",
    "MessageSent.model",
    "MessageSentInterrupting.effort",
    "MessageSentInterrupting.model",
    "ModelChanged.effort",
    "ModelChanged.model",
    "ModelPolicy.effort",
    "ModelPolicy.effort_max",
    "ModelPolicy.name",
    "ModelPolicy.options",
    "ModelPolicy.provider",
    "Origin.digest",
    "Policy.agent",
    "Policy.system",
    "PolicyRecorded.digest",
    "QueuedMessage.effort",
    "QueuedMessage.model",
    "RequestDigests.messages",
    "RequestDigests.options",
    "RequestDigests.system",
    "RequestDigests.tools",
    "Step.model",
    "Step.provider",
    "ToolPolicy.name",
    "ToolPolicy.schema",
}
"""Places of texts that stay where the rules do not say otherwise: names of tools, agents and models, and digests."""


def survivors(cls: type[Event], rules: RedactionRules, limits: Limits) -> set[str]:
    """Return where the secrets were planted that are still there."""
    planter = Planter()
    left: set[str] = set()
    for event in planter.events(cls):
        log = Log(limits=limits)
        actor = Actor(kind="user", id=planter.secret("actor"))
        log.add(event, Draft(actor=actor, command=CommandId(planter.secret("command"))))
        redacted = redact(planter.secret("chat"), log.events, log.blobs, rules, KEY)
        verify_chain(redacted.events, redacted.blobs)
        raw = b"".join((*map(event_line, redacted.events), *redacted.blobs.values(), redacted.chat.encode()))
        left |= {place for text, place in planter.planted.items() if text.encode() in raw}
    assert len(planter.planted) >= 36
    return left


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_no_secret_survives_where_every_name_is_mapped_and_contents_lie_in_blobs(kind: str) -> None:
    assert survivors(EVENT_TYPES[kind], MAPPED, Limits(blob_bytes=40)) <= OWN


def test_no_secret_survives_but_in_names_that_stay() -> None:
    """And each of those does: otherwise the tables above could grow without anybody seeing it."""
    assert set().union(*(survivors(cls, RedactionRules(), Limits()) for cls in EVENT_TYPES.values())) == KEPT


def test_a_text_that_nobody_classed_is_an_error() -> None:
    class Unknown(Struct):
        nickname: str

    with pytest.raises(Unclassed, match=r"Unknown\.nickname is a text of no kind"):
        walk(Unknown, {"nickname": "ada"}, None)  # type: ignore[arg-type]  # it is not come to


def test_an_id_that_is_none_of_chatfolds_is_mapped_and_one_that_is_stays() -> None:
    message = Message(role="user", parts=(), origin=MessageId("secret-xyzzy"))
    log = log_of(
        [
            MessageSent(added=(message, replace(message, origin=MessageId("12.3")))),
            QueueReordered(queue_order=(MessageId("secret-xyzzy"), MessageId("4111111111111111.0"))),
        ]
    )
    redacted = redact("c", log.events, log.blobs, RedactionRules(), KEY)
    raw = b"".join(map(event_line, redacted.events))
    assert b"secret-xyzzy" not in raw
    assert b"4111111111111111" not in raw
    assert b'"origin":"12.3"' in raw
    assert check_redacted(log, redacted, RedactionRules()).problems == ()
