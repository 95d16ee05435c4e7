"""Prompt assembly, rule by rule."""

from __future__ import annotations

import pytest

from events.content import Absent, Content, Json
from events.errors import TranscriptMissing
from events.ids import CallKey
from events.messages import Message
from events.parts import (
    ContextFilePart,
    FilePart,
    FileReferencePart,
    Part,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from events.reasons import REASON_TEXTS, Reason
from events.state import ChatState, initial_state
from generation.prompt import build_prompt
from generation.prompt_texts import GO_ON, NO_OUTPUT, NO_RESULT, UNAVAILABLE, summary_instruction
from generation.prompt_types import PromptCall, PromptReasoning, PromptResult
from tests.generation.kit import (
    assistant,
    call,
    prompt_of,
    result,
    short,
    state_of,
    system,
    system_of,
    text,
    thought,
    tool,
    user,
)

ERASED = Content(Absent.ERASED, 10)
NOT_LOADED = Content(Absent.NOT_LOADED, 10)


def boundary(kind: str, summary: str) -> list[Message]:
    return [
        user(summary, visibility="model", boundary=kind),
        assistant(call(kind), visibility="user", boundary=kind),
        tool(result("0.0.0"), visibility="user", boundary=kind),
    ]


def test_a_plain_chat() -> None:
    messages = prompt_of(user("hi"), assistant("hello"), user("how are you?"))
    assert short(messages) == ["user: hi", "assistant: hello", "user: how are you?"]


@pytest.mark.parametrize(("visibility", "shown"), [("both", True), ("model", True), ("user", False)])
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_only_what_models_may_read_enters(role: str, visibility: str, shown: bool) -> None:
    message = Message(role=role, parts=(text("secret"),), visibility=visibility)  # type: ignore[arg-type]
    built = build_prompt(state_of([user("hi"), message, user("bye")]))
    system_texts, messages = built.system, built.messages
    assert ("secret" in " ".join([*system_texts, *short(messages)])) is shown


def test_an_assistant_message_for_users_hides_its_calls_and_their_results() -> None:
    messages = prompt_of(user("hi"), assistant(call(), visibility="user"), tool(result("2.0.0")), user("bye"))
    assert short(messages) == ["user: hi", "user: bye"]


class TestBoundaries:
    def test_of_a_summary_the_summary_and_what_follows_is_shown(self) -> None:
        messages = prompt_of(
            system("be kind"),
            user("old"),
            assistant("old answer"),
            *boundary("chat_summarized", "They talked."),
            user("again", visibility="model"),
            assistant("new answer"),
            user("new"),
        )
        assert short(messages) == ["user: They talked.", "user: again", "assistant: new answer", "user: new"]

    def test_of_a_cleared_context_nothing_is_shown(self) -> None:
        messages = prompt_of(user("old"), assistant("x"), *boundary("chat_cleared", "Cleared."), user("new"))
        assert short(messages) == ["user: new"]

    @pytest.mark.parametrize("between", [[], [user("mid"), assistant("x")]])
    def test_the_newest_boundary_counts(self, between: list[Message]) -> None:
        first, second = boundary("chat_summarized", "One."), boundary("chat_summarized", "Two.")
        assert short(prompt_of(user("old"), *first, *between, *second, user("new"))) == ["user: Two.", "user: new"]

    def test_a_summary_after_a_clearing_and_the_reverse(self) -> None:
        cleared, summed = boundary("chat_cleared", "Cleared."), boundary("chat_summarized", "Sum.")
        assert short(prompt_of(user("old"), *cleared, *summed, user("new"))) == ["user: Sum.", "user: new"]
        assert short(prompt_of(user("old"), *summed, *cleared, user("new"))) == ["user: new"]

    def test_system_messages_of_all_history_stay(self) -> None:
        texts = system_of(system("one"), user("old"), *boundary("chat_summarized", "S."), system("two"), user("new"))
        assert texts == ("one", "two")


class TestSystem:
    def test_each_text_is_one_and_blank_ones_go(self) -> None:
        assert system_of(system("one", " \n", "two"), user("hi"), system("three")) == ("one", "two", "three")

    def test_only_the_newest_context_counts_and_goes_last(self) -> None:
        old = ContextFilePart(path=Content("A.md"), text=Content("old"), os="linux", directory=Content("/w"))
        new = ContextFilePart(path=Content("A.md"), text=Content("new ``` fence"), os="linux", directory=Content("/w"))
        cut = ContextFilePart(path=Content('B"<.md'), text=Content("b"), truncated=True)
        texts = system_of(system(old), system("be kind"), system(new, cut), user("hi"), system("be brief"))
        assert texts[:2] == ("be kind", "be brief")
        assert texts[2].splitlines() == [
            "<workspace-context>",
            "Operating system: linux",
            "Working directory: /w",
            '<file path="A.md">',
            "````",
            "new ``` fence",
            "````",
            "</file>",
            '<file path="B&quot;&lt;.md" truncated="true">',
            "```",
            "b",
            "```",
            "</file>",
            "</workspace-context>",
        ]
        assert len(texts) == 3


class TestResults:
    def test_results_follow_their_calls_in_call_order(self) -> None:
        messages = prompt_of(
            user("hi"),
            assistant("ok", call(id="a"), call(id="b")),
            tool(result("2.0.2", "second")),
            tool(result("2.0.1", "first")),
        )
        assert short(messages) == ["user: hi", "assistant: ok | a(t {}) | b(t {})", "tool: a=first | b=second"]

    def test_a_result_that_stands_elsewhere_moves_to_its_call(self) -> None:
        messages = prompt_of(user("hi"), assistant(call()), user("well?"), tool(result("2.0.0")))
        assert short(messages) == ["user: hi", "assistant: c(t {})", "tool: c=done", "user: well?"]

    def test_an_open_call_is_answered_by_an_error(self) -> None:
        messages = prompt_of(user("hi"), assistant(call(id="a"), call(id="b")), tool(result("2.0.1")), user("bye"))
        assert short(messages)[2] == f"tool: a=!{NO_RESULT} | b=done"

    def test_the_first_of_two_results_counts(self) -> None:
        messages = prompt_of(user("hi"), assistant(call()), tool(result("2.0.0", "one"), result("2.0.0", "two")))
        assert short(messages)[2] == "tool: c=one"

    def test_a_result_without_its_call_is_left_out(self) -> None:
        assert short(prompt_of(user("hi"), tool(result("9.0.0")), user("bye"))) == ["user: hi", "user: bye"]

    @pytest.mark.parametrize("reason", list(Reason))
    def test_reasons_become_error_results(self, reason: Reason) -> None:
        messages = prompt_of(user("hi"), assistant(call()), tool(result("2.0.0", reason=reason)))
        assert short(messages)[2] == f"tool: c=!{REASON_TEXTS[reason]}"

    @pytest.mark.parametrize(
        ("output", "shown"),
        [
            ("as it is\n", "as it is\n"),
            ({"b": [1, "ä"], "a": None}, '{"b":[1,"ä"],"a":null}'),
            ([], "[]"),
            (None, "null"),
            (3, "3"),
            ("", NO_OUTPUT),
            (" \n", NO_OUTPUT),
        ],
    )
    def test_outputs(self, output: Json, shown: str) -> None:
        assert short(prompt_of(user("hi"), assistant(call()), tool(result("2.0.0", output))))[2] == f"tool: c={shown}"

    def test_no_output_at_all(self) -> None:
        nothing = ToolResultPart(call=CallKey("2.0.0"))
        assert short(prompt_of(user("hi"), assistant(call()), tool(nothing)))[2] == f"tool: c={NO_OUTPUT}"

    def test_a_providers_own_pair_stays_in_the_message(self) -> None:
        own = assistant("a", call(id="s", runner="provider"), result("2.0.1", "found", provider=True), "b")
        assert short(prompt_of(user("hi"), own, user("more")))[1] == "assistant: a | s(t {}) | s=found | b"

    def test_a_providers_call_without_its_result_is_left_out(self) -> None:
        own = assistant("a", call(id="s", runner="provider"))
        assert short(prompt_of(user("hi"), own, user("more"))) == ["user: hi", "assistant: a", "user: more"]

    def test_reasoning_behind_a_providers_call_that_is_left_out_goes_too(self) -> None:
        before, behind = (ReasoningPart(text=Content(text)) for text in ("before", "behind"))
        own = assistant(before, "a", call(id="s", runner="provider"), behind, "b")
        (made,) = [message for message in prompt_of(user("hi"), own, user("more")) if message.role == "assistant"]
        assert [part.text for part in made.parts if isinstance(part, PromptReasoning)] == ["before"]

    def test_a_providers_result_in_another_message_does_not_count(self) -> None:
        own = assistant("a", call(id="s", runner="provider"))
        messages = prompt_of(user("hi"), own, tool(result("2.0.1", provider=True)), user("more"))
        assert short(messages) == ["user: hi", "assistant: a", "user: more"]

    def test_a_providers_result_without_its_call_is_left_out(self) -> None:
        own = assistant(result("2.0.1", provider=True), "a")
        assert short(prompt_of(user("hi"), own, user("more")))[1] == "assistant: a"


class TestArguments:
    @pytest.mark.parametrize(
        ("given", "sent"),
        [
            ('{"a": 1}', '{"a": 1}'),
            ("", "{}"),
            ('{"a": ', "{}"),
            ("[1]", "{}"),
            ("null", "{}"),
            ('{"a": NaN}', "{}"),
            ('{"a": "\\ud83d"}', '{"a":"\ufffd"}'),
            ('{"a": "\\ud83d\\ude00"}', '{"a":"😀"}'),
        ],
    )
    def test_what_is_no_object_becomes_an_empty_one(self, given: str, sent: str) -> None:
        assert short(prompt_of(user("hi"), assistant(call(arguments=given))))[1] == f"assistant: c(t {sent})"


class TestIds:
    @pytest.mark.parametrize(
        ("given", "used"),
        [
            ("toolu_01-A", "toolu_01-A"),
            ("", "call_2_0_0"),
            ("a.b", "call_2_0_0"),
            ("ä", "call_2_0_0"),
            ("x" * 64, "x" * 64),
            ("x" * 65, "call_2_0_0"),
            ("a\n", "call_2_0_0"),
        ],
    )
    def test_well_formed_ids_are_kept(self, given: str, used: str) -> None:
        assert short(prompt_of(user("hi"), assistant(call(id=given))))[1] == f"assistant: {used}(t {{}})"

    def test_the_first_keeps_a_repeated_id(self) -> None:
        messages = prompt_of(user("hi"), assistant(call(), call()), assistant(call()))
        assert short(messages)[1::2] == ["assistant: c(t {}) | call_2_0_1(t {})", "assistant: call_3_0_0(t {})"]

    def test_a_made_id_that_a_provider_used_before_gives_way(self) -> None:
        messages = prompt_of(user("hi"), assistant(call(id="call_2_0_1"), call(id="")))
        assert short(messages)[1] == "assistant: call_2_0_1(t {}) | call_2_0_1_(t {})"

    def test_a_provider_that_uses_a_made_id_later_gives_way(self) -> None:
        messages = prompt_of(user("hi"), assistant(call(id="")), assistant(call(id="call_2_0_0")))
        assert short(messages)[3] == "assistant: call_3_0_0(t {})"


class TestNames:
    @pytest.mark.parametrize(
        ("written", "sent"),
        [
            ("get_weather-2", "get_weather-2"),
            ("functions.ok", "functions_ok"),
            ("bad name", "bad_name"),
            ("\u00e4\U0001f600\0", "___"),
            ("", "unnamed"),
            ("n" * 65, "n" * 64),
        ],
    )
    def test_of_calls_and_their_results_are_legal(self, written: str, sent: str) -> None:
        messages = prompt_of(user("hi"), assistant(call(written)), tool(result("2.0.0")))
        parts = [part for message in messages[1:] for part in message.parts]
        assert [part.name for part in parts if isinstance(part, PromptCall | PromptResult)] == [sent, sent]

    def test_of_the_provider_too(self) -> None:
        own = assistant(call("a.b", runner="provider"), result("2.0.0", provider=True))
        parts = prompt_of(user("hi"), own, user("go on"))[1].parts
        assert [part.name for part in parts if isinstance(part, PromptCall | PromptResult)] == ["a_b", "a_b"]


class TestBlanksAndEnds:
    def test_blank_texts_and_empty_messages_go(self) -> None:
        messages = prompt_of(user("hi"), assistant(" \n", "a"), user(" "), assistant("", thought(" ")), user("bye"))
        assert short(messages) == ["user: hi", "assistant: a", "user: bye"]

    def test_blank_reasoning_stays_where_it_has_metadata(self) -> None:
        messages = prompt_of(user("hi"), assistant(thought("", {"signature": "s"}), "a"), user("bye"))
        assert short(messages)[1] == "assistant: () | a"

    def test_reasoning_says_whose_it_is(self) -> None:
        part = prompt_of(user("hi"), assistant(thought("hm", {"s": 1})), user("bye"))[1].parts[0]
        assert part == PromptReasoning(text="hm", metadata={"s": 1}, provider="anthropic", model="m")

    def test_no_prompt_ends_with_an_answer(self) -> None:
        assert short(prompt_of(user("hi"), assistant("a", interrupted=True)))[-1] == f"user: {GO_ON}"

    def test_an_instruction_is_the_last_word(self) -> None:
        messages = prompt_of(user("hi"), assistant("a"), instruction=summary_instruction("keep names"))
        assert messages[-1].role == "user"
        assert len(messages) == 3
        assert short(messages)[-1].endswith("The user adds: keep names")

    def test_an_empty_history_gives_an_empty_prompt(self) -> None:
        built = build_prompt(state_of([]))
        assert (built.system, list(built.messages)) == ((), [])

    def test_a_state_without_its_transcript_is_refused(self) -> None:
        with pytest.raises(TranscriptMissing):
            build_prompt(ChatState(control=initial_state().control, transcript=None))


class TestParts:
    @pytest.mark.parametrize(
        ("part", "shown"),
        [
            (FilePart(media_type="image/png", data=Content("AAAA")), "[image/png]"),
            (
                FileReferencePart(name=Content("a.py"), start_line=3, end_line=3, text=Content("x = 1\n")),
                '<file-reference name="a.py" lines="3">\n```\nx = 1\n```\n</file-reference>',
            ),
            (
                FileReferencePart(name=Content('a"b'), start_line=3, end_line=5, text=Content("```")),
                '<file-reference name="a&quot;b" lines="3-5">\n````\n```\n````\n</file-reference>',
            ),
        ],
    )
    def test_parts_of_users(self, part: Part, shown: str) -> None:
        assert short(prompt_of(user(part))) == [f"user: {shown}"]

    def test_sources_and_files_of_answers_are_not_sent(self) -> None:
        source = SourcePart(source_id="s", url=Content("https://a.example"))
        file = FilePart(media_type="image/png", data=Content("AAAA"))
        assert short(prompt_of(user("hi"), assistant("a", source, file), user("bye")))[1] == "assistant: a"


@pytest.mark.parametrize("gone", [ERASED, NOT_LOADED])
class TestContentThatIsNotAtHand:
    def test_texts_and_results(self, gone: Content) -> None:
        messages = prompt_of(
            user(TextPart(text=gone)),
            assistant(
                TextPart(text=gone), ToolCallPart(name="t", arguments=gone, provider_call_id="c", runner="local")
            ),
            tool(ToolResultPart(call=CallKey("2.0.1"), output=gone)),
        )
        assert short(messages) == [
            f"user: {UNAVAILABLE}",
            f"assistant: {UNAVAILABLE} | c(t {{}})",
            f"tool: c={UNAVAILABLE}",
        ]

    def test_reasoning_goes_whole(self, gone: Content) -> None:
        messages = prompt_of(
            user("hi"),
            assistant(ReasoningPart(text=gone, metadata=Content({"s": 1})), "a"),
            assistant(ReasoningPart(text=Content("hm"), metadata=gone), "b"),
        )
        assert short(messages)[1:3] == ["assistant: a", "assistant: b"]

    def test_files(self, gone: Content) -> None:
        (message,) = prompt_of(user(FilePart(media_type="image/png", data=gone, name=gone)))
        assert short([message])[0].startswith("user: [A file of type image/png stood here")

    def test_names_of_files(self, gone: Content) -> None:
        file = FilePart(media_type="image/png", data=Content("AAAA"), name=gone)
        assert short(prompt_of(user(file))) == ["user: [image/png]"]
