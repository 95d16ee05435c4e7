"""The report: one file, complete by itself, in which a chat's texts are nothing but texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from chatfold.pictures import report
from chatfold.pictures.report import report_html
from chatfold.replaying.incidents import incidents
from chatfold.replaying.logs import find_log
from events.content import Content
from events.envelope import Recorded
from events.ids import CallKey
from events.messages import Message
from events.parts import TextPart, ToolCallPart, ToolResultPart
from events.records import ErrorInfo
from events.vocabulary import MessageSent, StepCommitted, TitleChanged, TurnFailed
from tests.chatfold.replaying.pair import recorded
from tests.meta.source import ROOT

HOSTILE = "</pre></style></script><script src=//evil.example/x></script><img src=x onerror='a()'>\"&\x00\u2028"
VOID = {"meta"}


class Page(HTMLParser):
    """Collects the elements and checks that each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile() -> list[Recorded]:
    """A chat in which every text is hostile, and so are names that others chose."""
    log = recorded()
    text = Content(HOSTILE)
    last = log[-1]

    def event(version: int, what: TitleChanged | StepCommitted | TurnFailed | MessageSent) -> Recorded:
        at = replace(last.envelope, version=version, type=what.type)
        return Recorded(at, what)

    call = ToolCallPart(name=HOSTILE, arguments=text, provider_call_id="c", runner="local")
    said = Message(role="assistant", parts=(TextPart(text=text), call))
    result = Message(role="tool", parts=(ToolResultPart(call=CallKey("5.0.1"), is_error=True, output=text),))
    return [
        *log,
        event(22, TitleChanged(title=text)),
        event(23, MessageSent(added=(Message(role="user", parts=(TextPart(text=text),)),))),
        event(24, StepCommitted(attempt=1, added=(said, result))),
        event(25, TurnFailed(error=ErrorInfo(kind=HOSTILE, message=text, detail=text))),
    ]


def test_nothing_of_a_chat_becomes_markup() -> None:
    page = Page(report_html(hostile(), altered=HOSTILE))
    assert page.open == []
    allowed = {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div", "span", "b", "table", "thead",
        "tbody", "tr", "th", "td", "code", "pre", "details", "summary", "svg", "g", "rect", "circle", "line", "path",
        "polygon", "text",
    }  # fmt: skip
    assert {tag for tag, _ in page.elements} <= allowed
    assert not [attributes for _, attributes in page.elements for name in attributes if name.startswith("on")]
    shown = HOSTILE.replace("\x00", "\ufffd")
    assert page.text.count(shown) >= 8


def test_it_refers_to_nothing_and_lets_nothing_be_loaded() -> None:
    text = report_html(recorded())
    page = Page(text)
    for _, attributes in page.elements:
        assert not {"src", "href", "srcset", "action", "xlink:href"} & set(attributes)
    styles = "".join(re.findall(r"<style>(.*?)</style>", text)) + "".join(re.findall(r'style="(.*?)"', text))
    assert not re.search(r"url\(|@import|expression", styles)
    assert set(re.findall(r"https?://[^\"' ]*", text)) == {"http://www.w3.org/2000/svg"}
    policies = [at["content"] for _, at in page.elements if at.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]


def test_what_stands_in_it() -> None:
    page = Page(report_html(recorded("gone")))
    for said in ("chat-gone", "Where is gone?", "Let me see.", "calls look_up", "failed: ", "run_tools", "waiting W"):
        assert said in page.text
    headings = re.findall(r"<h2>(.*?)</h2>", report_html(recorded()))
    assert headings == ["Its way through the machine", "Where the time went", "Decisions", "Transcript", "Events"]
    assert "<h2>Errors</h2>" in report_html(hostile())


def test_what_went_wrong_stands_at_its_top_as_doctor_tells_it() -> None:
    log = find_log(str(ROOT / "tests" / "incidents" / "retry_storm.jsonl")).read().recorded()
    text = " ".join(Page(report_html(log)).text.split())
    assert text.index("Incidents") < text.index("Its way through the machine")
    assert [each.kind for each in incidents(log)] == ["retry_storm", "failed_turn"]
    for each in incidents(log):
        assert {each.what in text, each.advice in text} == {True}
    assert "Incidents" not in report_html(recorded())


def test_of_long_lists_the_newest_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST", 3)
    text = report_html(recorded())
    assert "18 earlier ones are left out." in text
    assert "Done." in text
    assert "Let me see." not in Page(text).text


def test_of_a_very_long_text_the_two_ends_are_told() -> None:
    log = hostile()
    text = Content("begin " + "x" * 5_000_000 + " end")
    at = log[-1].envelope
    long = MessageSent(added=(Message(role="user", parts=(TextPart(text=text),)),))
    page = report_html([*log, Recorded(replace(at, version=at.version + 1, type=long.type), long)])
    assert len(page) < len(report_html(log)) + 2 * report.LONGEST
    shown = Page(page).text
    assert "[4,980,010 characters are left out here; `chatfold show` has all]" in shown
    assert "begin xxx" in shown
    assert "xxx end" in shown


def test_a_log_without_events_has_a_report() -> None:
    assert Page(report_html([])).open == []
