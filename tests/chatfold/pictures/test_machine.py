"""The picture of the machine: everything has its place, ways are counted, and whatever stands in it is XML."""

from __future__ import annotations

import itertools
import re
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatfold.pictures.curves import Box, label_box, node_box
from chatfold.pictures.machine import machine_svg, way_of
from chatfold.pictures.places import LAYOUTS, Place
from chatfold.pictures.svg import clean, element
from chatstate.classify import STATUS_OF, X
from chatstate.diagram import START, Over, machine_edges, path_edges
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


def paths(svg: str) -> list[tuple[tuple[str, str], str]]:
    """Return the arrows of a picture: the nodes that their tooltips name, and their courses."""
    found = []
    for path in ET.fromstring(svg).iter(f"{NAMESPACE}path"):  # noqa: S314 -- our own
        tip = path.findtext(f"{NAMESPACE}title") or ""
        source, _, dest = tip.partition(":")[0].partition(" to ")
        found.append(((source, dest), path.get("d") or ""))
    return found


def course(path: str) -> list[tuple[float, float]]:
    """Return points along a path of one Bezier curve, as a browser draws it."""
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    control = list(zip(numbers[::2], numbers[1::2], strict=True))
    points = []
    for at in range(201):
        along, left = at / 200, control
        while len(left) > 1:  # de Casteljau
            pairs = itertools.pairwise(left)
            left = [(a + (c - a) * along, b + (d - b) * along) for (a, b), (c, d) in pairs]
        points.append(left[0])
    return points


def drawn_pictures() -> list[tuple[Over, str]]:
    pictures = [(over, machine_svg(over, None)) for over in get_args(Over)]
    return pictures + [(over, machine_svg(over, way_of(recorded(), over), times=True)) for over in get_args(Over)]


@pytest.mark.parametrize(("over", "svg"), drawn_pictures())
def test_no_arrow_goes_through_a_node_or_leaves_the_picture(over: Over, svg: str) -> None:
    layout = LAYOUTS[over]
    arrows = paths(svg)
    assert {ends for ends, _ in arrows} >= {(edge.source, edge.dest) for edge in machine_edges(over)}
    for ends, path in arrows:
        for x, y in course(path):
            assert 0 <= x <= layout.width
            assert 0 <= y <= layout.height
            for name, place in layout.places.items():
                apart = max(abs(x - place.x) / layout.half_width, abs(y - place.y) / layout.half_height)
                assert name in ends or apart > 1, (ends, name)


@pytest.mark.parametrize(("over", "svg"), drawn_pictures())
def test_an_arrow_touches_its_own_nodes_at_its_ends_alone(over: Over, svg: str) -> None:
    layout = LAYOUTS[over]
    for (source, dest), path in paths(svg):
        for place, (x, y) in ((source, course(path)[0]), (dest, course(path)[-1])):
            box = node_box(layout, place, 0.2)
            assert Box(x, y, 0.1, 0.1).meets(box), (source, dest)
        for x, y in course(path)[10:-10]:
            for name in (source, dest):
                assert not Box(x, y, 0, 0).meets(node_box(layout, name, -0.2)), (source, dest)


@pytest.mark.parametrize(("over", "svg"), drawn_pictures())
def test_no_label_lies_on_a_node_or_on_another_label(over: Over, svg: str) -> None:
    layout = LAYOUTS[over]
    nodes = [node_box(layout, name) for name in layout.places]
    labels = []
    for label in ET.fromstring(svg).iter(f"{NAMESPACE}text"):  # noqa: S314 -- our own
        if "label" in (label.get("class") or "").split():
            said = label.text or ""
            middle = Place(float(label.get("x") or 0), float(label.get("y") or 0) - 4)
            labels.append((said, label_box(middle, [said])))
    assert labels
    assert [said for said, box in labels if any(box.meets(node) for node in nodes)] == []
    pairs = itertools.combinations(labels, 2)
    assert [(one, other) for (one, box), (other, room) in pairs if box.meets(room._replace(half_height=6))] == []


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
