"""From a stream to a message's parts: whole, cut short, repaired."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from events.content import Content
from events.ids import MessageId, call_key
from events.messages import FinishReason, Step, Usage
from events.parts import Part, ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart
from events.records import ToolPolicy
from generation.assemble import Assembler
from generation.errors import ProviderError
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
from generation.repair import MAX_SHORT, MAX_TOKENS

ID = MessageId("7.0")
USAGE = Usage(input=3, output=4)
FINISH = Finish(reason="stop", usage=USAGE, response_id="r", metadata={"x": 1})


def fold(*stream: StreamPart | UsageSoFar, tools: dict[str, ToolPolicy] | None = None) -> Assembler:
    assembler = Assembler(tools or {})
    for at, part in enumerate(stream):
        assembler.add(part, 100 + at)
    return assembler


def cut(*stream: StreamPart) -> tuple[Part, ...]:
    return fold(*stream).parts(ID, interrupted=True)


def call_end(arguments: str = "{}", *, block: int = 0, name: str = "t", provider: bool = False) -> CallEnd:
    return CallEnd(block=block, id="c", name=name, arguments=arguments, provider_executed=provider)


class TestWhole:
    def test_text(self) -> None:
        parts = fold(TextDelta(block=0, text="Hel"), TextDelta(block=0, text="lo"), TextEnd(block=0), FINISH).parts(ID)
        assert parts == (TextPart(text=Content("Hello")),)

    def test_blocks_stand_in_their_order_however_they_come(self) -> None:
        parts = fold(TextDelta(block=1, text="b"), TextDelta(block=0, text="a"), FINISH).parts(ID)
        assert parts == (TextPart(text=Content("a")), TextPart(text=Content("b")))

    def test_reasoning_has_times_and_keeps_its_signature(self) -> None:
        parts = fold(
            ReasoningDelta(block=0, text="Hm"),
            ReasoningEnd(block=0, metadata={"s": 1}),
            ReasoningEnd(block=0),
            FINISH,
        ).parts(ID)
        expected = ReasoningPart(text=Content("Hm"), metadata=Content({"s": 1}), started_at=100, ended_at=102)
        assert parts == (expected,)

    def test_what_is_empty_goes_unless_it_is_signed(self) -> None:
        parts = fold(
            TextDelta(block=0, text=" \n"),
            ReasoningEnd(block=1),
            ReasoningEnd(block=2, metadata={"s": 1}, redacted=True),
            FINISH,
        ).parts(ID)
        assert [type(part) for part in parts] == [ReasoningPart]

    def test_metadata_of_text_is_kept(self) -> None:
        (part,) = fold(TextDelta(block=0, text="a"), TextEnd(block=0, metadata={"p": 1}), FINISH).parts(ID)
        assert part == TextPart(text=Content("a"), metadata=Content({"p": 1}))

    def test_a_whole_call_beats_its_deltas(self) -> None:
        (part,) = fold(CallDelta(block=0, text='{"a"', name="t", id="c"), call_end('{"a": 1}'), FINISH).parts(ID)
        assert isinstance(part, ToolCallPart)
        assert part.arguments.text == '{"a": 1}'

    def test_broken_arguments_of_a_whole_answer_stay(self) -> None:
        (part,) = fold(call_end('{"a"'), FINISH).parts(ID)
        assert isinstance(part, ToolCallPart)
        assert part.arguments.text == '{"a"'

    def test_results_and_sources_of_the_provider(self) -> None:
        parts = fold(
            TextDelta(block=0, text=" "),
            call_end(block=1, provider=True),
            ProviderResult(block=2, call_id="c", output={"x": "\ud83d"}, is_error=True, metadata={"m": 1}),
            SourceFound(block=3, source_id="s", url="https://a.example", title="A"),
            FINISH,
        ).parts(ID)
        call, result, source = parts
        assert isinstance(call, ToolCallPart)
        assert call.runner == "provider"
        assert result == ToolResultPart(
            call=call_key(ID, 0),
            is_error=True,
            output=Content({"x": "\ufffd"}),
            provider_executed=True,
            metadata=Content({"m": 1}),
            ended_at=102,
            repaired=("$.output.x",),
        )
        assert source == SourcePart(source_id="s", url=Content("https://a.example"), title=Content("A"))

    def test_parts_can_be_made_again_under_another_id(self) -> None:
        assembler = fold(call_end(provider=True), ProviderResult(block=1, call_id="c", output=None), FINISH)
        keys = [assembler.parts(MessageId(name))[1].call for name in ("7.0", "8.1")]  # type: ignore[union-attr]
        assert keys == ["7.0.0", "8.1.0"]


class TestFrozenFacts:
    POLICY = ToolPolicy(name="t", runner="client", crash="rerun", exclusive=True, stop_after=True, needs_approval=True)

    def test_of_a_declared_tool(self) -> None:
        (part,) = fold(call_end(), FINISH, tools={"t": self.POLICY}).parts(ID)
        assert part == ToolCallPart(
            name="t",
            arguments=Content("{}"),
            provider_call_id="c",
            runner="client",
            crash="rerun",
            exclusive=True,
            stop_after=True,
            needs_approval=True,
            created_at=100,
        )

    def test_of_an_unknown_tool(self) -> None:
        (part,) = fold(call_end(name="nobody"), FINISH, tools={"t": self.POLICY}).parts(ID)
        assert part == ToolCallPart(
            name="nobody", arguments=Content("{}"), provider_call_id="c", runner="local", created_at=100
        )

    def test_of_a_call_that_the_provider_ran(self) -> None:
        (part,) = fold(call_end(provider=True), FINISH, tools={"t": self.POLICY}).parts(ID)
        assert isinstance(part, ToolCallPart)
        assert (part.runner, part.needs_approval) == ("provider", False)


class TestCutShort:
    def test_text_and_reasoning_stay_as_far_as_they_came(self) -> None:
        parts = cut(ReasoningDelta(block=0, text="Hm"), TextDelta(block=1, text="Hel"))
        assert [part.text.text for part in parts if isinstance(part, TextPart | ReasoningPart)] == ["Hm", "Hel"]

    def test_reasoning_that_was_cut_ends_when_it_was(self) -> None:
        given = ReasoningDelta(block=0, text="Hm"), ReasoningEnd(block=0), ReasoningDelta(block=1, text="Ah")
        assembler = fold(*given)
        whole, cut_off = assembler.parts(ID, interrupted=True, ended_at=900)
        assert isinstance(whole, ReasoningPart)
        assert isinstance(cut_off, ReasoningPart)
        assert (whole.started_at, whole.ended_at) == (100, 101)
        assert (cut_off.started_at, cut_off.ended_at) == (102, 900)

    @pytest.mark.parametrize(
        ("arguments", "kept"), [('{"a": 1}', True), ("{}", True), ('{"a"', False), ("", False), ("1", False)]
    )
    def test_calls_stay_only_with_arguments_that_are_an_object(self, arguments: str, kept: bool) -> None:
        opening = CallDelta(block=0, text="", name="t", id="c")
        assert bool(cut(opening, CallDelta(block=0, text=arguments))) is kept
        assert bool(cut(opening, call_end(arguments))) is kept

    def test_a_call_without_its_name_goes(self) -> None:
        assert cut(CallDelta(block=0, text="{}")) == ()

    def test_of_the_provider_a_call_stays_without_its_result_but_no_result_without_its_call(self) -> None:
        lost = ProviderResult(block=1, call_id="x", output="y")
        assert [type(part) for part in cut(call_end(provider=True), lost)] == [ToolCallPart]

    def test_nothing_came(self) -> None:
        assert cut() == ()

    def test_it_can_be_asked_at_any_moment(self) -> None:
        assembler = Assembler({})
        lengths = []
        for piece in "Hello":
            assembler.add(TextDelta(block=0, text=piece))
            (part,) = assembler.parts(ID, interrupted=True)
            lengths.append(part.text.size)  # type: ignore[union-attr]
        assert lengths == [1, 2, 3, 4, 5]


class TestShown:
    def test_halves_of_a_pair_are_shown_once_joined(self) -> None:
        assembler = Assembler({})
        assert assembler.add(TextDelta(block=0, text="a\ud83d")) == (TextDelta(block=0, text="a"),)
        assert assembler.add(TextDelta(block=0, text="\ude00b")) == (TextDelta(block=0, text="😀b"),)

    def test_half_a_pair_alone_is_held_back_and_shown_replaced_at_the_end(self) -> None:
        assembler = Assembler({})
        assert assembler.add(TextDelta(block=0, text="\ud83d")) == ()
        end = TextEnd(block=0)
        assert assembler.add(end) == (TextDelta(block=0, text="\ufffd"), end)
        assert assembler.parts(ID) == (TextPart(text=Content("\ufffd"), repaired=("$.text",)),)

    def test_blocks_that_never_ended_are_ended_by_the_finish(self) -> None:
        assembler = Assembler({})
        for part in (TextDelta(block=0, text="a\ud83d"), ReasoningDelta(block=1, text="b\ud83d")):
            assembler.add(part)
        assert assembler.add(FINISH) == (
            TextDelta(block=0, text="\ufffd"),
            ReasoningDelta(block=1, text="\ufffd"),
            FINISH,
        )

    def test_blocks_do_not_mix(self) -> None:
        assembler = Assembler({})
        assembler.add(TextDelta(block=0, text="\ud83d"))
        assembler.add(TextDelta(block=1, text="\ude00"))
        assembler.add(FINISH)
        assert [part.text.text for part in assembler.parts(ID)] == ["\ufffd", "\ufffd"]  # type: ignore[union-attr]

    def test_repaired_arguments_are_shown_and_kept_alike(self) -> None:
        assembler = Assembler({})
        (shown,) = assembler.add(call_end('{"a": "\\ud83d"}'))
        (kept,) = assembler.parts(ID)
        assert isinstance(shown, CallEnd)
        assert isinstance(kept, ToolCallPart)
        assert shown.arguments == kept.arguments.text == '{"a":"\ufffd"}'
        assert kept.repaired == ("$.arguments.a",)

    def test_a_block_that_changes_its_kind_is_refused(self) -> None:
        assembler = Assembler({})
        assembler.add(TextDelta(block=0, text="a"))
        with pytest.raises(ProviderError) as caught:
            assembler.add(ReasoningDelta(block=0, text="b"))
        assert caught.value.error.detail == "block 0 was a TextBlock and became a ReasoningBlock"


class TestStorable:
    """What a model or its provider gives must not cost the answer."""

    def test_lone_surrogates_in_names_and_ids_are_replaced_before_anything_is_shown(self) -> None:
        assembler = Assembler({})
        stream: list[StreamPart] = [
            CallDelta(block=0, text="{}", name="n\ud800", id="i\ud800"),
            CallEnd(block=0, id="i\ud800", name="n\ud800", arguments="{}", provider_executed=True),
            ProviderResult(block=1, call_id="i\ud800", output=["o\udc00"]),
            SourceFound(block=2, source_id="s\ud800", url="u\ud800", title="t\ud800"),
            Finish(reason="stop", usage=USAGE, response_id="r\ud800", model="m\ud800", explanation="e\ud800"),
        ]
        shown = [part for given in stream for part in assembler.add(given)]
        assert len(msgspec.json.encode(shown)) > 0
        call, result, source = assembler.parts(ID)
        assert isinstance(call, ToolCallPart)
        assert (call.name, call.provider_call_id) == ("n\ufffd", "i\ufffd")
        assert call.repaired == ("$.name", "$.provider_call_id")
        assert isinstance(result, ToolResultPart)
        assert (result.call, result.repaired) == (call_key(ID, 0), ("$.output[0]",))
        assert isinstance(source, SourcePart)
        assert source.source_id == "s\ufffd"
        assert assembler.step("p", "m").response_id == "r\ufffd"

    def test_names_and_ids_are_short(self) -> None:
        end = CallEnd(block=0, id="i" * 2_000_000, name="n" * 2_000_000, arguments="{}", provider_executed=True)
        call, result = fold(end, ProviderResult(block=1, call_id=end.id, output=1)).parts(ID)
        assert isinstance(call, ToolCallPart)
        assert (call.name, call.provider_call_id) == ("n" * MAX_SHORT, "i" * MAX_SHORT)
        assert call.repaired == ("$.name", "$.provider_call_id")
        assert isinstance(result, ToolResultPart)

    @pytest.mark.parametrize(("given", "kept"), [(12.0, 12), (10.5, 11), (float("nan"), 0), (1e300, MAX_TOKENS)])
    def test_counts_that_are_odd_lose_no_answer(self, given: Any, kept: int) -> None:
        part = Finish(reason="stop", usage=Usage(input=given), context_tokens=given)
        step = fold(part).step("p", "m")
        assert (step.usage, step.context) == (Usage(input=kept), kept)

    @pytest.mark.parametrize(("given", "kept"), [(-1, 0), (0, 0), (7, 7), (2**64, MAX_TOKENS), (10**30, MAX_TOKENS)])
    def test_usage_is_kept_within_bounds(self, given: int, kept: int) -> None:
        usage = Usage(input=given, output=1, cache_read=given, cache_write=given, reasoning=given)
        wanted = Usage(input=kept, output=1, cache_read=kept, cache_write=kept, reasoning=kept)
        assert fold(UsageSoFar(usage=usage)).step("p", "m").usage == wanted
        assert fold(Finish(reason="stop", usage=usage)).step("p", "m").usage == wanted


class TestStep:
    def test_of_a_whole_stream(self) -> None:
        assembler = fold(UsageSoFar(usage=Usage(input=3), response_id="early"), TextDelta(block=0, text="a"), FINISH)
        assert assembler.step("p", "m", started_at=1, ended_at=9) == Step(
            provider="p",
            model="m",
            finish_reason="stop",
            usage=USAGE,
            response_id="r",
            metadata=Content({"x": 1}),
            started_at=1,
            first_part_at=101,
            ended_at=9,
        )

    @pytest.mark.parametrize(("reported", "unmetered"), [(None, True), (Usage(), False), (Usage(input=3), False)])
    def test_an_answer_without_usage_is_unmetered(self, reported: Usage | None, unmetered: bool) -> None:
        step = fold(TextDelta(block=0, text="a"), Finish(reason="stop", usage=reported)).step("p", "m")
        assert (step.usage, step.unmetered) == (reported or Usage(), unmetered)

    @pytest.mark.parametrize(
        ("parts", "unmetered"),
        [
            ((), False),
            ((TextDelta(block=0, text="a"),), True),
            ((UsageSoFar(usage=Usage(), response_id="r"), TextDelta(block=0, text="a")), True),
            ((UsageSoFar(usage=Usage(input=3)), TextDelta(block=0, text="a")), True),
            ((UsageSoFar(usage=Usage()),), True),
        ],
        ids=["nothing", "text", "no count", "input counted", "accepted"],
    )
    def test_an_answer_that_was_cut_is_unmetered(
        self, parts: tuple[StreamPart | UsageSoFar, ...], unmetered: bool
    ) -> None:
        assert fold(*parts).step("p", "m").unmetered is unmetered

    def test_of_a_cut_stream_the_usage_so_far(self) -> None:
        assembler = fold(UsageSoFar(usage=Usage(input=3), response_id="early"))
        assert assembler.step("p", "m") == Step(
            provider="p", model="m", usage=Usage(input=3), response_id="early", unmetered=True
        )

    @pytest.mark.parametrize(
        ("reason", "awaits"),
        [
            ("tool_calls", True),
            ("stop", True),
            ("unknown", True),
            ("length", False),
            ("refusal", False),
            ("content_filter", False),
        ],
    )
    def test_a_call_that_arrived_but_half(self, reason: FinishReason, awaits: bool) -> None:
        half = fold(CallDelta(block=0, text="{", name="t", id="c"), Finish(reason=reason, usage=USAGE))
        whole = fold(call_end(), Finish(reason=reason, usage=USAGE))
        assert (half.awaits_call, whole.awaits_call) == (awaits, False)


@pytest.mark.parametrize("fit", [True, False])
@pytest.mark.parametrize(
    "policy",
    [
        ToolPolicy(name="t", runner="client", exclusive=True, stop_after=True, action_timeout_us=9),
        ToolPolicy(name="t", needs_approval=True, reconcile=True, action_on_expiry="end_turn"),
        ToolPolicy(name="t", stop_after=True),
    ],
    ids=["client", "approval", "neither"],
)
def test_a_call_that_nobody_is_asked_about_is_frozen_as_one_that_runs_here(policy: ToolPolicy, fit: bool) -> None:
    asked: list[tuple[str, str]] = []

    def fits(name: str, arguments: str) -> bool:
        asked.append((name, arguments))
        return fit

    assembler = Assembler({"t": policy}, fits)
    assembler.add(CallEnd(block=0, id="p", name="t", arguments='{"n": 1}'))
    (call,) = assembler.parts(ID)
    assert isinstance(call, ToolCallPart)
    asks = policy.runner == "client" or policy.needs_approval
    assert asked == ([("t", '{"n": 1}')] if asks else [])
    frozen = policy if fit or not asks else ToolPolicy(name="t", crash="rerun", exclusive=policy.exclusive)
    names = ("runner", "needs_approval", "stop_after", "exclusive", "crash", "reconcile")
    assert [getattr(call, name) for name in names] == [getattr(frozen, name) for name in names]
    assert (call.action_timeout_us, call.action_on_expiry) == (frozen.action_timeout_us, frozen.action_on_expiry)
