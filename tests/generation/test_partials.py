"""What chunks of a partial answer give again: the same as a live interruption keeps, up to a gap or a damage."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.ids import ChatId, MessageId
from events.messages import Message, Step, Usage
from events.parts import TextPart, ToolCallPart
from events.records import AttemptReport, ModelPolicy, RequestDigests, ToolPolicy
from generation import partials
from generation.assemble import Assembler
from generation.partials import CallStart, Leftover, Timed, encode_chunk, recover
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    Finish,
    ProviderResult,
    ReasoningDelta,
    ReasoningEnd,
    SourceFound,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from store.contract import PartialChunk

CHAT = ChatId("chat")
DIGESTS = RequestDigests(system="1", tools="2", messages="3", options="4")
START = CallStart(
    model=ModelPolicy(provider="anthropic", name="model-one", price_input=2_000_000, price_output=4_000_000),
    digests=DIGESTS,
    started_at=90,
)
TOOLS = {name: ToolPolicy(name=name, runner="client", stop_after=True) for name in ("ask", "look")}
STREAM: list[StreamPart | UsageSoFar] = [
    UsageSoFar(usage=Usage(input=100), response_id="resp"),
    ReasoningDelta(block=0, text="Let me"),
    ReasoningDelta(block=0, text=" think \ud83d"),
    ReasoningDelta(block=0, text="\ude00"),
    ReasoningEnd(block=0, metadata={"signature": "s\ud800"}),
    TextDelta(block=1, text="Ans"),
    TextDelta(block=1, text="wer\ud83d"),
    TextEnd(block=1, metadata={"citations": [1, 2.5, None]}),
    CallDelta(block=2, text='{"a":', name="ask", id="c1"),
    CallDelta(block=2, text=' "\ud83d'),
    CallDelta(block=2, text='\ude00"}'),
    CallEnd(block=2, id="c1", name="ask", arguments='{"a": "\ud83d\ude00"}'),
    CallEnd(block=3, id="c2", name="search", arguments="{}", provider_executed=True),
    ProviderResult(block=4, call_id="c2", output={"found": ["x" * 10]}),
    SourceFound(block=5, source_id="s", url="https://example.com"),
    TextDelta(block=6, text="More"),
    CallDelta(block=7, text='{"b": 1}', name="look", id="c3"),
    CallDelta(block=8, text='{"half"', name="look", id="c4"),
]


def chunked(stream: Sequence[StreamPart | UsageSoFar], *cuts: int) -> list[PartialChunk]:
    """The chunks of a stream that was flushed before the parts at these places."""
    timed = [Timed(100 + place, part) for place, part in enumerate(stream)]
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(stream)}), len(stream)]
    return [
        piece(n, encode_chunk(timed[first:last], TOOLS, START if n == 0 else None))
        for n, (first, last) in enumerate(itertools.pairwise(edges))
    ]


def piece(n: int, data: bytes, *, history_version: int = 3, attempt: int = 2) -> PartialChunk:
    return PartialChunk(chat=CHAT, epoch=1, history_version=history_version, attempt=attempt, n=n, data=data)


def live(stream: Sequence[StreamPart | UsageSoFar]) -> Message | None:
    """What a live interruption keeps of a stream."""
    assembler = Assembler(TOOLS)
    for place, part in enumerate(stream):
        assembler.add(part, 100 + place)
    step = assembler.step("anthropic", "model-one", started_at=90, ended_at=99 + len(stream))
    parts = assembler.parts(MessageId("0.0"), interrupted=True, ended_at=step.ended_at)
    cost = 2 * step.usage.input + 4 * step.usage.output
    whole = Step(**{**{name: getattr(step, name) for name in Step.__struct_fields__}, "cost_micros": cost})
    return Message(role="assistant", parts=parts, step=whole, interrupted=True) if parts else None


def text_of(leftover: Leftover) -> str:
    return leftover.message.text if leftover.message is not None else ""


@given(st.lists(st.integers(0, len(STREAM)), max_size=6), st.integers(1, len(STREAM)))
def test_however_a_stream_is_cut_into_chunks_they_give_what_a_live_interruption_keeps(
    cuts: list[int], length: int
) -> None:
    leftover = recover(chunked(STREAM[:length], *cuts), 3, 2)
    assert leftover.message == live(STREAM[:length])
    assert leftover.problem is None


def test_what_a_part_has_gained_since_may_lack_in_a_chunk() -> None:
    """An older worker's chunk: parts without what this release added to them."""
    stream = [*STREAM[:1], *STREAM[12:15]]
    (whole,) = chunked(stream)
    held = json.loads(whole.data)
    for tag, _, part in held["parts"]:
        for name in {"u": ("context_tokens",), "p": ("name",)}.get(tag, ()):
            del part[name]
    leftover = recover([piece(0, json.dumps(held).encode())], 3, 2)
    assert leftover.problem is None
    assert leftover.message == live(stream)


def test_calls_keep_what_their_tools_declared_and_half_a_call_is_not_kept() -> None:
    message = recover(chunked(STREAM, 9, 11), 3, 2).message
    assert message is not None
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    assert [(call.name, call.runner, call.stop_after) for call in calls] == [
        ("ask", "client", True),
        ("search", "provider", False),
        ("look", "client", True),
    ]


def test_text_that_came_in_many_deltas_is_kept_as_one() -> None:
    data = encode_chunk([Timed(1, TextDelta(block=0, text="x")) for _ in range(1000)], {}, START)
    assert len(data) < 1600
    assert text_of(recover([piece(0, data)], 3, 2)) == "x" * 1000


def test_the_cost_that_is_known_is_told_beside_a_message_or_alone() -> None:
    whole = recover(chunked(STREAM), 3, 2)
    assert whole.report is not None
    assert whole.report.step is not None
    assert whole.report.step.usage == Usage(input=100)
    assert whole.report.step.cost_micros == 200
    assert whole.beside == AttemptReport(request=DIGESTS)
    silent = recover(chunked(STREAM[:1]), 3, 2)
    assert silent.message is None
    assert silent.beside == silent.report
    assert silent.report is not None
    assert silent.report.step is not None
    assert silent.report.step.response_id == "resp"


def test_a_whole_answer_that_was_not_committed_is_kept_unless_its_provider_withheld_it() -> None:
    said = TextDelta(block=0, text="Hello")
    kept = recover(chunked([said, Finish(reason="stop", usage=Usage(input=1, output=2))]), 3, 2)
    assert text_of(kept) == "Hello"
    assert kept.message is not None
    assert kept.message.interrupted
    for reason in ("refusal", "content_filter"):
        withheld = recover(chunked([said, Finish(reason=reason, usage=Usage(output=2))]), 3, 2)
        assert withheld.message is None
        assert withheld.report is not None


def test_chunks_of_other_attempts_are_left_out() -> None:
    ours = chunked([TextDelta(block=0, text="ours"), TextDelta(block=0, text=" too")], 1)
    other = encode_chunk([Timed(1, TextDelta(block=0, text="other"))], {}, START)
    mixed = [piece(0, other, history_version=1), piece(0, other, attempt=1), *ours, piece(2, other, attempt=3)]
    assert text_of(recover(mixed, 3, 2)) == "ours too"
    assert recover(mixed, 4, 2) == Leftover()
    assert recover([], 3, 2) == Leftover()


def words(*texts: str) -> list[PartialChunk]:
    return chunked([TextDelta(block=0, text=text) for text in texts], *range(1, len(texts)))


@pytest.mark.parametrize(
    ("missing", "kept", "problem"),
    [(0, "", "chunk 0 is missing"), (1, "a", "chunk 1 is missing"), (2, "ab", None)],
)
def test_what_follows_a_gap_is_left_out(missing: int, kept: str, problem: str | None) -> None:
    chunks = [chunk for chunk in words("a", "b", "c") if chunk.n != missing]
    leftover = recover(chunks, 3, 2)
    assert (text_of(leftover), leftover.problem) == (kept, problem)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"secret",
        b"[]",
        b'{"v":2,"at":1,"parts":[]}',
        b'{"v":1,"at":1,"parts":[["x",1,{"secret":1}]]}',
        b'{"v":1,"at":1,"parts":[["t",1,{"block":"secret","text":"x"}]]}',
        b'{"v":1,"at":1,"parts":[["r",1,{"block":0,"text":"secret"}]]}',
        b'{"v":1,"at":1,"parts":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        json.dumps({"v": 1, "at": 1, "parts": [], "tools": [{"secret": 1}]}).encode(),
    ],
)
def test_a_damaged_chunk_ends_the_answer_before_it_and_its_content_is_not_told(data: bytes) -> None:
    first, _, last = words("a", "b", "c")
    leftover = recover([first, piece(1, data), last], 3, 2)
    assert text_of(leftover) == "a"
    assert leftover.problem is not None
    assert leftover.problem.startswith("chunk 1 is damaged")
    assert "secret" not in leftover.problem


def test_without_the_start_of_the_call_nothing_is_known() -> None:
    data = encode_chunk([Timed(1, TextDelta(block=0, text="a"))], {})
    leftover = recover([piece(0, data)], 3, 2)
    assert leftover == Leftover(problem="chunk 0 is damaged: the call's start is missing")


def test_an_answer_is_kept_as_far_as_a_message_can_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = words("a", "b", "c")
    monkeypatch.setattr(partials, "MOST_BYTES", len(chunks[0].data) + len(chunks[1].data))
    leftover = recover(chunks, 3, 2)
    assert text_of(leftover) == "ab"
    assert leftover.problem is not None
    assert isinstance(leftover.message and leftover.message.parts[0], TextPart)
