"""Digests of a request: one for each section, and each sees its own section alone."""

from __future__ import annotations

import base64
import hashlib

import msgspec
import pytest

from generation.digests import MessagesDigest, digest_request
from generation.prompt_types import ModelRequest, PromptMessage, PromptText, ToolSpec

REQUEST = ModelRequest(
    model="m",
    system=("be kind",),
    messages=(PromptMessage(role="user", parts=(PromptText(text="hi"),)),),
    tools=(ToolSpec(name="t", description="d", schema={"type": "object", "properties": {}}),),
)


@pytest.mark.parametrize(
    ("change", "section"),
    [
        ({"system": ("be rude",)}, "system"),
        ({"system": ("be kind", "be brief")}, "system"),
        ({"messages": ()}, "messages"),
        ({"tools": ()}, "tools"),
        ({"model": "n"}, "options"),
        ({"effort": "high"}, "options"),
        ({"max_output": 5}, "options"),
        ({"tool_choice_none": True}, "options"),
        ({"options": {"x": 1}}, "options"),
        ({"extra": {"x": 1}}, "options"),
    ],
)
def test_a_change_shows_in_its_section_alone(change: dict[str, object], section: str) -> None:
    before = msgspec.structs.asdict(digest_request(REQUEST))
    after = msgspec.structs.asdict(digest_request(msgspec.structs.replace(REQUEST, **change)))
    assert {name for name in before if before[name] != after[name]} == {section}


def test_the_order_of_keys_does_not_matter() -> None:
    one = msgspec.structs.replace(REQUEST, options={"a": 1, "b": {"c": 1, "d": 2}})
    two = msgspec.structs.replace(REQUEST, options={"b": {"d": 2, "c": 1}, "a": 1})
    assert digest_request(one) == digest_request(two)


def test_a_known_digest_stays() -> None:
    assert digest_request(REQUEST).system == text_of(hashlib.sha256(b'["be kind"]').digest())


def test_messages_are_digested_one_after_the_other() -> None:
    message = b'{"parts":[{"metadata":null,"text":"hi","type":"text"}],"role":"user"}'
    taken = hashlib.sha256(len(message).to_bytes(8, "big") + message)
    assert digest_request(REQUEST).messages == text_of(taken.digest())
    kept = MessagesDigest()
    kept.add(REQUEST.messages[0])
    more = msgspec.structs.replace(REQUEST, messages=(*REQUEST.messages, *REQUEST.messages))
    assert kept.with_more(REQUEST.messages) == digest_request(more).messages != kept.with_more(())


def text_of(sha256: bytes) -> str:
    return base64.urlsafe_b64encode(sha256[:16]).decode().rstrip("=")
