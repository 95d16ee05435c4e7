"""The picture of the machine: everything has its place, ways are counted, and whatever stands in it is XML."""

from __future__ import annotations

from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatfold.pictures.machine import machine_svg, way_of
from chatfold.pictures.places import LAYOUTS
from chatfold.pictures.svg import clean, element
from chatstate.classify import STATUS_OF, X
from chatstate.diagram import START, Over, path_edges
from tests.chatfold.replaying.pair import recorded

NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{NAMESPACE}text")]  # noqa: S314 -- our own


def test_each_status_and_each_execution_state_has_a_place() -> None:
    assert set(LAYOUTS["status"].places) == {*STATUS_OF.values(), "invalid"}
    assert set(LAYOUTS["execution"].places) == {START, *(str(x) for x in X if x is not X.N)}
    assert set(LAYOUTS) == set(get_args(Over))


@pytest.mark.parametrize("over", get_args(Over))
def test_no_node_covers_another_or_leaves_the_picture(over: Over) -> None:
    layout = LAYOUTS[over]
    places = list(layout.places.values())
    for at, one in enumerate(places):
        assert layout.half_width <= one.x <= layout.width - layout.half_width or one == layout.places[START]
        assert layout.half_height <= one.y <= layout.height - layout.half_height
        for other in places[at + 1 :]:
            apart = abs(one.x - other.x) > 2 * layout.half_width or abs(one.y - other.y) > 2 * layout.half_height
            assert apart, (one, other)


@pytest.mark.parametrize("over", get_args(Over))
def test_the_way_of_a_chat_is_that_of_the_other_diagrams_with_its_times(over: Over) -> None:
    log = recorded()
    way = way_of(log, over)
    assert way.edges == path_edges(log, over)
    assert sum(way.times.values()) == log[-1].envelope.recorded_at - log[0].envelope.recorded_at
    assert way.now == ("waiting" if over == "status" else "W")


def test_what_is_said_of_a_way() -> None:
    drawn = texts(machine_svg("status", way_of(recorded(), "status")))
    assert "acquire x2" in drawn
    assert "commit_step x6" in drawn
    assert "fail_turn" not in drawn
    assert "fail_turn" in texts(machine_svg("status"))
    assert not any(said.endswith(" ms") for said in drawn)
    assert any(said.endswith("ms") for said in texts(machine_svg("status", way_of(recorded(), "status"), times=True)))


@given(st.text())
def test_any_text_can_stand_in_an_element(said: str) -> None:
    parsed = ET.fromstring(element("a", [clean(said)], title=said))  # noqa: S314 -- our own
    assert len(parsed) == 0
    if said.isprintable():
        assert (parsed.text or "") == said
        assert parsed.get("title") == said


def test_what_xml_cannot_have_is_replaced() -> None:
    assert clean("a\x00\x1b\ud800\uffff<b>&\"'") == "a\ufffd\ufffd\ufffd\ufffd&lt;b&gt;&amp;&quot;&#x27;"
