"""The timeline as a picture: a lane for each use of time, a bar for each span, and how much each took in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chatfold.pictures.spans import MEANING, Span, duration, joined, totals
from chatfold.pictures.styles import PICTURE
from chatfold.pictures.svg import clean, document, element, text
from events.given import checked_items

WIDTH: Final = 1000
LEFT: Final = 170
LANE: Final = 34
TOP: Final = 34
MOST: Final = 2000
"""Bars of one picture; of more, the longest are drawn."""

ROOM: Final = 34
"""What the text of a rest needs; a narrower one has it in its tooltip alone."""

REST: Final = 4_000_000
"""Rest that is longer than this many microseconds, and than a share (``SHORT``) of the other time, is drawn shorter."""

SHORT: Final = 12
"""The share, as a divisor, of all other time that such a rest is drawn as."""

_NAMES: Final = {"client": "waiting for client", "rest": "at rest"}
_STEPS: Final = (1, 2, 5)


def timeline_svg(found: Sequence[Span]) -> str:
    """Return where the time went as SVG. Long rests are drawn short, and say how long they were.

    Args:
        found: The spans of a log.

    Raises:
        InvalidValue: They are no spans.
    """
    found = list(checked_items(found, Span, "$.found", "the spans of a log, as spans(events) gives them"))
    sums = totals(found)
    lanes = [use for use in sums if use != "rest"]
    scale = _Scale(joined(found, MOST))
    height = TOP + LANE * max(1, len(lanes)) + 30
    inner = [element("rect", class_="paper", width=WIDTH, height=height), *_ticks(scale, height)]
    if not lanes:
        inner.append(text("No time passed in turns.", LEFT, TOP + 20, class_="soft"))
    busy = sum(sums[use] for use in lanes)
    for at, use in enumerate(lanes):
        y = TOP + LANE * at
        share = f"{duration(sums[use])}, {100 * sums[use] / busy:.0f} %"
        inner.append(element("line", x1=LEFT, x2=WIDTH - 10, y1=y + LANE, y2=y + LANE, class_="grid"))
        inner.append(text(_NAMES.get(use, use), 12, y + 15, class_="bold"))
        inner.append(text(share, 12, y + 28, class_="small soft"))
        inner += [_bar(scale, span, y) for span in scale.spans if span.use == use]
    inner += [_rest(scale, span, height) for span in scale.spans if span.use == "rest"]
    return document(WIDTH, height, inner, title="Where the time went", style=PICTURE)


class _Scale:
    """From microseconds to x: linear, but for long rests, which are squeezed."""

    def __init__(self, found: list[Span]) -> None:
        self.spans = found
        busy = sum(span.length for span in found if span.use != "rest")
        self.squeezed = max(busy // SHORT, 1) if busy else REST
        self._cuts = [span for span in found if self.is_cut(span)]
        self.began_at = found[0].began_at if found else 0
        self._whole = max(self._squeeze(found[-1].ended_at) if found else 1, 1)

    def is_cut(self, span: Span) -> bool:
        return span.use == "rest" and span.length > max(self.squeezed, REST)

    def _squeeze(self, at: int) -> float:
        gone = float(at - self.began_at)
        for cut in self._cuts:
            if cut.began_at >= at:
                break
            inside = min(at, cut.ended_at) - cut.began_at
            gone -= inside * (1 - self.squeezed / cut.length)
        return gone

    def x(self, at: int) -> float:
        return LEFT + (WIDTH - 10 - LEFT) * self._squeeze(at) / self._whole

    def clock(self) -> list[tuple[float, str]]:
        """Ticks up to the first cut: behind it, one scale would say what is not so."""
        if not self.spans:
            return []
        end = self._cuts[0].began_at if self._cuts else self.spans[-1].ended_at
        step = _step(max(1, int(self._whole // 8)))
        return [(self.x(self.began_at + at), duration(at)) for at in range(0, end - self.began_at + 1, step)]


def _step(least: int) -> int:
    size = 1
    while True:
        for each in _STEPS:
            if each * size >= least:
                return each * size
        size *= 10


def _bar(scale: _Scale, span: Span, y: float) -> str:
    x, end = scale.x(span.began_at), scale.x(span.ended_at)
    what = f"{span.use} {span.note}".strip() if span.note != "generate" else span.use
    tip = element("title", [clean(f"{what}: {duration(span.length)}, from version {span.version}")])
    return element(
        "rect", [tip], x=x, y=y + 7, width=max(end - x, 1.5), height=LANE - 14, rx=2, style=f"fill:var(--{span.use})"
    )


def _rest(scale: _Scale, span: Span, height: float) -> str:
    if not scale.is_cut(span):
        return ""
    x, end = scale.x(span.began_at), scale.x(span.ended_at)
    tip = element("title", [clean(f"{MEANING['rest']}: {duration(span.length)}, drawn shorter")])
    wide, high = max(end - x, 1.5), height - TOP - 30
    box = element("rect", [tip], x=x, y=TOP, width=wide, height=high, style="fill:var(--rest);opacity:.5")
    if wide < ROOM:
        return box
    return box + text(duration(span.length), (x + end) / 2, TOP - 6, text_anchor="middle", class_="small soft")


def _ticks(scale: _Scale, height: float) -> list[str]:
    base = height - 30
    return [
        element("line", x1=x, x2=x, y1=TOP, y2=base + 4, class_="grid")
        + text(said, x, base + 18, text_anchor="middle", class_="small soft")
        for x, said in scale.clock()
    ]
