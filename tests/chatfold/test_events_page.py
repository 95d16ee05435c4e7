"""The page of events says all that the vocabulary holds."""

from __future__ import annotations

import re

import msgspec

from chatfold._docs.events_page import render, type_name
from events.content import Content
from events.effects import Effects, Interrupting
from events.vocabulary import EVENT_TYPES

PAGE = render()


def section(title: str) -> str:
    return PAGE.partition(f"\n### {title}\n")[2].partition("\n### ")[0]


def test_every_event_has_its_row_and_its_section_with_its_own_fields() -> None:
    for cls in EVENT_TYPES.values():
        assert f"| [`{cls.type}`](#{cls.type}) | `{cls.trigger}` | {cls.schema} |" in PAGE
        text = section(cls.type)
        assert (cls.__doc__ or "").partition(".")[0].replace("``", "`") in text
        for field in msgspec.structs.fields(cls):
            shared = next((base for base in (Interrupting, Effects) if issubclass(cls, base)), None)
            here = shared is None or field.name not in shared.__struct_fields__
            assert (f"| `{field.name}` |" in text) is here, (cls.type, field.name)
            if shared is not None:
                assert f"[{shared.__name__}](#{shared.__name__.lower()})" in text


def test_content_is_marked() -> None:
    assert "| `title` | **content** \\| null |  |" in section("chat_created")
    assert "| `arguments` | **content** | required |" in section("ToolCallPart")
    assert type_name(dict[str, str | None]) == "object of text | null"
    assert type_name(tuple[Content, ...]) == "list of **content**"


def test_every_link_leads_to_a_heading() -> None:
    headings = {title.lower() for title in re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", PAGE)) <= headings


def test_the_page_is_the_same_each_time() -> None:
    assert render() == PAGE
    assert PAGE.endswith("\n")
    assert not PAGE.endswith("\n\n")
