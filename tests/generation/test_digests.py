"""Digests of a request: one for each section, and each sees its own section alone."""

from __future__ import annotations

import base64
import hashlib

import msgspec
import pytest

from events.content import Json
from events.records import RequestDigests
from generation.digests import MessagesDigest, digest_request
from generation.prompt_types import (
    ModelRequest,
    PromptCall,
    PromptFile,
    PromptMessage,
    PromptReasoning,
    PromptResult,
    PromptText,
    ToolSpec,
)
from generation.providers.anthropic_prefix import Prefix, before_messages
from generation.providers.native import WebSearch

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


class LaterText(PromptText, frozen=True, kw_only=True, tag="text"):
    """A text as a later release may have it."""

    spare: bool | msgspec.UnsetType = msgspec.UNSET


class LaterTool(ToolSpec, frozen=True, kw_only=True):
    """A tool likewise."""

    spare: bool | msgspec.UnsetType = msgspec.UNSET


def test_a_field_that_a_later_release_adds_is_in_no_digest_until_it_is_used() -> None:
    def digests(spare: bool | msgspec.UnsetType = msgspec.UNSET) -> RequestDigests:
        (own,) = REQUEST.tools
        text = LaterText(text="hi", spare=spare)
        tool = LaterTool(name=own.name, description=own.description, schema=own.schema, spare=spare)
        messages = (PromptMessage(role="user", parts=(text,)),)
        return digest_request(msgspec.structs.replace(REQUEST, messages=messages, tools=(tool,)))

    known, unused, used = digest_request(REQUEST), digests(), digests(True)
    assert unused == known
    assert used.messages != known.messages
    assert used.tools != known.tools


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


def test_digests_that_an_earlier_release_left_are_those_of_this_one() -> None:
    """Logs hold both, and what goes on from there compares them: signed thinking, and responses that a service keeps.

    A change of the first costs every chat the thinking that it has, once; of the second, a request in full.
    """
    tagged: dict[str, Json] = {"provider": "anthropic", "model": "m", "data": {"type": "server_tool_use"}}
    file = PromptFile(media_type="image/png", data="aGk=", name="a.png")
    messages = (
        PromptMessage(role="user", parts=(PromptText(text="hi"), file)),
        PromptMessage(
            role="assistant",
            parts=(
                PromptReasoning(text="Hm", metadata={"s": 1}, provider="anthropic", model="m"),
                PromptText(text="Look.", metadata={"citations": []}),
                PromptCall(id="s", name="web_search", arguments="{}", metadata=tagged, provider_executed=True),
                PromptResult(id="s", name="web_search", text="[]", metadata=tagged, provider_executed=True),
                PromptCall(id="c", name="t", arguments='{"a": 1}'),
            ),
        ),
        PromptMessage(role="tool", parts=(PromptResult(id="c", name="t", text="2", is_error=True, media=(file,)),)),
    )
    request = msgspec.structs.replace(REQUEST, messages=messages, native=(WebSearch(allowed_domains=["e.com"]),))
    prefix = Prefix(before_messages(request))
    for message in messages:
        prefix.take(message)
    assert (prefix.digest, digest_request(request).messages) == ("ENUfmE6NI4vg8SO9Lo1hpw", "t1KmHShtJEOUiwvaM0K3uw")
